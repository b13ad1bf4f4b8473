"""Events in whatever form they are given to the engine: dicts, `Event`s, Arrow tables, iterators of these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from os import PathLike
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.formats import EventFields, EventFile, EventReader, Fault
from tocsin.formats.arrow_cells import plain_values
from tocsin.formats.arrow_rows import arrow_rows, is_arrow
from tocsin.formats.cloud_events import SPEC_VERSION
from tocsin.formats.column_blocks import ROW_SPECIFIC, ColumnBlock
from tocsin.formats.dict_blocks import dict_block
from tocsin.formats.event_blocks import EventBlock
from tocsin.formats.event_reader import missing_field
from tocsin.formats.frames import as_arrow, as_one_table, is_table
from tocsin.formats.local_times import in_zone
from tocsin.formats.opaque_columns import is_opaque, opaque_values
from tocsin.formats.records import UnreadableRecord
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.blocks import BlockEvents
from tocsin.matching.encoding.columns import distinct_texts, is_text
from tocsin.matching.encoding.streams import StreamColumn
from tocsin.matching.timed_batch import RowNames, RowValidity, TimedRows
from tocsin.model.errors import EventError, KindError
from tocsin.model.event import Event, read_given_time
from tocsin.model.ticks import StreamTicks, TimeUnit

EventSource: TypeAlias = Iterable[Mapping[str, object] | Event | Fault] | Any
"""Dicts, events, a table, or an iterator of any of these.

A table is one of Arrow, a DataFrame of pandas or polars, or any other object with Arrow's C stream (`__arrow_c_stream__`) or the
interchange protocol of data frames (`__dataframe__`).
"""

_TO_MICROSECONDS: Final = {"s": (1_000_000, 1), "ms": (1_000, 1), "us": (1, 1), "ns": (1, 1_000)}
_LONGEST: Final = 2**63 - 1
_MOST_TICKS: Final = 16  # lengths of ticks in a block of several streams
_EXACT: Final = 2**53  # every integer up to this is a float
_FIRST: Final = 50  # records that are looked at before they are read
_FEW: Final = 5  # columns that an error names
_FEWEST_ROWS: Final = 16  # dicts for which columns are worth their making


def is_at_hand(events: EventSource) -> bool:
    """Tell whether all events are there already, so that they can be taken many at a time."""
    return is_table(events) or isinstance(events, Sequence)


def checked_source(
    events: EventSource, reader: EventReader, stream: str | None, fields: EventFields | None = None
) -> EventSource:
    """Return a source of events, and a table as one of Arrow whose times without a zone are of the reader's.

    A file that was opened without a reader gets one like the given, with its stream and fields. Raise `EventError` for what
    can be no source, such as a single dict.
    """
    if isinstance(events, Mapping):
        raise EventError("events are expected, and this is one; put it into a list, or `publish` it")
    if isinstance(events, (str, bytes, bytearray, Event, PathLike)) or hasattr(events, "readline"):
        raise EventError(
            f"events are expected, not {_named(events)}; give dicts, a table, or `open_events(path)` for a file"
        )
    if isinstance(events, EventFile):
        _set_options(events, reader, stream, fields or EventFields())
    source = _as_table(events, reader.ticks.zone)
    if not (isinstance(source, Iterable) or is_arrow(source) or hasattr(source, "__getitem__")):
        raise EventError(f"events are expected, not {type(source).__name__}")
    return source


def _set_options(file: EventFile, reader: EventReader, stream: str | None, fields: EventFields) -> None:
    """Have a file read with a call's stream and fields; raise `EventError` if it has a reader of its own, and they are given."""
    if file.takes_options:
        file.reader = reader.of_source(stream or file.reader.stream, fields)
    elif stream is not None or fields.time is not None or fields.start is not None:
        raise EventError(
            "the file was opened with an `EventReader`, which has its stream and the fields with its times; give them there, "
            "or open the file without one"
        )


def first_records(events: Any) -> list[Mapping[str, Any]]:
    """Return the first records of a checked source that are at hand as dicts; nothing of an iterator is taken."""
    if isinstance(events, EventFile):
        is_there = events.path is not None and events.path.is_file() and events.reader.fields.time is None
        return events.first_records(_FIRST) if is_there else []
    if is_arrow(events):
        return [
            record
            for _, record in arrow_rows(_batches(events.slice(0, _FIRST)))
            if isinstance(record, Mapping)
        ]
    if isinstance(events, (list, tuple)):
        return [
            record for record in events[:_FIRST] if isinstance(record, Mapping) and SPEC_VERSION not in record
        ]
    return []


