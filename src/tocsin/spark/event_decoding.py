"""Decoding of record batches into events, on Spark's workers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tocsin.formats.arrow_rows import arrow_rows
from tocsin.formats.column_blocks import ROW_SPECIFIC
from tocsin.formats.event_reader import EventFields, EventReader, Fault, find, missing_field, required_field
from tocsin.formats.records import UnreadableRecord, json_record
from tocsin.matching import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.streams import StreamColumn
from tocsin.matching.timed_batch import RowValidity
from tocsin.model.errors import EventError, KindError
from tocsin.model.event import STREAM, Event, is_deletion, matchable
from tocsin.model.values import Value, read_time
from tocsin.sharding import rows_without_key
from tocsin.structures.array_types import Bools

_NO_ID: Final = "it has no event id"
_DAY: Final = 86_400_000_000  # microseconds
_MOST_DAYS: Final = (1 << 63) // _DAY
_EMPTY: Final[Mapping[str, Value]] = {}


class EventLayout(Struct, frozen=True):
    """The columns of events. Exactly one of `columns`, `struct` and `payload` is given.

    `time` is a column of times or ticks, or of the query's time as text; `time_inside` an attribute of the payload that
    overrides it. `is_clock` says that the column holds the query's time, so a CloudEvent's own time overrides it, too.
    `stream` is the stream of all events, `stream_column` the column with the stream of each. `kept_until` is a column with
    the time until which each event is kept for later filters, `kept_until_inside` an attribute of the payload.
    """

    event_id: str
    time: str
    is_clock: bool = False
    time_inside: str | None = None
    columns: tuple[str, ...] | None = None
    struct: str | None = None
    payload: str | None = None
    stream: str | None = None
    stream_column: str | None = None
    kept_until: str | None = None
    kept_until_inside: str | None = None

    @property
    def keeps_events(self) -> bool:
        """Return whether events may be kept for later filters."""
        return self.kept_until is not None or self.kept_until_inside is not None

    def read(self, batch: Any, *, together: bool = False) -> DecodedBatch:
        """Return a record batch's rows as events; with `together` in one part, whatever their streams."""
        faults: dict[int, str] = {}
        ids = batch.column(self.event_id)
        if ids.null_count:
            faults.update(dict.fromkeys(np.flatnonzero(ids.is_null()).tolist(), _NO_ID))
        ends = self._times(batch, self.time, faults)
        until = self._kept_until(batch, faults)
        batch = self._with_readable_streams(batch, faults)
        if self.payload is not None:
            return self._from_payloads(batch, ends, faults, until)
        if self.struct is not None and (events := batch.column(self.struct)).null_count:
            missing = f"`{self.struct}` is null, and there is no event"
            faults.update(dict.fromkeys(np.flatnonzero(events.is_null()).tolist(), missing))
        table = self._attributes(batch)
        if not ROW_SPECIFIC.isdisjoint(table.schema.names):
            return self._from_rows(arrow_rows([table]), batch, ends, faults, until)
        parts = []
        for stream, rows in ((self.stream, None),) if together else self._by_stream(batch):
            part = table if rows is None else table.take(pa.array(rows))
            events = ArrowEvents.by_column(part, stream=stream)
            if events is not None and together and self.stream_column is not None:
                streams = StreamColumn.read(batch.column(self.stream_column))
                events = None if streams is None else events.with_stream(streams)
            if events is None:  # a column that has to be read row by row
                return self._from_rows(arrow_rows([table]), batch, ends, faults, until)
            parts.append(DecodedPart(events, rows))
        return DecodedBatch(tuple(parts), ends, faults, until=until, is_dated=self._is_dated(batch))

    def _is_dated(self, batch: Any) -> bool:
        """Return whether times are microseconds since 1970, and not ticks."""
        return not pa.types.is_integer(batch.schema.field(self.time).type)

    def _kept_until(self, batch: Any, faults: dict[int, str]) -> RowValidity | None:
        """Return until when events are kept for later filters, if a column says so."""
        if self.kept_until is None:
            return None
        column = batch.column(self.kept_until)
        is_kept = np.array(column.is_valid())
        if column.null_count:
            place = batch.schema.get_field_index(self.kept_until)
            zeros = pa.array(np.zeros(len(column), dtype=np.int64)).cast(column.type)
            batch = batch.set_column(place, self.kept_until, pc.if_else(column.is_valid(), column, zeros))
        return RowValidity(self._times(batch, self.kept_until, faults), is_kept)

    def _times(self, batch: Any, name: str, faults: dict[int, str]) -> NDArray[np.int64]:
        """Return the times in a column, in microseconds or ticks."""
        column = batch.column(name)
        if pa.types.is_string(column.type):  # the query's time, the same in all rows
            return np.full(batch.num_rows, int(column[0].as_py()) if batch.num_rows else 0, dtype=np.int64)
        if column.null_count:
            missing = str(missing_field(name, "time"))
            faults.update(dict.fromkeys(np.flatnonzero(column.is_null()).tolist(), missing))
        if pa.types.is_date32(column.type):  # the day's first moment
            days = np.asarray(column.cast(pa.int32()).fill_null(0), dtype=np.int64)
            far = np.flatnonzero(np.abs(days) > _MOST_DAYS).tolist()
            reason = f"its `{name}` is too far away to be counted in microseconds"
            faults.update(dict.fromkeys(far, reason))
            days[far] = 0
            return days * _DAY
        return np.asarray(column.cast(pa.int64()).fill_null(0))

    def _with_readable_streams(self, batch: Any, faults: dict[int, str]) -> Any:
        """Return the batch without stream names that are not UTF-8, which Spark accepts and Python does not."""
        if self.stream_column is None:
            return batch
        streams = batch.column(self.stream_column)
        try:
            streams.validate(full=True)
        except pa.ArrowInvalid:
            names = list(map(_decoded, _as_bytes(streams).to_pylist()))
            wrong = [place for place, name in enumerate(names) if name is None and streams[place].is_valid]
            faults.update(dict.fromkeys(wrong, "the name of its stream is not UTF-8"))
            place = batch.schema.get_field_index(self.stream_column)
            return batch.set_column(place, self.stream_column, pa.array(names, streams.type))
        return batch

    def _attributes(self, batch: Any) -> Any:
        if self.struct is None:
            return batch.select(list(self.columns or ()))
        column = batch.column(self.struct)
        return pa.RecordBatch.from_arrays(column.flatten(), schema=pa.schema(list(column.type)))

    def _by_stream(self, batch: Any) -> Iterator[tuple[str | None, NDArray[np.int64] | None]]:
        """Yield each stream with the positions of its rows; None for all rows."""
        if self.stream_column is None:
            yield self.stream, None
            return
        streams = batch.column(self.stream_column).dictionary_encode()
        codes = np.asarray(streams.indices.fill_null(-1))
        for code in np.unique(codes).tolist():
            yield None if code < 0 else streams.dictionary[code].as_py(), np.flatnonzero(codes == code)

    def _from_payloads(
        self, batch: Any, ends: NDArray[np.int64], faults: dict[int, str], until: RowValidity | None
    ) -> DecodedBatch:
        payloads = _as_bytes(batch.column(self.payload)).to_pylist()  # a string may not be UTF-8
        numbered = enumerate(map(json_record, payloads), 1)
        return self._from_rows(numbered, batch, ends, faults, until)

    def _from_rows(
        self,
        records: Iterator[tuple[int, Mapping[str, Any] | UnreadableRecord]],
        batch: Any,
        ends: NDArray[np.int64],
        faults: dict[int, str],
        until: RowValidity | None,
    ) -> DecodedBatch:
        """Return events that are read one by one; plain dicts go to the matcher as they are."""
        ends = ends.copy()
        is_dated = np.full(batch.num_rows, self._is_dated(batch))
        if self.kept_until_inside is not None:
            until = RowValidity(np.zeros(batch.num_rows, np.int64), np.zeros(batch.num_rows, np.bool_))
        own = self.stream_column
        streams = [self.stream] * batch.num_rows if own is None else batch.column(own).to_pylist()
        rows: list[Mapping[str, Any]] = []
        silent: list[int] = []
        for place, (_, record) in enumerate(records):
            if isinstance(record, UnreadableRecord):  # more telling than a missing id or time
                faults[place] = record.reason
                rows.append(_EMPTY)
                continue
            if place in faults:
                rows.append(_EMPTY)
                continue
            try:
                if type(record) is dict and record.keys().isdisjoint(ROW_SPECIFIC):
                    rows.append(record if streams[place] is None else {**record, STREAM: streams[place]})
                else:
                    event = _event(record, int(ends[place]), streams[place])
                    if is_deletion(event):
                        silent.append(place)
                    if self.is_clock:
                        ends[place] = event.end
                    rows.append(matchable(event).attributes)
                if self.time_inside is not None:
                    raw = required_field(record, self.time_inside, "time")
                    ends[place], is_dated[place] = _time_of(raw, self.time_inside)
                if until is not None and self.kept_until_inside is not None:
                    raw = find(record, self.kept_until_inside)
                    until.is_kept[place] = raw is not None
                    until.until[place], _ = (0, 0) if raw is None else _time_of(raw, self.kept_until_inside)
            except EventError as fault:
                faults[place] = str(fault)
                rows[place:] = [_EMPTY]
        part = DecodedPart(EventBatch.of_dicts(rows), None)
        return DecodedBatch((part,), ends, faults, frozenset(silent), until, is_dated)


