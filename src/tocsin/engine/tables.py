"""Arrow tables in the engine: which are matched by the column, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.engine.book import Book, in_force
from tocsin.engine.incoming import Incoming
from tocsin.engine.results import NamedMatches
from tocsin.formats import EventReader, Fault
from tocsin.formats.arrow_rows import arrow_rows, is_arrow
from tocsin.formats.records import UnreadableRecord
from tocsin.matching import Matches
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model.errors import EventError, KindError
from tocsin.model.event import DELETIONS, STREAM, Event, check_times
from tocsin.model.ticks import StreamTicks
from tocsin.sequences.timed_batch import TimedBatch

TELLING: Final = frozenset({STREAM, "specversion", *DELETIONS})  # these say what a row is, row by row


def table_events(events: Incoming, stream: str | None) -> ArrowEvents | None:
    """Return a table that can be matched by the column, or None for whatever else."""
    table: Any = events
    if not is_arrow(table) or not TELLING.isdisjoint(table.schema.names):
        return None
    return ArrowEvents.by_column(table, stream=stream or None)


def named(matches: Matches, book: Book, end: int, faults: Mapping[int, str]) -> NamedMatches:
    """Return the ids of those subscriptions that apply to events that ended at `end`, per row in order."""
    numbers = matches.ids
    rows = np.repeat(np.arange(len(matches)), np.diff(matches.offsets))
    if book.has_terms:
        applies = in_force(book.valid_from[numbers], book.valid_until[numbers], end)
        numbers, rows = numbers[applies], rows[applies]
    offsets = np.zeros(len(matches) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(matches)), out=offsets[1:])
    distinct, places = np.unique(numbers, return_inverse=True)
    ids = [book.id(number) for number in distinct.tolist()]
    order = sorted(range(len(ids)), key=ids.__getitem__)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids))
    by_name = np.sort(rows * max(len(ids), 1) + rank[places]) % max(len(ids), 1)
    told = tuple(ids[place] for place in np.array(order, dtype=np.int64)[by_name].tolist())
    return NamedMatches(offsets, told, tuple(_fault(place, faults) for place in sorted(faults)))


class TableRows:
    """Rows of a table that are published: when they started and ended, and each as an event once it is asked for."""

    def __init__(self, table: ArrowEvents, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> None:
        self.table = table
        self.stream = table.stream
        self.starts = starts
        self.ends = ends
        self._timed = TimedBatch.of_rows(table, starts, ends)

    @classmethod
    def at(cls, table: ArrowEvents, end: int) -> TableRows:
        """Return rows that all ended then."""
        ends = np.full(len(table), end, dtype=np.int64)
        return cls(table, ends, ends)

    @property
    def latest(self) -> int | None:
        """Return when the last of the rows that are events ended; None if there is none."""
        ends = np.delete(self.ends, list(self.table.faults)) if self.table.faults else self.ends
        return int(ends.max()) if len(ends) else None

    def slice(self, begin: int, end: int) -> TableRows:
        """Return the rows from `begin` to `end`."""
        return TableRows(self.table.slice(begin, end), self.starts[begin:end], self.ends[begin:end])

    def event(self, place: int) -> Event:
        """Return a row as an event, always the same."""
        return self._timed.event(place)

    def arrivals(self, begin: int, end: int) -> TimedBatch:
        """Return the rows from `begin` to `end` as sequences see them."""
        return self._timed.slice(begin, end)


def table_times(
    table: ArrowEvents, time: str, start: str | None, ticks: StreamTicks
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[int, str]]:
    """Return when a table's rows started and ended, by the columns that say so, and what is wrong by row.

    `time` and `start` name them; without a `start` a row starts when it ends.
    """
    faults: dict[int, str] = {}
    ends = _ticks_of(table, time, "time", ticks, faults)
    starts = ends if start is None else _ticks_of(table, start, "start", ticks, faults)
    for place in np.flatnonzero(starts > ends).tolist():
        fault = f"the event starts at {starts[place]}, after its end at {ends[place]}"
        faults.setdefault(place, fault)
    return starts, ends, faults


def _ticks_of(
    table: ArrowEvents, name: str, what: str, ticks: StreamTicks, faults: dict[int, str]
) -> NDArray[np.int64]:
    if name not in table.table.schema.names:
        raise EventError(f"the table has no column `{name}`, which should give the {what} of its rows")
    column = table.table.column(name).combine_chunks()
    kind = column.type
    if pa.types.is_integer(kind) and not column.null_count and kind != pa.uint64():
        check_times(ticks, table.stream, **{what: 0})
        return np.asarray(column.to_numpy(zero_copy_only=False), dtype=np.int64)
    if pa.types.is_timestamp(kind) and not column.null_count:
        counted = column.cast(pa.timestamp("us", kind.tz), safe=False).cast(pa.int64())
        return np.asarray(counted.to_numpy(zero_copy_only=False), dtype=np.int64) // ticks.length(
            table.stream
        )
    found = np.zeros(len(table), dtype=np.int64)
    for place, (_, row) in enumerate(arrow_rows(table.table.select([name]).to_batches())):
        raw = None if isinstance(row, UnreadableRecord) else row[name]
        try:
            if raw is None:
                raise EventError(f"it has no `{name}`, which should give its {what}")
            check_times(ticks, table.stream, **{what: raw})
            found[place] = ticks.read(raw, table.stream)
        except (EventError, KindError) as fault:
            faults.setdefault(place, str(fault))
    return found


def publishable(
    table: ArrowEvents, reader: EventReader, report: Callable[[Fault], object], size: int
) -> Iterator[tuple[int, int]]:
    """Return where parts of `size` events each begin and end; report the faults of a part before it is returned."""
    refused = np.zeros(len(table), dtype=np.bool_)
    refused[list(table.faults)] = True
    last = np.flatnonzero(~refused)[max(size, 1) - 1 :: max(size, 1)]
    begin = 0
    for end in [*(last + 1).tolist(), len(table)]:
        reached, failure = end, None
        for place in (np.flatnonzero(refused[begin:end]) + begin).tolist():
            reader.refuse()
            try:
                report(_fault(place, table.faults))
            except Exception as fault:  # noqa: BLE001 - whatever it is, what came before is published
                reached, failure = place, fault
                break
        reader.count(read=reached - begin - int(refused[begin:reached].sum()))
        if reached > begin:
            yield begin, reached
        if failure is not None:
            raise failure
        begin = end


def _fault(place: int, faults: Mapping[int, str]) -> Fault:
    return Fault("event", place + 1, faults[place])