def _as_table(given: Any, zone: tzinfo) -> Any:
    """Return a table as one of Arrow, with times in UTC; anything else as it is."""
    table = as_arrow(given)
    return in_zone(table, zone) if is_arrow(table) else table


def _named(one: object) -> str:
    if isinstance(one, (bytes, bytearray)):
        return "bytes"
    if isinstance(one, (str, Event)):
        return "a text" if isinstance(one, str) else "a single `Event`"
    return "a path" if isinstance(one, PathLike) else "an open file"


class GivenTable:
    """An Arrow table among other events: to be taken by the column, or iterated, which reads its rows one by one.

    `before` is how many records came before it.
    """

    def __init__(
        self, table: Any, before: int, reader: EventReader, stream: str | None, fields: EventFields | None
    ) -> None:
        self.table = table
        self.before = before
        self._reader = reader
        self._stream = stream
        self._fields = fields

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Event | Fault]:
        for number, record in arrow_rows(_batches(self.table)):
            yield self._reader.event(record, None, self.before + number, self._stream, self._fields)


def read_events(
    events: EventSource,
    reader: EventReader,
    stream: str | None,
    fields: EventFields | None = None,
    before: int = 0,
) -> Iterator[Event | Fault]:
    """Yield each event, or the fault of a record that is none; `fields` name the attributes with its times.

    Records are counted from the one after `before`.
    """
    for one in read_blocks(events, reader, stream, fields, before):
        if isinstance(one, (EventBlock, GivenTable)):
            yield from one
        else:
            yield one


def read_blocks(
    events: EventSource,
    reader: EventReader,
    stream: str | None,
    fields: EventFields | None = None,
    before: int = 0,
) -> Iterator[Event | Fault | EventBlock | GivenTable]:
    """Yield each event, or the fault of a record that is none; tables and the blocks of a file are yielded as they are.

    Records are counted from the one after `before`.
    """
    for number, record in _records(events, before, reader.ticks.zone):
        if isinstance(record, Event):
            yield reader.check(record, number)
        elif isinstance(record, (Fault, EventBlock)):
            yield record
        elif is_arrow(record):
            yield GivenTable(record, number - 1, reader, stream, fields)
        else:
            yield reader.event(record, None, number, stream, fields)


def _records(events: EventSource, before: int, zone: tzinfo) -> Iterator[tuple[int, Any]]:
    """Yield each record with its number, counted from the one after `before`; a table has the number of its first row."""
    number = before + 1
    for one in (events,) if is_arrow(events) else events:
        given: Any = _as_table(one, zone)
        if is_arrow(given):
            yield number, given
            number += given.num_rows
        elif given is not one:  # a table of another library that Arrow cannot hold
            yield from enumerate(given, number)
            number += len(given)
        else:
            yield number, one
            number += 1


def _batches(table: Any) -> list[Any]:
    return [table] if isinstance(table, pa.RecordBatch) else list(table.to_batches())


def as_columns(events: EventSource, stream: str | None) -> ArrowEvents | None:
    """Return a table that can be matched by the column, or None for any other source."""
    table: Any = events
    if not is_arrow(table) or not ROW_SPECIFIC.isdisjoint(table.schema.names):
        return None
    return ArrowEvents.by_column(table, stream=stream or None)


def require_columns(events: EventSource, stream: str, zone: tzinfo = UTC) -> ArrowEvents:
    """Return a table that can be read by the column, or raise `EventError`; some of its rows may have faults."""
    given = as_one_table(events)
    if not is_arrow(given):
        raise EventError(_no_table(events))
    table = as_columns(in_zone(given, zone), stream)
    if table is None or not table.is_table:
        raise EventError(_no_columns(given, stream))
    return table


def _no_table(given: Any) -> str:
    """Return why rows are no table, and what to do with them."""
    if is_table(given) or (isinstance(given, (list, tuple)) and any(map(is_table, given))):
        return "a column has values of several types, which no table of Arrow holds; publish the rows with `publish_many`"
    return (
        f"a table is expected, of Arrow, pandas or polars, not {type(given).__name__}; make one of dicts with "
        "`pyarrow.Table.from_pylist`, or publish them with `publish_many`"
    )


