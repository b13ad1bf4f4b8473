"""Events whose turn has come, and those that wait for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model.event import Event
from tocsin.structures.array_types import Bools, Int64s


class Cause(NamedTuple):
    """The event that caused a notification: its id, and its row among those given; if it had waited, what came with it."""

    event_id: str
    row: int | None
    carried: bytes | None


class Turn:
    """Events in the order of their end, what each travelled for, its row among those given, and what came with it."""

    def __init__(
        self,
        events: TimedBatch,
        roles: Int64s,
        rows: Int64s | None = None,
        carried: Sequence[bytes | None] | None = None,
    ) -> None:
        self.events = events
        self.roles = roles
        self._rows = rows  # -1 for an event that came with an earlier call; None: their positions
        self._carried = carried

    def take(self, positions: Int64s) -> Turn:
        """Return some of the events."""
        if len(positions) == len(self.roles):
            return self
        rows = positions if self._rows is None else self._rows[positions]
        carried = None if self._carried is None else _Chosen(self._carried, positions)
        return Turn(taken(self.events, positions), self.roles[positions], rows, carried)

    def where(self, chosen: Bools) -> Turn:
        """Return the events that a mask selects."""
        return self.take(np.flatnonzero(chosen))

    def rows(self, count: int) -> Int64s:
        """Return the rows of the first events."""
        return np.arange(count) if self._rows is None else self._rows[:count]

    def cause(self, position: int) -> Cause:
        """Return an event as the cause of a notification."""
        row = position if self._rows is None else int(self._rows[position])
        if row < 0:
            return Cause(self.events.event(position).id, None, self.carried(position))
        return Cause(self.events.event(position).id, row, None)

    def carried(self, position: int) -> bytes | None:
        """Return what came with an event."""
        return None if self._carried is None else self._carried[position]

    def waiting(self) -> Iterator[Waiting]:
        """Yield the events as they wait."""
        self.events.read_ahead(np.arange(len(self)))
        for position, role in enumerate(self.roles.tolist()):
            yield Waiting(self.events.event(position), role, self.carried(position))

    def __len__(self) -> int:
        return len(self.roles)


class Waiting(NamedTuple):
    """An event that waits, what it travelled for, and what came with it."""

    event: Event
    roles: int
    carried: bytes | None


class WaitingRoom:
    """The events of streams with equally long ticks that wait until one has come that ends so much later.

    They are in the order of their end, and of equal ends in the order they came.
    """

    def __init__(self, events: Sequence[Waiting] = ()) -> None:
        self._events = list(events)

    def pass_through(self, turn: Turn, watermark: int) -> Turn:
        """Take events in the order of their end, and return all that end by the watermark."""
        through = int(np.searchsorted(turn.events.ends, watermark, side="right"))
        if not self._events or self._events[0].event.end > watermark:
            self._keep(turn.take(np.arange(through, len(turn))))
            return turn.take(np.arange(through))
        now = [one for one in self._events if one.event.end <= watermark]
        rows = np.full(len(now), -1, dtype=np.int64)
        self._events = self._events[len(now) :]
        self._keep(turn.take(np.arange(through, len(turn))))
        new = list(turn.take(np.arange(through)).waiting())
        every = [*now, *new]
        rows = np.concatenate([rows, turn.rows(through)])
        order = np.argsort([one.event.end for one in every], kind="stable")
        chosen = [every[place] for place in order.tolist()]
        return Turn(
            TimedBatch([one.event for one in chosen]),
            np.array([one.roles for one in chosen], dtype=np.int64),
            rows[order],
            [one.carried for one in chosen],
        )

    def flush(self) -> Turn:
        """Return all events."""
        events, self._events = self._events, []
        return Turn(
            TimedBatch([one.event for one in events]),
            np.array([one.roles for one in events], dtype=np.int64),
            np.full(len(events), -1, dtype=np.int64),
            [one.carried for one in events],
        )

    def change_roles(self, bits: Mapping[int, int]) -> None:
        """Give the events other roles: each bit is replaced, and one that is not named falls away."""
        self._events = [
            one._replace(roles=sum(new for old, new in bits.items() if one.roles & old))
            for one in self._events
        ]

    def __iter__(self) -> Iterator[Waiting]:
        return iter(self._events)

    def __len__(self) -> int:
        return len(self._events)

    def _keep(self, turn: Turn) -> None:
        if len(turn):
            self._events = sorted([*self._events, *turn.waiting()], key=_end)


def taken(events: TimedBatch, positions: Int64s) -> TimedBatch:
    """Return some events of a batch."""
    if isinstance(events, TimedRows):
        return events.take(positions)
    return TimedBatch([events.events[position] for position in positions.tolist()])


class _Chosen(Sequence[bytes | None]):
    """Some elements of a sequence, of which most are never asked for."""

    def __init__(self, of: Sequence[bytes | None], positions: Int64s) -> None:
        self._of = of
        self._positions = positions

    def __getitem__(self, place: Any) -> Any:
        return self._of[int(self._positions[place])]

    def __len__(self) -> int:
        return len(self._positions)


def _end(one: Waiting) -> int:
    return one.event.end
