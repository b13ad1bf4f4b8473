"""The invariants of AMKH's arrays between any two calls."""

from __future__ import annotations

from collections import Counter

from tocsin.matching.amkh.matcher import Amkh
from tocsin.matching.amkh.state import (
    BOTH,
    HAS_LOWER,
    HAS_UPPER,
    HIGHEST,
    LOOSE,
    LOWER,
    LOWER_STRICT,
    LOWEST,
    RANGE,
    SHAPES,
    SINGLE,
    SIZE_BITS,
    UPPER,
    UPPER_STRICT,
    Bucket,
    Chain,
    Clause,
    HashedAttribute,
    Index,
    IndexTop,
    Point,
    Schema,
    Setting,
    StoredColumn,
)
from tocsin.matching.conjunction_store.state import ConjunctionStore, StoreColumn, StoreCounter
from tocsin.structures import hash_index

__all__ = ["check_invariants"]

_MASK = (1 << 40) - 1


def check_invariants(matcher: Amkh) -> None:
    _check_index(matcher._store, matcher._index, matcher._indexes.home)
    if matcher._indexes.following is not None:
        _check_index(matcher._store, matcher._indexes.following, 1 - matcher._indexes.home)


def _check_index(store: ConjunctionStore, index: Index, home: int) -> None:
    uses: Counter[int] = Counter()
    schemas: Counter[int] = Counter()
    buckets: Counter[int] = Counter()
    points = 0
    for number in range(int(store.counters[StoreCounter.TOP])):
        if store.owner[number] < 0 or store.rows[number, StoredColumn.HOME] != home:
            continue
        point = int(store.rows[number, StoredColumn.POINT])
        while point >= 0:
            points += 1
            row = index.points[point].tolist()
            schema = index.schemas.keys[row[Point.SCHEMA]].tolist()
            schemas[row[Point.SCHEMA]] += 1
            buckets[row[Point.BUCKET]] += 1
            bucket = index.buckets.keys[row[Point.BUCKET]].tolist()
            assert row[Point.POSITION] < bucket[Bucket.SIZE] >> SIZE_BITS
            word = int(index.members.rows[bucket[Bucket.MEMBERS] + row[Point.POSITION], 1])
            assert (word >> 32, word & 0xFFFFFFFF) == (store.rows[number, StoreColumn.RECORD], point)
            for k in range(schema[Schema.SIZE]):
                at = row[Point.COORDINATES]
                clause = at if schema[Schema.SIZE] == 1 else int(index.coordinates.rows[at + k, 0])
                uses[clause] += 1
                place = int(index.schema_attributes.rows[schema[Schema.PLACES] + k, 0])
                assert (
                    int(index.clauses.keys[clause, 0]) & _MASK
                    == index.attributes[place, HashedAttribute.FIELD]
                )
            point = row[Point.NEXT]
    assert points == index.tops[IndexTop.LIVE_POINTS]
    assert len(buckets) == hash_index.live_entries(index.buckets)
    assert all(index.buckets.keys[entry, Bucket.SIZE] >> SIZE_BITS == n for entry, n in buckets.items())
    assert len(schemas) == hash_index.live_entries(index.schemas)
    assert all(index.schemas.keys[entry, Schema.POINTS] == n for entry, n in schemas.items())
    assert len(uses) == hash_index.live_entries(index.clauses)
    assert all(index.clauses.keys[entry, Clause.USES] == n for entry, n in uses.items())
    _check_lists(index, set(schemas))
    _check_clauses(index, set(uses))


def _check_lists(index: Index, schemas: set[int]) -> None:
    listed = set()
    for place in range(int(index.tops[IndexTop.TOP_ATTRIBUTE])):
        row = index.attributes[place].tolist()
        assert (row[HashedAttribute.LIST] >= 0) == (row[HashedAttribute.LIST_COUNT] > 0)
        for position in range(row[HashedAttribute.LIST_COUNT]):
            word = int(index.schema_lists.rows[row[HashedAttribute.LIST] + position, 1])
            schema = index.schemas.keys[word % SINGLE].tolist()
            assert (schema[Schema.PIVOT], schema[Schema.POSITION]) == (place, position)
            assert (word >= SINGLE) == (schema[Schema.SIZE] == 1)
            listed.add(word % SINGLE)
    assert listed == schemas


def _check_clauses(index: Index, entries: set[int]) -> None:
    by_place: dict[int, list[list[int]]] = {}
    for entry in entries:
        row = index.clauses.keys[entry].tolist()
        by_place.setdefault(int(index.row_of_field[row[0] & _MASK]), []).append(row)
    for place in range(int(index.tops[IndexTop.TOP_ATTRIBUTE])):
        row, held = index.attributes[place].tolist(), by_place.get(place, [])
        ids = [clause[Clause.ID] for clause in held]
        assert (
            len(set(ids))
            == len(ids)
            == row[HashedAttribute.EQUALITIES] + row[HashedAttribute.OTHERS]
            == row[HashedAttribute.TOP_ID] - row[HashedAttribute.FREE_COUNT]
        )
        assert sum(clause[Clause.CLASS] < 0 for clause in held) == row[HashedAttribute.EQUALITIES]
        for class_ in range(row[HashedAttribute.CLASSES]):
            mine = [clause for clause in held if clause[Clause.CLASS] == class_]
            chain = index.chains.rows[row[HashedAttribute.CHAINS] + class_].tolist()
            assert chain[Chain.LIVE] == len(mine)
            _check_bounds(index, row, class_, mine, is_exact=chain[Chain.STALE] == 0)


def _check_bounds(
    index: Index, row: list[int], class_: int, clauses: list[list[int]], *, is_exact: bool
) -> None:
    """Check a class's bounds against all its clauses: never too narrow, and exact if none has gone since."""
    ranked = bool(index.settings[Setting.RANKED])
    for shape in range(SHAPES):
        if ranked and class_ // int(index.settings[Setting.CLASS_COUNT]) != shape:
            assert not any(_shape(clause) == shape for clause in clauses)
            continue
        at = row[HashedAttribute.BOUNDS] + (class_ if ranked else SHAPES * class_ + shape)
        found, wanted = index.bounds.rows[at].tolist(), _bounds(shape, clauses)
        if is_exact or shape == LOOSE:
            assert found == wanted
        else:
            assert found[0] >= wanted[0] if shape == UPPER else found[0] <= wanted[0]
            assert found[1] <= wanted[1] if shape == LOWER else found[1] >= wanted[1]


def _shape(clause: list[int]) -> int:
    op = clause[0] >> 40
    if op < RANGE:
        return LOOSE
    bounded = (op - RANGE) & (HAS_LOWER | HAS_UPPER)
    return LOWER if bounded == HAS_LOWER else UPPER if bounded == HAS_UPPER else BOTH


def _bounds(shape: int, clauses: list[list[int]]) -> list[int]:
    mine = [clause for clause in clauses if _shape(clause) == shape]
    if shape == LOOSE:
        unequal = sum(clause[0] >> 40 == 1 for clause in mine)
        return [unequal, len(mine) - unequal]
    if shape == BOTH:
        return [min([c[1] for c in mine], default=HIGHEST), max([c[2] for c in mine], default=LOWEST)]
    strict = LOWER_STRICT if shape == LOWER else UPPER_STRICT
    parts = [[c for c in mine if bool((c[0] >> 40) & strict) is is_strict] for is_strict in (False, True)]
    if shape == LOWER:
        return [min([c[1] for c in part], default=HIGHEST) for part in parts]
    return [max([c[2] for c in part], default=LOWEST) for part in parts]
