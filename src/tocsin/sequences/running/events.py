"""The events that witnesses may still be made of, by number."""

from __future__ import annotations

from bisect import bisect_right
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.model.event import Event
from tocsin.sequences.timed_batch import TimedBatch

_FEWEST: Final = 4096  # events below which none are looked for that could go


class KeptEvents:
    """TimedBatch as they came, until only some of their events are still needed, and then these alone."""

    def __init__(self) -> None:
        self._firsts: list[int] = []
        self._arrivals: list[TimedBatch] = []
        self._alone: dict[int, Event] = {}
        self._held = 0
        self._threshold = _FEWEST
        self.next = 0

    def __len__(self) -> int:
        return self._held + len(self._alone)

    def keep(self, arrivals: TimedBatch) -> int:
        """Keep arrivals, and return the number of the first."""
        first = self.next
        self._firsts.append(first)
        self._arrivals.append(arrivals)
        self._held += len(arrivals)
        self.next += len(arrivals)
        return first

    def event(self, number: int) -> Event | None:
        """Return an event, or None if it has been let go."""
        alone = self._alone.get(number)
        if alone is not None:
            return alone
        place = bisect_right(self._firsts, number) - 1
        if place < 0 or number - self._firsts[place] >= len(self._arrivals[place]):
            return None
        return self._arrivals[place].event(number - self._firsts[place])

    @property
    def is_full(self) -> bool:
        """Tell whether so many events have come that it is worth while to look for those that can go."""
        return len(self) > self._threshold

    def collect(self, numbers: NDArray[np.int64]) -> None:
        """Let go of all events but those with these numbers, which ascend."""
        alone = {
            number: event for number in numbers.tolist() if (event := self._alone.get(number)) is not None
        }
        firsts: list[int] = []
        arrivals: list[TimedBatch] = []
        for first, batch in zip(self._firsts, self._arrivals, strict=True):
            begin, end = np.searchsorted(numbers, (first, first + len(batch)))
            if 4 * (end - begin) > len(batch):  # most are needed: keep them as they are
                firsts.append(first)
                arrivals.append(batch)
            else:
                alone |= {number: batch.event(number - first) for number in numbers[begin:end].tolist()}
        self._alone, self._firsts, self._arrivals = alone, firsts, arrivals
        self._held = sum(map(len, arrivals))
        self._threshold = max(_FEWEST, 2 * len(self))
