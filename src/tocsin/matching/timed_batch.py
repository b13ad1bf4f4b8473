"""Events in bulk: one row each, with columns of when they started and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import attrgetter
from typing import Any, Final, Generic, TypeAlias, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model.event import STREAM, Event, new_event
from tocsin.model.values import Value
from tocsin.structures.array_types import Bools, Int64s

RowNames: TypeAlias = Callable[[int, Mapping[str, Value]], str]
"""Returns the id of a row's event, by the row and its attributes."""

_BLOCK: Final = 256  # rows that become events together

_START: Final = attrgetter("start")
_END: Final = attrgetter("end")


Result = TypeVar("Result")


class _computed_once(Generic[Result]):  # noqa: N801 - a decorator
    """A property that is kept once it is computed; `functools.cached_property` takes a lock for it in Python 3.11."""

    def __init__(self, compute: Callable[[Any], Result]) -> None:
        self._compute = compute
        self._name = compute.__name__
        self.__doc__ = compute.__doc__

    def __get__(self, batch: Any, _: type) -> Result:
        found = batch.__dict__[self._name] = self._compute(batch)
        return found


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

    @_computed_once
    def starts(self) -> NDArray[np.int64]:
        """Return when each event started."""
        if len(self.events) == 1:
            return np.array([self.events[0].start], dtype=np.int64)
        return np.fromiter(map(_START, self.events), dtype=np.int64, count=len(self.events))

    @_computed_once
    def ends(self) -> NDArray[np.int64]:
        """Return when each event ended."""
        if len(self.events) == 1:
            return np.array([self.events[0].end], dtype=np.int64)
        return np.fromiter(map(_END, self.events), dtype=np.int64, count=len(self.events))

    @_computed_once
    def attributes(self) -> Sequence[Mapping[str, Value]]:
        """Return the attributes of each event, with its stream among them."""
        return [
            event.attributes if event.stream is None else {**event.attributes, STREAM: event.stream}
            for event in self.events
        ]

    @_computed_once
    def batch(self) -> EventBatch:
        """Return the events as matchers see them, with their stream among their attributes."""
        return EventBatch(self.attributes)

    @property
    def faults(self) -> Mapping[int, str]:
        """Return the faults of rows that are no events, by row."""
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

    def read_ahead(self, rows: Int64s) -> None:
        """Hear of the rows, which ascend, that will be asked for as events."""

    def slice(self, begin: int, end: int) -> TimedBatch:
        """Return the rows from `begin` to `end`."""
        return TimedBatch(self.events[begin:end])

    def __len__(self) -> int:
        return len(self.events)


class RowValidity(Struct, frozen=True):
    """Until when each row of a table is kept for later filters, if it is."""

    until: Int64s
    is_kept: Bools

    def at(self, number: int) -> int | None:
        """Return until when a row is kept."""
        return self.until.item(number) if self.is_kept[number] else None

    def take(self, numbers: Int64s | slice) -> RowValidity:
        """Return the validity of some rows."""
        return RowValidity(self.until[numbers], self.is_kept[numbers])


