"""Events in bulk: one row each, with columns of when they started and ended."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from operator import attrgetter
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model.event import STREAM, Event, read_event
from tocsin.model.values import Value

RowNames: TypeAlias = Callable[[int, Mapping[str, Value]], str]
"""Returns the id of a row's event, by the row and its attributes."""

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

    def slice(self, begin: int, end: int) -> TimedBatch:
        """Return the rows from `begin` to `end`."""
        return TimedBatch(self.events[begin:end])

    def __len__(self) -> int:
        return len(self.events)


class TimedRows(TimedBatch):
    """The rows of an Arrow table, all of one stream; a row becomes an event on demand.

    An event is given its id when it is made, by `names` if the rows have names. Slices share the table and the events
    made so far.
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
    ) -> None:
        super().__init__(())
        self.starts = starts
        self.ends = ends
        self.single_stream = table.stream
        self._table = table
        self._begin = begin
        self._made = {} if made is None else made
        self._names = names

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
        """Return the faults of rows that are no events, by row."""
        return self.batch.faults if self._table.faults else {}

    def stream(self, row: int) -> str | None:  # noqa: ARG002 - all rows are of one stream
        """Return the stream of a row."""
        return self._table.stream

    def event(self, row: int) -> Event:
        """Return a row as an event, always the same."""
        found = self._made.get(self._begin + row)
        return self._make(row, self._table.row(self._begin + row)) if found is None else found

    def read(self, rows: Sequence[int]) -> None:
        """Make the events of these rows, all at once."""
        missing = [row for row in rows if self._begin + row not in self._made]
        if len(missing) > 1:
            found = self._table.rows_at([self._begin + row for row in missing])
            for row, attributes in zip(missing, found, strict=True):
                self._make(row, attributes)

    def _make(self, row: int, attributes: Mapping[str, Value]) -> Event:
        number = self._begin + row
        made = self._made[number] = read_event(
            attributes,
            id=None if self._names is None else self._names(number, attributes),
            stream=self._table.stream,
            time=int(self.ends[row]),
            start=int(self.starts[row]),
        )
        return made

    def slice(self, begin: int, end: int) -> TimedRows:
        """Return the rows from `begin` to `end`."""
        return TimedRows(
            self._table,
            self.starts[begin:end],
            self.ends[begin:end],
            begin=self._begin + begin,
            made=self._made,
            names=self._names,
        )
