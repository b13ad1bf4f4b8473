"""The runtime of filters: one matcher that stores all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language import Cnf, Dnf, Template, TemplateRows
from tocsin.language.explanation import EventExplanation, explain_condition
from tocsin.language.semantics import condition_truth
from tocsin.language.template.columns import Column
from tocsin.language.text_shapes import ShapedText, TextShape
from tocsin.matching import (
    ConjunctionBatch,
    ConjunctionGroup,
    EventBatch,
    IdArray,
    Matcher,
    Matches,
    create_matcher,
    takes_clauses,
)
from tocsin.matching.plans import FilterCosts, FilterPlan, PlanningMatcher
from tocsin.matching.ranking import Weight
from tocsin.matching.registry import thread_options
from tocsin.matching.starting_matcher import INDEX, StartingMatcher
from tocsin.matching.statistics import Statistics
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Filter, Subscription
from tocsin.model.errors import MatcherError, TemplateError
from tocsin.model.event import is_deletion, matchable
from tocsin.model.options import SubscriptionOptions
from tocsin.model.ticks import StreamTicks
from tocsin.model.values import Value
from tocsin.subscriptions.filters import CompiledFilter, FilterCompiler, require_filter

_NO_NUMBERS = np.empty(0, dtype=np.int64)
_WITH_PLANS = 'Engine(matcher="adaptive") has plans from the first filter on'


class FilterMatches(Struct, frozen=True):
    """Pairs of event and filter, by the event's row and the filter's number, in the order of the rows."""

    rows: IdArray
    numbers: IdArray
    scores: NDArray[np.float64] | None = None

    @classmethod
    def of(cls, matches: Matches) -> FilterMatches:
        """Return the pairs that a matcher found."""
        return cls(matches.rows, matches.ids)

    def take(self, kept: NDArray[np.bool_]) -> FilterMatches:
        """Return the pairs that a mask selects."""
        scores = None if self.scores is None else self.scores[kept]
        return FilterMatches(self.rows[kept], self.numbers[kept], scores)

    def __len__(self) -> int:
        return len(self.rows)


NO_FILTER_MATCHES = FilterMatches(_NO_NUMBERS, _NO_NUMBERS)


class FilterRuntime:
    """Matches events with filters. The caller makes one call at a time.

    `matcher` names the matcher; without it, a few filters are tried one by one, and more go into the default index.
    A matcher that takes several `threads` matches parts of a batch side by side.
    """

    def __init__(self, matcher: str | None, statistics: Statistics | None, threads: int = 1) -> None:
        self._name = matcher
        self._statistics = statistics
        self._threads = threads
        self.matcher = self._new_matcher()
        self._starting = self.matcher if isinstance(self.matcher, StartingMatcher) else None
        self._compiler = FilterCompiler(clauses=takes_clauses(self.matcher))

    @property
    def clauses(self) -> bool:
        """Tell whether the matcher stores clauses, and not conjunctions alone."""
        return self._compiler.clauses

    def compile(
        self, query: Filter, id_: str, _: SubscriptionOptions, normal: Dnf | Cnf | None = None
    ) -> CompiledFilter:
        """Return a filter as the matcher stores it, or raise `SubscriptionError`."""
        return self._compiler.compile(query, id_, normal)

    def compile_rows(
        self,
        template: Template,
        rows: TemplateRows,
        ids: Sequence[str],
        options: SubscriptionOptions,  # noqa: ARG002 - the protocol of runtimes has it
    ) -> tuple[CompiledFilter, list[TemplateError]]:
        """Return the normal form that all rows of a template share."""
        return self._compiler.compile_rows(template, rows, ids)

    def add(
        self,
        numbers: IdArray,
        compiled: CompiledFilter,
        columns: Mapping[str, Column],
        options: SubscriptionOptions,
        _: str,
    ) -> ConjunctionBatch:
        """Add one filter for each number, with its row of `columns`; return the added filters."""
        weight = options.weight
        batch = ConjunctionBatch.of_shapes(numbers, compiled, columns)
        return self._add(batch, dict.fromkeys(numbers.tolist(), weight) if weight != 1.0 else {})

    def add_each(
        self, compiled: Mapping[int, tuple[CompiledFilter | ShapedText, Weight]]
    ) -> ConjunctionBatch:
        """Add filters by number, each with its weight; return the added filters. Texts of one shape are added as columns."""
        shaped: dict[TextShape, list[tuple[int, list[Value]]]] = {}
        others: list[tuple[int, CompiledFilter]] = []
        for number, (one, _) in compiled.items():
            if not isinstance(one, ShapedText):
                others.append((number, one))
            elif len(compiled) == 1:  # columns of one row are not worth it
                conjunction = one.shape.conjunction(one.constants)
                query, normal = one.shape.bind(conjunction), Dnf((conjunction,))
                others.append((number, self._compiler.compile(query, "text", normal)))
            else:
                shaped.setdefault(one.shape, []).append((number, one.constants))
        batch = ConjunctionBatch.of(others)
        groups = [group for shape, rows in shaped.items() for group in self._shape_groups(shape, rows)]
        if groups:
            batch = ConjunctionBatch((*batch.groups, *groups), batch.clauses)
        return self._add(batch, {n: weight for n, (_, weight) in compiled.items() if weight != 1.0})

    def _shape_groups(
        self, shape: TextShape, rows: list[tuple[int, list[Value]]]
    ) -> tuple[ConjunctionGroup, ...]:
        """Return the conjunctions of texts of one shape, with a column for each constant."""
        normal = self._compiler.compile(shape.query, "text", shape.normal)
        numbers = np.array([number for number, _ in rows], dtype=np.int64)
        return ConjunctionBatch.of_shapes(
            numbers, normal, shape.columns([constants for _, constants in rows])
        ).groups

    def _add(self, batch: ConjunctionBatch, weights: Mapping[int, Weight]) -> ConjunctionBatch:
        added = ConjunctionBatch(batch.groups, batch.clauses, weights) if weights else batch
        self.matcher.add(added)
        return added

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove filters; numbers that are no filters are passed over."""
        self.matcher.remove(np.fromiter(numbers, dtype=np.int64))

    def process(self, events: TimedBatch) -> FilterMatches:
        """Return the filters that each event satisfies."""
        if len(events.events) != 1:
            return self.match(events.batch)
        if self._starting is not None:
            self._adopt_index()
        event = events.events[0]
        found = self.matcher.match_one(event.attributes if event.stream is None else events.attributes[0])
        return FilterMatches(np.zeros(len(found), dtype=np.int64), found) if len(found) else NO_FILTER_MATCHES

    def match(self, events: EventBatch) -> FilterMatches:
        """Return the filters that each event satisfies, of events without times."""
        self._adopt_index()
        return FilterMatches.of(self.matcher.match(events))

    @property
    def is_about_to_index(self) -> bool:
        """Tell whether the next event is the one for which an index is loaded."""
        return self._starting is not None and self._starting.is_about_to_index

    def _adopt_index(self) -> None:
        """Let go of the starting matcher once it has handed over to an index."""
        if self._starting is not None and self._starting.index is not None:
            self.matcher, self._starting = self._starting.index, None

    def match_added(self, added: ConjunctionBatch, events: Sequence[Event]) -> FilterMatches:
        """Return which of the filters that were just added each event satisfies."""
        alone = self._new_matcher()
        alone.add(added)
        return FilterMatches.of(alone.match(EventBatch.of(matchable(event) for event in events)))

    def advance(self, time: int) -> FilterMatches:  # noqa: ARG002 - the protocol of runtimes has it
        """Return the filters that time satisfies without an event: none."""
        return NO_FILTER_MATCHES

    def explain(self, subscription: Subscription, event: Event, ticks: StreamTicks) -> EventExplanation:
        """Return why a filter would be notified of an event, or would not."""
        query = require_filter(subscription.query, subscription.id)
        outside = _outside(query, subscription, event, ticks)
        reason = explain_condition(query.condition, matchable(event).attributes)
        return EventExplanation(subscription.id, reason.truth is True and not outside, reason, outside)

    def explain_plan(self, number: int) -> FilterPlan:
        """Return how events reach a filter; raise `MatcherError` if the matcher has no plans."""
        matcher = self._planning()
        try:
            return matcher.explain_plan(number)
        except MatcherError:  # it can never match, so that the matcher does not have it
            return FilterPlan(number, (), 1)

    def explain_costs(self, top: int) -> FilterCosts:
        """Return what all filters cost; raise `MatcherError` if the matcher has no plans."""
        return self._planning().explain_costs(top)

    def observe(self, events: EventBatch) -> None:
        """Match events so that the matcher counts them."""
        self._adopt_index()
        if isinstance(self.matcher, PlanningMatcher):
            self.matcher.observe(events)
        else:
            self.matcher.match(events)

    def maintain(self) -> None:
        """Choose access paths anew for all filters, if the matcher does so."""
        self._adopt_index()
        if isinstance(self.matcher, PlanningMatcher):
            self.matcher.maintain()

    def _planning(self) -> PlanningMatcher:
        self._adopt_index()
        if isinstance(self.matcher, PlanningMatcher):
            return self.matcher
        if self._starting is not None and self._name is None:
            raise MatcherError(
                f"filters have no plans while there are so few that each is tried by itself; {_WITH_PLANS}"
            )
        raise MatcherError(f"the matcher `{self._name or INDEX}` has no plans to show; {_WITH_PLANS}")

    def dry_run(self, query: Filter, events: Sequence[Event]) -> tuple[Event, ...]:
        """Return the events that a filter matches, without an index."""
        alone, ticks = Subscription("test", query), StreamTicks()
        return tuple(
            event
            for event in events
            if not _outside(query, alone, event, ticks)
            and condition_truth(query.condition, matchable(event).attributes) is True
        )

    def _new_matcher(self) -> Matcher:
        if self._name is None:
            return StartingMatcher(statistics=self._statistics, threads=self._threads)
        known = {} if self._statistics is None else {"statistics": self._statistics}
        return create_matcher(self._name, **known, **thread_options(self._name, self._threads))


def _outside(query: Filter, subscription: Subscription, event: Event, ticks: StreamTicks) -> tuple[str, ...]:
    """Return why an event does not reach a filter's condition: its stream, its time, or that it is a deletion."""
    reasons = []
    if query.stream is not None and query.stream != event.stream:
        of = f"of stream `{event.stream}`" if event.stream is not None else "of no stream"
        reasons.append(f"it reads stream `{query.stream}`, the event is {of}")
    reasons += subscription.outside_validity(event, ticks)
    if is_deletion(event):
        reasons.append("the event is a deletion, which reaches no filter")
    return tuple(reasons)
