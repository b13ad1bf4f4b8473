"""Matching many events with the filters, without publishing them."""

from __future__ import annotations

from collections.abc import Sequence
from threading import RLock

import numpy as np

from tocsin.engine.clock import Clock
from tocsin.engine.event_sources import (
    EventSource,
    GivenTable,
    as_columns,
    checked_source,
    dict_rows,
    read_blocks,
    read_events,
    row_fault,
)
from tocsin.engine.pipeline import EventPipeline
from tocsin.engine.results import NamedMatches
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.engine.top_k import TopK
from tocsin.formats import EventFields, EventReader, Fault
from tocsin.formats.event_blocks import EventBlock
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model.event import Event, is_deletion


class BatchMatcher:
    """Finds the filters that events satisfy; nothing is published."""

    def __init__(
        self,
        store: SubscriptionStore,
        pipeline: EventPipeline,
        reader: EventReader,
        clock: Clock,
        lock: RLock,
    ) -> None:
        self._store = store
        self._pipeline = pipeline
        self._reader = reader
        self._clock = clock
        self._lock = lock

    def match(self, events: EventSource, stream: str | None, top: TopK | None) -> NamedMatches:
        """Return, per row, the filters it satisfies: by the column where `events` have columns, else by the row."""
        events = checked_source(events, self._reader, stream)
        if top is not None:
            return self._match_rows(list(read_events(events, self._reader, stream)), top)
        columns = self._columns(events, stream)
        return self._match_parts(events, stream) if columns is None else self._match_columns(columns)

    def _columns(self, events: EventSource, stream: str | None) -> ArrowEvents | None:
        """Return a table, or a list of plain dicts, by the column; None for other sources."""
        if not isinstance(events, (list, tuple)):
            return as_columns(events, stream)
        if self._store.registry.has_validity:
            return None
        rows = dict_rows(events, self._reader, stream or None, EventFields())
        return None if rows is None else rows.batch

    def _match_parts(self, events: EventSource, stream: str | None) -> NamedMatches:
        """Match the tables that an iterator gives one by one, and the records between them together."""
        parts: list[NamedMatches] = []
        rows: list[Event | Fault] = []
        for item in read_blocks(events, self._reader, stream):
            columns = as_columns(item.table, stream) if isinstance(item, GivenTable) else None
            if columns is not None and isinstance(item, GivenTable):
                if rows:
                    parts.append(self._match_rows(rows, None))
                    rows = []
                parts.append(self._match_columns(columns, item.before))
            elif isinstance(item, (GivenTable, EventBlock)):
                rows += item
            else:
                rows.append(item)
        if rows or not parts:
            parts.append(self._match_rows(rows, None))
        return parts[0] if len(parts) == 1 else NamedMatches.join(parts)

    def _match_columns(self, table: ArrowEvents, before: int = 0) -> NamedMatches:
        end = self._clock.now()
        self._reader.count(read=len(table) - len(table.faults), refused=len(table.faults))
        self._reader.count_opaque(table.count_opaque(np.arange(len(table))))
        faults = tuple(
            row_fault(before + position, table.faults[position]) for position in sorted(table.faults)
        )
        with self._lock:
            self._pipeline.expire()
            registry, found = self._store.registry, self._store.filters.match(table)
            if registry.has_validity:
                found = found.take(registry.is_valid(found.numbers, end))
            return NamedMatches.of(len(table), found.rows, found.numbers, registry=registry, faults=faults)

    def _match_rows(self, rows: Sequence[Event | Fault], top: TopK | None) -> NamedMatches:
        faults = [row for row in rows if isinstance(row, Fault)]
        read = {i: row for i, row in enumerate(rows) if isinstance(row, Event) and not is_deletion(row)}
        with self._lock:
            self._pipeline.expire()
            found = self._pipeline.match(read, len(rows), top, faults.append)
            return NamedMatches.of(
                len(rows),
                found.rows,
                found.numbers,
                registry=self._store.registry,
                faults=tuple(faults),
                scores=found.scores,
            )