def _no_columns(table: Any, stream: str) -> str:
    """Return which columns of a table have to be read by the row, and what to do with it."""
    bad = [field for field in table.schema if not _is_by_column(table.select([field.name]), stream)]
    if not bad:
        return "the table cannot be read by the column; publish it with `publish_many`"
    named = ", ".join(f"`{field.name}` ({field.type})" for field in bad[:_FEW])
    return (
        f"only plain columns are taken, without {named}: cast it, or publish the table with `publish_many`, which reads "
        "it by the row"
    )


def _is_by_column(table: Any, stream: str) -> bool:
    events = as_columns(table, stream)
    return events is not None and events.is_table


def timed_rows(table: ArrowEvents, time: str, start: str | None, ticks: StreamTicks) -> TimedRows:
    """Return a table's rows with their times; rows without one are faults."""
    starts, ends, faults = table_times(table, time, start, ticks)
    return TimedRows(table.with_faults(faults) if faults else table, starts, ends)


def block_events(block: EventBlock) -> ArrowEvents | None:
    """Return a file's block by the column, or None if it has to be read by the row, where a fault has its line."""
    reader, columns = block.reader, block.columns
    events: ArrowEvents | None
    if isinstance(columns, ColumnBlock):
        events = BlockEvents(columns, reader.stream)
    else:
        events = as_columns(columns, reader.stream)
    if events is None or events.faults:
        return None
    fields = reader.fields
    if fields.id is not None and not _is_full(events, fields.id, _is_id):
        return None
    if fields.stream is None:
        return events
    leaves = events.leaves_at(fields.stream)
    streams = StreamColumn.read(leaves[0]) if len(leaves) == 1 else None
    return None if streams is None else events.with_stream(streams)


def block_rows(block: EventBlock, events: ArrowEvents) -> TimedRows | None:
    """Return a block's events with their times, or None if one has none or a faulty one."""
    return _with_times(events, block.reader, block.reader.fields, block.event_id)


def dict_rows(
    rows: Sequence[object], reader: EventReader, stream: str | None, fields: EventFields
) -> TimedRows | None:
    """Return plain dicts by the column with their times, or None if they have to be read one by one."""
    if len(rows) < _FEWEST_ROWS:
        return None
    block = dict_block(rows)
    return None if block is None else _with_times(BlockEvents(block, stream), reader, fields)


def _with_times(
    events: ArrowEvents, reader: EventReader, fields: EventFields, names: RowNames | None = None
) -> TimedRows | None:
    """Return rows with the times that `fields` name, or None if one has none or a faulty one."""
    if events.streams is None:
        times = _times(events, reader, fields)
        if times is None:
            return None
        return TimedRows(events, times.starts, times.ends, names=names, validity=times.validity)
    ticks = reader.ticks
    alike: dict[tuple[int, bool, TimeUnit | None], list[str]] = {}  # streams whose times are read alike
    units = _fixed_units(events, events.streams, fields, ticks)
    if units is None:
        return None
    for name in events.streams.names:
        key = ticks.length(name), ticks.needs_declaration(name), units.get(name)
        alike.setdefault(key, []).append(name)
    if len(alike) > _MOST_TICKS:
        return None
    starts, ends = np.zeros(len(events), dtype=np.int64), np.zeros(len(events), dtype=np.int64)
    until, is_kept = np.zeros(len(events), dtype=np.int64), np.zeros(len(events), dtype=np.bool_)
    for same in alike.values():
        times = _times(events.with_stream(same[0]), reader, fields)
        if times is None:
            return None
        if ticks.counts_dates(same[0]):
            for name in same:
                ticks.saw_date(name)
        own = np.logical_or.reduce([events.streams.has(name) for name in same])
        starts[own], ends[own] = times.starts[own], times.ends[own]
        if times.validity is not None:
            until[own], is_kept[own] = times.validity.until[own], times.validity.is_kept[own]
    validity = RowValidity(until, is_kept) if is_kept.any() else None
    return TimedRows(events, starts, ends, names=names, validity=validity)


def _fixed_units(
    events: ArrowEvents, streams: StreamColumn, fields: EventFields, ticks: StreamTicks
) -> dict[str, TimeUnit] | None:
    """Return what the numbers in time fields count, by stream; the first number of each decides, as in row after row.

    None if a stream has no number that decides: then each row has to be read by itself.
    """
    for path in (fields.time, fields.start, fields.valid_until):
        found = events.leaves_at(path) if path is not None else ()
        if len(found) != 1 or not (pa.types.is_integer(found[0].type) or pa.types.is_floating(found[0].type)):
            continue
        numbers, valid = plain_values(found[0])
        first: dict[str, TimeUnit] = {}
        for name in streams.names:
            own = streams.has(name) if valid is None else streams.has(name) & valid
            if own.any():
                first[name] = ticks.unit_of(numbers[int(np.argmax(own))].item(), name)
            if not ticks.has_unit(name):
                return None
        return first
    return {}


