"""The events that sequences without a key may need: those that satisfy one of their static conditions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.matching.batches import EventBatch
from tocsin.model.conditions import TRUE, And, Condition, Operator, Predicate
from tocsin.model.errors import NormalFormError
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.values import Kind
from tocsin.sequences.running.forms import has_any
from tocsin.sequences.running.predicates import PredicateIndex
from tocsin.sharding.hashing import (
    HashedColumn,
    Hashes,
    combined,
    constant_hashes,
    event_hashes,
    repeated_hash,
)
from tocsin.sharding.plan import StaticRoute
from tocsin.structures.array_types import Bools, Int64s

MOST_CONDITIONS: Final = 1_000  # that a matcher tests; of others only the equalities are looked at


class _Equalities(Struct, frozen=True):
    """Conditions on the events of a stream that demand values of the same attributes, by the hash of the values."""

    stream: str
    paths: tuple[str, ...]
    hashes: Hashes  # sorted
    shards: Bools  # [hashes, shards]


class StaticRoutes:
    """Finds the shards whose sequences may need an event.

    It is exact where conditions are few. Of many, only equalities are looked at, all of a condition together: a table of
    hashes says at once for all events which shards demand their values. So an event may travel in vain, but never stays
    away where it is needed.
    """

    def __init__(self, routes: Iterable[StaticRoute], shards: int) -> None:
        self._always: dict[str, Bools] = {}  # by stream: the shards that need each of its events
        self._index = PredicateIndex(None, None)
        self._index_shards: Bools = np.zeros((0, shards), dtype=np.bool_)
        self._tables: list[_Equalities] = []
        self._fill(list(routes), shards)

    def mark(
        self,
        events: EventBatch,
        masks: Mapping[str, Bools],
        hashes: dict[str, HashedColumn],
        roles: Int64s,
        bit: int,
    ) -> None:
        """Set a bit in `roles` [rows, shards] for the shards that need each row; `masks` has the rows of each stream."""
        for stream, shards in self._always.items():
            rows = masks.get(stream)
            if rows is not None:
                roles[np.ix_(rows, shards)] |= bit
        for table in self._tables:
            rows = masks.get(table.stream)
            if rows is not None:
                _mark_equal(table, rows, _hashes(events, table.paths, hashes), roles, bit)
        if self._index.count and masks:
            found = self._index.matcher.match(events)
            ordinary = np.logical_or.reduce(list(masks.values()))
            rows_found, conditions = found.rows, found.ids
            for shard in range(roles.shape[1]):
                needed = rows_found[self._index_shards[conditions, shard]]
                roles[needed[ordinary[needed]], shard] |= bit

    def _fill(self, routes: list[StaticRoute], shards: int) -> None:
        """Sort the conditions: those that all events satisfy, those for the matcher, and those with equalities."""
        by_shape: dict[tuple[str, Condition], list[StaticRoute]] = {}
        for route in routes:
            by_shape.setdefault((route.stream, route.condition), []).append(route)
        for (stream, condition), some in by_shape.items():
            if condition == TRUE:
                for route in some:
                    self._need_all(stream, route.shards, shards)
        tested: list[StaticRoute] = []
        many: list[StaticRoute] = []
        count = 0
        for (stream, condition), some in sorted(
            by_shape.items(), key=lambda one: sum(len(r.shards) for r in one[1])
        ):
            if condition == TRUE or self._is_covered(stream, some):
                continue
            for route in some:
                size = len(route.shards) if route.columns else 1
                count += size
                (tested if count <= MOST_CONDITIONS else many).append(route)
        number = 0
        rows: list[Bools] = []
        for route in tested:
            number = self._test(route, number, rows, shards)
        if rows:
            self._index_shards = np.concatenate(rows)
        self._tabulate(many, shards)

    def _need_all(self, stream: str, shards: Any, count: int) -> None:
        there = self._always.setdefault(stream, np.zeros(count, dtype=np.bool_))
        there[shards] = True

    def _is_covered(self, stream: str, routes: list[StaticRoute]) -> bool:
        """Tell whether all shards of some routes need every event of the stream anyway."""
        there = self._always.get(stream)
        return there is not None and all(bool(there[route.shards].all()) for route in routes)

    def _test(self, route: StaticRoute, number: int, rows: list[Bools], shards: int) -> int:
        """Give a condition to the matcher, under numbers from `number` on; return the next number."""
        try:
            normal = self._index.normal(route.stream, route.condition)
        except NormalFormError:
            self._need_all(route.stream, route.shards, shards)
            return number
        count = len(route.shards) if route.columns else 1
        there = np.zeros((count, shards), dtype=np.bool_)
        there[np.arange(count) if route.columns else 0, route.shards] = True
        rows.append(there)
        self._index.add(np.arange(number, number + count), normal, route.columns)
        return number + count

    def _tabulate(self, routes: list[StaticRoute], shards: int) -> None:
        """Enter conditions under the hashes of the values that they demand; those that demand none need all events."""
        parts: dict[tuple[str, tuple[str, ...]], list[tuple[Hashes, Any]]] = {}
        for route in routes:
            equalities = dict(_equalities(route.condition, route.columns))
            if not equalities:
                self._need_all(route.stream, route.shards, shards)
                continue
            paths = tuple(sorted(equalities))
            columns = [_constants(equalities[path], route) for path in paths]
            parts.setdefault((route.stream, paths), []).append((combined(columns).hashes, route.shards))
        for (stream, paths), some in parts.items():
            hashes, which = np.unique(np.concatenate([one for one, _ in some]), return_inverse=True)
            there = np.zeros((len(hashes), shards), dtype=np.bool_)
            there[which, np.concatenate([of for _, of in some])] = True
            self._tables.append(_Equalities(stream, paths, hashes, there))


def _equalities(
    condition: Condition, columns: Mapping[str, Column]
) -> Iterator[tuple[str, Literal | Parameter]]:
    """Yield the attributes that a condition demands to equal a constant, if nothing else than an equal value does."""
    for part in condition.conditions if isinstance(condition, And) else (condition,):
        if (
            isinstance(part, Predicate)
            and part.operator is Operator.EQ
            and isinstance(part.subject, Attribute)
        ):
            constant = part.operands[0]
            if isinstance(constant, (Literal, Parameter)) and _is_exact(constant, columns):
                yield part.subject.path, constant


def _is_exact(constant: Literal | Parameter, columns: Mapping[str, Column]) -> bool:
    """Tell whether only an equal value equals a constant; a text may equal a timestamp."""
    if isinstance(constant, Literal):
        return constant.kind is not Kind.TIMESTAMP
    return not has_any(columns[constant.name], datetime)


def _constants(constant: Literal | Parameter, route: StaticRoute) -> HashedColumn:
    if isinstance(constant, Parameter):
        return constant_hashes(route.columns[constant.name])
    return repeated_hash(constant.value, len(route.shards))


def _hashes(events: EventBatch, paths: tuple[str, ...], known: dict[str, HashedColumn]) -> HashedColumn:
    for path in paths:
        if path not in known:
            known[path] = event_hashes(events, path)
    return combined([known[path] for path in paths])


def _mark_equal(table: _Equalities, rows: Bools, values: HashedColumn, roles: Int64s, bit: int) -> None:
    """Mark the rows whose values some condition demands."""
    own = np.flatnonzero(rows & values.present)
    if not len(own):
        return
    at = np.minimum(np.searchsorted(table.hashes, values.hashes[own]), len(table.hashes) - 1)
    found = table.hashes[at] == values.hashes[own]
    roles[own[found]] |= table.shards[at[found]] * np.int64(bit)
