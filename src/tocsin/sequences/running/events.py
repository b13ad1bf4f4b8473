"""The events that matches may still need, by number."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import numpy as np

from tocsin.matching.timed_batch import TimedBatch
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

    def keep(self, events: TimedBatch) -> int:
        """Keep events, and return the number of the first."""
        first = self._next
        self._firsts.append(first)
        self._batches.append(events)
        self.count += len(events.ends)
        self._next += len(events.ends)
        return first

    def __getitem__(self, number: int) -> Event:
        """Return an event, or raise `KeyError` if it was collected."""
        batch = bisect_right(self._firsts, number) - 1
        if batch >= 0 and number - self._firsts[batch] < len(self._batches[batch].ends):
            return self._batches[batch].event(number - self._firsts[batch])
        return self._singles[number]

    def read_ahead(self, numbers: Int64s) -> None:
        """Hear of the numbers of events, which ascend, that will be asked for."""
        for first, batch in zip(self._firsts, self._batches, strict=True):
            begin, end = np.searchsorted(numbers, (first, first + len(batch.ends)))
            if begin < end:
                batch.read_ahead(numbers[begin:end] - first)

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
        for first, batch in zip(self._firsts, self._batches, strict=True):
            begin, end = np.searchsorted(numbers, (first, first + len(batch)))
            if 4 * (end - begin) > len(batch):  # a quarter is needed: the batch stays whole
                firsts.append(first)
                batches.append(batch)
            else:
                batch.read_ahead(numbers[begin:end] - first)
                singles |= {number: batch.event(number - first) for number in numbers[begin:end].tolist()}
        self._singles, self._firsts, self._batches = singles, firsts, batches
        self.count = sum(map(len, batches)) + len(singles)
        self.threshold = max(_FEWEST, 2 * self.count)
