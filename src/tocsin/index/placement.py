"""The placement of subscriptions on shards, and the routes of events to shards.

Every conjunction has an access predicate: an event must satisfy it to match the conjunction. It is an equality if there
is one. Subscriptions are distributed over the shards by their access predicates, so that an event visits only the
shards with an access predicate that it satisfies. All conjunctions of a subscription are on one shard, so no match is
found twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from heapq import heapify, heapreplace
from itertools import islice
from typing import Final, TypeAlias
from zlib import crc32

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.printer import value_text
from tocsin.language.template.binding import bind_predicate
from tocsin.language.template.template import bindings_at, constant_at
from tocsin.matching import ConjunctionBatch, ConjunctionGroup, IdArray
from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.values import Value

_SAMPLE: Final = 50_000  # conjunctions that are sampled to choose the attributes
_ROUNDS: Final = 16  # attributes that are chosen greedily
_HEAVY: Final = (
    50  # a key with more than a 50th of a shard's share is placed by its weight, others by their hash
)
_FULL: Final = 1.2  # a key with more than so many shares is spread over several shards
_ALWAYS: Final = "always"

ShardArray = NDArray[np.int64]
Route: TypeAlias = "tuple[int, Predicate | None]"
"""A shard, and an access predicate that leads to it."""


class Placement(Struct):
    """The rule that distributes subscriptions over `shards`; it is chosen for a sample and then stays fixed.

    `order` lists attributes: a conjunction's access predicate is its equality on the first of them. `heavy` names
    the shards of keys that many share.
    """

    shards: int
    order: dict[str, int] = {}
    heavy: dict[str, tuple[int, ...]] = {}

    @classmethod
    def of(cls, conjunctions: Iterable[Conjunction], shards: int) -> Placement:
        """Return the rule for subscriptions like these."""
        sample = list(islice(conjunctions, _SAMPLE))
        placement = cls(shards)
        if shards > 1:
            placement.order = _order(sample, shards)
            placement.heavy = placement._weigh(sample)
        return placement

    def access(self, conjunction: Conjunction) -> Predicate | None:
        """Return the access predicate of a conjunction; None if an event without any of its attributes may match it."""
        equal = [p for p in conjunction if _is_equality(p)]
        if equal:
            last = len(self.order)
            return min(equal, key=lambda p: self.order.get(p.subject.path, last))  # type: ignore[union-attr]
        return access_predicate(conjunction)

    def shard(self, access: Predicate | None, id_: str) -> int:
        """Return the shard of a subscription with this access predicate."""
        if self.shards == 1:
            return 0
        key = _key(access)
        shards = self.heavy.get(key)
        if shards is None:
            return crc32(key.encode()) % self.shards
        return shards[crc32(id_.encode()) % len(shards)]

    def _weigh(self, sample: Sequence[Conjunction]) -> dict[str, tuple[int, ...]]:
        """Return the shards of the heavy keys: the heaviest first, each on the shard with the least weight so far."""
        counts = Counter(_key(self.access(conjunction)) for conjunction in sample)
        share = len(sample) / self.shards
        loads = [(0.0, shard) for shard in range(self.shards)]
        for key, count in counts.items():
            if count * _HEAVY <= share:
                shard = crc32(key.encode()) % self.shards
                loads[shard] = loads[shard][0] + count, shard
        heapify(loads)
        heavy = {}
        for key, count in counts.most_common():
            if count * _HEAVY <= share:
                break
            parts = 1 if count <= _FULL * share else min(self.shards, round(count / share) or 1)
            chosen = []
            for _ in range(parts):
                load, shard = loads[0]
                chosen.append(shard)
                heapreplace(loads, (load + count / parts, shard))
            heavy[key] = tuple(dict.fromkeys(chosen))
        return heavy


class Routes:
    """The routes to shards: access predicates, each with the shards that have subscriptions under it."""

    def __init__(self) -> None:
        self.entries: dict[Route, None] = {}

    def add(self, shard: int, access: Predicate | None) -> None:
        """Route every event that satisfies a predicate to a shard."""
        self.entries[shard, access] = None

    def place(self, batch: ConjunctionBatch, ids: Sequence[str], placement: Placement) -> ShardArray:
        """Return the shard of each of the subscriptions `ids`, whose numbers in the batch count from 0.

        A subscription without a conjunction, which no event satisfies, may be on any shard.
        """
        shards: ShardArray = np.full(len(ids), -1, dtype=np.int64)
        if placement.shards == 1:
            return np.zeros(len(ids), dtype=np.int64)
        for group in batch.groups:
            codes, accesses = _accesses(group, placement)
            fresh = np.flatnonzero(shards[group.ids] < 0).tolist()
            for row in fresh:
                number = int(group.ids[row])
                shards[number] = placement.shard(accesses[codes[row]], ids[number])
            pairs = np.unique(codes * placement.shards + shards[group.ids])
            for pair in pairs.tolist():
                self.add(pair % placement.shards, accesses[pair // placement.shards])
        shards[shards < 0] = 0
        return shards

    def conjunctions(self) -> ConjunctionBatch:
        """Return the routes as conjunctions of one predicate, whose ids are shards."""
        return ConjunctionBatch(
            tuple(
                ConjunctionGroup(() if access is None else (access,), _one(shard), {})
                for shard, access in self.entries
            )
        )


def access_predicate(conjunction: Conjunction) -> Predicate | None:
    """Return a predicate that every matching event satisfies: the presence of an attribute, so that few differ."""
    for predicate in conjunction:
        if type(predicate.subject) is Attribute and predicate.operator is not Operator.MISSING:
            return Predicate(predicate.subject, Operator.PRESENT)
    return None


def _accesses(
    group: ConjunctionGroup, placement: Placement
) -> tuple[NDArray[np.int64], list[Predicate | None]]:
    """Return, for each row of a group, the position of its access predicate in the returned list."""
    access = placement.access(group.shape)
    count = len(group.ids)
    names = [] if access is None else [o.name for o in access.operands if type(o) is Parameter]
    if access is None or not names:
        return np.zeros(count, dtype=np.int64), [access]
    if len(names) > 1 or group.columns[names[0]].dtype.kind == "O":
        columns = {name: group.columns[name] for name in names}
        found: dict[Predicate | None, int] = {}
        codes = []
        for row in range(count):
            bound = bind_predicate(access, bindings_at(columns, row))
            if not bound.operands:  # an empty list, which no value is in: any shard will do
                bound = Predicate(bound.subject, Operator.PRESENT)
            codes.append(found.setdefault(bound, len(found)))
        return np.array(codes, dtype=np.int64), list(found)
    column = group.columns[names[0]]
    _, first, positions = np.unique(column, return_index=True, return_inverse=True)
    distinct = [bind_predicate(access, {names[0]: constant_at(column, row)}) for row in first.tolist()]
    return positions.astype(np.int64), list(distinct)


def _is_equality(predicate: Predicate) -> bool:
    return (
        predicate.operator in (Operator.EQ, Operator.IN)
        and type(predicate.subject) is Attribute
        and bool(predicate.operands)
        and all(type(operand) in (Literal, Parameter) for operand in predicate.operands)
    )


def _order(sample: Sequence[Conjunction], shards: int) -> dict[str, int]:
    """Return attributes, best first: each adds the most subscriptions without overfilling a shard."""
    equal = [_equalities(conjunction) for conjunction in sample]
    open_ = [keys for keys in equal if keys]
    order: dict[str, int] = {}
    while open_ and len(order) < _ROUNDS:
        counts: Counter[tuple[str, str]] = Counter(item for keys in open_ for item in keys.items())
        share = max(len(open_) / shards, 1.0)
        worth: Counter[str] = Counter()
        for (attribute, _), count in counts.items():
            worth[attribute] += min(count, share)  # type: ignore[assignment]
        best = max(worth, key=lambda name: (worth[name], name))
        order[best] = len(order)
        open_ = [keys for keys in open_ if best not in keys]
    rest = Counter(attribute for keys in open_ for attribute in keys)
    for attribute, _ in rest.most_common():
        order.setdefault(attribute, len(order))
    return order


def _equalities(conjunction: Conjunction) -> dict[str, str]:
    """Return the keys of a conjunction's equalities, by attribute."""
    return {p.subject.path: _key(p) for p in conjunction if _is_equality(p)}  # type: ignore[union-attr]


def _key(access: Predicate | None) -> str:
    """Return a text for an access predicate; a list is placed like its first member."""
    if access is None:
        return _ALWAYS
    path = access.subject.path  # type: ignore[union-attr]
    if access.operator is Operator.PRESENT:
        return path
    first = access.operands[0]
    return f"{path}={_text(first.value)}" if type(first) is Literal else f"{path}=:"


def _text(value: Value) -> str:
    return value_text(float(value)) if type(value) is int and abs(value) < 2**53 else value_text(value)


def _one(shard: int) -> IdArray:
    return np.array([shard], dtype=np.int64)
