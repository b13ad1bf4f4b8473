"""Events as sequences see them: many at a time, in the order of their end."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import EventBatch
from tocsin.model.event import STREAM, Event

__all__ = ["Arrivals"]


class Arrivals:
    """Events that have come, none of them before the end of one that stands before it.

    `batch` holds them as matchers see them, with their stream among their attributes.
    """

    def __init__(
        self,
        batch: EventBatch,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        events: Sequence[Event],
    ) -> None:
        self.batch = batch
        self.starts = starts
        self.ends = ends
        self._events = events

    @classmethod
    def of(cls, events: Sequence[Event]) -> Arrivals:
        """Return these events, which come in the order of their end."""
        seen = [
            event
            if event.stream is None
            else Event(event.id, {**event.attributes, STREAM: event.stream}, event.stream)
            for event in events
        ]
        starts = np.array([event.start for event in events], dtype=np.int64)
        ends = np.array([event.end for event in events], dtype=np.int64)
        return cls(EventBatch.of(seen), starts, ends, events)

    def __len__(self) -> int:
        return len(self.ends)

    def event(self, place: int) -> Event:
        """Return one of them as it was published."""
        return self._events[place]

    def stream(self, place: int) -> str | None:
        """Return the stream of one of them."""
        return self._events[place].stream
