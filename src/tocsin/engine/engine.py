"""Subscribe, unsubscribe, publish, match."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from threading import RLock
from typing import Any, Final
from uuid import uuid4

import numpy as np
from msgspec.structs import replace as changed

from tocsin.engine.clock import Clock, SystemClock
from tocsin.engine.filters import (
    applies,
    explain_filter,
    is_deletion,
    matchable,
    notification,
    only_filters,
)
from tocsin.engine.history import History
from tocsin.engine.holdings import Holdings
from tocsin.engine.incoming import Incoming, is_at_hand, read_incoming
from tocsin.engine.ranked import Wish, best_of, native_best
from tocsin.engine.results import (
    Difference,
    EngineStats,
    EventExplanation,
    NamedMatches,
    Subscribed,
    SubscribedMany,
    Trial,
)
from tocsin.engine.rows import MadeRows
from tocsin.engine.tables import named, publishable, table_events
from tocsin.engine.wanted import Wanted, WantedSet, check_id, read_terms, read_wanted
from tocsin.formats import EventReader, Fault
from tocsin.formats.cloud_events import is_cloud_event, read_cloud_event
from tocsin.language import Template
from tocsin.language.sources import QuerySource, read_query
from tocsin.language.template.columns import Rows
from tocsin.matching import ConjunctionBatch, EventBatch, takes_clauses
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.ranking import EventWeights, RankingMatcher, Weight
from tocsin.matching.statistics import Statistics
from tocsin.model import Event, Notification, Subscription, read_event
from tocsin.model.errors import ApplyError, EventError, SubscriptionError
from tocsin.model.event import check_event

__all__ = ["Engine"]

_BATCH: Final = 1000
_TAKEN: Final = "it is subscribed already; to change it, set `replace`"
_log = logging.getLogger("tocsin")


class Engine:
    """Holds subscriptions and tells, of each event that is published, which of them it concerns.

    Safe to use from several threads: one call at a time changes or reads the subscriptions, and a match sees
    them either before a change or after it. `apublish` is `publish` for asyncio; the other calls are short.

    `matcher` names the index to match with. Without it there is none while there is little to do, and `dynamic` as
    soon as there is more. One that takes clauses is given a condition in its smaller normal form; for the others it
    must have a disjunctive one within the limit. `statistics` of earlier events help an index to choose by cost.

    `clock` tells the time of events that say none, and when what has expired is let go; `lateness` is how many
    ticks longer an expired subscription is held for events that come late.

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
        lateness: int = 0,
    ) -> None:
        self._clock = clock or SystemClock()
        self._held = Holdings(matcher, statistics, self._clock, lateness)
        self._matcher, self._book = self._held.matcher, self._held.book
        self._history = History()
        self._lock = RLock()
        self._reader = EventReader(clock=self._clock.now)
        self._published = 0
        self._notified = 0

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
        replace: bool = False,
    ) -> Subscribed:
        """Leave a question behind, as text, JSON or built in Python.

        It applies to an event iff `valid_from <= event.end < valid_until`. An id is made where none is given; one
        that is subscribed already is an error, unless `replace` is set. Kept events are met at once. `weight` is what
        its predicates are worth in a ranking: one for all, or by attribute.
        """
        name = uuid4().hex if id is None else id
        check_id(name)
        checked = read_query(query)
        asked = only_filters(checked.query, name)
        terms = read_terms(valid_from, valid_until, owner, name, weight)
        wanted = Wanted(asked, self._held.form(asked, name, checked.normal), terms)
        with self._lock:
            self._expire()
            gone = self._held.replaced([name], replace=replace)
            added = self._held.exchange(gone, {name: wanted})
            return Subscribed(
                name, self._meet_history(added), (*checked.warnings, *self._held.expiry_warning(terms))
            )

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
        replace: bool = False,
    ) -> SubscribedMany:
        """Leave one question behind for each row of a template's parameters; faulty rows are reported.

        `id` names the column that holds the ids, or is a pattern such as `"alert-{s}-{row}"` over parameters and
        the row's number; without it, ids are made.
        """
        made = MadeRows.of(template, rows, id, clauses=takes_clauses(self._matcher))
        terms = read_terms(valid_from, valid_until, owner, weight=weight)
        with self._lock:
            self._expire()
            gone = self._held.replaced(made.ids, replace=replace)
            return made.told(self._meet_history(self._held.add_rows(made, terms, gone)))

    def unsubscribe(self, id: str) -> None:
        """Withdraw a question; one that is not there is an error."""
        with self._lock:
            self._expire()
            self._held.withdraw(id)

    def apply(self, wanted: WantedSet, *, owner: str = "default", dry_run: bool = False) -> Difference:
        """Make the subscriptions of `owner` equal to `wanted`, all at once or not at all; return the difference.

        `wanted` maps ids to queries, or lists `Subscription`s. With `dry_run` nothing is changed.
        """
        sought, errors = read_wanted(wanted, owner, self._held.form)
        with self._lock:
            self._expire()
            for name in sought:
                if name in self._book and (holder := self._book.owner(name)) != owner:
                    errors.append(
                        SubscriptionError(f"it belongs to {holder or 'nobody'}, not to {owner}", name)
                    )
            if errors:
                raise ApplyError(tuple(errors))
            difference = self._held.difference(sought, owner)
            if dry_run or not difference:
                return difference
            added = self._held.exchange(
                (*difference.removed, *difference.changed),
                {name: sought[name] for name in (*difference.added, *difference.changed)},
            )
            met = self._meet_history(added)
        return Difference(difference.added, difference.changed, difference.removed, difference.unchanged, met)

    def subscriptions(self, *, owner: str | None = None) -> Iterator[Subscription]:
        """Return all subscriptions, or those of one owner, as they stand now."""
        with self._lock:
            self._expire()
            ids = self._book if owner is None else self._book.owned_by(owner)
            return iter([self._book.subscription(name) for name in ids])

    def owner(self, id: str) -> str | None:
        """Return whose subscription this is."""
        with self._lock:
            self._expire()
            return self._book.owner(id)

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._book)

    def __contains__(self, id: str) -> bool:
        with self._lock:
            self._expire()
            return id in self._book

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
        """Tell whom an event concerns: one notification per subscription that it satisfies, or for the `top` best.

        `time` is when it ended, and when it started unless `start` is given; without either, the clock is asked.
        An event with `valid_until` is kept until then for new subscriptions. A deletion reaches no filter. `weights`
        are those of the event's attributes, by which the best are found.
        """
        given = {"stream": stream, "time": time, "start": start, "id": id, "valid_until": valid_until}
        read = self._read(event, {name: value for name, value in given.items() if value is not None})
        wish = Wish.of(top, weights)
        return [] if delete else self._publish([read], wish=wish)

    async def apublish(self, event: Mapping[str, object] | Event, **options: Any) -> list[Notification]:
        """Publish without holding up the event loop; takes what `publish` takes."""
        return await asyncio.to_thread(self.publish, event, **options)

    def publish_many(
        self,
        events: Incoming,
        *,
        stream: str | None = None,
        on_error: Callable[[Fault], object] | None = None,
        batch_size: int | None = None,
        top: int | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> Iterator[Notification]:
        """Publish events one after another and return the notifications as they come.

        `events` are dicts, `Event`s, an Arrow table or record batch, or an iterator of any of these. A record that
        cannot be read is counted and given to `on_error`, or logged; the rest goes on. A list or table is matched
        in batches, an iterator event by event unless `batch_size` says otherwise. With `top`, only that many hear of
        each event: the best by the subscriptions' weights and those that `weights` gives the attributes.
        """
        report = on_error or _log_fault
        wish = Wish.of(top, weights)
        size = batch_size or (_BATCH if is_at_hand(events) else 1)
        table = table_events(events, stream) if wish is None else None
        if table is not None:
            yield from self._publish_table(table, report, size)
            return
        batch: list[Event] = []
        failure: Exception | None = None
        try:
            for one in read_incoming(events, self._reader, stream):
                if isinstance(one, Fault):
                    report(one)
                    continue
                batch.append(one)
                if len(batch) >= size:
                    full, batch = batch, []
                    yield from self._publish(full, report, wish)
        except Exception as fault:  # noqa: BLE001 - whatever ends the source, what it gave before is published
            failure = fault
        yield from self._publish(batch, report, wish)
        if failure is not None:
            raise failure

    def match(
        self,
        events: Incoming,
        *,
        stream: str | None = None,
        top: int | None = None,
        weights: EventWeights | None = None,
    ) -> NamedMatches:
        """Return, per row, the filters it satisfies, without publishing anything.

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
                found = iter(self._match(read, faults.append))
                per_row = [() if isinstance(row, Fault) else self._names(next(found), row) for row in rows]
            else:
                given = wish.checked(len(rows))
                kept = [given[place] for place, row in enumerate(rows) if isinstance(row, Event)]
                best = iter(self._rank(read, wish.top, kept, faults.append))
                ranked = [[] if isinstance(row, Fault) else next(best) for row in rows]
                per_row = [tuple(self._book.id(number) for number, _ in row) for row in ranked]
                scores = tuple(score for row in ranked for _, score in row)
        offsets = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(names) for names in per_row], out=offsets[1:])
        return NamedMatches(
            offsets, tuple(name for names in per_row for name in names), tuple(faults), scores
        )

    def explain(
        self, subscription: str, event: Mapping[str, object] | Event, *, stream: str | None = None
    ) -> EventExplanation:
        """Return why a subscription would be notified of an event, or would not: each predicate with its truth."""
        read = self._read(event, {} if stream is None else {"stream": stream})
        with self._lock:
            self._expire()
            held = self._book.subscription(subscription)
        return explain_filter(held, read)

    def test(self, query: QuerySource, events: Incoming, *, stream: str | None = None) -> Trial:
        """Return what a subscription would have been told of these events, without subscribing."""
        trial = Subscription("test", only_filters(read_query(query).query, "test"))
        rows = list(read_incoming(events, self._reader, stream))
        read = [row for row in rows if isinstance(row, Event)]
        fired = tuple(event for event in read if applies(trial, event))
        return Trial(fired, len(read), tuple(row for row in rows if isinstance(row, Fault)))

    def stats(self) -> EngineStats:
        """Return what the engine holds and what has passed through it."""
        with self._lock:
            self._expire()
            return EngineStats(
                subscriptions=len(self._book),
                kept_events=len(self._history),
                generation=self._held.generation,
                published=self._published,
                refused=self._reader.refused,
                notifications=self._notified,
                expired=self._held.expired,
                dropped_arrays=self._reader.dropped.total(),
                matcher=self._matcher.stats(),
            )

    def _read(self, event: Mapping[str, object] | Event, given: dict[str, Any]) -> Event:
        """Return an event with what was said beside it; a CloudEvent and an `Event` say it themselves."""
        if isinstance(event, Event):
            if given:
                raise EventError(f"an `Event` brings its own {', '.join(given)}; make it with them")
            return check_event(event)
        if not given and is_cloud_event(event):
            return read_cloud_event(event, now=self._clock.now())
        return read_event(event, **({"time": self._clock.now()} | given))

    def _match_table(self, table: ArrowEvents) -> NamedMatches:
        end = self._clock.now()
        self._reader.count(read=len(table) - len(table.faults), refused=len(table.faults))
        with self._lock:
            self._expire()
            return named(self._matcher.match(table), self._book, end, table.faults)

    def _publish_table(
        self, table: ArrowEvents, report: Callable[[Fault], object], size: int
    ) -> Iterator[Notification]:
        """Publish a table's rows, `size` events at a time; if `report` fails, what came before is published."""
        for part in publishable(table, self._reader, report, size):
            end = self._clock.now()
            with self._lock:
                self._expire()
                found = self._matcher.match(part)
                self._published += len(part) - len(part.faults)
                notes: list[Notification] = []
                for place in np.flatnonzero(np.diff(found.offsets)).tolist():
                    numbers = self._held.valid(found[place].tolist(), end, self._clock.now())
                    if numbers:
                        event = read_event(part.row(place), stream=part.stream, time=end)
                        notes += [self._note(number, event) for number in numbers]
                self._clock.saw(end)
                self._notified += len(notes)
            yield from notes

    # what follows is called under the lock

    def _expire(self) -> None:
        """Let go of the subscriptions and kept events whose time is over."""
        self._history.expire(self._clock.now())
        self._held.expire()

    def _meet_history(self, added: ConjunctionBatch) -> tuple[Notification, ...]:
        """Return what new subscriptions are told of the events that are still kept."""
        if not len(self._history) or not len(added):
            return ()
        alone = self._held.new_matcher()
        alone.add(added)
        kept = list(self._history)
        matches = alone.match(EventBatch.of(matchable(event) for event in kept)).to_lists()
        notes = [
            self._note(number, event)
            for event, found in zip(kept, matches, strict=True)
            for number in self._held.valid(found, event.end)
        ]
        self._notified += len(notes)
        return tuple(notes)

    def _names(self, numbers: list[int] | None, event: Event) -> tuple[str, ...]:
        if numbers is None or is_deletion(event):
            return ()
        return tuple(sorted(self._book.id(number) for number in self._held.valid(numbers, event.end)))

    def _note(self, number: int, event: Event) -> Notification:
        return notification(self._book.id(number), self._book.filter(number), event, self._held.generation)

    def _publish(
        self, events: list[Event], report: Callable[[Fault], object] | None = None, wish: Wish | None = None
    ) -> list[Notification]:
        """Publish events as if one by one: what the clock expires between them hears no later one."""
        with self._lock:
            self._expire()
            notes: list[Notification] = []
            given = [] if wish is None else wish.checked(1)
            for event, found in zip(events, self._match(events, report), strict=True):
                if found is None:
                    continue
                self._published += 1
                if is_deletion(event):
                    continue
                now = self._clock.now()
                valid = self._held.valid(found, event.end, now)
                if wish is None:
                    notes += [self._note(number, event) for number in valid]
                else:
                    best = best_of(valid, matchable(event), self._book, wish.top, given[0])
                    notes += [changed(self._note(number, event), score=score) for number, score in best]
                self._history.add(event, now)
                self._clock.saw(event.end)
            self._notified += len(notes)
            return notes

    def _rank(
        self,
        events: list[Event],
        top: int,
        weights: Sequence[Mapping[str, float]],
        report: Callable[[Fault], object],
    ) -> list[list[tuple[int, float]]]:
        """Return, per event, the best numbers with their scores; none if it is refused and that is reported."""
        if not isinstance(self._matcher, RankingMatcher) or self._book.has_terms:
            return self._scored(events, top, weights, report)
        seen = self._seen(events, report)
        kept = [given for event, given in zip(seen, weights, strict=True) if event is not None]
        batch = EventBatch.of(event for event in seen if event is not None)
        best = iter(native_best(self._matcher, self._book, batch, top, kept))
        ranked = [[] if event is None else next(best) for event in seen]
        undecided = [place for place, row in enumerate(ranked) if row is None]
        left = [events[place] for place in undecided], top, [weights[place] for place in undecided], report
        scored = iter(self._scored(*left) if undecided else ())
        rows = [next(scored) if row is None else row for row in ranked]
        return [[] if is_deletion(event) else row for event, row in zip(events, rows, strict=True)]

    def _scored(
        self,
        events: list[Event],
        top: int,
        weights: Sequence[Mapping[str, float]],
        report: Callable[[Fault], object],
    ) -> list[list[tuple[int, float]]]:
        """Return the same as `_rank`, by looking at all that an event satisfies."""
        return [
            []
            if found is None or is_deletion(event)
            else best_of(self._held.valid(found, event.end), matchable(event), self._book, top, given)
            for event, found, given in zip(events, self._match(events, report), weights, strict=True)
        ]

    def _match(
        self, events: list[Event], report: Callable[[Fault], object] | None = None
    ) -> list[list[int] | None]:
        """Return, per event, the numbers of the filters it satisfies; None if it is refused and that is reported."""
        seen = self._seen(events, report)
        matches = iter(self._matcher.match(EventBatch.of(e for e in seen if e is not None)).to_lists())
        return [None if event is None else next(matches) for event in seen]

    def _seen(self, events: list[Event], report: Callable[[Fault], object] | None) -> list[Event | None]:
        """Return events as matchers see them; None for one that is refused and reported."""
        seen: list[Event | None] = []
        for event in events:
            try:
                seen.append(matchable(event))
            except EventError as fault:
                if report is None:
                    raise
                self._reader.refuse()
                report(Fault("event", 0, str(fault)))
                seen.append(None)
        return seen


def _log_fault(fault: Fault) -> None:
    _log.warning("%s", fault)
