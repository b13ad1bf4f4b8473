"""Publishing many events: each kind of source in batches, by the column where it has columns."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from threading import RLock
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.engine.event_sources import (
    EventSource,
    GivenTable,
    as_columns,
    block_events,
    block_rows,
    checked_source,
    dict_rows,
    first_records,
    publishable_parts,
    read_blocks,
    row_fault,
    timed_rows,
)
from tocsin.engine.pipeline import EventPipeline, Published, Report
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.engine.top_k import TopK
from tocsin.formats import EventFields, EventFile, EventReader, Fault
from tocsin.formats.event_blocks import EventBlock
from tocsin.formats.time_fields import time_field_of
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.timed_batch import TimedRows
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.structures.answering import answering

_BATCH: Final = 1000  # events that are published together
_TABLE_BATCH: Final = 16_384  # rows that are published by the column
_log = logging.getLogger("tocsin")


class _Options(Struct, frozen=True):
    """How a source is to be read and published."""

    stream: str | None
    fields: EventFields
    report: Report  # of records that are no events
    batch_size: int | None
    top: TopK | None
    one_by_one: bool


class BatchPublisher:
    """Publishes many events, batch by batch, each under the engine's lock.

    A table is published by the column, and so are a list of plain dicts, part by part, and tables and blocks of a file that
    an iterator gives. Everything else is read record by record. If a source or a report fails, the events before it are published.
    """

    def __init__(
        self, store: SubscriptionStore, pipeline: EventPipeline, reader: EventReader, lock: RLock
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._reader = reader
        self._lock = lock
        self._untimed: set[str | None] = set()  # streams whose events were looked at for a time

    def batches(
        self,
        events: EventSource,
        stream: str | None,
        fields: EventFields,
        *,
        report: Report,
        batch_size: int | None,
        top: TopK | None,
        one_by_one: bool = False,
    ) -> Iterator[Published]:
        """Publish events while the result is iterated, and yield what each batch caused.

        With `one_by_one`, single records are published as they come, unless there is a `batch_size`.
        """
        options = _Options(stream, fields, report, batch_size, top, one_by_one)
        events = checked_source(events, self._reader, stream, fields)
        of = events.reader.stream if isinstance(events, EventFile) else stream
        if fields.time is None and self._store.sequences.reads(of) and of not in self._untimed:
            self._note_unused_time(events, of)
        table = as_columns(events, stream)
        if table is not None and self._takes_table(table, fields):
            return self._table(table, options)
        if isinstance(events, (list, tuple)) and self._takes_dicts(stream):
            return self._dicts(events, options)
        return self._records(events, options)

    def _note_unused_time(self, events: EventSource, stream: str | None) -> None:
        """Log that events of a stream which sequences read have a time that nobody named; each stream is looked at once."""
        first = first_records(events)
        if len(first) < 2:  # a single event may well happen now
            return
        self._untimed.add(stream)
        field = time_field_of(first)
        if field is not None:
            _log.warning(
                "events of stream `%s` have the time at which they are published; to give sequences that in their `%s`, "
                'set `time="%s"`',
                stream,
                field,
                field,
            )

    # a table

    def _takes_table(self, table: ArrowEvents, fields: EventFields) -> bool:
        """Tell whether a table can be published by the column."""
        # Rows without times would all be simultaneous to a sequence: they get theirs one by one.
        is_read, is_stored = (
            self._store.sequences.reads(table.stream),
            table.stream in self._store.views.tables,
        )
        return (fields.time is not None or not is_read) and (table.is_table or not (is_read or is_stored))

    def _table(self, table: ArrowEvents, options: _Options, before: int = 0) -> Iterator[Published]:
        """Publish a table's rows by the column; its faults are counted from the row after `before`."""
        fields, views = options.fields, self._store.views
        if fields.time is None:
            times = np.zeros(len(table), dtype=np.int64)  # each part gets the time of its publication
            timed = TimedRows(table, times, times)
        else:
            timed = timed_rows(table, fields.time, fields.start, self._reader.ticks)
        untimed = list(timed.faults.keys() - table.faults.keys())
        if (stored := views.tables.by_name.get(table.stream or "")) is not None:
            faults = stored.missing_keys(timed.batch)
            timed = timed.with_faults(faults) if faults else timed
        size = options.batch_size or min(_TABLE_BATCH, views.most_at_once)
        for begin, end in publishable_parts(timed.batch, self._reader, options.report, size, before):
            part = timed.part(begin, end)
            if fields.time is None:
                self._reader.check_clock(table.stream)
                part.starts = part.ends = np.full(end - begin, self._reader.now(table.stream), dtype=np.int64)
            read = np.setdiff1d(np.arange(begin, end), untimed) if untimed else np.arange(begin, end)
            self._reader.count_opaque(table.count_opaque(read))
            yield from self._table_part(part, before + begin, options)

    def _table_part(self, part: TimedRows, begin: int, options: _Options) -> Iterator[Published]:
        """Publish rows of a table from `begin` on; if a report fails, the rows before it are published."""
        failure: Exception | None = None
        published, faults = self._publish_rows(part, options.top)
        while published is None:
            for row in sorted(faults):
                self._reader.refuse()
                try:
                    options.report(row_fault(begin + row, faults[row]))
                except Exception as fault:  # noqa: BLE001 - whatever it is, the rows before it are published
                    failure, part = fault, part.slice(0, row)
                    break
            part = part.with_faults({row: reason for row, reason in faults.items() if row < len(part)})
            published, faults = self._publish_rows(part, options.top)
        yield published
        if failure is not None:
            raise failure

    # a list of dicts

    def _takes_dicts(self, stream: str | None) -> bool:
        """Tell whether dicts of a stream can be published by the column."""
        # A subscription may end between two of the events; sequences and tables take events one by one.
        return not (
            self._store.registry.has_validity
            or self._store.sequences.reads(stream)
            or stream in self._store.views.tables
        )

    def _dicts(self, events: Sequence[object], options: _Options) -> Iterator[Published]:
        """Publish a list part by part: by the column if a part is plain dicts, else record by record."""
        size = options.batch_size or _TABLE_BATCH
        for begin in range(0, len(events), size):
            part = events[begin : begin + size]
            rows = dict_rows(part, self._reader, options.stream or None, options.fields)
            if rows is None:
                yield from self._records(part, options, begin)
                continue
            self._reader.count(read=len(part))
            published, faults = self._publish_rows(rows, options.top)
            assert published is not None, faults  # noqa: S101 - only rows of a table have faults here
            published[1].keep_events()  # the dicts are the caller's to change
            yield published

    # records, and tables and blocks of a file among them

    def _records(self, events: EventSource, options: _Options, before: int = 0) -> Iterator[Published]:
        """Publish records, counted from the one after `before`, many at a time; tables and blocks by the column."""
        report, top = options.report, options.top
        most = 1 if options.one_by_one else _BATCH
        size = options.batch_size or min(most, self._store.views.most_at_once)
        batch: list[Event] = []
        failure: Exception | None = None
        try:
            for item in read_blocks(events, self._reader, options.stream, options.fields, before):
                records: Iterable[Event | Fault]
                if not isinstance(item, (EventBlock, GivenTable)):
                    records = (item,)
                else:
                    records = item
                    if batch:
                        full, batch = batch, []
                        yield self._publish(full, report, top)
                    columns = self._columns(item, options)
                    if columns is not None:
                        yield from columns
                        continue
                for record in records:
                    read = record if isinstance(record, Fault) else self._check_row(record)
                    if isinstance(read, Fault):
                        report(read)
                        continue
                    batch.append(read)
                    if len(batch) >= size:
                        full, batch = batch, []
                        yield self._publish(full, report, top)
        except Exception as fault:  # noqa: BLE001 - whatever ends the source, the events before it are published
            failure = fault
        if batch:
            yield self._publish(batch, report, top)
        if failure is not None:
            raise failure

    def _columns(self, item: EventBlock | GivenTable, options: _Options) -> Iterable[Published] | None:
        """Publish a table or a block by the column; return None if it has to be read by the row."""
        if isinstance(item, GivenTable):
            table, time = as_columns(item.table, options.stream), options.fields.time
            if table is None or not self._takes_table(table, options.fields):
                return None
            has_times = time is None or time in table.paths
            return self._table(table, options, item.before) if has_times else None
        published = self._publish_block(item, options.top)
        return None if published is None else (published,)

    def _publish_block(self, block: EventBlock, top: TopK | None) -> Published | None:
        """Publish a file's block by the column; return None if it has to be read by the row, where faults have their lines."""
        events = block_events(block)
        if events is None:
            return None
        tables = self._store.views.tables.by_name
        stored = [tables[name] for name in events.stream_names if name in tables]
        is_read = any(map(self._store.sequences.reads, events.stream_names))
        # Without times, sequences would see all rows at once.
        if is_read and block.reader.fields.time is None:
            return None
        if (is_read or stored) and not events.is_table:
            return None
        rows = block_rows(block, events)
        if rows is None or (
            len(events.stream_names) == 1 and any(one.missing_keys(rows.batch) for one in stored)
        ):
            return None
        published, _ = self._publish_rows(rows, top)
        if published is not None:
            block.accept(events.count_opaque(np.arange(len(events))))
        return published

    def _check_row(self, event: Event) -> Event | Fault:
        """Return an event, or the fault that keeps it from being a row of its table."""
        if event.stream not in self._store.views.tables:
            return event
        try:
            with self._lock:
                self._store.views.read(event)
        except EventError as fault:
            self._reader.refuse()
            return Fault(event.id, 0, str(fault))
        return event

    # shared

    def _publish(self, events: list[Event], report: Report, top: TopK | None) -> Published:
        with self._lock, answering(len(events)):
            return self._pipeline.publish(events, report, top)

    def _publish_rows(self, rows: TimedRows, top: TopK | None) -> tuple[Published | None, dict[int, str]]:
        with self._lock, answering(len(rows)):
            return self._pipeline.publish_rows(rows, top)
