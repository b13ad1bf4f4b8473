"""What a benchmark runs, and what of it was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from tocsin.matching import create_matcher
from tocsin.model.errors import TocsinError

Session = TypeVar("Session")


class Experiment(Struct, Generic[Session], frozen=True):
    """What is varied, and how that is measured."""

    title: str
    varied: str  # what a measurement's `at` is
    work: Callable[[Session], None]


def check_choice(
    experiments: Sequence[str], matchers: Sequence[str], known: Mapping[str, Experiment[Session]]
) -> None:
    """Raise `TocsinError` if there is no such experiment or matcher, before anything is measured."""
    unknown = [name for name in experiments if name not in known]
    if unknown:
        raise TocsinError(f"there is no experiment `{unknown[0]}`; there are: {', '.join(known)}")
    for name in matchers:
        create_matcher(name)