class _Times(Struct, frozen=True):
    """When rows started and ended, and until when they are kept."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    validity: RowValidity | None


def _times(events: ArrowEvents, reader: EventReader, fields: EventFields) -> _Times | None:
    """Return the times of the rows of one stream, or None if one has no time or a faulty one."""
    validity = None
    if fields.valid_until is not None:
        try:
            validity = _validity(events, fields.valid_until, reader.ticks)
        except EventError:
            return None
    if fields.time is None:
        if fields.start is not None:
            return None
        ends = np.full(len(events), reader.now(events.stream), dtype=np.int64)
        return _Times(ends, ends, validity)
    if not all(_is_full(events, path, _is_time) for path in (fields.time, fields.start) if path is not None):
        return None
    try:
        starts, ends, faults = table_times(events, fields.time, fields.start, reader.ticks)
    except EventError:
        return None
    if faults or (len(ends) and _are_inexact(events, fields) and np.abs(ends).max() >= _EXACT):
        return None
    return _Times(starts, ends, validity)


def _are_inexact(events: ArrowEvents, fields: EventFields) -> bool:
    """Tell whether times are floats, among which integers may stand."""
    paths = (path for path in (fields.time, fields.start) if path is not None)
    return any(pa.types.is_floating(events.leaves_at(path)[0].type) for path in paths)


def _validity(events: ArrowEvents, path: str, ticks: StreamTicks) -> RowValidity | None:
    """Return until when rows are kept, None if no row is; raise `EventError` if a row has to be read for it."""
    found = events.leaves_at(path)
    if not found and not events.may_have(path):
        return None
    if len(found) != 1 or not _is_time(found[0].type):
        raise EventError(f"the column `{path}` holds more than times")
    leaf = found[0].dictionary_decode() if pa.types.is_dictionary(found[0].type) else found[0]
    given = ArrowEvents(pa.table({path: leaf.drop_null()}), (path,), {}, events.stream)
    _, times, faults = table_times(given, path, None, ticks)
    check_no_faults(faults)
    is_kept, _ = plain_values(leaf.is_valid())
    until = np.zeros(len(leaf), dtype=np.int64)
    until[is_kept] = times
    return RowValidity(until, is_kept)


def _is_full(events: ArrowEvents, path: str, is_kind: Callable[[Any], bool]) -> bool:
    """Tell whether all rows have a value of one kind at a path."""
    found = events.leaves_at(path)
    if len(found) != 1 or found[0].null_count or not is_kind(found[0].type):
        return False
    # a word of a dictionary may be null
    return not (pa.types.is_dictionary(found[0].type) and found[0].dictionary.null_count)


def _is_id(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return is_text(kind) or bool(pa.types.is_integer(kind))


def _is_time(kind: Any) -> bool:
    is_date = pa.types.is_timestamp(kind.value_type if pa.types.is_dictionary(kind) else kind)
    return _is_id(kind) or bool(is_date or pa.types.is_floating(kind))


def check_no_faults(faults: Mapping[int, str]) -> None:
    """Raise `EventError` for the first faulty row of a table that is taken whole or not at all."""
    if faults:
        position, fault = min(faults.items())
        raise EventError(f"row {position} is no event: {fault}; nothing was taken")


def row_fault(position: int, fault: str) -> Fault:
    """Return the fault of a table's row."""
    return Fault("event", position + 1, fault)


def table_times(
    table: ArrowEvents, time: str, start: str | None, ticks: StreamTicks
) -> tuple[NDArray[np.int64], NDArray[np.int64], dict[int, str]]:
    """Return when a table's rows started and ended, and the faults of rows without a time.

    `time` and `start` name the columns; without `start`, a row starts when it ends.
    """
    faults: dict[int, str] = {}
    ends = _ticks_of(table, time, "time", ticks, faults)
    starts = ends if start is None else _ticks_of(table, start, "start", ticks, faults)
    for position in np.flatnonzero(starts > ends).tolist():
        fault = f"the event starts at {starts[position]}, after its end at {ends[position]}"
        faults.setdefault(position, fault)
    return starts, ends, faults


