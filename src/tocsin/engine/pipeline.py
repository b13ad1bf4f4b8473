"""The way of published events: through filters, sequences and views, to notifications."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter
from typing import Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from tocsin.engine.clock import Clock
from tocsin.engine.event_sources import check_no_faults
from tocsin.engine.filter_runtime import FilterMatches
from tocsin.engine.history import History
from tocsin.engine.notifications import (
    FilterNotifications,
    NotificationPart,
    Notifications,
    SequenceNotifications,
    ViewNotifications,
)
from tocsin.engine.reorder_buffer import Released, ReorderBuffer
from tocsin.engine.results import NamedAnswerChanges, NamedSequenceMatches
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.engine.top_k import TopK
from tocsin.formats import EventReader, Fault
from tocsin.formats.column_blocks import integer_array
from tocsin.matching import ConjunctionBatch, IdArray
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model import Event, Notification
from tocsin.model.errors import EventError
from tocsin.model.event import STREAM, is_deletion
from tocsin.model.options import ALWAYS
from tocsin.sequences.matches import sequence_notification
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.runtime import TableRows
from tocsin.views.table import RowUpdate

Report: TypeAlias = Callable[[Fault], object]

_NO_UPDATES: Final[Mapping[int, RowUpdate]] = {}
_NO_NOTIFICATIONS: Final = SequenceNotifications(np.empty(0, dtype=np.int64), [])
_log = logging.getLogger("tocsin")


Published: TypeAlias = tuple[int, Notifications, list[Event]]
"""How many events were published, their notifications, and the events that are late for sequences."""


class Admitted(NamedTuple):
    """Events that can be processed."""

    events: list[Event]
    positions: list[int]  # of each, among the events that were given
    deletions: frozenset[int]  # rows of `events` that delete rows of tables
    updates: Mapping[int, RowUpdate]  # by row of `events`: the rows of tables, read


class _FromSequence(Struct, frozen=True):
    """An event that a sequence published, and the row and position of the event that completed the sequence."""

    row: int
    position: int
    event: Event


class EventPipeline:
    """Runs events through the runtimes, stage by stage. Called under the engine's lock.

    One event's notifications come in this order: filters, sequences, filters on the streams that sequences publish,
    views. Events in a batch are processed as if they came one by one.
    """

    def __init__(
        self, store: SubscriptionStore, buffer: ReorderBuffer, reader: EventReader, clock: Clock
    ) -> None:
        self._store = store
        self._buffer = buffer
        self._reader = reader
        self._clock = clock
        self.history = History()
        self.published = 0
        self.notified = 0

    def process(
        self,
        events: TimedBatch,
        top: TopK | None = None,
        deletions: frozenset[int] = frozenset(),
        updates: Mapping[int, RowUpdate] | TableRows = _NO_UPDATES,
    ) -> Notifications:
        """Publish events, and return their notifications.

        The rows of `deletions` delete rows of tables; `updates` has the rows that are rows of tables.
        """
        times = self._pass_time(events, deletions)
        parts: list[NotificationPart] = []
        if self._store.filter_count:
            parts.append(self._match_filters(events, times, top, deletions))
        released = self._buffer.push(events, self._store.sequences.streams, deletions)
        published: list[_FromSequence] = []
        if released:
            sequences, published = self._match_sequences(released)
            parts.append(sequences)
        if isinstance(updates, TableRows):
            parts.append(self._update_table(events, times, updates))
            updates = _NO_UPDATES
        if updates or published:
            parts.append(self._update_views(events, times, updates, published))
        return self._notify(parts)

    def flush(self) -> Notifications:
        """Give sequences the events that the reorder buffer holds back, and return the notifications."""
        sequences, published = self._match_sequences(self._buffer.flush())
        views = self._update_views(TimedBatch([]), self._clock.now(), _NO_UPDATES, published)
        return self._notify([sequences, views])

    def publish(
        self, events: Iterable[Event], report: Report | None = None, top: TopK | None = None
    ) -> Published:
        """Publish events; one that cannot be processed is reported, or raises `EventError` without a `report`."""
        if self._store.registry.has_validity or self.history.events:
            self.expire()
        admitted, _, deletions, updates = self.admit(events, report)
        notifications = self.process(TimedBatch(admitted), top, deletions, updates)
        return (
            len(admitted),
            notifications,
            self._buffer.drain_late() if self._buffer.late_events else [],
        )

    def publish_rows(
        self, rows: TimedRows, top: TopK | None = None
    ) -> tuple[Published | None, dict[int, str]]:
        """Publish the rows of a table, unless some cannot be in it: then return their faults."""
        self.expire()
        updates, faults = self.admit_rows(rows)
        if faults:
            return None, faults
        notifications = self.process(rows, top, updates=updates)
        return (len(rows), notifications, self._buffer.drain_late()), {}

    def expire(self) -> None:
        """Remove expired subscriptions and kept events."""
        if self.history.events:
            self.history.expire(self._clock.now())
        if self._store.registry.has_validity:
            self._store.expire()

    # admission

    def admit(
        self, events: Iterable[Event], report: Report | None = None, *, as_rows: bool = True
    ) -> Admitted:
        """Return the events that can be processed.

        With `as_rows`, an event of a table must be a row of it. The other events are reported, or raise `EventError`
        without a `report`.
        """
        views = self._store.views if as_rows and self._store.views.tables.by_name else None
        admitted: list[Event] = []
        positions: list[int] = []
        deletions: list[int] = []
        updates: dict[int, RowUpdate] = {}
        for position, event in enumerate(events):
            try:
                if STREAM in event.attributes:
                    raise EventError(
                        "that name is Tocsin's own; an event's stream is given beside its attributes", STREAM
                    )
                update = None if views is None else views.read(event)
            except EventError as fault:
                if report is None:
                    raise
                self._reader.refuse()
                report(Fault(event.id, 0, str(fault)))
                continue
            if update is not None:
                updates[len(admitted)] = update
            if is_deletion(event) if update is None else update.row is None:
                deletions.append(len(admitted))
            admitted.append(event)
            positions.append(position)
        return Admitted(admitted, positions, frozenset(deletions), updates)

    def admit_rows(self, events: TimedRows) -> tuple[Mapping[int, RowUpdate] | TableRows, dict[int, str]]:
        """Return the updates of a table that rows make, and the faults of those that cannot be rows of it.

        They are read by the column, or one by one where a column says too little; a stream that is no table has none.
        """
        views = self._store.views
        tables = [name for name in events.stream_names if name is not None and name in views.tables.by_name]
        if not tables:
            return _NO_UPDATES, {}
        if len(tables) == 1:  # rows of several tables are applied in their order
            own = events.rows_of(tables[0])
            try:
                table = events.batch.table
                rows = table if len(own) == len(events) else table.take(integer_array(own))
                return views.read_rows(tables[0], rows), {}
            except EventError:
                pass  # some row or column: each row is read by itself
        updates: dict[int, RowUpdate] = {}
        faults: dict[int, str] = {}
        own = np.sort(np.concatenate([events.rows_of(name) for name in tables]))
        events.read_ahead(own)
        for row in own.tolist():
            try:
                update = views.read(events.event(row))
            except EventError as fault:
                faults[row] = str(fault)
            else:
                if update is not None:
                    updates[row] = update
        return updates, faults

    def _pass_time(self, events: TimedBatch, deletions: frozenset[int]) -> NDArray[np.int64] | int:
        """Count events, keep those that are valid for later filters, and return the clock's time at each event."""
        clock = self._clock
        now = clock.now()
        if isinstance(events, TimedRows):
            self.published += len(events) - len(events.faults)
            if self._store.registry.has_validity or events.validity is not None:
                row_times = self._times_of_rows(events)
                self.history.add_rows(events, row_times)
                return row_times
            if (latest := events.latest) is not None:
                clock.saw(latest)
            return now
        self.published += len(events.events)
        times = np.full(len(events.events), now, dtype=np.int64) if len(events.events) > 1 else now
        for row, event in enumerate(events.events):
            if isinstance(times, np.ndarray):
                times[row] = clock.now()
            if row not in deletions:
                if event.valid_until is not None:
                    self.history.add(event, now if isinstance(times, int) else int(times[row]))
                clock.saw(event.end)
        return times

    def _times_of_rows(self, events: TimedRows) -> NDArray[np.int64]:
        """Return the clock's time at each row of a table."""
        clock = self._clock
        times = np.full(len(events), clock.now(), dtype=np.int64)
        for row, end in zip(events.rows.tolist(), events.ends[events.rows].tolist(), strict=True):
            times[row] = clock.now()
            clock.saw(end)
        return times

    # the stages

    def _match_filters(
        self, events: TimedBatch, times: NDArray[np.int64] | int, top: TopK | None, deletions: frozenset[int]
    ) -> NotificationPart:
        """Return the notifications of filters, without deleted rows and invalid subscriptions; `top` keeps the best."""
        found = self._store.filters.process(events)
        if not len(found.rows):
            return _NO_NOTIFICATIONS
        if deletions:
            found = found.take(~np.isin(found.rows, list(deletions)))
        if self._store.registry.has_validity:
            found = self._applicable(found, events, times)
        if top is not None:
            found = top.keep_best(found, events.batch, top.event_weights(1) * len(events), self._store)
        return self._filter_part(events, found)

    def _applicable(
        self, found: FilterMatches, events: TimedBatch, times: NDArray[np.int64] | int
    ) -> FilterMatches:
        """Return the matches of subscriptions that are valid at their event, and have not expired by then."""
        if not self._store.registry.has_validity or not len(found):
            return found
        now = times if isinstance(times, int) else times[found.rows]
        ends, lengths = events.ends[found.rows], self._lengths(events, found.rows)
        return found.take(self._store.is_valid(found.numbers, ends, now, lengths))

    def _lengths(self, events: TimedBatch, rows: IdArray) -> NDArray[np.int64] | int:
        """Return the length of a tick of the streams of these events."""
        lengths = self._reader.ticks.lengths
        if not lengths:
            return 1
        return np.array([lengths.get(events.stream(row) or "", 1) for row in rows.tolist()], dtype=np.int64)

    def _match_sequences(self, released: list[Released]) -> tuple[SequenceNotifications, list[_FromSequence]]:
        """Return the notifications of completed sequences and of filters on published events, and the published events.

        A sequence comes before the filters on the event that it publishes.
        """
        store, position = self._store, 0
        found: list[tuple[int, int, Notification]] = []
        published: list[_FromSequence] = []
        for one in released:
            rows = one.rows.tolist()
            for first, matches in store.sequences.process(one.events, one.tick):
                if not len(matches.subscriptions) and not matches.published:
                    continue
                starts, ends = matches.starts.tolist(), matches.ends.tolist()
                at = (matches.rows + first).tolist()
                for i, number in enumerate(matches.subscriptions.tolist()):
                    id_ = store.registry.id(number)
                    note = sequence_notification(id_, matches.match(i), starts[i], ends[i], store.generation)
                    found.append((rows[at[i]], position + at[i], note))
                for row, event in matches.published:
                    published.append(_FromSequence(rows[row + first], position + row + first, event))
            position += len(rows)
        if published and store.filter_count:
            found += self._match_published(published)
        if not found:
            return _NO_NOTIFICATIONS, published
        if len(found) > 1:
            found.sort(key=itemgetter(0, 1))
        rows_of = np.fromiter(map(itemgetter(0), found), dtype=np.int64, count=len(found))
        return SequenceNotifications(rows_of, list(map(itemgetter(2), found))), published

    def _match_published(self, published: list[_FromSequence]) -> list[tuple[int, int, Notification]]:
        """Return the notifications of filters on the streams that sequences publish, with their rows and positions."""
        store = self._store
        events = TimedBatch([one.event for one in published])
        found = store.filters.process(events)
        # A filter over every stream has seen the events that the published one is made of.
        own = [
            store.queries.stream(number) == events.stream(row)
            for row, number in zip(found.rows.tolist(), found.numbers.tolist(), strict=True)
        ]
        found = self._applicable(found.take(np.array(own, dtype=np.bool_)), events, ALWAYS)
        part = self._filter_part(events, found)
        rows = found.rows.tolist()
        return [
            (published[row].row, published[row].position, part.notification(i)) for i, row in enumerate(rows)
        ]

    def _update_table(
        self, events: TimedBatch, times: NDArray[np.int64] | int, updates: TableRows
    ) -> NotificationPart:
        """Apply the rows of a table by the column, and return the notifications of changed answers."""
        assert isinstance(events, TimedRows)  # noqa: S101 - updates by the column are of such
        rows = events.rows_of(updates.table.name)
        changes = self._store.views.process_rows(updates, events.ends[rows])
        changes = replace(changes, rows=rows[changes.rows])
        length = self._reader.ticks.length(events.single_stream)
        changes = self._report(changes, events.ends, np.broadcast_to(times, len(events)), length)
        causes = events.slice(0, len(events))  # without the columns that were encoded for a match
        causes.read_ahead(np.unique(changes.rows))
        ids = self._store.registry.ids_of(changes.numbers)
        return ViewNotifications(changes.rows, changes, causes, ids, self._store.generation)

    def _update_views(
        self,
        events: TimedBatch,
        times: NDArray[np.int64] | int,
        updates: Mapping[int, RowUpdate],
        published: list[_FromSequence],
    ) -> NotificationPart:
        """Apply the rows of tables, published ones last, and return the notifications of changed answers."""
        rows, own = list(updates), len(updates)
        changing = [*updates.values()]
        is_whole = own == len(events.events) and not published
        causes: list[Event] = [] if is_whole else list(map(events.event, rows))
        for one in published:
            update = self._read_published(one.event)
            if update is not None:
                rows.append(one.row)
                changing.append(update)
                causes.append(one.event)
        if not changing:
            return _NO_NOTIFICATIONS
        changes = self._store.views.process(changing)
        if not len(changes.rows):
            return _NO_NOTIFICATIONS
        at = np.array(rows, dtype=np.int64)
        if self._store.registry.has_validity:
            now = np.broadcast_to(times, len(events))[at[:own]] if own else at[:0]
            now = np.concatenate([now, np.full(len(changing) - own, self._clock.now())])
            ends = np.array([update.end for update in changing], dtype=np.int64)
            streams = [self._reader.ticks.length(update.table.name) for update in changing]
            lengths = np.array(streams, dtype=np.int64)[changes.rows]
            changes = self._report(changes, ends, now, lengths)
        else:
            changes = self._store.views.report(changes)
        if not len(changes.rows):
            return _NO_NOTIFICATIONS
        ids = self._store.registry.ids_of(changes.numbers)
        caused_by = events if is_whole else TimedBatch(causes)
        return ViewNotifications(at[changes.rows], changes, caused_by, ids, self._store.generation)

    def _report(
        self,
        changes: AnswerChanges,
        ends: NDArray[np.int64],
        now: NDArray[np.int64],
        lengths: NDArray[np.int64] | int,
    ) -> AnswerChanges:
        """Return the changes of subscriptions that are valid at the end of the row, and have not expired by then."""
        reportable: NDArray[np.bool_] | None = None
        if self._store.registry.has_validity:
            rows = changes.rows
            reportable = self._store.is_valid(changes.numbers, ends[rows], now[rows], lengths)
        return self._store.views.report(changes, reportable)

    def _read_published(self, event: Event) -> RowUpdate | None:
        """Return a published event as a row of its table; None if it is of no table, or cannot be a row, which is logged."""
        try:
            return self._store.views.read(event)
        except EventError as fault:
            _log.warning(
                "an event that was published as `%s` is no row of that table: %s", event.stream, fault
            )
            return None

    def _notify(self, parts: list[NotificationPart]) -> Notifications:
        notifications = Notifications(parts)
        self.notified += notifications.total
        if (deliveries := self._store.deliveries).is_wanted:
            deliveries.offer(notifications)
        return notifications

    def _filter_part(self, events: TimedBatch, found: FilterMatches) -> FilterNotifications:
        """Return filter matches as notifications."""
        queries, positions = self._store.queries, found.rows
        if len(events.events) > 1:  # the events without a notification are let go
            rows, positions = np.unique(positions, return_inverse=True)
            events = TimedBatch([events.events[row] for row in rows.tolist()])
        elif isinstance(events, TimedRows):
            events = events.slice(0, len(events))  # without the columns that were encoded for the match
            events.read_ahead(np.unique(positions))
        return FilterNotifications(
            found.rows,
            found.scores,
            events,
            positions,
            self._store.registry.ids_of(found.numbers),
            queries.selects_of(found.numbers) if queries.selecting else None,
            self._store.generation,
        )

    # calls that publish nothing

    def match(
        self, events: Mapping[int, Event], count: int, top: TopK | None, report: Report
    ) -> FilterMatches:
        """Return the filters that events satisfy, by row; `count` rows were given, some of which are no events."""
        store = self._store
        # Nothing is published, so an event of a table need not be a row of it.
        admitted = self.admit(events.values(), report, as_rows=False)
        given_rows = list(events)
        rows = [given_rows[position] for position in admitted.positions]
        at = np.array(rows, dtype=np.int64)
        batch = TimedBatch(admitted.events)
        weights: list[Mapping[str, float]] = []
        found: FilterMatches | None = None
        if top is not None:
            given = top.event_weights(count)
            weights = [given[row] for row in rows]
            found = top.rank(batch.batch, weights, store)
        if found is None:
            found = self._applicable(store.filters.process(batch), batch, ALWAYS)
            if top is not None:
                found = top.keep_best(found, batch.batch, weights, store)
        return FilterMatches(at[found.rows], found.numbers, found.scores)

    def match_history(self, added: ConjunctionBatch) -> tuple[Notification, ...]:
        """Match new filters with the events that are kept, and return their notifications; the caller delivers them."""
        if not len(self.history) or not len(added):
            return ()
        events = list(self.history)
        found = self._store.filters.match_added(added, events)
        batch = TimedBatch(events)
        notifications = Notifications([self._filter_part(batch, self._applicable(found, batch, ALWAYS))])
        self.notified += notifications.total
        return tuple(notifications)

    def match_kept(self, numbers: IdArray) -> tuple[Notification, ...]:
        """Match some of the filters with the events that are kept, and return their notifications; the caller delivers them."""
        if not len(self.history) or not len(numbers):
            return ()
        batch = TimedBatch(list(self.history))
        found = self._store.filters.process(batch)
        found = self._applicable(found.take(np.isin(found.numbers, numbers)), batch, ALWAYS)
        notifications = Notifications([self._filter_part(batch, found)])
        self.notified += notifications.total
        return tuple(notifications)

    def match_sequences(self, rows: TimedRows) -> NamedSequenceMatches:
        """Return, as columns, the sequences that a table's rows complete; no filter sees them."""
        store = self._store
        check_no_faults(rows.faults)
        stream = rows.single_stream
        if store.sequences.reads(stream) and len(rows) and not self._buffer.takes_columns(rows):
            raise EventError(
                "the rows are not in the order of their end, or end before events that have come, or some of these "
                "still wait; sort the table, `flush()` first, or publish it"
            )
        parts = []
        for one in self._buffer.push(rows, store.sequences.streams):
            for first, matches in store.sequences.process(one.events, one.tick):
                numbers, which = np.unique(matches.subscriptions, return_inverse=True)
                ids = store.registry.ids_of(numbers)
                parts.append(
                    NamedSequenceMatches(
                        tuple(map(ids.__getitem__, which.tolist())),
                        one.rows[matches.rows + first],
                        matches.starts,
                        matches.ends,
                        tuple(values or None for values in matches.values()),
                    )
                )
        self.published += len(rows)
        if len(rows):
            self._clock.saw(int(rows.ends[-1]))
        found = NamedSequenceMatches.join(parts)
        self.notified += len(found)
        if store.deliveries.is_wanted:
            store.deliveries.offer(found.notifications(store.generation))
        return found

    def upsert(self, stream: str, rows: pa.Table, ends: NDArray[np.int64]) -> NamedAnswerChanges:
        """Put rows into a table, and return the answers that change, as columns."""
        store, now = self._store, self._clock.now()
        changes = store.views.process_table(stream, rows, ends)
        self.published += len(ends)
        reportable = np.ones(len(changes), dtype=np.bool_)
        if store.registry.has_validity:
            length = self._reader.ticks.length(stream)
            reportable = store.is_valid(changes.numbers, ends[changes.rows], now, length)
        changes = store.views.report(changes, reportable)
        if len(ends):
            self._clock.saw(int(ends.max()))
        self.notified += len(changes)
        ids = np.array(store.registry.ids_of(changes.numbers), dtype=object)
        found = NamedAnswerChanges(changes.rows, ids, changes.old, changes.new)
        if store.deliveries.is_wanted:
            store.deliveries.offer(found.notifications(ends, store.generation))
        return found
