"""Subscriptions that wait to be placed on a shard."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tocsin.index.roll import digest_of, select_text
from tocsin.language.template import TemplateRows
from tocsin.language.template.binding import bind_query
from tocsin.language.template.template import bindings_at
from tocsin.matching import ConjunctionBatch, ConjunctionGroup
from tocsin.model import Filter
from tocsin.model.conditions import Conjunction

__all__ = ["Addition", "batch_of", "merged", "sampled"]

_SAMPLE: Final = 50_000


class Addition(Struct, frozen=True):
    """Subscriptions that wait to be placed; their numbers in `batch` count from 0."""

    ids: Sequence[str]
    batch: ConjunctionBatch
    terms: tuple[int, int]
    digests: Sequence[int]
    selects: Sequence[str | None]

    @classmethod
    def of_filters(
        cls, entries: Sequence[tuple[str, Filter, Sequence[Conjunction]]], terms: tuple[int, int]
    ) -> Addition:
        """Return subscriptions that are given one by one: id, query and normal form."""
        return cls(
            [id_ for id_, _, _ in entries],
            batch_of([conjunctions for _, _, conjunctions in entries]),
            terms,
            [digest_of(query) for _, query, _ in entries],
            [select_text(query) for _, query, _ in entries],
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
