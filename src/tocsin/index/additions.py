"""Subscriptions that wait to be placed on a shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.index.shard_registry import Record, digest_of, digests_of, parse_select, select_text
from tocsin.language.normal.predicates import attributes_of
from tocsin.language.template.binding import bind_query
from tocsin.language.template.template import bindings_at
from tocsin.matching import ConjunctionBatch, ConjunctionGroup
from tocsin.model import Filter, Predicate
from tocsin.model.conditions import Conjunction, Operator, all_of, any_of
from tocsin.model.event import STREAM
from tocsin.model.options import Validity
from tocsin.model.terms import Attribute, Literal
from tocsin.subscriptions.filters import CompiledFilter, require_filter
from tocsin.subscriptions.sources import CompiledSubscription
from tocsin.subscriptions.template_batch import TemplateBatch

IndexedFilter: TypeAlias = CompiledSubscription[CompiledFilter]

_SAMPLE: Final = 50_000


class WaitingFilters(Struct, frozen=True):
    """Subscriptions that wait to be placed; their numbers in `batch` count from 0."""

    ids: Sequence[str]
    batch: ConjunctionBatch
    validity: Validity
    digests: Sequence[int]
    selects: Sequence[str | None]

    def attributes(self) -> set[str]:
        """Return the paths of all attributes that these subscriptions mention."""
        predicates = (predicate for group in self.batch.groups for predicate in group.shape)
        found = {attribute.path for one in predicates for attribute in attributes_of(one)}
        for text in {select for select in self.selects if select is not None}:
            for item in parse_select(text):
                asked = Predicate(item.term, Operator.PRESENT)
                found.update(attribute.path for attribute in attributes_of(asked))
        return found

    @classmethod
    def of(cls, subscriptions: Mapping[str, IndexedFilter]) -> Iterator[WaitingFilters]:
        """Return compiled filters by id, those of equal validity together."""
        by_validity: dict[Validity, dict[str, IndexedFilter]] = {}
        for id_, one in subscriptions.items():
            by_validity.setdefault(one.options.validity, {})[id_] = one
        for validity, several in by_validity.items():
            queries = [require_filter(one.query, id_) for id_, one in several.items()]
            texts = [one.text for one in several.values()]
            yield cls(
                list(several),
                ConjunctionBatch.of(enumerate(one.compiled for one in several.values())).in_conjunctions(),
                validity,
                [digest_of(query, text) for query, text in zip(queries, texts, strict=True)],
                [select_text(query) for query in queries],
            )

    @classmethod
    def of_records(
        cls, records: Sequence[Record], validity: Validity, conjunctions: Sequence[Sequence[Conjunction]]
    ) -> WaitingFilters:
        """Return subscriptions of a shard, given the conjunctions of each."""
        batch = ConjunctionBatch(
            tuple(
                ConjunctionGroup(conjunction, np.array([number], dtype=np.int64), {})
                for number, held in enumerate(conjunctions)
                for conjunction in held
            )
        )
        ids, digests, selects = zip(*records, strict=True)
        return cls(ids, batch, validity, digests, selects)

    @classmethod
    def of_rows(
        cls, made: TemplateBatch[CompiledFilter], validity: Validity, positions: Sequence[int] | None = None
    ) -> WaitingFilters:
        """Return the subscriptions of a template's rows, or of those at some positions."""
        rows, ids = made.rows, made.ids
        if positions is not None and len(positions) < len(ids):
            at = np.array(positions, dtype=np.int64)
            rows, ids = rows.take(at), ids.take(at)
        selects: Sequence[str | None] = [None] * len(ids)
        query = require_filter(made.template.query, "template")
        if query.select:
            selects = [select_text(_bound(query, rows.columns, row)) for row in range(len(ids))]
        batch = ConjunctionBatch.of_shapes(
            np.arange(len(ids), dtype=np.int64), made.compiled, rows.columns
        ).in_conjunctions()
        return cls(ids, batch, validity, digests_of(rows), selects)


def _bound(query: Filter, columns: Mapping[str, Any], row: int) -> Filter:
    bound = bind_query(query, bindings_at(columns, row))
    assert isinstance(bound, Filter)  # noqa: S101 - what was a filter is one
    return bound


def filter_of(conjunctions: Sequence[Conjunction], select: str | None) -> Filter | None:
    """Return a filter on one stream from its stored conjunctions; None if it names no stream, or can never match."""
    streams: set[str] = set()
    parts = []
    for conjunction in conjunctions:
        named = [predicate for predicate in conjunction if predicate.subject == Attribute(STREAM)]
        if not named:
            return None
        streams |= {
            str(operand.value) for one in named for operand in one.operands if isinstance(operand, Literal)
        }
        parts.append(all_of([predicate for predicate in conjunction if predicate not in named]))
    if len(streams) != 1:
        return None
    return Filter(any_of(parts), streams.pop(), () if select is None else parse_select(select))


def merge_additions(waiting: Sequence[WaitingFilters]) -> Iterator[WaitingFilters]:
    """Return the additions; those of one subscription each are joined by validity."""
    single: dict[Validity, list[WaitingFilters]] = {}
    for one in waiting:
        if len(one.ids) == 1:
            single.setdefault(one.validity, []).append(one)
        else:
            yield one
    for validity, several in single.items():
        groups = [
            ConjunctionGroup(group.shape, np.full(len(group.ids), number, dtype=np.int64), group.columns)
            for number, one in enumerate(several)
            for group in one.batch.groups
        ]
        yield WaitingFilters(
            [one.ids[0] for one in several],
            ConjunctionBatch(tuple(groups)),
            validity,
            [one.digests[0] for one in several],
            [one.selects[0] for one in several],
        )


def sample_conjunctions(batches: Sequence[ConjunctionBatch]) -> Iterator[Conjunction]:
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