def _ticks_of(
    table: ArrowEvents, name: str, what: str, ticks: StreamTicks, faults: dict[int, str]
) -> NDArray[np.int64]:
    """Return the ticks of each row from column `name`; rows without a usable time are added to `faults`."""
    if name not in table.paths:
        raise EventError(f"the table has no column `{name}`, which should give the {what} of its rows")
    found_leaves = table.leaves_at(name)
    column = found_leaves[0] if found_leaves else pa.nulls(len(table))
    kind = column.type
    if is_opaque(kind):
        raws: list[Any] = opaque_values(column)
        return _ticks_of_each(raws, (name, what), table.stream, ticks, faults)
    if (pa.types.is_integer(kind) or pa.types.is_floating(kind)) and not column.null_count:
        numbers = column.to_numpy(zero_copy_only=False)
        if pa.types.is_integer(kind) or np.isfinite(numbers).all():
            try:
                counted = ticks.read_column(numbers, table.stream)
            except KindError as fault:
                raise EventError(f"`{what}`: {fault}") from None
            if counted is not None:
                return counted
    if pa.types.is_timestamp(kind) and not column.null_count:
        ticks.saw_date(table.stream)
        counted = np.asarray(column.cast(pa.int64()).to_numpy(zero_copy_only=False), dtype=np.int64)
        factor, divisor = _TO_MICROSECONDS[kind.unit]
        if len(counted) and max(int(counted.max()), -int(counted.min())) <= _LONGEST // factor:
            return counted * factor // (divisor * ticks.length(table.stream))
    if is_text(kind.value_type if pa.types.is_dictionary(kind) else kind) and not column.null_count:
        return _ticks_of_texts(column, table.stream, what, ticks, faults)
    alone = pa.RecordBatch.from_arrays([column], [name])
    raws = [None if isinstance(row, UnreadableRecord) else row[name] for _, row in arrow_rows([alone])]
    return _ticks_of_each(raws, (name, what), table.stream, ticks, faults)


def _ticks_of_each(
    raws: Sequence[Any],
    names: tuple[str, str],
    stream: str | None,
    ticks: StreamTicks,
    faults: dict[int, str],
) -> NDArray[np.int64]:
    """Return the ticks of values read one by one; `names` are those of the column and of the time."""
    name, what = names
    found = np.zeros(len(raws), dtype=np.int64)
    for position, raw in enumerate(raws):
        try:
            if raw is None:
                raise missing_field(name, what)
            found[position] = read_given_time(ticks, stream, what, raw)
        except EventError as fault:
            faults.setdefault(position, str(fault))
    return found


def _ticks_of_texts(
    column: Any, stream: str | None, what: str, ticks: StreamTicks, faults: dict[int, str]
) -> NDArray[np.int64]:
    """Return the ticks of each row from a column of texts; each distinct text is read once."""
    words, positions, _ = distinct_texts(column)
    moments = np.zeros(len(words), dtype=np.int64)
    wrong: dict[int, str] = {}
    for number, word in enumerate(words):
        try:
            moments[number] = read_given_time(ticks, stream, what, word)
        except EventError as fault:
            wrong[number] = str(fault)
    for position in np.flatnonzero(np.isin(positions, list(wrong))).tolist():
        faults.setdefault(position, wrong[int(positions[position])])
    return moments[positions]


def publishable_parts(
    table: ArrowEvents, reader: EventReader, report: Callable[[Fault], object], size: int, before: int = 0
) -> Iterator[tuple[int, int]]:
    """Yield where parts of `size` events each begin and end; the faults of a part are reported before it is yielded.

    They are counted from the row after `before`.
    """
    refused = np.zeros(len(table), dtype=np.bool_)
    refused[list(table.faults)] = True
    last = np.flatnonzero(~refused)[max(size, 1) - 1 :: max(size, 1)]
    begin = 0
    for end in [*(last + 1).tolist(), len(table)]:
        reached, failure = end, None
        for position in (np.flatnonzero(refused[begin:end]) + begin).tolist():
            reader.refuse()
            try:
                report(row_fault(before + position, table.faults[position]))
            except Exception as fault:  # noqa: BLE001 - whatever it is, the rows before it are published
                reached, failure = position, fault
                break
        reader.count(read=reached - begin - int(refused[begin:reached].sum()))
        if reached > begin:
            yield begin, reached
        if failure is not None:
            raise failure
        begin = end
