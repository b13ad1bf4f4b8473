"""Subscriptions that wait to be placed on a shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tocsin.engine.filters import normal_form, only_filters
from tocsin.engine.ids import row_ids
from tocsin.engine.results import SubscribedMany
from tocsin.engine.wanted import Wanted
from tocsin.index.roll import digest_of, digests_of, select_text, selected
from tocsin.language import Template
from tocsin.language.normal.predicates import attributes_of
from tocsin.language.template import TemplateRows
from tocsin.language.template.binding import bind_query
from tocsin.language.template.columns import Rows, as_table
from tocsin.language.template.template import bindings_at
from tocsin.matching import ConjunctionBatch, ConjunctionGroup
from tocsin.model import Filter, Predicate
from tocsin.model.conditions import Conjunction, Operator
from tocsin.model.errors import TemplateError

__all__ = ["Addition", "MadeRows", "batch_of", "merged", "sampled"]

_SAMPLE: Final = 50_000


class Addition(Struct, frozen=True):
    """Subscriptions that wait to be placed; their numbers in `batch` count from 0."""

    ids: Sequence[str]
    batch: ConjunctionBatch
    terms: tuple[int, int]
    digests: Sequence[int]
    selects: Sequence[str | None]

    def attributes(self) -> set[str]:
        """Return the paths of all attributes that these subscriptions speak of."""
        found = {
            attribute.path
            for group in self.batch.groups
            for predicate in group.shape
            for attribute in attributes_of(predicate)
        }
        for text in {select for select in self.selects if select is not None}:
            for item in selected(text):
                asked = Predicate(item.term, Operator.PRESENT)
                found.update(attribute.path for attribute in attributes_of(asked))
        return found

    @classmethod
    def of_wanted(cls, wanted: Mapping[str, Wanted]) -> Iterator[Addition]:
        """Return subscriptions by id, those that apply for the same time together."""
        by_terms: dict[tuple[int, int], dict[str, Wanted]] = {}
        for id_, one in wanted.items():
            by_terms.setdefault(one.terms.period, {})[id_] = one
        for terms, several in by_terms.items():
            yield cls(
                list(several),
                batch_of([one.normal.conjunctions for one in several.values()]),
                terms,
                [digest_of(one.query, one.text) for one in several.values()],
                [select_text(one.query) for one in several.values()],
            )

    @classmethod
    def of_rows(
        cls,
        ids: Sequence[str],
        query: Filter,
        shapes: tuple[Conjunction, ...],
        rows: TemplateRows,
        *,
        terms: tuple[int, int],
        digests: Sequence[int],
    ) -> Addition:
        """Return the subscriptions of a template's rows."""
        selects: Sequence[str | None] = [None] * len(ids)
        if query.select:
            selects = [select_text(_bound(query, rows.columns, row)) for row in range(len(ids))]
        batch = ConjunctionBatch.of_shapes(np.arange(len(ids), dtype=np.int64), shapes, rows.columns)
        return cls(ids, batch, terms, digests, selects)


def batch_of(subscriptions: Sequence[Sequence[Conjunction]]) -> ConjunctionBatch:
    """Return the conjunctions of several subscriptions, whose numbers count from 0."""
    return ConjunctionBatch(
        tuple(
            ConjunctionGroup(conjunction, np.array([number], dtype=np.int64), {})
            for number, conjunctions in enumerate(subscriptions)
            for conjunction in conjunctions
        )
    )


def _bound(query: Filter, columns: Mapping[str, Any], row: int) -> Filter:
    bound = bind_query(query, bindings_at(columns, row))
    assert isinstance(bound, Filter)  # noqa: S101 - what was a filter is one
    return bound


def merged(waiting: Sequence[Addition]) -> Iterator[Addition]:
    """Return the additions, those that came one by one and for the same time as one."""
    single: dict[tuple[int, int], list[Addition]] = {}
    for one in waiting:
        if len(one.ids) == 1:
            single.setdefault(one.terms, []).append(one)
        else:
            yield one
    for terms, several in single.items():
        groups = [
            ConjunctionGroup(group.shape, np.full(len(group.ids), number, dtype=np.int64), group.columns)
            for number, one in enumerate(several)
            for group in one.batch.groups
        ]
        yield Addition(
            [one.ids[0] for one in several],
            ConjunctionBatch(tuple(groups)),
            terms,
            [one.digests[0] for one in several],
            [one.selects[0] for one in several],
        )


def sampled(batches: Sequence[ConjunctionBatch]) -> Iterator[Conjunction]:
    """Return some conjunctions of all, evenly spread, with their constants in place."""
    total = sum(len(batch) for batch in batches)
    step = max(1, -(-total // _SAMPLE))
    seen = 0
    for batch in batches:
        for group in batch.groups:
            first = -seen % step
            rows = np.arange(first, len(group.ids), step)
            seen += len(group.ids)
            columns = {name: column[rows] for name, column in group.columns.items()}
            for _, conjunction in ConjunctionGroup(group.shape, group.ids[rows], columns):
                yield conjunction


class MadeRows(Struct, frozen=True):
    """The subscriptions of a template's rows, before they are entered."""

    ids: list[str]
    query: Filter
    shapes: tuple[Conjunction, ...]
    rows: TemplateRows
    digests: list[int]
    errors: tuple[TemplateError, ...]

    @classmethod
    def of(cls, template: str | Template, rows: Rows, id_rule: str | None) -> MadeRows:
        """Return what a template and its rows make; what is faulty is left out and told by `errors`."""
        form = template if isinstance(template, Template) else Template(template)
        table = as_table(rows)
        bound = form.bind_many(table)
        ids, repeated = row_ids(id_rule, table, bound)
        kept = bound.without([error.row or 0 for error in repeated]) if repeated else bound
        query = only_filters(form.query, "template")
        normal = normal_form(query, "template", kept.normal)
        errors = sorted((*bound.errors, *repeated), key=lambda error: error.row or 0)
        return cls(ids, query, normal.conjunctions, kept, digests_of(kept), tuple(errors))

    def some(self, places: Sequence[int]) -> MadeRows:
        """Return only the subscriptions at these places."""
        if len(places) == len(self.ids):
            return self
        ids, digests = [self.ids[place] for place in places], [self.digests[place] for place in places]
        kept = self.rows.take(np.array(places, dtype=np.int64))
        return MadeRows(ids, self.query, self.shapes, kept, digests, self.errors)

    def addition(self, terms: tuple[int, int]) -> Addition:
        """Return them as an addition."""
        return Addition.of_rows(
            self.ids, self.query, self.shapes, self.rows, terms=terms, digests=self.digests
        )

    def told(self) -> SubscribedMany:
        """Return what the caller is told."""
        return SubscribedMany(tuple(self.ids), self.errors, tuple(self.rows.never.tolist()))
