"""The subscriptions that an engine holds: in its book and in its matcher, always the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

import numpy as np

from tocsin.engine.book import ALWAYS, FOREVER, Book, Terms
from tocsin.engine.clock import Clock
from tocsin.engine.filters import NormalForm, normal_form, smaller_form
from tocsin.engine.ranked import weighted
from tocsin.engine.results import Difference
from tocsin.engine.rows import MadeRows
from tocsin.engine.wanted import Wanted
from tocsin.matching import ConjunctionBatch, Matcher, create_matcher, takes_clauses
from tocsin.matching.growing import GrowingMatcher
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import SubscriptionError

__all__ = ["Holdings"]

_TAKEN: Final = "it is subscribed already; to change it, set `replace`"


class Holdings:
    """Adds to the matcher before the book changes, so that what is refused has never been there.

    Its user sees to it that one call at a time is made.
    """

    def __init__(
        self, matcher: str | None, statistics: Statistics | None, clock: Clock, lateness: int
    ) -> None:
        self._matcher_name = matcher
        self._statistics = statistics
        self._clock = clock
        self._lateness = lateness
        self.matcher = self.new_matcher()
        self.form: NormalForm = smaller_form if takes_clauses(self.matcher) else normal_form
        self.book = Book()
        self.generation = 0
        self.expired = 0

    def new_matcher(self) -> Matcher:
        """Return an empty matcher of the kind that is held."""
        if self._matcher_name is None:
            return GrowingMatcher(statistics=self._statistics)
        known = {} if self._statistics is None else {"statistics": self._statistics}
        return create_matcher(self._matcher_name, **known)

    def replaced(self, ids: Sequence[str], *, replace: bool) -> list[str]:
        """Return those that are subscribed already, or raise `SubscriptionError` if they may not be replaced."""
        taken = [name for name in ids if name in self.book]
        if taken and not replace:
            raise SubscriptionError(_TAKEN, taken[0])
        return taken

    def exchange(self, gone: Iterable[str], new: Mapping[str, Wanted]) -> ConjunctionBatch:
        """Put new subscriptions in the place of others, and return what was added; if it is refused, nothing is."""
        with self._reserved(len(new)) as numbers:
            forms = (wanted.normal for wanted in new.values())
            added = ConjunctionBatch.of(zip(numbers, forms, strict=True))
            weights = (wanted.terms.weight for wanted in new.values())
            added = weighted(added, dict(zip(numbers, weights, strict=True)))
            self.matcher.add(added)
        self._take_out(gone)
        for number, (name, wanted) in zip(numbers, new.items(), strict=True):
            self.book.add(number, name, wanted.query, wanted.terms)
        self.generation += 1
        return added

    def add_rows(self, made: MadeRows, terms: Terms, gone: Iterable[str]) -> ConjunctionBatch:
        """Put the subscriptions of a template's rows in the place of others, and return what was added."""
        with self._reserved(len(made.ids)) as numbers:
            added = ConjunctionBatch.of_shapes(
                np.array(numbers, dtype=np.int64), made.normal, made.rows.columns
            )
            added = weighted(added, dict.fromkeys(numbers, terms.weight))
            self.matcher.add(added)
        self._take_out(gone)
        self.book.add_batch(numbers, made.ids, made.template, made.rows, terms)
        self.generation += 1
        return added

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

    def difference(self, sought: Mapping[str, Wanted], owner: str) -> Difference:
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
    def _reserved(self, count: int) -> Iterator[list[int]]:
        """Give numbers to add to the matcher under; if that fails, however it does, they are free again.

        The book changes only afterwards: a matcher may refuse what it is given, and then nothing has happened.
        """
        numbers = self.book.reserve(count)
        try:
            yield numbers
        except BaseException:
            self.matcher.remove(np.array(numbers, dtype=np.int64))  # part of them may have been added
            self.book.give_back(numbers)
            raise

    def _take_out(self, ids: Iterable[str]) -> None:
        self.matcher.remove(np.array([self.book.remove(name) for name in ids], dtype=np.int64))
