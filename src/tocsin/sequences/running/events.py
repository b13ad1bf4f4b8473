"""The events that matches may still need, by number."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

import numpy as np

from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model.event import Event
from tocsin.structures.array_types import Int64s

_FEWEST: Final = 4096  # events below which no garbage is collected


class EventStore:
    """Keeps whole batches, and single events of the batches of which few are still needed."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._batches: list[TimedBatch] = []
        self._singles: dict[int, Event] = {}
        self.threshold = _FEWEST  # with more events than this, a collection pays
        self._next = 0
        self.count = 0
        self.has_rows = False  # whether a batch is of rows of a table, which are read together

    def keep(self, events: TimedBatch) -> int:
        """Keep events, and return the number of the first."""
        first = self._next
        self._firsts.append(first)
        self._batches.append(events)
        count = len(events.ends)
        self.count += count
        self._next += count
        self.has_rows = self.has_rows or isinstance(events, TimedRows)
        return first

    def __getitem__(self, number: int) -> Event:
        """Return an event, or raise `KeyError` if it was collected."""
        batch = bisect_right(self._firsts, number) - 1
        if batch >= 0 and number - self._firsts[batch] < len(self._batches[batch].ends):
            return self._batches[batch].event(number - self._firsts[batch])
        return self._singles[number]

    def read_ahead(self, numbers: Int64s) -> None:
        """Hear of the numbers of events, which ascend, that will be asked for."""
        rows_of: dict[int, list[int]] = {}  # by the batch's place
        for number in numbers.tolist() if self.has_rows else ():
            place = bisect_right(self._firsts, number) - 1
            if place >= 0 and number - self._firsts[place] < len(self._batches[place].ends):
                rows_of.setdefault(place, []).append(number - self._firsts[place])
        for place, rows in rows_of.items():
            self._batches[place].read_ahead(np.array(rows, dtype=np.int64))

    def several(self, numbers: Int64s) -> list[Event]:
        """Return the events with these numbers, which ascend and were not collected."""
        self.read_ahead(numbers)
        return [self[number] for number in numbers.tolist()]

    def restore(self, events: Sequence[Event]) -> None:
        """Replace all events by others, which are numbered from 0 on."""
        self._firsts, self._batches = ([0], [TimedBatch(events)]) if events else ([], [])
        self._singles = {}
        self._next = self.count = len(events)
        self.threshold = max(_FEWEST, 2 * self.count)
        self.has_rows = False

    def get(self, number: int) -> Event | None:
        """Return an event, or None if it was collected."""
        try:
            return self[number]
        except KeyError:
            return None

    def collect(self, numbers: Int64s) -> None:
        """Forget all events but those with these numbers, which ascend."""
        singles = {number: self._singles[number] for number in numbers.tolist() if number in self._singles}
        firsts: list[int] = []
        batches: list[TimedBatch] = []
        # All batches at once: there are as many as events, if these come one by one.
        counts = np.fromiter(map(len, self._batches), dtype=np.int64, count=len(self._batches))
        begins = np.searchsorted(numbers, self._firsts)
        ends = np.searchsorted(numbers, np.array(self._firsts, dtype=np.int64) + counts)
        for place in np.flatnonzero(begins < ends).tolist():
            first, batch, begin, end = self._firsts[place], self._batches[place], begins[place], ends[place]
            if 4 * (end - begin) > len(batch):  # a quarter is needed: the batch stays whole
                firsts.append(first)
                batches.append(batch)
            else:
                batch.read_ahead(numbers[begin:end] - first)
                singles |= {number: batch.event(number - first) for number in numbers[begin:end].tolist()}
        self._singles, self._firsts, self._batches = singles, firsts, batches
        self.has_rows = any(isinstance(batch, TimedRows) for batch in batches)
        self.count = sum(map(len, batches)) + len(singles)
        self.threshold = max(_FEWEST, 2 * self.count)
