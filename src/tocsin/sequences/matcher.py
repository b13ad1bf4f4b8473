"""The interface of everything that runs sequences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch
from tocsin.sequences.compiling.compiler import CompiledSequence
from tocsin.sequences.inspection import SequenceState
from tocsin.sequences.matches import SequenceMatches
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Bools, Int64s

if TYPE_CHECKING:
    from tocsin.sequences.running.matcher import SequenceStats  # it imports Numba
    from tocsin.sequences.running.saving import SavedMatcher


class SequenceMatcher(Protocol):
    """Runs sequences over events; the caller makes one call at a time.

    A subscription sees the events that end after the last event processed before it was added.
    """

    def add(self, numbers: IdArray, compiled: CompiledSequence, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; unknown numbers are ignored."""

    def process(self, events: TimedBatch) -> SequenceMatches:
        """Process further events, which end no earlier than those before, and return the sequences they complete."""


class InspectableSequenceMatcher(SequenceMatcher, Protocol):
    """A matcher that also reports its size and the state of each subscription."""

    def inspect(self, number: int, samples: int = 3) -> SequenceState:
        """Return the state of a subscription, with up to `samples` instances of each node, the newest first."""

    def stats(self) -> SequenceStats:
        """Return how much is stored and how much work was done."""

    def snapshot(self) -> Parts:
        """Return all partial matches; the matches of `process` must have been read."""

    def read_snapshot(self, parts: Parts) -> SavedMatcher:
        """Return a snapshot, checked, or raise `SavedError`; nothing changes."""

    def nothing_saved(self) -> SavedMatcher:
        """Return the snapshot of a new matcher."""

    def restore(self, saved: SavedMatcher) -> int:
        """Replace all partial matches by those of a snapshot; return how many no subscription can continue."""

    def first_ends(self, numbers: IdArray) -> tuple[Int64s, Bools]:
        """Return the first end that each subscription sees, and whether it is known."""

    def set_first_ends(self, numbers: IdArray, first_ends: Int64s) -> Bools:
        """Have subscriptions see the events from an end on, each from its own; return which of them are known."""
