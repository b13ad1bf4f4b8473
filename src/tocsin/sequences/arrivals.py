"""Events as sequences see them: many at a time, in the order of their end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.matching import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model.errors import EventError
from tocsin.model.event import STREAM, Event

_PER_TICK: Final = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_LONGEST: Final = 2**63 - 1


class Arrivals:
    """Events that have come, none of them before the end of one that stands before it.

    `batch` holds them as matchers see them, with their stream among their attributes.
    """

    def __init__(
        self,
        batch: EventBatch,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        events: Sequence[Event] = (),
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

    @staticmethod
    def of_table(
        table: Any, *, stream: str, time: str, tick: int = 1, ids: str | None = None
    ) -> TableArrivals:
        """Return the rows of an Arrow table as events of one stream, in the order of their time.

        `time` names the column of when they happened: integers that count ticks, or timestamps, which are turned into
        ticks of `tick` microseconds. `ids` names the column of their ids; without it, an id is the row's number.
        """
        for name in (time, ids):
            if name is not None and name not in table.schema.names:
                raise EventError(f"the table has no column `{name}`; it has {', '.join(table.schema.names)}")
        ends = _ticks(table.column(time), time, tick)
        order = None
        if (ends[1:] < ends[:-1]).any():
            order = np.argsort(ends, kind="stable")
            table, ends = table.take(pa.array(order)), ends[order]
        batch = ArrowEvents.by_column(table, stream=stream)
        if batch is None:
            raise EventError(
                "the table has a column that can only be read row by row; publish its rows instead"
            )
        if batch.faults:
            place, fault = next(iter(sorted(batch.faults.items())))
            raise EventError(f"row {place + 1} of the table, in the order of its times, is no event: {fault}")
        if ids is not None and table.column(ids).null_count:
            raise EventError(f"the column `{ids}` has rows without an id; fill them, or leave them out")
        return TableArrivals(batch, ends, stream, ids, order)

    def __len__(self) -> int:
        return len(self.ends)

    def event(self, place: int) -> Event:
        """Return one of them as it was published."""
        return self._events[place]

    @property
    def single_stream(self) -> str | None:
        """Return the stream of all of them, where they are known to be of one."""
        return None

    def stream(self, place: int) -> str | None:
        """Return the stream of one of them."""
        return self._events[place].stream


class TableArrivals(Arrivals):
    """The rows of a table, which become events only where a witness needs them."""

    def __init__(
        self,
        batch: ArrowEvents,
        ends: NDArray[np.int64],
        stream: str,
        ids: str | None,
        order: NDArray[np.intp] | None,
    ) -> None:
        super().__init__(batch, ends, ends)
        self._table = batch
        self._stream = stream
        self._ids = ids
        self._order = order  # row -> its number in the table as it was given

    def slice(self, begin: int, end: int) -> TableArrivals:
        """Return those from `begin` to `end`."""
        numbers = np.arange(begin, end) if self._order is None else self._order[begin:end]
        return TableArrivals(
            self._table.slice(begin, end), self.ends[begin:end], self._stream, self._ids, numbers
        )

    def event(self, place: int) -> Event:
        """Return one of them as an event."""
        attributes = self._table.row(place)
        if self._ids is not None:
            id_ = str(attributes[self._ids])
        else:
            id_ = str(place if self._order is None else int(self._order[place]))
        end = int(self.ends[place])
        return Event(id_, attributes, self._stream, end, end)

    @property
    def single_stream(self) -> str | None:
        """Return the stream of all of them."""
        return self._stream

    def stream(self, place: int) -> str | None:  # noqa: ARG002 - all rows are of one stream
        """Return the stream of one of them."""
        return self._stream


def _ticks(column: Any, name: str, tick: int) -> NDArray[np.int64]:
    """Return the times of a column in ticks."""
    if column.null_count:
        raise EventError(f"the column `{name}` has rows without a time; fill them, or leave them out")
    kind = column.type
    if pa.types.is_integer(kind):
        try:
            column = column.cast(pa.int64())
        except pa.ArrowInvalid as fault:
            raise EventError(f"the column `{name}` has times that do not fit into 64 bits: {fault}") from None
        return np.ascontiguousarray(column.to_numpy(), dtype=np.int64)
    if pa.types.is_date32(kind):
        column, kind = column.cast(pa.timestamp("s")), pa.timestamp("s")
    if not pa.types.is_timestamp(kind):
        raise EventError(
            f"the column `{name}` holds {kind}; times are integers that count ticks, or timestamps"
        )
    times, parts = _PER_TICK[kind.unit]
    counted = column.cast(pa.int64()).to_numpy()
    if len(counted) and max(int(counted.max()), -int(counted.min())) > _LONGEST // times:
        raise EventError(f"the column `{name}` has times that 64 bits of microseconds do not hold")
    return np.ascontiguousarray(counted * times // (parts * tick), dtype=np.int64)
