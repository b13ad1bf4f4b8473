"""The options that a data source is given: a misspelt one is an error, never ignored."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tocsin.language.parsing.cursor import closest
from tocsin.model.errors import SparkError


def check_options(source: str, given: Iterable[str], known: Collection[str]) -> None:
    """Raise `SparkError` for the first option that `source` does not know; names are compared without case."""
    lowered = {name.lower() for name in known}
    for name in given:
        if name.lower() not in lowered:
            near = closest(name, tuple(known), 0.6)
            remedy = f"did you mean `{near}`?" if near else f"it knows {', '.join(sorted(known))}"
            raise SparkError(f"{source}: there is no option `{name}`; {remedy}")
