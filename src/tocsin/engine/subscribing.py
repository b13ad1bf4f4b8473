"""The half of an engine that holds subscriptions: to leave questions behind, and to withdraw them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from threading import RLock
from typing import Literal
from uuid import uuid4

from tocsin.engine.book import Terms
from tocsin.engine.clock import Clock, SystemClock
from tocsin.engine.holdings import Holdings
from tocsin.engine.lookup import Lookup
from tocsin.engine.publication import Publication
from tocsin.engine.rows import MadeRows, MadeSequences, MadeViews
from tocsin.engine.timelines import LateLog, Timelines
from tocsin.engine.views import Views
from tocsin.engine.wanted import (
    Wanted,
    WantedSequence,
    WantedSet,
    WantedView,
    check_id,
    read_terms,
    read_wanted,
)
from tocsin.formats import EventReader
from tocsin.language import Checked, Template
from tocsin.language.check import QuerySource, read_query
from tocsin.language.template.columns import Rows
from tocsin.matching import takes_clauses
from tocsin.matching.ranking import Weight
from tocsin.matching.statistics import Statistics
from tocsin.model import Event, Filter, Subscription, View
from tocsin.model import Sequence as SequenceQuery
from tocsin.model.errors import ApplyError, SubscriptionError, TocsinError
from tocsin.model.ticks import StreamTicks
from tocsin.sequences.matcher import InspectableSequenceMatcher
from tocsin.subscriptions.results import Difference, Subscribed, SubscribedMany


class Subscribing:
    """Holds subscriptions, each with an id; all calls are safe from several threads."""

    def __init__(
        self,
        *,
        matcher: str | None = None,
        statistics: Statistics | None = None,
        clock: Clock | None = None,
        lateness: int = 0,
        disorder: int = 0,
        on_late: Callable[[Event], object] | None = None,
        memory_limit: int | None = None,
        view_matcher: str | None = None,
    ) -> None:
        if disorder < 0:
            raise TocsinError(f"`disorder` is a number of ticks from 0 on, not {disorder}")
        self._clock = clock or SystemClock()
        told_time = None if type(self._clock) is SystemClock else self._clock.now
        self._reader = EventReader(clock=told_time, ticks=StreamTicks())
        runner = partial(_runner, matcher, statistics, memory_limit)
        self._timelines = Timelines(self._reader.ticks, disorder, on_late or LateLog(), runner)
        # What is held for late events is held for those that wait, too.
        self._views = Views(view_matcher)
        self._held = Holdings(
            matcher,
            statistics,
            clock=self._clock,
            lateness=max(lateness, disorder),
            timelines=self._timelines,
            views=self._views,
        )
        self._lookup = Lookup(self._held, self._reader)
        self._publication = Publication(self._held, self._lookup, self._clock)
        self._lock = RLock()

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
    ) -> Subscribed:
        """Leave a question behind, as text, JSON or built in Python.

        It applies to an event iff `valid_from <= event.end < valid_until`. An id is made where none is given; one
        that is subscribed already is an error, unless `replace` is set. A filter meets kept events at once; `weight` is
        what its predicates are worth in a ranking: one for all, or by attribute. A sequence sees events that end after
        all that have come; with `witness="full"` it tells all events of each step. A view tells its present answer at
        once, and then each change of it.
        """
        name = uuid4().hex if id is None else id
        check_id(name)
        checked = read_query(query)
        terms = read_terms(valid_from, valid_until, owner, name, weight=weight, witness=witness)
        wanted = self._wanted_of(name, checked, terms)
        with self._lock:
            self._expire()
            gone = self._held.replaced([name], replace=replace)
            added = self._held.exchange(gone, {name: wanted})
            return Subscribed(
                name,
                self._publication.meet_history(added) + self._held.first_answers([name]),
                (*checked.warnings, *self._held.expiry_warning(terms)),
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
        witness: Literal["full"] | None = None,
        replace: bool = False,
    ) -> SubscribedMany:
        """Leave one question behind for each row of a template's parameters; faulty rows are reported.

        `id` names the column that holds the ids, or is a pattern such as `"alert-{s}-{row}"` over parameters and
        the row's number; without it, ids are made.
        """
        terms = read_terms(valid_from, valid_until, owner, weight=weight, witness=witness)
        form = template if isinstance(template, Template) else Template(template)
        if isinstance(form.query, View):
            views = MadeViews.of(form, rows, id, self._views.plan)
            with self._lock:
                self._expire()
                return views.told(
                    self._held.add_views(views, terms, self._held.replaced(views.ids, replace=replace))
                )
        if isinstance(form.query, SequenceQuery):
            prepare = partial(self._timelines.prepare, full=witness == "full")
            sequences = MadeSequences.of(form, rows, id, prepare)
            with self._lock:
                self._expire()
                self._held.add_sequences(
                    sequences, terms, self._held.replaced(sequences.ids, replace=replace)
                )
            return sequences.told()
        made = MadeRows.of(form, rows, id, clauses=takes_clauses(self._held.matcher))
        with self._lock:
            self._expire()
            gone = self._held.replaced(made.ids, replace=replace)
            return made.told(self._publication.meet_history(self._held.add_rows(made, terms, gone)))

    def unsubscribe(self, id: str) -> None:
        """Withdraw a question; one that is not there is an error."""
        with self._lock:
            self._expire()
            self._held.withdraw(id)

    def apply(self, wanted: WantedSet, *, owner: str = "default", dry_run: bool = False) -> Difference:
        """Make the subscriptions of `owner` equal to `wanted`, all at once or not at all; return the difference.

        `wanted` maps ids to queries, or lists `Subscription`s. With `dry_run` nothing is changed.
        """
        sought, errors = read_wanted(wanted, owner, self._wanted)
        with self._lock:
            self._expire()
            for name in sought:
                if name in self._held.book and (holder := self._held.book.owner(name)) != owner:
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
            met = self._publication.meet_history(added)
            met += self._held.first_answers((*difference.added, *difference.changed))
        return Difference(difference.added, difference.changed, difference.removed, difference.unchanged, met)

    def subscriptions(self, *, owner: str | None = None) -> Iterator[Subscription]:
        """Return all subscriptions, or those of one owner, as they stand now."""
        with self._lock:
            self._expire()
            ids = self._held.book if owner is None else self._held.book.owned_by(owner)
            return iter([self._held.book.subscription(name) for name in ids])

    def owner(self, id: str) -> str | None:
        """Return whose subscription this is."""
        with self._lock:
            self._expire()
            return self._held.book.owner(id)

    def __len__(self) -> int:
        with self._lock:
            self._expire()
            return len(self._held.book)

    def __contains__(self, id: str) -> bool:
        with self._lock:
            self._expire()
            return id in self._held.book

    def _wanted(self, id_: str, source: QuerySource, terms: Terms) -> Wanted | WantedSequence | WantedView:
        """Return a subscription as this engine holds it, or raise `TocsinError`."""
        return self._wanted_of(id_, read_query(source), terms)

    def _wanted_of(self, id_: str, checked: Checked, terms: Terms) -> Wanted | WantedSequence | WantedView:
        query = checked.query
        if isinstance(query, View):
            return WantedView(query, self._views.plan(query, id_), terms)
        if isinstance(query, Filter):
            return Wanted(query, self._held.form(query, id_, checked.normal), terms)
        prepared, tick = self._timelines.prepare(query, id_, full=terms.witness == "full")
        return WantedSequence(query, prepared, tick, terms)

    def _expire(self) -> None:
        """Let go of the subscriptions and kept events whose time is over; called under the lock."""
        self._publication.history.expire(self._clock.now())
        self._held.expire()


def _runner(
    matcher: str | None, statistics: Statistics | None, memory_limit: int | None
) -> InspectableSequenceMatcher:
    from tocsin.sequences.running.matcher import AutomatonMatcher  # noqa: PLC0415 - it brings the compiler

    return AutomatonMatcher(matcher=matcher, statistics=statistics, memory_limit=memory_limit)