class TimedRows(TimedBatch):
    """The rows of an Arrow table, of one stream or of several; a row becomes an event on demand.

    An event is given its id when it is made, by `names` if the rows have names. Slices share the table and the events
    made so far. `numbers` are those of the rows in the table, if they are not the ones from `begin` on; `validity` is that of
    the table's rows.
    """

    def __init__(
        self,
        table: ArrowEvents,
        starts: NDArray[np.int64],
        ends: NDArray[np.int64],
        *,
        begin: int = 0,
        made: dict[int, Event] | None = None,
        names: RowNames | None = None,
        numbers: Int64s | None = None,
        validity: RowValidity | None = None,
    ) -> None:
        super().__init__(())
        self.starts = starts
        self.ends = ends
        self.single_stream = table.stream
        self._table = table
        self._begin = begin
        self._made = {} if made is None else made
        self._names = names
        self._numbers = numbers
        self._validity = validity
        self._expected: Int64s | None = None  # rows that will become events

    @_computed_once
    def attributes(self) -> Sequence[Mapping[str, Value]]:
        """Return the attributes of each row, with the stream among them."""
        return [self.batch.attributes(row) for row in range(len(self))]

    @_computed_once
    def batch(self) -> ArrowEvents:
        """Return the rows as matchers see them, with their stream among their attributes."""
        if self._numbers is not None:
            return self._table.take(self._numbers)
        if len(self) == len(self._table):
            return self._table
        return self._table.slice(self._begin, self._begin + len(self))

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def faults(self) -> Mapping[int, str]:
        """Return the faults of rows that are no events, by row."""
        return self.batch.faults if self._table.faults and self._numbers is None else {}

    @property
    def stream_names(self) -> tuple[str | None, ...]:
        """Return the streams that rows may be of."""
        return self._table.stream_names

    def stream(self, row: int) -> str | None:
        """Return the stream of a row."""
        return self._table.stream if self._table.streams is None else self._table.stream_at(self._number(row))

    def rows_of(self, stream: str | None) -> Int64s:
        """Return the rows that are events of a stream."""
        streams = self._table.streams
        if streams is None or stream is None:
            return self.rows if stream == self._table.stream else self.rows[:0]
        is_of = streams.has(stream)
        numbers = np.arange(self._begin, self._begin + len(self)) if self._numbers is None else self._numbers
        found = np.flatnonzero(is_of[numbers])
        return np.setdiff1d(found, list(self.faults)) if self.faults else found

    def event(self, row: int) -> Event:
        """Return a row as an event, always the same."""
        found = self._made.get(self._number(row))
        return self._make(row) if found is None else found

    def read_ahead(self, rows: Int64s) -> None:
        """Make the events of these rows, which ascend, in blocks once one of them is asked for."""
        self._expected = rows

    def _number(self, row: int) -> int:
        return self._begin + row if self._numbers is None else int(self._numbers[row])

    def _make(self, row: int) -> Event:
        """Make the event of a row, and those of the next rows that are expected."""
        rows = np.array([row])
        if self._expected is not None:
            at = int(np.searchsorted(self._expected, row))
            if at < len(self._expected) and self._expected[at] == row:
                rows = self._expected[at : at + _BLOCK]
        numbers = rows + self._begin if self._numbers is None else self._numbers[rows]
        if len(numbers) > 1 and (numbers[1:] < numbers[:-1]).any():  # rows that were put into another order
            order = np.argsort(numbers, kind="stable")
            rows, numbers = rows[order], numbers[order]
        read = self._table.rows_at(numbers) if len(numbers) > 1 else [self._table.row(int(numbers[0]))]
        columns = (numbers.tolist(), read, self.starts[rows].tolist(), self.ends[rows].tolist())
        for number, attributes, start, end in zip(*columns, strict=True):
            if number not in self._made:
                id_ = None if self._names is None else self._names(number, attributes)
                until = None if self._validity is None else self._validity.at(number)
                stream = self._table.stream_at(number)
                self._made[number] = new_event(attributes, stream, start, end, id=id_, valid_until=until)
        return self._made[self._number(row)]

    def slice(self, begin: int, end: int) -> TimedRows:
        """Return the rows from `begin` to `end`."""
        return TimedRows(
            self._table,
            self.starts[begin:end],
            self.ends[begin:end],
            begin=self._begin + begin,
            made=self._made,
            names=self._names,
            numbers=None if self._numbers is None else self._numbers[begin:end],
            validity=self._validity,
        )

    def part(self, begin: int, end: int) -> TimedRows:
        """Return the rows from `begin` to `end` with events of their own, which are let go with the part."""
        return TimedRows(
            self._table,
            self.starts[begin:end],
            self.ends[begin:end],
            begin=self._begin + begin,
            names=self._names,
            validity=self._validity,
        )

    def with_faults(self, faults: Mapping[int, str]) -> TimedRows:
        """Return the same rows with more of them marked as no events; they share the events made so far."""
        made = {number - self._begin: event for number, event in self._made.items()}
        names = None if self._names is None else partial(_named_from, self._names, self._begin)
        rows = self.batch.with_faults(faults)
        return TimedRows(rows, self.starts, self.ends, made=made, names=names, validity=self.validity)

    @property
    def validity(self) -> RowValidity | None:
        """Return until when each row is kept for later filters, if some row is."""
        if self._validity is None:
            return None
        own = slice(self._begin, self._begin + len(self)) if self._numbers is None else self._numbers
        return self._validity.take(own)

    @property
    def rows(self) -> Int64s:
        """Return the rows that are events."""
        every = np.arange(len(self))
        return np.delete(every, list(self.faults)) if self.faults else every

    def take(self, rows: Int64s) -> TimedRows:
        """Return some rows, which are events; they share the events made so far."""
        numbers = rows + self._begin if self._numbers is None else self._numbers[rows]
        return TimedRows(
            self._table,
            self.starts[rows],
            self.ends[rows],
            made=self._made,
            names=self._names,
            numbers=numbers,
            validity=self._validity,
        )


def _named_from(names: RowNames, begin: int, number: int, attributes: Mapping[str, Value]) -> str:
    """Return the id of a row of a table that was cut off at `begin`."""
    return names(begin + number, attributes)
