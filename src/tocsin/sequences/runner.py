"""The interface of what runs sequences, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model.queries import Sequence
from tocsin.sequences.algebra import Expression
from tocsin.sequences.arrivals import Arrivals
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.witnesses import Witnesses


class Prepared(Struct, frozen=True):
    """A sequence, or a template of sequences, ready to be run: its expression and its automaton.

    `reads` are the streams it reads, those of sequences in parentheses included, and `publishes` the one it feeds.
    With `full`, its witnesses have every event of their steps.
    """

    query: Sequence
    expression: Expression
    automaton: Automaton
    reads: frozenset[str]
    publishes: str | None = None
    full: bool = False


class Runner(Protocol):
    """Runs sequences over events. Its user sees to it that one call at a time is made.

    A subscription sees events that end after the last one that had come when it was added.
    """

    def add(self, numbers: IdArray, prepared: Prepared, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; those that are not there are passed over."""

    def advance(self, arrivals: Arrivals) -> Witnesses:
        """Take further events, which end no earlier than those before, and return what they completed."""
