"""Events that are kept for a while, so that new filters meet them too."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import count

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.timed_batch import TimedRows
from tocsin.model import Event
from tocsin.model.options import ALWAYS


class History:
    """Events with `valid_until`, in the order they came, until the clock has reached it.

    Rows of a table become events when somebody iterates.
    """

    def __init__(self) -> None:
        self.events: dict[int, Event | tuple[TimedRows, int]] = {}
        self._expiries: list[tuple[int, int]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self.events)

    def __iter__(self) -> Iterator[Event]:
        for one in self.events.values():
            yield one if isinstance(one, Event) else one[0].event(one[1])

    def add(self, event: Event, now: int) -> None:
        """Keep an event, if it says so and its time is not over."""
        if event.valid_until is not None and event.valid_until > now:
            number = next(self._order)
            self.events[number] = event
            heappush(self._expiries, (event.valid_until, number))

    def restore(self, events: Iterable[Event]) -> None:
        """Keep these events in place of all others, in their order, until their time is over."""
        self.events, self._expiries = {}, []
        for event in events:
            self.add(event, ALWAYS)

    def add_rows(self, rows: TimedRows, now: NDArray[np.int64]) -> None:
        """Keep rows, if they say so and their time is not over; `now` is the time at each."""
        validity = rows.validity
        if validity is None:
            return
        kept = np.flatnonzero(validity.is_kept & (validity.until > now))
        for row, until in zip(kept.tolist(), validity.until[kept].tolist(), strict=True):
            number = next(self._order)
            self.events[number] = rows, row
            heappush(self._expiries, (until, number))

    def expire(self, now: int) -> None:
        """Let go of the events whose time is over."""
        while self._expiries and self._expiries[0][0] <= now:
            _, number = heappop(self._expiries)
            del self.events[number]