class DecodedPart(Struct, frozen=True):
    """Events of one batch, and their rows in it; None for all rows."""

    events: EventBatch
    rows: NDArray[np.int64] | None


class DecodedBatch(Struct, frozen=True):
    """A record batch as events: when each ended, the faults by row, and the rows that filters must not see.

    `until` says until when rows are kept for later filters. `is_dated` tells for which rows times are microseconds since 1970,
    and not ticks.
    """

    parts: tuple[DecodedPart, ...]
    ends: NDArray[np.int64]
    faults: Mapping[int, str]
    silent: frozenset[int] = frozenset()
    until: RowValidity | None = None
    is_dated: Bools | bool = True

    def without_keyless_rows(self, keys: Mapping[str, tuple[str, ...]]) -> DecodedBatch:
        """Return the events with a fault for each row of a table that has no key; `keys` are those of all tables."""
        found: dict[int, str] = {}
        for part in self.parts if keys else ():
            count = len(self.ends) if part.rows is None else len(part.rows)
            for place, reason in rows_without_key(part.events, count, keys).items():
                found[place if part.rows is None else int(part.rows[place])] = reason
        return replace(self, faults={**found, **self.faults}) if found else self

    def all_faults(self) -> dict[int, str]:
        """Return the faults by row, including those of the events' values; cheap once they were matched."""
        found = dict(self.faults)
        for part in self.parts:
            for place, fault in part.events.faults.items():
                found.setdefault(place if part.rows is None else int(part.rows[place]), fault)
        return found

    def silenced(self) -> NDArray[np.bool_] | None:
        """Return a mask of rows that must not match; None if all may."""
        if not self.faults and not self.silent:
            return None
        silenced = np.zeros(len(self.ends), dtype=np.bool_)
        silenced[[*self.faults, *self.silent]] = True
        return silenced


def _as_bytes(texts: Any) -> Any:
    """Return a column of strings or bytes as unchecked bytes."""
    kinds = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}
    return texts.cast(kinds.get(texts.type, texts.type))


def _decoded(text: bytes | None) -> str | None:
    try:
        return None if text is None else text.decode()
    except UnicodeDecodeError:
        return None


def _event(record: Any, now: int, stream: str | None) -> Event:
    event = EventReader(EventFields(), clock=lambda: now).event(record, None, 0, stream)
    if isinstance(event, Fault):
        raise EventError(event.reason)
    return event


def _time_of(raw: object, path: str) -> tuple[int, bool]:
    """Return a time, and whether it is in microseconds since 1970, and not in ticks."""
    try:
        return read_time(raw), not isinstance(raw, (int, float))
    except KindError as fault:
        raise EventError(f"`{path}`: {fault}") from None
