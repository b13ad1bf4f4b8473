"""Snapshots of a scheduled matcher: which of its subscriptions have begun or expired, and the matcher's own snapshot."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Final

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.errors import SavedError
from tocsin.model.options import ALWAYS
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s
from tocsin.structures.compact_parts import PartsReader, PartsWriter
from tocsin.structures.row_lookup import find_rows

if TYPE_CHECKING:
    from tocsin.sequences.running.saving import SavedMatcher  # it imports Numba

SAVED: Final = "tocsin sequences"
EXPIRED: Final = ALWAYS
"""Stands for the first end of a subscription that has expired; no subscription sees an event that ended then."""


class Standing(IntEnum):
    """What a snapshot knows of a subscription."""

    UNKNOWN = 0
    ACTIVE = 1  # it sees events from its first end on, which may not have come yet
    EXPIRED = 2


class SavedSchedule(Struct, frozen=True):
    """A snapshot of a scheduled matcher, read and checked."""

    processed: int
    standings: Int64s  # by the order of the numbers that the snapshot was taken with
    first_ends: Int64s
    matches: SavedMatcher

    def of(self, numbers: IdArray, own: IdArray) -> tuple[Int64s, Int64s]:
        """Return the standing and the first end of each of a matcher's own subscriptions.

        `numbers` are those that the snapshot was taken with, in its order; -1 for those that are gone.
        """
        standings = np.full(len(own), Standing.UNKNOWN, dtype=np.int64)
        first_ends = np.zeros(len(own), dtype=np.int64)
        known = np.flatnonzero(numbers >= 0)
        rows = find_rows(numbers[known], own)
        is_found = rows >= 0
        standings[is_found] = self.standings[known[rows[is_found]]]
        first_ends[is_found] = self.first_ends[known[rows[is_found]]]
        return standings, first_ends

    @classmethod
    def read(cls, parts: Parts, read_matches: Callable[[Parts], SavedMatcher]) -> SavedSchedule:
        """Return a snapshot, or raise `SavedError`."""
        try:
            reader = PartsReader(parts.part("subscriptions"))
            processed = int(parts.about["processed"])
            standings, first_ends = reader.runs("standings"), reader.runs("first_ends")
            if len(standings) != len(first_ends) or not set(standings.tolist()) <= set(Standing):
                raise ValueError("they contradict each other")
        except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as fault:
            raise SavedError(f"the times of sequences are damaged: {fault}") from fault
        return cls(processed, standings, first_ends, read_matches(parts.part("matches")))


def read_ticks_of(parts: Parts, format_: int) -> dict[int, Parts]:
    """Return the snapshots within that of a runtime, by the length of a tick, or raise `SavedError`."""
    if parts.about.get("saved") != SAVED or parts.about.get("format") != format_:
        raise SavedError("this is no state of sequences, or one of another version of Tocsin")
    try:
        return {int(name): parts.part(name) for name in parts.about["parts"]}
    except (ValueError, KeyError, TypeError, AttributeError) as fault:
        raise SavedError(f"the state of sequences is damaged: {fault}") from fault


def nothing_saved(count: int, matches: SavedMatcher) -> SavedSchedule:
    """Return the snapshot of a matcher that has no subscription and has processed nothing."""
    none = np.zeros(count, dtype=np.int64)
    return SavedSchedule(ALWAYS, none, none, matches)


def write_schedule(processed: int, standings: Int64s, first_ends: Int64s, matches: Parts) -> Parts:
    """Return a snapshot of a scheduled matcher."""
    writer = PartsWriter()
    writer.runs("standings", standings)
    writer.runs("first_ends", first_ends)
    return Parts.join({"processed": processed}, {"subscriptions": writer.parts(), "matches": matches})
