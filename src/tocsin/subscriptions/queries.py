"""The queries of subscriptions by number, and whose they are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct

from tocsin.language import Template, TemplateRows
from tocsin.language.template.binding import bind_query
from tocsin.language.template.template import bindings_at
from tocsin.matching import IdArray
from tocsin.model import Filter, Query
from tocsin.model.options import SubscriptionOptions
from tocsin.model.queries import SelectItem


class _StoredTemplate(Struct, eq=False):
    """The rows of one template, and how many of them are still subscribed."""

    template: Template
    rows: TemplateRows
    numbers: list[int]  # by position; some have been removed
    left: int


class QueryStore:
    """The query, owner, weight and witness option of each subscription, by number.

    The rows of a template share its query; a row's own query is bound only where somebody asks for it.
    """

    def __init__(self) -> None:
        self._queries: dict[int, Query] = {}  # of subscriptions that came one by one
        self._templates: dict[
            int, tuple[_StoredTemplate, int]
        ] = {}  # the others: the template and the row's position
        self._owned: dict[str, dict[str, None]] = {}
        self._owners: dict[int, str] = {}
        self.weights: dict[int, float | Mapping[str, float]] = {}  # other than 1
        self.selecting = 0  # filters with a select list
        self._full_witness: set[int] = set()  # sequences that report every event of their steps

    def query(self, number: int) -> Query:
        """Return the query of a subscription."""
        query, values = self.unbound(number)
        return query if values is None else bind_query(query, values)

    def unbound(self, number: int) -> tuple[Query, dict[str, Any] | None]:
        """Return a query; for a template's row, the template's query and the values of its parameters."""
        if number in self._queries:
            return self._queries[number], None
        stored, position = self._templates[number]
        return stored.template.query, bindings_at(stored.rows.columns, position)

    def kind(self, number: int) -> type[Query]:
        """Return whether a subscription is a `Filter`, a `Sequence` or a `View`."""
        if number in self._queries:
            return type(self._queries[number])
        return type(self._templates[number][0].template.query)

    def selects_of(self, numbers: IdArray) -> list[tuple[SelectItem, ...]]:
        """Return the select lists of filters; empty for those that select the whole event."""
        found = []
        for number in numbers.tolist():
            query = self._queries.get(number)
            if query is None:
                query = self._templates[number][0].template.query
                # Binding costs more than the rest of a notification: only a template that selects needs it.
                if _selects(query):
                    query = self.query(number)
            found.append(query.select if isinstance(query, Filter) else ())
        return found

    def stream(self, number: int) -> str | None:
        """Return the stream that a filter reads; None if it reads every stream."""
        query, _ = self.unbound(number)
        return query.stream if isinstance(query, Filter) else None

    def witness(self, number: int) -> Literal["full"] | None:
        """Return whether a sequence reports every event of its steps."""
        return "full" if number in self._full_witness else None

    def owner(self, number: int) -> str | None:
        """Return the owner of a subscription."""
        return self._owners.get(number)

    def owned_by(self, owner: str) -> tuple[str, ...]:
        """Return the ids of an owner's subscriptions, in the order they came."""
        return tuple(self._owned.get(owner, ()))

    def add(self, number: int, id_: str, query: Query, options: SubscriptionOptions) -> None:
        """Store the query of one subscription."""
        self._queries[number] = query
        self.selecting += _selects(query)
        self._add_options([number], [id_], options)

    def add_template(
        self,
        numbers: list[int],
        ids: Sequence[str],
        template: Template,
        rows: TemplateRows,
        options: SubscriptionOptions,
    ) -> None:
        """Store the queries of a template's rows."""
        stored = _StoredTemplate(template, rows, numbers, len(numbers))
        self.selecting += len(numbers) * _selects(template.query)
        self._templates.update((number, (stored, position)) for position, number in enumerate(numbers))
        self._add_options(numbers, ids, options)

    def remove(self, number: int, id_: str) -> None:
        """Remove the query, options and owner of a subscription; `id_` finds it among its owner's."""
        query = self._queries.pop(number, None)
        if query is None:
            stored, _ = self._templates.pop(number)
            query = stored.template.query
            stored.left -= 1
            # Removed rows are dropped once most have gone, so that a row costs amortised constant time.
            if stored.left and 4 * stored.left < len(stored.numbers):
                self._compact(stored)
        self.selecting -= _selects(query)
        self._full_witness.discard(number)
        self.weights.pop(number, None)
        owner = self._owners.pop(number, None)
        if owner is not None:
            del self._owned[owner][id_]
            if not self._owned[owner]:
                del self._owned[owner]

    def _add_options(self, numbers: Sequence[int], ids: Sequence[str], options: SubscriptionOptions) -> None:
        """Store the weight, the witness option and the owner of new subscriptions."""
        if options.weight != 1.0:
            self.weights.update(dict.fromkeys(numbers, options.weight))
        if options.witness is not None:
            self._full_witness.update(numbers)
        if options.owner is not None:
            self._owned.setdefault(options.owner, {}).update(dict.fromkeys(ids))
            self._owners.update(dict.fromkeys(numbers, options.owner))

    def _compact(self, stored: _StoredTemplate) -> None:
        """Drop the template rows of removed subscriptions."""
        kept = [
            (position, number)
            for position, number in enumerate(stored.numbers)
            if self._templates.get(number, (None, -1)) == (stored, position)
        ]
        stored.rows = stored.rows.take(np.array([position for position, _ in kept], dtype=np.int64))
        stored.numbers = [number for _, number in kept]
        self._templates.update((number, (stored, i)) for i, number in enumerate(stored.numbers))


def _selects(query: Query) -> bool:
    """Tell whether a query is a filter with a select list."""
    return isinstance(query, Filter) and bool(query.select)
