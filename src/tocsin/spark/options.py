"""The options that a data source is given: a misspelt one is an error, never ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from tocsin.model.errors import SparkError

__all__ = ["check_options"]


def check_options(source: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise `SparkError` for the first option that `source` does not know; names are compared without case."""
    spelling = {name.lower(): name for name in known}
    for name in given:
        if name.lower() not in spelling:
            near = get_close_matches(name.lower(), spelling, n=1)
            remedy = (
                f"did you mean `{spelling[near[0]]}`?" if near else f"it knows {', '.join(sorted(known))}"
            )
            raise SparkError(f"{source}: there is no option `{name}`; {remedy}")
