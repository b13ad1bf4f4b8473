"""Subscribe, unsubscribe, publish, match."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final, overload

import numpy as np
from msgspec.structs import replace

from tocsin.engine.filters import applies, explain_filter
from tocsin.engine.incoming import Incoming, is_at_hand, read_incoming
from tocsin.engine.ranked import Wish
from tocsin.engine.results import (
    EngineStats,
    Followed,
    NamedMatches,
    Trial,
)
from tocsin.engine.tables import TableRows, named, publishable, table_events, table_times
from tocsin.engine.trials import try_sequence
from tocsin.engine.viewing import Viewing, try_view
from tocsin.formats import EventFields, Fault
from tocsin.formats.cloud_events import is_cloud_event, read_cloud_event
from tocsin.language.check import QuerySource, read_query
from tocsin.language.explanation import EventExplanation
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.ranking import EventWeights
from tocsin.model import Event, Notification, Subscription, View, read_event
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.errors import EventError
from tocsin.model.event import DELETIONS, check_event, check_times
from tocsin.model.ticks import StreamTicks, Tick
from tocsin.sequences.explanation import SequenceExplanation

_BATCH: Final = 1000
_log = logging.getLogger("tocsin")


class Engine(Viewing):
    """Holds subscriptions and tells, of each event that is published, which of them it concerns.

    Safe to use from several threads: one call at a time changes or reads the subscriptions, and a match sees
    them either before a change or after it. `apublish` is `publish` for asyncio; the other calls are short.

    `matcher` names the index to match with. Without it there is none while there is little to do, and `dynamic` as
    soon as there is more. One that takes clauses is given a condition in its smaller normal form; for the others it
    must have a disjunctive one within the limit. `statistics` of earlier events help an index to choose by cost.

    `clock` tells the time of events that say none, and when what has expired is let go; `lateness` is how many
    ticks longer an expired subscription is held for events that come late.

    Sequences see events in the order of their end. One waits until an event has come that ends `disorder` ticks later,
    so that events may come out of order by as much; `on_late` hears of those that come later still, which reach
    filters only. Without it the first one is logged, and all are counted. `memory_limit` is how many bytes what
    sequences have begun may take; beyond it the oldest are dropped and counted.

    Views are asked of streams that are declared to be tables. Their reformulated subscriptions are held by an index of
    points, or by the matcher that `view_matcher` names.

    >>> engine = Engine()
    >>> engine.subscribe("symbol = 'IBM' and price > 100", id="ibm-high").id
    'ibm-high'
    >>> [note.subscription for note in engine.publish({"symbol": "IBM", "price": 101.5})]
    ['ibm-high']
    """

    def stream(self, name: str, *, tick: Tick) -> None:
        """Say how long a tick of a stream is: a text such as `"1 second"`, a timedelta, or microseconds.

        Lengths of time in sequences are then counted in its ticks, and so are datetimes. It has to be said before
        a sequence reads the stream.
        """
        with self._lock:
            self._timelines.declare(name, tick)

    @property
    def ticks(self) -> StreamTicks:
        """Return how long the ticks of streams are, for readers of events."""
        return self._reader.ticks

    def publish(
        self,
        event: Mapping[str, object] | Event,
        *,
        stream: str | None = None,
        time: object | None = None,
        start: object | None = None,
        id: str | None = None,
        valid_until: object | None = None,
        delete: bool = False,
        top: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> list[Notification]:
        """Tell whom an event concerns: the filters it satisfies, or the `top` best, sequences it completes, views it changes.

        `time` is when it ended, and when it started unless `start` is given; without either, the clock is asked.
        An event with `valid_until` is kept until then for new filters. An event of a stream that is a table replaces
        the row of its key, and views are told what that changes; with `delete` it removes that row, and reaches no filter
        and no sequence.
        `weights` are those of the event's attributes, by which the best are found.
        """
        given = {"stream": stream, "time": time, "start": start, "id": id, "valid_until": valid_until}
        read = self._read(event, {name: value for name, value in given.items() if value is not None})
        wish = Wish.of(top, weights)
        if delete:
            read = replace(read, attributes={**read.attributes, DELETIONS[0]: True})
        notes, late = self._publish([read], wish=wish)
        self._timelines.tell_late(late)
        return notes

    async def apublish(self, event: Mapping[str, object] | Event, **options: Any) -> list[Notification]:
        """Publish without holding up the event loop; takes what `publish` takes."""
        return await asyncio.to_thread(self.publish, event, **options)

    def publish_many(
        self,
        events: Incoming,
        *,
        stream: str | None = None,
        time: str | None = None,
        start: str | None = None,
        on_error: Callable[[Fault], object] | None = None,
        batch_size: int | None = None,
        top: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Iterator[Notification]:
        """Publish events one after another and return the notifications as they come.

        `events` are dicts, `Event`s, an Arrow table or record batch, or an iterator of any of these; `time` and `start`
        name the attributes that say when they ended and started, else the clock is asked. A record that cannot
        be read is counted and given to `on_error`, or logged; the rest goes on. A list or table is matched
        in batches, an iterator event by event unless `batch_size` says otherwise. With `top`, only that many hear of
        each event: the best by the subscriptions' weights and those that `weights` gives the attributes.
        """
        report = on_error or _log_fault
        wish = Wish.of(top, weights)
        size = batch_size or (min(_BATCH, self._views.most_at_once) if is_at_hand(events) else 1)
        # The rows of a stream that is a table are looked at one by one, as its rows.
        by_column = wish is None and not self._views.is_table(stream)
        table = table_events(events, stream) if by_column else None
        # Rows that say no time would all be simultaneous to a sequence: they get theirs one by one.
        if table is not None and (time is not None or not self._timelines.reads(stream)):
            rows = table if time is None else self._timed(table, time, start)
            yield from self._publish_table(rows, report, size)
            return
        fields = EventFields(time=time, start=start)
        batch: list[Event] = []
        failure: Exception | None = None
        try:
            for one in read_incoming(events, self._reader, stream, fields):
                read = one if isinstance(one, Fault) else self._as_row(one)
                if isinstance(read, Fault):
                    report(read)
                    continue
                batch.append(read)
                if len(batch) >= size:
                    full, batch = batch, []
                    yield from self._told(*self._publish(full, report, wish))
        except Exception as fault:  # noqa: BLE001 - whatever ends the source, what it gave before is published
            failure = fault
        yield from self._told(*self._publish(batch, report, wish))
        if failure is not None:
            raise failure

    def flush(self) -> list[Notification]:
        """Give the sequences all events that wait for their turn, and return what is told of them.

        What comes later and ends before one of them is late.
        """
        with self._lock:
            self._expire()
            return self._publication.flush()

    def follow(self, table: Any, *, stream: str, time: str, start: str | None = None) -> Followed:
        """Return, as columns, the sequences that a table's rows complete; they reach no filter.

        `time` names the column that says when a row ended, and `start` the one that says when it started. The rows
        must be in the order of their end, and all of them events: nothing is taken of a table that is refused.
        """
        read = table_events(table, stream)
        if read is None:
            raise EventError("only an Arrow table of plain columns can be followed; publish what is not one")
        rows = self._timed(read, time, start)
        with self._lock:
            self._expire()
            return self._publication.follow(rows)

    def match(
        self,
        events: Incoming,
        *,
        stream: str | None = None,
        top: int | None = None,
        weights: EventWeights | None = None,
    ) -> NamedMatches:
        """Return, per row, the filters it satisfies, without publishing anything; sequences see nothing of it.

        A row that cannot be read satisfies none and is reported in `faults`. An Arrow table is matched by the
        column: its rows become events only where Python has to look at one. With `top`, only the best are told, with
        their scores: by the subscriptions' weights and those of the events' attributes, which are `weights`, for all
        rows or a list of as many.
        """
        wish = Wish.of(top, weights)
        table = table_events(events, stream) if wish is None else None
        if table is not None:
            return self._match_table(table)
        rows = list(read_incoming(events, self._reader, stream))
        faults = [row for row in rows if isinstance(row, Fault)]
        read = [row for row in rows if isinstance(row, Event)]
        scores: tuple[float, ...] | None = None
        with self._lock:
            self._expire()
            if wish is None:
                found = iter(self._lookup.match(read, faults.append))
                per_row = [
                    () if isinstance(row, Fault) else self._lookup.names(next(found), row) for row in rows
                ]
            else:
                given = wish.checked(len(rows))
                kept = [given[place] for place, row in enumerate(rows) if isinstance(row, Event)]
                best = iter(self._lookup.rank(read, wish.top, kept, faults.append))
                ranked = [[] if isinstance(row, Fault) else next(best) for row in rows]
                per_row = [tuple(self._held.book.id(number) for number, _ in row) for row in ranked]
                scores = tuple(score for row in ranked for _, score in row)
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(names) for names in per_row], out=offsets[1:])
        return NamedMatches(
            offsets, tuple(name for names in per_row for name in names), tuple(faults), scores
        )

    @overload
    def explain(self, subscription: str) -> SequenceExplanation: ...

    @overload
    def explain(
        self,
        subscription: str,
        event: Mapping[str, object] | Event,
        *,
        stream: str | None = None,
        time: object | None = None,
    ) -> EventExplanation: ...

    def explain(
        self,
        subscription: str,
        event: Mapping[str, object] | Event | None = None,
        *,
        stream: str | None = None,
        time: object | None = None,
    ) -> EventExplanation:
        """Return why a subscription would be notified of an event, or would not: each predicate with its truth.

        Of a sequence, a `SequenceExplanation` is returned: its automaton, what waits at each node and why others have
        ended, and what the event would do now; the event may be left out. Of a view, a `ViewExplanation`: its answer, and
        what it would be after the event.
        """
        given = {name: value for name, value in (("stream", stream), ("time", time)) if value is not None}
        read = None if event is None else self._read(event, given)
        with self._lock:
            self._expire()
            held = self._held.book.subscription(subscription)
            number = self._held.book.number(subscription)
            if isinstance(held.query, SequenceQuery):
                return self._timelines.explain(number, held, read)
            if isinstance(held.query, View) and read is not None:
                return self._views.explain(number, held, read)
        if read is None:
            shape = "view" if isinstance(held.query, View) else "filter"
            raise EventError(f"`{subscription}` is a {shape}: what it is explained by is an event; give one")
        return explain_filter(held, read)

    def test(
        self,
        query: QuerySource,
        events: Incoming,
        *,
        stream: str | None = None,
        time: str | None = None,
        start: str | None = None,
    ) -> Trial:
        """Return what a subscription would have been told of these events alone, without subscribing.

        `time` and `start` name the attributes that say when they ended and started.
        """
        asked = read_query(query).query
        rows = list(read_incoming(events, self._reader, stream, EventFields(time=time, start=start)))
        faults = tuple(row for row in rows if isinstance(row, Fault))
        read = [row for row in rows if isinstance(row, Event)]
        if isinstance(asked, SequenceQuery):
            return try_sequence(asked, read, faults, self._timelines)
        if isinstance(asked, View):
            return try_view(asked, read, faults, self._views)
        trial = Subscription("test", asked)
        return Trial(tuple(event for event in read if applies(trial, event)), len(read), faults)

    def stats(self) -> EngineStats:
        """Return what the engine holds and what has passed through it."""
        with self._lock:
            self._expire()
            return EngineStats(
                subscriptions=len(self._held.book),
                kept_events=len(self._publication.history),
                generation=self._held.generation,
                published=self._publication.published,
                refused=self._reader.refused,
                notifications=self._publication.notified,
                expired=self._held.expired,
                dropped_arrays=self._reader.dropped.total(),
                matcher=self._held.matcher.stats(),
                sequences=self._timelines.stats(),
                views=self._views.stats(),
            )

    def _read(self, event: Mapping[str, object] | Event, given: dict[str, Any]) -> Event:
        """Return an event with what was said beside it; a CloudEvent and an `Event` say it themselves."""
        if isinstance(event, Event):
            if given:
                raise EventError(f"an `Event` brings its own {', '.join(given)}; make it with them")
            return check_event(event)
        ticks = self._reader.ticks
        if not given and is_cloud_event(event):
            return read_cloud_event(event, now=self._reader.now(str(event.get("type"))), ticks=ticks)
        stream = given.get("stream")
        check_times(ticks, stream, **{name: given[name] for name in ("time", "start") if name in given})
        return read_event(event, **({"time": self._reader.now(stream)} | given), ticks=ticks)

    def _as_row(self, event: Event) -> Event | Fault:
        """Return an event, or what keeps it from being a row of its table, if it has one."""
        if not self._views.is_table(event.stream):
            return event
        try:
            with self._lock:
                self._views.check(event)
        except EventError as fault:
            self._reader.refuse()
            return Fault(event.id, 0, str(fault))
        return event

    def _timed(self, table: ArrowEvents, time: str, start: str | None) -> TableRows:
        """Return a table's rows with their times; those without one are faulty."""
        starts, ends, faults = table_times(table, time, start, self._reader.ticks)
        return TableRows(table.with_faults(faults) if faults else table, starts, ends)

    def _match_table(self, table: ArrowEvents) -> NamedMatches:
        end = self._clock.now()
        self._reader.count(read=len(table) - len(table.faults), refused=len(table.faults))
        with self._lock:
            self._expire()
            return named(self._held.matcher.match(table), self._held.book, end, table.faults)

    def _publish_table(
        self, rows: TableRows | ArrowEvents, report: Callable[[Fault], object], size: int
    ) -> Iterator[Notification]:
        """Publish a table's rows, `size` events at a time; if `report` fails, what came before is published."""
        table = rows.table if isinstance(rows, TableRows) else rows
        for begin, end in publishable(table, self._reader, report, size):
            part = (
                rows.slice(begin, end)
                if isinstance(rows, TableRows)
                else TableRows.at(rows.slice(begin, end), self._clock.now())
            )
            with self._lock:
                self._expire()
                notes, late = self._publication.rows(part), self._timelines.late_events()
            yield from self._told(notes, late)

    def _publish(
        self, events: list[Event], report: Callable[[Fault], object] | None = None, wish: Wish | None = None
    ) -> tuple[list[Notification], list[Event]]:
        """Return what is told of events, and those of them that come too late for sequences."""
        with self._lock:
            self._expire()
            return self._publication.events(events, report, wish), self._timelines.late_events()

    def _told(self, notes: list[Notification], late: list[Event]) -> Iterator[Notification]:
        """Return notifications, then tell of late events: whatever comes of that, no notification is lost."""
        try:
            yield from notes
        finally:
            self._timelines.tell_late(late)


def _log_fault(fault: Fault) -> None:
    _log.warning("%s", fault)
