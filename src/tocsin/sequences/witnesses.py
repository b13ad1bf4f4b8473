"""What sequences tell: which were completed, by which event, and of what."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.event import Event
from tocsin.model.values import Value


class Step(Struct, frozen=True):
    """The events of one step: the first and the last, and all of them where that was asked for."""

    alias: str
    first: Event
    last: Event
    chain: tuple[Event, ...] | None = None


class Told(Struct, frozen=True):
    """One witness: its steps, and what the sequence selected or computed, by name; what is absent is None."""

    steps: tuple[Step, ...]
    values: Mapping[str, Value | None]


class Witnesses(Struct, frozen=True):
    """Completed sequences in the order of the events that completed them, as columns.

    `told` returns the rest of one, by its place in the columns; it has to be asked before further events come.
    `published` are the events that sequences made, each with the place of the arrival that completed it.
    """

    subscriptions: IdArray  # int64[witnesses] the number of the subscription
    places: IdArray  # int64[witnesses] which of the arrivals completed it
    starts: IdArray  # int64[witnesses]
    ends: IdArray  # int64[witnesses]
    told: Callable[[int], Told]
    published: tuple[tuple[int, Event], ...] = ()
    valued: Callable[[], list[Mapping[str, Value | None]]] | None = (
        None  # what `told` says of values, if quicker
    )

    def values(self) -> list[Mapping[str, Value | None]]:
        """Return what each of them selected or computed; their events are not looked at."""
        if self.valued is not None:
            return self.valued()
        return [self.told(place).values for place in range(len(self))]

    def __len__(self) -> int:
        return len(self.subscriptions)
