"""The subscriptions that an engine holds: in its book and in what matches or runs them, always the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.engine.answers import first_answer
from tocsin.engine.book import ALWAYS, FOREVER, Book, Terms
from tocsin.engine.clock import Clock
from tocsin.engine.filters import NormalForm, normal_form, smaller_form
from tocsin.engine.ranked import weighted
from tocsin.engine.rows import MadeRows, MadeSequences, MadeViews
from tocsin.engine.timelines import Timelines
from tocsin.engine.views import Views
from tocsin.engine.wanted import Wanted, WantedSequence, WantedView
from tocsin.matching import ConjunctionBatch, IdArray, Matcher, create_matcher, takes_clauses
from tocsin.matching.starting_matcher import StartingMatcher
from tocsin.matching.statistics import Statistics
from tocsin.model import Notification
from tocsin.model.errors import SubscriptionError
from tocsin.model.subscription import Answer
from tocsin.subscriptions.results import Difference

_TAKEN: Final = "it is subscribed already; to change it, set `replace`"


class Holdings:
    """Adds to the matcher or the time lines before the book changes, so that what is refused has never been there.

    Its user sees to it that one call at a time is made.
    """

    def __init__(
        self,
        matcher: str | None,
        statistics: Statistics | None,
        *,
        clock: Clock,
        lateness: int,
        timelines: Timelines,
        views: Views,
    ) -> None:
        self._matcher_name = matcher
        self._statistics = statistics
        self._clock = clock
        self._lateness = lateness
        self.matcher = self.new_matcher()
        self.form: NormalForm = smaller_form if takes_clauses(self.matcher) else normal_form
        self.timelines = timelines
        self.views = views
        self.book = Book()
        views.asked = self.book.query
        self.generation = 0
        self._ids: tuple[int, NDArray[Any]] | None = None
        self.expired = 0

    @property
    def has_filters(self) -> bool:
        """Tell whether any of the subscriptions is a filter."""
        return len(self.book) > len(self.timelines) + len(self.views)

    def ids(self) -> NDArray[Any]:
        """Return the ids of subscriptions by number, as an array; it is made anew once these have changed."""
        if self._ids is None or self._ids[0] != self.generation:
            self._ids = self.generation, self.book.ids()
        return self._ids[1]

    def new_matcher(self) -> Matcher:
        """Return an empty matcher of the kind that is held."""
        if self._matcher_name is None:
            return StartingMatcher(statistics=self._statistics)
        known = {} if self._statistics is None else {"statistics": self._statistics}
        return create_matcher(self._matcher_name, **known)

    def replaced(self, ids: Sequence[str], *, replace: bool) -> list[str]:
        """Return those that are subscribed already, or raise `SubscriptionError` if they may not be replaced."""
        taken = [name for name in ids if name in self.book]
        if taken and not replace:
            raise SubscriptionError(_TAKEN, taken[0])
        return taken

    def exchange(
        self, gone: Sequence[str], new: Mapping[str, Wanted | WantedSequence | WantedView]
    ) -> ConjunctionBatch:
        """Put new subscriptions in the place of others, and return the filters; if one is refused, nothing is added."""
        with self._reserved(len(new), gone) as numbers:
            each = list(zip(numbers, new.items(), strict=True))
            filters = [(number, one) for number, (_, one) in each if isinstance(one, Wanted)]
            added = ConjunctionBatch.of((number, one.normal) for number, one in filters)
            added = weighted(added, {number: one.terms.weight for number, one in filters})
            self.matcher.add(added)
            for number, (name, one) in each:
                if isinstance(one, WantedSequence):
                    self.timelines.add(_array([number]), one.prepared, {}, one.terms, tick=one.tick, id_=name)
                elif isinstance(one, WantedView):
                    self.views.add(_array([number]), one.plan, {}, name)
        self._take_out(gone)
        for number, (name, wanted) in zip(numbers, new.items(), strict=True):
            self.book.add(number, name, wanted.query, wanted.terms)
        self.generation += 1
        return added

    def add_rows(self, made: MadeRows, terms: Terms, gone: Sequence[str]) -> ConjunctionBatch:
        """Put the filters of a template's rows in the place of others, and return what was added."""
        with self._reserved(len(made.ids), gone) as numbers:
            added = ConjunctionBatch.of_shapes(
                np.array(numbers, dtype=np.int64), made.normal, made.rows.columns
            )
            added = weighted(added, dict.fromkeys(numbers, terms.weight))
            self.matcher.add(added)
        self._take_out(gone)
        self.book.add_batch(numbers, made.ids, made.template, made.rows, terms)
        self.generation += 1
        return added

    def add_sequences(self, made: MadeSequences, terms: Terms, gone: Sequence[str]) -> None:
        """Put the sequences of a template's rows in the place of others."""
        with self._reserved(len(made.ids), gone) as numbers:
            if made.each is None:
                added = _array(numbers), made.prepared, made.rows.columns
                self.timelines.add(*added, terms, tick=made.tick, id_="template")
            else:
                for number, name, prepared in zip(numbers, made.ids, made.each, strict=True):
                    self.timelines.add(_array([number]), prepared, {}, terms, tick=made.tick, id_=name)
        self._take_out(gone)
        self.book.add_batch(numbers, made.ids, made.template, made.rows, terms)
        self.generation += 1

    def add_views(self, made: MadeViews, terms: Terms, gone: Sequence[str]) -> tuple[Answer, ...]:
        """Put the views of a template's rows in the place of others, and return their answers."""
        with self._reserved(len(made.ids), gone) as numbers:
            self.views.add(_array(numbers), made.plan, made.rows.columns, "template")
        self._take_out(gone)
        self.book.add_batch(numbers, made.ids, made.template, made.rows, terms)
        self.generation += 1
        return tuple(map(self.views.answer, numbers))

    def first_answers(self, ids: Iterable[str]) -> tuple[Notification, ...]:
        """Return what those of new subscriptions that are views are told at once."""
        numbers = {id_: self.book.number(id_) for id_ in ids}
        return tuple(
            first_answer(id_, self.views.answer(number), self.generation)
            for id_, number in numbers.items()
            if self.book.is_view(number)
        )

    def withdraw(self, id: str) -> None:
        """Remove a subscription; one that is not there is an error."""
        self.book.number(id)
        self._take_out([id])
        self.generation += 1

    def expire(self) -> None:
        """Let go of the subscriptions whose time is over."""
        over = self.book.expired(self._clock.now() - self._lateness)
        if over:
            self._take_out(over)
            self.expired += len(over)
            self.generation += 1

    def expiry_warning(self, terms: Terms) -> tuple[str, ...]:
        """Return what to say of terms that are over already."""
        if terms.valid_until == FOREVER or terms.valid_until + self._lateness > self._clock.now():
            return ()
        warning = (
            f"it has expired already: it is valid until {terms.valid_until}, and the clock says "
            f"{self._clock.now()}; to replay events of the past, give the engine an `EventClock`"
        )
        return (warning,)

    def difference(
        self, sought: Mapping[str, Wanted | WantedSequence | WantedView], owner: str
    ) -> Difference:
        """Return what would change if the subscriptions of an owner were those sought."""
        held = self.book.owned_by(owner)
        both = [name for name in sought if name in self.book]
        changed = {name for name in both if not self.book.holds(name, sought[name].query, sought[name].terms)}
        return Difference(
            added=tuple(name for name in sought if name not in self.book),
            changed=tuple(name for name in both if name in changed),
            removed=tuple(name for name in held if name not in sought),
            unchanged=tuple(name for name in both if name not in changed),
        )

    def valid(self, numbers: list[int], end: int, now: int | None = None) -> list[int]:
        """Return those that apply to an event that ended then, and have not expired by `now`."""
        if not self.book.has_terms:
            return numbers
        begins, ends = self.book.valid_from, self.book.valid_until
        gone = ALWAYS if now is None else now - self._lateness
        return [n for n in numbers if begins[n] <= end and (ends[n] == FOREVER or max(end, gone) < ends[n])]

    @contextmanager
    def _reserved(self, count: int, gone: Sequence[str]) -> Iterator[list[int]]:
        """Give numbers to add under; if that fails, however it does, they are free again.

        The book changes only afterwards: what is added may be refused, and then nothing has happened. What is to go
        is no hindrance to what comes in its place.
        """
        numbers = self.book.reserve(count)
        try:
            self.timelines.let_go([self.book.number(name) for name in gone])
            yield numbers
        except BaseException:
            self.matcher.remove(_array(numbers))  # part of them may have been added
            self.timelines.remove(numbers)
            self.timelines.take_back()
            self.views.remove(numbers)
            self.book.give_back(numbers)
            raise

    def _take_out(self, ids: Iterable[str]) -> None:
        numbers = [self.book.remove(name) for name in ids]
        self.timelines.remove(numbers)
        self.views.remove(numbers)
        self.matcher.remove(_array(numbers))


def _array(numbers: list[int]) -> IdArray:
    return np.array(numbers, dtype=np.int64)
