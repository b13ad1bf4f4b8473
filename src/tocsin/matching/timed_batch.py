"""Events in bulk: one row each, with columns of when they started and ended."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.matching import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model.errors import EventError
from tocsin.model.event import DELETIONS, STREAM, Event, read_event
from tocsin.model.values import Value

ROW_SPECIFIC: Final = frozenset({STREAM, "specversion", *DELETIONS})
"""Columns that make each row of a table a different sort of event, so that it must be read row by row."""

_PER_TICK: Final = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_LONGEST: Final = 2**63 - 1
_START: Final = attrgetter("start")
_END: Final = attrgetter("end")


class TimedBatch:
    """Events with their times; sequences take them in the order of `ends`.

    >>> batch = TimedBatch([Event("e1", {"price": 3}, "stock", 17, 17), Event("e2", {}, "stock", 18, 20)])
    >>> len(batch), batch.latest, batch.event(1).id, batch.slice(1, 2).starts.tolist()
    (2, 20, 'e2', [18])
    """

    single_stream: str | None
    """The stream of all events, if they are known to be of one."""

    def __init__(self, events: Sequence[Event]) -> None:
        self.events = events  # none if the rows are those of a table
        self.single_stream = events[0].stream if len(events) == 1 else None

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """Return when each event started."""
        return np.fromiter(map(_START, self.events), dtype=np.int64, count=len(self.events))

    @cached_property
    def ends(self) -> NDArray[np.int64]:
        """Return when each event ended."""
        return np.fromiter(map(_END, self.events), dtype=np.int64, count=len(self.events))

    @staticmethod
    def of_rows(
        table: ArrowEvents, starts: NDArray[np.int64], ends: NDArray[np.int64] | None = None
    ) -> TimedRows:
        """Return a table's rows with these times; without `ends` a row starts and ends at the same time.

        A row becomes an event when it is first asked for, with an id made then; later calls return the same event.
        """
        return TimedRows(table, starts, starts if ends is None else ends)

    @staticmethod
    def of_table(table: Any, *, stream: str, time: str, tick: int = 1, ids: str | None = None) -> TimedRows:
        """Return the rows of an Arrow table as events of one stream, sorted by their time.

        `time` names the column of when they happened: integers that count ticks, or timestamps, which become
        ticks of `tick` microseconds. `ids` names the column of their ids; without it, an id is the row's number.
        """
        for name in (time, ids):
            if name is not None and name not in table.schema.names:
                raise EventError(f"the table has no column `{name}`; it has {', '.join(table.schema.names)}")
        ends = _ticks(table.column(time), time, tick)
        order = np.argsort(ends, kind="stable")
        if (ends[1:] < ends[:-1]).any():
            table, ends = table.take(pa.array(order)), ends[order]
        rows = ArrowEvents.by_column(table, stream=stream)
        if rows is None:
            raise EventError(
                "the table has a column that can only be read row by row; publish its rows instead"
            )
        if rows.faults:
            row, fault = min(rows.faults.items())
            raise EventError(f"row {row + 1} of the table, in the order of its times, is no event: {fault}")
        if ids is not None and table.column(ids).null_count:
            raise EventError(f"the column `{ids}` has rows without an id; fill them, or leave them out")
        return TimedRows(rows, ends, ends, order if ids is None else ids)

    @cached_property
    def attributes(self) -> Sequence[Mapping[str, Value]]:
        """Return the attributes of each event, with its stream among them."""
        return [
            event.attributes if event.stream is None else {**event.attributes, STREAM: event.stream}
            for event in self.events
        ]

    @cached_property
    def batch(self) -> EventBatch:
        """Return the events as matchers see them, with their stream among their attributes."""
        return EventBatch(self.attributes)

    @property
    def faults(self) -> Mapping[int, str]:
        """Return, by row, what is wrong with each row that is no event."""
        return {}

    @property
    def latest(self) -> int | None:
        """Return the largest end of the rows that are events; None if there is none."""
        ends = np.delete(self.ends, list(self.faults)) if self.faults else self.ends
        return int(ends.max()) if len(ends) else None

    def stream(self, row: int) -> str | None:
        """Return the stream of an event."""
        return self.events[row].stream

    def event(self, row: int) -> Event:
        """Return an event as it was published."""
        return self.events[row]

    def slice(self, begin: int, end: int) -> TimedBatch:
        """Return the rows from `begin` to `end`."""
        return TimedBatch(self.events[begin:end])

    def __len__(self) -> int:
        return len(self.events)


class TimedRows(TimedBatch):
    """The rows of an Arrow table, all of one stream; a row becomes an event only when one is asked for.

    `ids` names the column of the rows' ids, or is an array of them; without it, an id is made for each event. Slices
    share the table and the events made so far.
    """

    def __init__(
        self,
        table: ArrowEvents,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        ids: str | NDArray[np.intp] | None = None,
        *,
        begin: int = 0,
        made: dict[int, Event] | None = None,
    ) -> None:
        super().__init__(())
        self.starts = starts
        self.ends = ends
        self.single_stream = table.stream
        self._table = table
        self._ids = ids
        self._begin = begin
        self._made = {} if made is None else made

    @cached_property
    def attributes(self) -> Sequence[Mapping[str, Value]]:
        """Return the attributes of each row, with the stream among them."""
        return [self.batch.attributes(row) for row in range(len(self))]

    @cached_property
    def batch(self) -> ArrowEvents:
        """Return the rows as matchers see them, with their stream among their attributes."""
        if len(self) == len(self._table):
            return self._table
        return self._table.slice(self._begin, self._begin + len(self))

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def faults(self) -> Mapping[int, str]:
        """Return, by row, what is wrong with each row that is no event."""
        return self.batch.faults if self._table.faults else {}

    def stream(self, row: int) -> str | None:  # noqa: ARG002 - all rows are of one stream
        """Return the stream of a row."""
        return self._table.stream

    def event(self, row: int) -> Event:
        """Return a row as an event, always the same."""
        number = self._begin + row
        found = self._made.get(number)
        if found is not None:
            return found
        attributes, start, end = self._table.row(number), int(self.starts[row]), int(self.ends[row])
        if self._ids is not None:  # the event is the same each time, so none is kept
            id_ = attributes[self._ids] if isinstance(self._ids, str) else self._ids[number]
            return Event(str(id_), attributes, self._table.stream, start, end)
        made = self._made[number] = read_event(attributes, stream=self._table.stream, time=end, start=start)
        return made

    def slice(self, begin: int, end: int) -> TimedRows:
        """Return the rows from `begin` to `end`."""
        return TimedRows(
            self._table,
            self.starts[begin:end],
            self.ends[begin:end],
            self._ids,
            begin=self._begin + begin,
            made=self._made,
        )


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
