"""The book of subscriptions: their ids and numbers, what they ask, how long they apply, and whose they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language import Template, TemplateRows
from tocsin.language.template.binding import bind_query
from tocsin.language.template.template import bindings_at
from tocsin.model import Filter, Query, Subscription, View
from tocsin.model.errors import SubscriptionError

FOREVER: Final = 2**63 - 1
ALWAYS: Final = -(2**63)


class Terms(Struct, frozen=True):
    """How long subscriptions apply, whose they are, what they weigh, and whether a sequence tells all its events."""

    valid_from: int = ALWAYS
    valid_until: int = FOREVER
    owner: str | None = None
    weight: float | Mapping[str, float] = 1.0
    witness: Literal["full"] | None = None

    @property
    def period(self) -> tuple[int, int]:
        """Return when they begin and when they cease to apply."""
        return self.valid_from, self.valid_until


def in_force(
    begins: NDArray[np.int64], ends: NDArray[np.int64], moments: NDArray[np.int64] | int
) -> NDArray[np.bool_]:
    """Tell which subscriptions, by when they begin and cease to apply, apply to events that ended at these moments."""
    return np.asarray((begins <= moments) & ((ends == FOREVER) | (moments < ends)))


class Batch(Struct, eq=False):
    """The rows of one template, and how many of them are still subscribed."""

    template: Template
    rows: TemplateRows
    numbers: list[int]  # by position; some have gone
    left: int


class Book:
    """Subscriptions by id and by number.

    A number is what matchers know a subscription by; it is given again once its subscription has gone. Numbers are
    reserved first, so that a matcher can refuse what is to be entered under them. What every match needs is held in
    arrays by number. Only the engine writes here, and only under its lock.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}
        self._ids: list[str | None] = []
        self._queries: dict[int, Query] = {}  # of those that were subscribed one by one
        self._batches: dict[
            int, tuple[Batch, int]
        ] = {}  # of the rest: the batch, and the row's position in it
        self._owners: dict[str, dict[str, None]] = {}
        self._owner_of: dict[int, str] = {}
        self.weights: dict[int, float | Mapping[str, float]] = {}  # of those that do not weigh 1
        self._full: set[int] = set()  # those that tell all events of a sequence
        self._free: list[int] = []
        self._expiries: list[tuple[int, int, str]] = []  # a heap of (valid_until, number, id); some are stale
        self.has_terms = False  # whether any subscription's time has ever been limited
        self.valid_from: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # [number]
        self.valid_until: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # [number]

    def __len__(self) -> int:
        return len(self._numbers)

    def __contains__(self, id_: str) -> bool:
        return id_ in self._numbers

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._numbers))

    def number(self, id_: str) -> int:
        """Return a subscription's number, or raise `SubscriptionError` if there is none."""
        try:
            return self._numbers[id_]
        except KeyError:
            raise SubscriptionError("it is not subscribed", id_) from None

    def id(self, number: int) -> str:
        """Return the id of the subscription with this number."""
        found = self._ids[number]
        if found is None:
            raise SubscriptionError(f"no subscription has the number {number}")
        return found

    def ids(self) -> NDArray[Any]:
        """Return all ids by number; None where no subscription has it."""
        return np.fromiter(self._ids, dtype=object, count=len(self._ids))

    def query(self, number: int) -> Query:
        """Return what the subscription asks."""
        query, values = self._asked(number)
        return query if values is None else bind_query(query, values)

    def filter(self, number: int) -> Filter:
        """Return what the subscription of a filter asks."""
        query = self.query(number)
        assert isinstance(query, Filter)  # noqa: S101 - a matcher holds filters only
        return query

    def asked(self, number: int) -> tuple[Filter, Mapping[str, Any] | None]:
        """Return what a filter asks; a template's row, as the template and the values of its parameters."""
        query, values = self._asked(number)
        assert isinstance(query, Filter)  # noqa: S101 - a matcher holds filters only
        return query, values

    def is_view(self, number: int) -> bool:
        """Tell whether the subscription is a view."""
        return isinstance(self._asked(number)[0], View)

    def subscription(self, id_: str) -> Subscription:
        """Return a subscription as it was given."""
        number = self.number(id_)
        begin, end = int(self.valid_from[number]), int(self.valid_until[number])
        weight = self.weights.get(number, 1.0)
        return Subscription(
            id_,
            self.query(number),
            None if begin == ALWAYS else begin,
            None if end == FOREVER else end,
            dict(weight) if isinstance(weight, Mapping) else weight,
            "full" if number in self._full else None,
        )

    def holds(self, id_: str, query: Query, terms: Terms) -> bool:
        """Tell whether a subscription asks exactly this, for exactly this time, tells and weighs as much."""
        number = self.number(id_)
        period = (int(self.valid_from[number]), int(self.valid_until[number]))
        same = self.query(number) == query and self.weights.get(number, 1.0) == terms.weight
        same &= (number in self._full) is (terms.witness == "full")
        return same and period == (terms.valid_from, terms.valid_until)

    def owner(self, id_: str) -> str | None:
        """Return whose subscription this is."""
        return self._owner_of.get(self.number(id_))

    def owned_by(self, owner: str) -> tuple[str, ...]:
        """Return the ids of an owner's subscriptions, in the order they came."""
        return tuple(self._owners.get(owner, ()))

    def reserve(self, count: int) -> list[int]:
        """Return numbers that no subscription has; they are to be entered, or given back."""
        numbers = [self._free.pop() for _ in range(min(len(self._free), count))]
        fresh = count - len(numbers)
        numbers += range(len(self._ids), len(self._ids) + fresh)
        self._ids.extend([None] * fresh)
        self._grow(len(self._ids))
        return numbers

    def give_back(self, numbers: Sequence[int]) -> None:
        """Let go of numbers that were reserved and not entered."""
        self._free += reversed(numbers)

    def add(self, number: int, id_: str, query: Query, terms: Terms) -> None:
        """Enter one subscription under a reserved number."""
        self._enter([number], [id_], terms)
        self._queries[number] = query

    def add_batch(
        self, numbers: list[int], ids: Sequence[str], template: Template, rows: TemplateRows, terms: Terms
    ) -> None:
        """Enter a template's rows under reserved numbers."""
        self._enter(numbers, ids, terms)
        batch = Batch(template, rows, numbers, len(numbers))
        self._batches.update((number, (batch, position)) for position, number in enumerate(numbers))

    def remove(self, id_: str) -> int:
        """Strike out a subscription and return the number it had."""
        number = self._numbers.pop(id_)
        self._ids[number] = None
        self._full.discard(number)
        if self._queries.pop(number, None) is None:
            batch, _ = self._batches.pop(number)
            batch.left -= 1
            if batch.left and 4 * batch.left < len(batch.numbers):
                self._compact(batch)
        self.weights.pop(number, None)
        owner = self._owner_of.pop(number, None)
        if owner is not None:
            del self._owners[owner][id_]
            if not self._owners[owner]:
                del self._owners[owner]
        self._free.append(number)
        if len(self._expiries) > 64 and len(self._expiries) > 4 * len(self._numbers):
            self._forget_stale_expiries()
        return number

    def expired(self, now: int) -> list[str]:
        """Return the ids of the subscriptions whose time is over; each is returned once."""
        found: dict[str, None] = {}
        while self._expiries and self._expiries[0][0] <= now:
            until, number, id_ = heappop(self._expiries)
            if self._numbers.get(id_) == number and self.valid_until[number] == until:
                found[id_] = None
        return list(found)

    def _asked(self, number: int) -> tuple[Query, dict[str, Any] | None]:
        if number in self._queries:
            return self._queries[number], None
        batch, position = self._batches[number]
        return batch.template.query, bindings_at(batch.rows.columns, position)

    def _compact(self, batch: Batch) -> None:
        """Let go of the rows that are no longer subscribed, once most have gone."""
        kept = [
            (position, number)
            for position, number in enumerate(batch.numbers)
            if self._batches.get(number, (None, -1)) == (batch, position)
        ]
        positions = np.array([position for position, _ in kept], dtype=np.int64)
        batch.rows = batch.rows.take(positions)
        batch.numbers = [number for _, number in kept]
        self._batches.update((number, (batch, i)) for i, number in enumerate(batch.numbers))

    def _enter(self, numbers: Sequence[int], ids: Sequence[str], terms: Terms) -> None:
        for id_, number in zip(ids, numbers, strict=True):
            self._ids[number] = id_
        self._numbers.update(zip(ids, numbers, strict=True))
        self.has_terms |= terms.valid_from != ALWAYS or terms.valid_until != FOREVER
        self.valid_from[numbers] = terms.valid_from
        self.valid_until[numbers] = terms.valid_until
        if terms.valid_until != FOREVER:
            entries = [(terms.valid_until, number, id_) for id_, number in zip(ids, numbers, strict=True)]
            if len(entries) < 16:
                for entry in entries:
                    heappush(self._expiries, entry)
            else:
                self._expiries += entries
                heapify(self._expiries)
        if terms.weight != 1.0:
            self.weights.update(dict.fromkeys(numbers, terms.weight))
        if terms.witness is not None:
            self._full.update(numbers)
        if terms.owner is not None:
            self._owners.setdefault(terms.owner, {}).update(dict.fromkeys(ids))
            self._owner_of.update(dict.fromkeys(numbers, terms.owner))

    def _grow(self, size: int) -> None:
        if size > len(self.valid_from):
            more = np.zeros(max(size, 2 * len(self.valid_from), 64) - len(self.valid_from), dtype=np.int64)
            self.valid_from = np.concatenate([self.valid_from, more])
            self.valid_until = np.concatenate([self.valid_until, more])

    def _forget_stale_expiries(self) -> None:
        self._expiries = [
            (until, number, id_)
            for until, number, id_ in self._expiries
            if self._numbers.get(id_) == number and self.valid_until[number] == until
        ]
        heapify(self._expiries)
