"""Subscribe, unsubscribe, publish, match."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, tzinfo
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from threading import RLock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final, Literal, NoReturn, Self, overload
from uuid import uuid4

import numpy as np
from msgspec.structs import replace as changed

from tocsin.display.text import counted, summary
from tocsin.engine.batch_matching import BatchMatcher
from tocsin.engine.bulk_subscriptions import TOGETHER, BulkSubscriptions, exchange
from tocsin.engine.clock import Clock, EventClock, SystemClock
from tocsin.engine.delivery import Callback, Listener, check_callback
from tocsin.engine.dry_run import dry_run
from tocsin.engine.dry_run_warnings import unknown_times, unseen_names
from tocsin.engine.engine_options import EngineOptions, check_arguments, plain_delay
from tocsin.engine.event_sources import (
    EventSource,
    check_no_faults,
    checked_source,
    is_at_hand,
    read_events,
    require_columns,
    table_times,
    timed_rows,
)
from tocsin.engine.filter_plans import FilterPlans
from tocsin.engine.filter_runtime import FilterRuntime
from tocsin.engine.late_events import LateLog, report_late
from tocsin.engine.notifications import Notifications
from tocsin.engine.pace import Pace
from tocsin.engine.pipeline import EventPipeline, Report
from tocsin.engine.publishing import BatchPublisher
from tocsin.engine.reorder_buffer import Delay, ReorderBuffer
from tocsin.engine.results import DryRun, EngineStats, NamedAnswerChanges, NamedMatches, NamedSequenceMatches
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.engine.top_k import TopK
from tocsin.formats import EventFields, EventReader, Fault
from tocsin.formats.cloud_events import SPEC_VERSION, read_cloud_event
from tocsin.language import Template
from tocsin.language.check import QuerySource, read_query
from tocsin.language.explanation import EventExplanation
from tocsin.language.template.columns import Rows
from tocsin.matching.plans import FilterCosts, FilterPlan
from tocsin.matching.ranking import EventWeights, Weight
from tocsin.matching.statistics import Statistics
from tocsin.model import Event, Notification, Query, Subscription, View, read_event
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.errors import ApplyError, EventError, SubscriptionError
from tocsin.model.event import DELETIONS, check_event, read_given_time
from tocsin.model.options import ALWAYS
from tocsin.model.subscription import Answer
from tocsin.model.ticks import StreamTicks, Tick, read_time_unit
from tocsin.model.timestamps import read_zone, zone_name
from tocsin.sequences.explanation import SequenceExplanation
from tocsin.sequences.matcher import InspectableSequenceMatcher
from tocsin.sequences.runtime import SequenceRuntime
from tocsin.structures.answering import answering, calls
from tocsin.structures.archive import pack, unpack
from tocsin.subscriptions.options import check_id, read_options
from tocsin.subscriptions.results import Difference, Subscribed, SubscribedAll, SubscribedMany
from tocsin.subscriptions.sources import SubscriptionSet, given_subscriptions
from tocsin.views.runtime import ViewRuntime

if TYPE_CHECKING:
    from tocsin.engine.notification_stream import NotificationStream
    from tocsin.engine.saving import EngineParts, Restored, SavedEngine

_GIVEN: Final = ("stream", "time", "start", "id", "valid_until")
_NOTHING: Final = (None,) * len(_GIVEN)
_log = logging.getLogger("tocsin")


class Engine:
    """Stores subscriptions, and returns a notification for each one that a published event satisfies.

    Safe to use from several threads: one call at a time changes or reads the subscriptions, and a match sees
    them either before a change or after it. `apublish` is `publish` for asyncio; the other calls are short.

    `matcher` names the matcher of filters. Without it a few filters are tried one by one, and more go into the
    index `adaptive`. A matcher that stores clauses gets a condition in its smaller normal form; for the others it
    must have a disjunctive one within the limit. `statistics` of earlier events help an index to choose by cost.

    `clock` gives the time of events that have none, and decides when expired subscriptions are removed; `lateness` is
    how much longer an expired subscription stays for events that come late: ticks, or a length such as `"5 minutes"`.

    Times without a zone are of `timezone`, by default UTC. The numbers in the time field of a stream whose tick is not
    declared count `time_unit`: ticks, seconds, milliseconds, microseconds or nanoseconds since 1970; without it, the
    first number decides by its size: below 10**8 ticks, below 10**11 seconds, and so on by thousands.

    Sequences see events in the order of their end. An event waits until another has come that ends `out_of_orderness`
    later (ticks, or a length of time), so that events may come out of order by as much; `on_late` is called with those that come later still,
    which reach filters only. Without it the first one is logged, and all are counted. `memory_limit` is how many bytes
    the partial matches of sequences may take; beyond it the oldest are dropped and counted.

    Views read streams that are declared to be tables. Their reformulated subscriptions are stored in a point index,
    or in the matcher that `view_matcher` names.

    With `threads`, a batch of a thousand events or more is matched with filters by up to so many threads, in parts;
    of the matchers, `adaptive` does that.

    >>> engine = Engine()
    >>> engine.subscribe("symbol = 'IBM' and price > 100", id="ibm-high").id
    'ibm-high'
    >>> [note.subscription for note in engine.publish({"symbol": "IBM", "price": 101.5})]
    ['ibm-high']
    """

    def __init__(
        self,
        *,
        matcher: str | None = None,
        statistics: Statistics | None = None,
        clock: Clock | None = None,
        timezone: str | tzinfo = UTC,
        time_unit: str | None = None,
        lateness: Tick = 0,
        out_of_orderness: Tick = 0,
        on_late: Callable[[Event], object] | None = None,
        memory_limit: int | None = None,
        view_matcher: str | None = None,
        threads: int = 1,
    ) -> None:
        check_arguments(clock, on_late, memory_limit, view_matcher, threads)
        order = Delay.read("out_of_orderness", out_of_orderness)
        zone = read_zone(timezone)
        self._options = EngineOptions(
            matcher,
            plain_delay(lateness),
            plain_delay(out_of_orderness),
            memory_limit,
            view_matcher,
            zone_name(zone),
            time_unit,
        )
        self._statistics = statistics
        self._clock = clock or SystemClock()
        ticks = StreamTicks(zone=zone, unit=read_time_unit(time_unit))
        self._reader = EventReader(
            clock=None if type(self._clock) is SystemClock else self._clock.now,
            ticks=ticks,
            has_no_time=None if type(self._clock) is SystemClock else self._has_no_time,
            on_opaque=_log_opaque,
        )
        self._out_of_orderness = order
        self._on_late = on_late or LateLog(ticks)
        self._buffer = ReorderBuffer(ticks, order)
        new_matcher = partial(_new_sequence_matcher, matcher, statistics, memory_limit)
        self._store = SubscriptionStore(
            FilterRuntime(matcher, statistics, threads),
            SequenceRuntime(ticks, self._buffer, new_matcher),
            ViewRuntime(view_matcher),
            self._clock,
            # Late and buffered events match the same subscriptions as on time.
            max(Delay.read("lateness", lateness).amount, order.amount),
        )
        self._pipeline = EventPipeline(self._store, self._buffer, self._reader, self._clock)
        self._lock = RLock()
        self._publisher = BatchPublisher(self._store, self._pipeline, self._reader, self._lock)
        self._batch_matcher = BatchMatcher(self._store, self._pipeline, self._reader, self._clock, self._lock)
        self._plans = FilterPlans(self._store, self._reader, self._lock)
        self._pace = Pace()

    # streams and tables

    def stream(self, name: str, *, tick: Tick) -> None:
        """Set how long a tick of a stream is: a text such as `"1 second"`, a timedelta, or microseconds.

        Lengths of time in sequences are then counted in its ticks, and so are datetimes. Call it before a sequence
        reads the stream.
        """
        with self._lock:
            self._store.sequences.declare(name, tick)

    @property
    def ticks(self) -> StreamTicks:
        """Return how long the ticks of streams are, for readers of events."""
        return self._reader.ticks

    def table(self, name: str, *, key: str | Sequence[str]) -> None:
        """Declare a stream to be a table too: an event of it replaces the whole row with the same key.

        `key` names the attribute that identifies rows, or several. Events that came before are not in the table.
        An event that ended before the row in the table is late, and changes nothing.

        >>> engine = Engine()
        >>> engine.table("stock", key="symbol")
        >>> engine.subscribe("select min(per) from table stock where risk between 20 and 60", id="best").answer
        >>> [(note.old, note.new) for note in engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock")]
        [(None, 8)]
        """
        with self._lock:
            self._store.views.tables.declare(name, key)

    def save_tables(self, path: str | PathLike[str]) -> None:
        """Write all tables to a file; subscriptions are not in it."""
        with self._lock:
            self._store.views.tables.save(Path(path))

    def load_tables(self, path: str | PathLike[str]) -> tuple[str, ...]:
        """Declare the tables in a file, with its rows, and return their names; call it before they have views."""
        with self._lock:
            return self._store.views.tables.load(Path(path))

    # subscriptions

    def subscribe(
        self,
        query: QuerySource,
        *,
        id: str | None = None,
        valid_from: object | None = None,
        valid_until: object | None = None,
        owner: str | None = None,
        weight: Weight = 1.0,
        witness: Literal["full"] | None = None,
        replace: bool = False,
        deliver: Callback | None = None,
    ) -> Subscribed:
        """Store a query, given as text, as JSON or built in Python.

        It applies to an event iff `valid_from <= event.end < valid_until`. Without an id, one is generated; an id
        that is subscribed already is an error, unless `replace` is set. A filter is matched with kept events at once;
        `weight` is the score of its predicates in a ranking: one for all, or by attribute. A sequence sees events that
        end after all that have come; with `witness="full"` it reports all events of each step. A view reports its
        present answer at once, and then each change of it. `deliver` is called with each of its notifications, as
        `on_notification` says, until it is removed or replaced.
        """
        name = uuid4().hex if id is None else id
        check_id(name)
        if deliver is not None:
            check_callback(deliver)
        try:
            options = read_options(
                valid_from, valid_until, owner, name, weight=weight, witness=witness, zone=self.ticks.zone
            )
            compiled, warnings = self._store.compile_with_warnings(name, query, options)
        except SubscriptionError as fault:
            if id is None:  # the one that was generated would tell nobody anything
                fault.id = None
            raise
        with self._lock:
            self._pipeline.expire()
            replaced = self._store.find_replaced([name], replace=replace)
            notifications = exchange(self._store, self._pipeline, replaced, {name: compiled}, deliver)
            done = Subscribed(name, notifications, (*warnings, *self._store.expiry_warning(options)))
        self._deliver()
        return done

    def subscribe_all(
        self,
        subscriptions: SubscriptionSet,
        *,
        owner: str | None = None,
        replace: bool = False,
        deliver: Callback | None = None,
    ) -> SubscribedAll:
        """Store many subscriptions, each by itself: a faulty one is reported, and the others are stored.

        `subscriptions` maps ids to queries, or lists `Subscription`s. It is much quicker than `subscribe` for each. To store
        all or none, and to remove what is not among them, use `apply`.

        >>> engine = Engine()
        >>> done = engine.subscribe_all({"high": "price > 100", "odd": "price >", "ibm": "symbol = 'IBM'"})
        >>> done.ids, {position: str(error).splitlines()[0] for position, error in done.errors.items()}
        (('high', 'ibm'), {1: 'line 1, column 8: a value is missing, found the end of the text'})
        """
        if deliver is not None:
            check_callback(deliver)
        bulk = BulkSubscriptions(self._store, self._pipeline, replace=replace, callback=deliver)
        given = given_subscriptions(subscriptions, owner, own_owners=True)
        while part := list(islice(given, TOGETHER)):
            new = bulk.compile(part)
            with self._lock:
                self._pipeline.expire()
                bulk.add(new)
            self._deliver()
        return bulk.result()

    def subscribe_many(
        self,
        template: str | Template,
        rows: Rows,
        *,
        id: str | None = None,
        valid_from: object | None = None,
        valid_until: object | None = None,
        owner: str | None = None,
        weight: Weight = 1.0,
        witness: Literal["full"] | None = None,
        replace: bool = False,
        deliver: Callback | None = None,
    ) -> SubscribedMany:
        """Store one subscription for each row of a template's parameters; faulty rows are reported.

        `id` names the column with the ids, or is a pattern such as `"alert-{s}-{row}"` over parameters and
        the row's number; without it, ids are generated.
        """
        if deliver is not None:
            check_callback(deliver)
        options = read_options(
            valid_from, valid_until, owner, weight=weight, witness=witness, zone=self.ticks.zone
        )
        parsed = template if isinstance(template, Template) else Template(template)
        made = self._store.compile_template(parsed, rows, id, options)
        with self._lock:
            self._pipeline.expire()
            replaced = self._store.find_replaced(made.ids, made.hashes, replace=replace)
            added = self._store.add_template(made, options, replaced, deliver)
            if isinstance(parsed.query, View):
                if self._store.deliveries.is_wanted:
                    self._store.deliver((), None, self._store.first_answers(made.ids))
                done = made.result(answers=self._store.answers(made.ids))
            else:
                done = made.result(self._pipeline.match_history(added))
                self._store.deliver((), None, done.notifications)
        self._deliver()
        return done

    def unsubscribe(self, id: str) -> None:
        """Remove a subscription; an unknown id is an error."""
        with self._lock, answering():
            self._pipeline.expire()
            self._store.withdraw(id)

    def apply(
        self,
        subscriptions: SubscriptionSet,
        *,
        owner: str = "default",
        dry_run: bool = False,
        deliver: Callback | None = None,
    ) -> Difference:
        """Make the subscriptions of `owner` equal to these, all at once or not at all; return the difference.

        `subscriptions` maps ids to queries, or lists `Subscription`s. With `dry_run` nothing is changed, and the
        errors are the same.
        `deliver` is called with the notifications of all subscriptions in the set, also of unchanged ones.
        """
        if deliver is not None:
            check_callback(deliver)
        sought, errors, warnings = self._store.compile_set(subscriptions, owner)
        registry, queries = self._store.registry, self._store.queries
        with self._lock:
            self._pipeline.expire()
            for name in registry.present(list(sought)):
                if (holder := queries.owner(registry.number(name))) != owner:
                    errors.append(
                        SubscriptionError(f"it belongs to {holder or 'nobody'}, not to {owner}", name)
                    )
            if errors:
                raise ApplyError(tuple(errors))
            difference = changed(self._store.difference(sought, owner), warnings=warnings)
            made = {name: sought[name] for name in (*difference.added, *difference.changed)}
            replaced = (*difference.removed, *difference.changed)
            try:
                if dry_run:
                    self._store.try_exchange(replaced, made)
                    return difference
                notified = (
                    exchange(self._store, self._pipeline, replaced, made, deliver) if difference else ()
                )
            except SubscriptionError as fault:  # a cycle, or a row of a view's table
                raise ApplyError((fault,)) from fault
            self._store.deliver(difference.unchanged, deliver)
            if not difference:
                return difference
        self._deliver()
        return changed(difference, notifications=notified)

    def subscriptions(self, *, owner: str | None = None) -> Iterator[Subscription]:
        """Return all subscriptions, or those of one owner, as they are now."""
        with self._lock:
            self._pipeline.expire()
            return iter(self._store.subscriptions(owner))

    def query_shapes(self) -> Iterator[Query]:
        """Return the queries of all subscriptions; of those that differ in their constants only, one.

        >>> engine = Engine()
        >>> _ = engine.subscribe_all({"a": "price > 100", "b": "price > 200"})
        >>> len(list(engine.query_shapes()))
        1
        """
        with self._lock:
            return iter(list(self._store.queries.shapes()))

    @property
    def needs_event_times(self) -> bool:
        """Tell whether it matters when events happened: for sequences, and for subscriptions of limited validity."""
        with self._lock:
            return self._store.registry.has_validity or len(self._store.sequences) > 0

    def owner(self, id: str) -> str | None:
        """Return the owner of a subscription."""
        with self._lock:
            self._pipeline.expire()
            return self._store.queries.owner(self._store.registry.number(id))

    def answer(self, id: str) -> Answer:
        """Return the present answer of a view."""
        with self._lock:
            self._pipeline.expire()
            number = self._store.registry.number(id)
            if self._store.queries.kind(number) is not View:
                raise SubscriptionError("it is no view, and has no answer", id)
            return self._store.views.answer(number)

    def __len__(self) -> int:
        with self._lock:
            self._pipeline.expire()
            return len(self._store.registry)

    def __contains__(self, id: str) -> bool:
        with self._lock:
            self._pipeline.expire()
            return id in self._store.registry

    # saving

    def save(self, path: str | PathLike[str]) -> SavedEngine:
        """Write subscriptions, state and options to one file; return what it holds, and what is left out.

        The engine that `open` returns goes on as this one does. The file is replaced once all is on the disk. Callbacks and a
        clock of one's own are not in it; they are named in `left_out`, and in the log. Other threads wait while the contents
        are gathered, and not while they are written.
        """
        from tocsin.engine.saving import EngineContents, save_engine  # noqa: PLC0415 - few need it

        with self._lock:
            self._pipeline.expire()
            has_on_late = not isinstance(self._on_late, LateLog)
            contents = EngineContents.of(
                self._parts(), self._options, self._statistics, has_on_late=has_on_late
            )
        return save_engine(contents, Path(path))

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        clock: Clock | None = None,
        statistics: Statistics | None = None,
        on_late: Callable[[Event], object] | None = None,
        threads: int = 1,
    ) -> Self:
        """Return the engine in a file that `save` wrote, with all that waited in it.

        `threads` is as for a new engine, and not saved. Indexes are built again. An engine with a clock that is neither a `SystemClock` nor an `EventClock` needs one here.
        A file that is damaged, or is none of `save`, is refused.
        """
        from tocsin.engine.saving import SavedEngineFile  # noqa: PLC0415 - few need it

        with SavedEngineFile(Path(path)) as saved:
            given = saved.clock(clock)
            known = saved.statistics() if statistics is None else statistics
            engine = cls(clock=given, statistics=known, on_late=on_late, threads=threads, **saved.options())
            saved.restore(engine._parts())
        return engine

    def snapshot(self) -> bytes:
        """Return the state without the subscriptions: partial matches, waiting events, tables, kept events, clock and counts.

        >>> engine = Engine()
        >>> _ = engine.subscribe("from ticks a next ticks b on b.symbol = a.symbol where b.price > a.price", id="rise")
        >>> _ = engine.publish({"symbol": "A", "price": 7}, stream="ticks", time=1)
        >>> other = Engine()
        >>> _ = other.subscribe("from ticks a next ticks b on b.symbol = a.symbol where b.price > a.price", id="rise")
        >>> other.restore(engine.snapshot()).subscriptions
        1
        >>> [note.subscription for note in other.publish({"symbol": "A", "price": 8}, stream="ticks", time=2)]
        ['rise']
        """
        from tocsin.engine.saving import take_snapshot  # noqa: PLC0415 - few need it

        with self._lock:
            self._pipeline.expire()
            parts = take_snapshot(self._parts())
        return pack(parts)

    def restore(self, snapshot: bytes | bytearray | memoryview) -> Restored:
        """Replace the state by that of a snapshot, of this engine or another; return what became of it.

        Subscriptions go on with the state of those with the same id, if they ask the same; others begin now, as if they were
        subscribed after the last event of the snapshot. What is damaged or does not fit is refused, and nothing changes.
        """
        from tocsin.engine.saving import restore_snapshot  # noqa: PLC0415 - few need it

        parts = unpack(snapshot)
        with self._lock, answering():
            self._pipeline.expire()
            restored = restore_snapshot(self._parts(), parts)
        self._deliver()
        return restored

    def _parts(self) -> EngineParts:
        from tocsin.engine.saving import EngineParts  # noqa: PLC0415 - few need it

        return EngineParts(self._store, self._pipeline, self._buffer, self._reader, self._clock)

    def __reduce_ex__(self, _: object) -> NoReturn:
        raise TypeError(
            "an engine cannot be pickled or copied: it has a lock, a clock and callbacks; write it to a file with "
            "`engine.save(path)`, and make another one of it with `Engine.open(path)`"
        )

    # push

    def on_notification(self, callback: Callback) -> Listener:
        """Call `callback` with every notification from now on, until the returned `Listener` is closed.

        These are the notifications that `publish` and the other calls return, those of subscribing among them, in the same order.
        The thread that publishes calls it, after the engine's lock is released and before its call returns; if several
        threads publish, one of them calls it for all, so that it never runs twice at a time. It may call the engine: the
        notifications that this causes come after those that are there. What it raises is logged, and stops nothing.

        >>> engine = Engine()
        >>> _ = engine.subscribe("price > 100", id="high")
        >>> with engine.on_notification(lambda note: print(note.subscription)):
        ...     _ = engine.publish({"price": 101})
        high
        """
        with self._lock:
            return self._store.deliveries.listen(callback)

    def notifications(self, *, limit: int = 10_000) -> NotificationStream:
        """Return the notifications from now on as an iterator for `async for`, whichever thread publishes.

        Publishing never waits for it: `limit` notifications are kept for it, and beyond that the oldest is dropped, counted
        and logged.
        """
        from tocsin.engine.notification_stream import NotificationStream  # noqa: PLC0415 - few need it

        return NotificationStream(limit, self.on_notification)

    def _deliver(self) -> None:
        """Call the callbacks with the notifications that wait for them; called without the lock."""
        if self._store.deliveries.waiting:
            self._store.deliveries.run(self._lock)

    def __repr__(self) -> str:
        store, pipeline = (
            self._store,
            self._pipeline,
        )  # read without the lock: a debugger must not wait for it
        counts = [
            (len(store.registry), "subscription"),
            (len(store.views.tables), "table"),
            (pipeline.published, "event"),
            (pipeline.notified, "notification"),
        ]
        return summary(self, [counted(count, noun) for count, noun in counts])

    # events

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
        """Publish an event, and return its notifications.

        They are those of the filters it satisfies, or the `top` best; of the sequences it completes, and the filters on
        what these publish; of the views whose answers it changes. `time` is when it ended, and when it started
        unless `start` is given; without either, the clock is asked. An event with `valid_until` is kept until then for
        new filters. An event of a stream that is a table replaces the row of its key; with `delete` it removes that row,
        and reaches no filter and no sequence. `weights` are those of the event's attributes, by which the best are
        found.
        """
        top_k = TopK.of(top, weights) if top is not None or weights else None
        opaque = self._reader.note_opaque
        try:
            read = self._read(event, stream, time, start=start, id=id, valid_until=valid_until, opaque=opaque)
            if delete:
                read = changed(read, attributes={**read.attributes, DELETIONS[0]: True})
            with self._lock:
                calls.answering += 1  # as `answering` does, without its calls
                try:
                    _, notifications, late = self._pipeline.publish([read], top=top_k)
                finally:
                    calls.answering -= 1
        except EventError:
            self._reader.refuse()
            raise
        if self._store.deliveries.waiting:
            self._deliver()
        if late:
            report_late(late, self._on_late)
        return notifications.to_list()

    async def apublish(self, event: Mapping[str, object] | Event, **options: Any) -> list[Notification]:
        """Publish without blocking the event loop; takes what `publish` takes.

        While events take a fraction of a millisecond and no other call is running, the event is published at once: a
        thread would take longer to be asked. Otherwise it is published in one.
        """
        store, pace = self._store, self._pace
        is_quick = pace.is_quick(store.generation) and not store.filters.is_about_to_index
        if is_quick and self._lock.acquire(blocking=False):
            try:
                return self._publish_timed(event, options)
            finally:
                self._lock.release()
                self._deliver()
        from asyncio import to_thread  # noqa: PLC0415 - who calls this has loaded it

        return await to_thread(self._publish_timed, event, options)

    def _publish_timed(
        self, event: Mapping[str, object] | Event, options: dict[str, Any]
    ) -> list[Notification]:
        begin = perf_counter()
        try:
            return self.publish(event, **options)
        finally:
            self._pace.took(perf_counter() - begin, self._store.generation)

    def publish_many(
        self,
        events: EventSource,
        *,
        stream: str | None = None,
        time: str | None = None,
        start: str | None = None,
        on_error: Report | None = None,
        batch_size: int | None = None,
        top: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Notifications:
        """Publish all events, and return the notifications as columns; objects are made when somebody iterates.

        `events` are dicts, `Event`s, a table (of Arrow, pandas or polars, or any object with Arrow's C stream), or an
        iterator of any of these that ends; `time` and `start` name the attributes with their times, else the clock is asked. A record that cannot be read is counted
        and given to `on_error`, or logged; the rest goes on. With `top`, only that many filters are notified of each
        event: the best by the subscriptions' weights and those that `weights` gives the attributes.

        If the source fails, or a report does, the events before are published, and the exception has their
        notifications in its attribute `notifications`.

        >>> engine = Engine()
        >>> _ = engine.subscribe("price > 100", id="high")
        >>> engine.publish_many([{"price": 99}, {"price": 101}]).to_arrow().select(["row", "subscription"]).to_pylist()
        [{'row': 1, 'subscription': 'high'}]
        """
        parts: list[tuple[int, Notifications]] = []
        fields = EventFields(time=time, start=start, is_published=True)
        top_k = TopK.of(top, weights)
        row = 0
        try:
            batches = self._publisher.batches(
                events, stream, fields, report=on_error or _log_fault, batch_size=batch_size, top=top_k
            )
            for count, notifications, late in batches:
                parts.append((row, notifications))
                row += count
                self._deliver()
                report_late(late, self._on_late)
        except Exception as fault:
            fault.add_note(
                "the events before are published; `notifications` of this exception has what they caused"
            )
            fault.notifications = Notifications.join(parts)  # type: ignore[attr-defined]
            raise
        return Notifications.join(parts)

    def publish_stream(
        self,
        events: EventSource,
        *,
        stream: str | None = None,
        time: str | None = None,
        start: str | None = None,
        on_error: Report | None = None,
        batch_size: int | None = None,
        top: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Iterator[Notification]:
        """Publish events one after another, and yield the notifications as they come; takes what `publish_many` takes.

        Nothing is published until somebody iterates, and no more than one batch is held. An iterator is published event
        by event unless `batch_size` says otherwise, a list or table in batches; so are the tables that an iterator or
        Arrow's reader of record batches gives, one after another.
        """
        options: dict[str, Any] = {"time": time, "start": start, "top": top, "weights": weights}
        for notifications in self.publish_batches(
            events, stream=stream, on_error=on_error, batch_size=batch_size, **options
        ):
            yield from notifications

    def publish_batches(
        self,
        events: EventSource,
        *,
        stream: str | None = None,
        time: str | None = None,
        start: str | None = None,
        on_error: Report | None = None,
        batch_size: int | None = None,
        top: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Iterator[Notifications]:
        """Publish events as `publish_stream` does, and yield the notifications of each batch, as columns."""
        fields = EventFields(time=time, start=start, is_published=True)
        top_k = TopK.of(top, weights)
        batches = self._publisher.batches(
            events,
            stream,
            fields,
            report=on_error or _log_fault,
            batch_size=batch_size,
            top=top_k,
            one_by_one=not is_at_hand(events),
        )
        for _, notifications, late in batches:
            self._deliver()
            try:
                yield notifications
            finally:  # a report that fails costs no notification
                report_late(late, self._on_late)

    def flush(self) -> list[Notification]:
        """Give sequences all events that wait for their turn, and return the notifications.

        An event that comes later and ends before one of them is late.
        """
        with self._lock, answering(self._buffer.waiting):
            self._pipeline.expire()
            notifications = self._pipeline.flush()
        self._deliver()
        return notifications.to_list()

    def match_sequences(
        self, table: Any, *, stream: str, time: str, start: str | None = None
    ) -> NamedSequenceMatches:
        """Return, as columns, the sequences that a table's rows complete; the rows reach no filter.

        `time` names the column that says when a row ended, and `start` the one that says when it started. The rows
        must be in the order of their end, and all of them events: a table that is refused leaves no trace.
        """
        ticks = self._reader.ticks
        rows = timed_rows(require_columns(table, stream, ticks.zone), time, start, ticks)
        with self._lock:
            self._pipeline.expire()
            found = self._pipeline.match_sequences(rows)
        self._deliver()
        return found

    def upsert(self, rows: Any, *, stream: str, time: str | None = None) -> NamedAnswerChanges:
        """Put an Arrow table's rows into a table, and return, as columns, the answers that change.

        The rows reach no filter and no sequence. `time` names the column that says when each ended; without it, all end
        now. A table with a row that cannot be in it, or with other columns than plain ones, leaves no trace.
        """
        table = require_columns(rows, stream, self._reader.ticks.zone)
        check_no_faults(table.faults)
        if time is None:
            ends = np.full(len(table), self._reader.now(stream), dtype=np.int64)
        else:
            _, ends, faults = table_times(table, time, None, self._reader.ticks)
            check_no_faults(faults)
        with self._lock:
            self._pipeline.expire()
            if stream not in self._store.views.tables:
                raise EventError(
                    f'`{stream}` is no table; declare it first: `engine.table("{stream}", key="…")`'
                )
            found = self._pipeline.upsert(stream, table.table, ends)
        self._deliver()
        return found

    def match(
        self,
        events: EventSource,
        *,
        stream: str | None = None,
        top: int | None = None,
        weights: EventWeights | None = None,
    ) -> NamedMatches:
        """Return, per row, the filters it satisfies, without publishing anything; sequences and views see nothing.

        A row that cannot be read satisfies none and is reported in `faults`. An Arrow table is matched by the
        column: its rows become events only where Python has to evaluate one. With `top`, only the best are returned,
        with their scores: by the subscriptions' weights and those of the events' attributes, which are `weights`, for
        all rows or a list of as many.
        """
        return self._batch_matcher.match(events, stream, TopK.of(top, weights))

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

        For a sequence, the result is a `SequenceExplanation`: its automaton, the instances that wait at each node and
        why others have ended, and what the event would do now; the event may be left out. For a view, it is a
        `ViewExplanation`: its answer, and its answer after the event. Several events are an error; `test` takes them.
        """
        if event is not None and not isinstance(event, (Mapping, Event)):
            raise EventError(
                f"`explain` takes one event, a mapping of attributes, not {type(event).__name__}; explain each by "
                "itself, or give all of them to `test`"
            )
        read = None if event is None else self._read(event, stream, time, is_published=False)
        with self._lock:
            self._pipeline.expire()
            found = self._store.subscription(subscription)
            number = self._store.registry.number(subscription)
            if isinstance(found.query, SequenceQuery):
                return self._store.sequences.explain(number, found, read)
            if isinstance(found.query, View) and read is not None:
                return self._store.views.explain(number, found, read, self.ticks)
        if read is None:
            kind = "view" if isinstance(found.query, View) else "filter"
            raise EventError(f"`{subscription}` is a {kind}, which is explained by an event; give one")
        return self._store.filters.explain(found, read, self.ticks)

    def explain_plan(self, subscription: str) -> FilterPlan:
        """Return how events reach a filter: its access paths, the share of events that each is checked for, and what follows.

        The matcher `adaptive` has plans; with others, this is an error, and so it is for a sequence and a view.

        >>> engine = Engine(matcher="adaptive")
        >>> _ = engine.subscribe("carrier = 'UA' and distance > 1000", id="far")
        >>> [str(one) for one in engine.explain_plan("far").conjunctions]
        ["checked by every event: reached by carrier = 'UA'; then distance > 1000"]
        """
        with self._lock:
            self._pipeline.expire()
            return self._plans.plan(subscription)

    def explain_costs(self, top: int = 10) -> FilterCosts:
        """Return how many conjunctions of filters an event is expected to be checked against, and the `top` costliest filters."""
        with self._lock:
            self._pipeline.expire()
            return self._plans.costs(top)

    def adapt(
        self, events: EventSource = (), *, stream: str | None = None, on_error: Report | None = None
    ) -> int:
        """Adapt the index of filters to events like those to expect, and return how many there were; nothing is published.

        Afterwards the matcher `adaptive` has planned for all filters. It adapts to published events, too, a little with each.
        A record that cannot be read is counted and given to `on_error`, or logged.
        """
        return self._plans.adapt(events, stream, on_error or _log_fault)

    def test(
        self,
        query: QuerySource,
        events: EventSource,
        *,
        stream: str | None = None,
        time: str | None = None,
        start: str | None = None,
    ) -> DryRun:
        """Return the matches that a query would have had in these events alone, without subscribing.

        `time` and `start` name the attributes with their times. The result's `warnings` name streams and attributes that the
        query has and no event.
        """
        checked = read_query(query)
        fields = EventFields(time=time, start=start)
        began = self._clock.now()
        rows = list(
            read_events(checked_source(events, self._reader, stream, fields), self._reader, stream, fields)
        )
        read = [row for row in rows if isinstance(row, Event)]
        found = dry_run(checked.query, rows, self._store, self._out_of_orderness)
        untimed = unknown_times(checked.query, read, self._clock, began, self.ticks)
        return changed(
            found,
            tick=self.ticks.length(read[0].stream if read else None),
            warnings=(*checked.warnings, *untimed, *unseen_names(checked.query, read)),
        )

    def stats(self) -> EngineStats:
        """Return sizes and counts."""
        with self._lock:
            self._pipeline.expire()
            buffered = {"late": self._buffer.late, "waiting": self._buffer.waiting}
            return EngineStats(
                subscriptions=len(self._store.registry),
                kept_events=len(self._pipeline.history),
                generation=self._store.generation,
                published=self._pipeline.published,
                refused=self._reader.refused,
                notifications=self._pipeline.notified,
                expired=self._store.expired,
                opaque_values=self._reader.opaque.total(),
                matcher=self._store.filters.matcher.stats(),
                sequences=changed(self._store.sequences.stats(), **buffered),
                views=self._store.views.stats(),
            )

    # shared by several calls

    def _read(
        self,
        event: Mapping[str, object] | Event,
        stream: str | None,
        time: object | None,
        *,
        start: object | None = None,
        id: str | None = None,
        valid_until: object | None = None,
        is_published: bool = True,
        opaque: Callable[[str], None] | None = None,
    ) -> Event:
        """Return an event with the given stream, time and id; a CloudEvent and an `Event` have their own."""
        given = (stream, time, start, id, valid_until)
        if isinstance(event, Event):
            if given != _NOTHING:
                names = [name for name, value in zip(_GIVEN, given, strict=True) if value is not None]
                raise EventError(f"an `Event` brings its own {', '.join(names)}; make it with them")
            return check_event(event, opaque, zone=self._reader.ticks.zone)
        ticks = self._reader.ticks
        is_mapping = type(event) is dict or isinstance(event, Mapping)  # asking the latter takes long
        if given == _NOTHING and is_mapping and SPEC_VERSION in event:
            now = self._reader.now(str(event.get("type")))
            return read_cloud_event(event, now=now, opaque=opaque, ticks=ticks)
        if type(time) is int and stream in ticks.plain:
            end = time
        elif time is not None:
            end = read_given_time(ticks, stream, "time", time)
        elif type(self._clock) is SystemClock:
            end = self._clock.now() // (1 if stream is None else ticks.lengths.get(stream, 1))
        else:  # another clock counts the events' ticks
            if is_published:
                self._reader.check_clock(stream)
            end = self._clock.now()
        return read_event(
            event,
            stream=stream,
            id=id,
            time=end,
            start=None if start is None else read_given_time(ticks, stream, "start", start),
            valid_until=None
            if valid_until is None
            else read_given_time(ticks, stream, "valid_until", valid_until),
            opaque=opaque,
            ticks=ticks,
        )

    def _has_no_time(self, stream: str | None) -> bool:
        """Tell whether the clock has no time for an event of a stream that has none of its own."""
        return isinstance(self._clock, EventClock) and (
            self._store.sequences.reads(stream)
            or (self._store.registry.has_validity and self._clock.now() == ALWAYS)
        )


def _new_sequence_matcher(
    matcher: str | None, statistics: Statistics | None, memory_limit: int | None
) -> InspectableSequenceMatcher:
    from tocsin.sequences.running.matcher import AutomatonMatcher  # noqa: PLC0415 - it imports Numba

    return AutomatonMatcher(matcher=matcher, statistics=statistics, memory_limit=memory_limit)


def _log_opaque(path: str) -> None:
    _log.info(
        "values of `%s` cannot be compared: they are present, and every other predicate is unknown", path
    )


def _log_fault(fault: Fault) -> None:
    _log.warning("%s", fault)
