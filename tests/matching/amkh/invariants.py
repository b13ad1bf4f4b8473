"""What must hold of AMKH's arrays between any two calls."""

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
    BucketColumn,
    ChainColumn,
    ClauseColumn,
    HashedColumn,
    HashPointColumn,
    HashSetting,
    Index,
    IndexTop,
    PlaceColumn,
    SchemaColumn,
)
from tocsin.matching.conjunction_store.state import ConjunctionStore, StoreColumn, StoreCounter
from tocsin.structures import hash_index

__all__ = ["check_invariants"]

_MASK = (1 << 40) - 1


def check_invariants(matcher: Amkh) -> None:
    _check_index(matcher._store, matcher._index, matcher._home)
    if matcher._next is not None:
        _check_index(matcher._store, matcher._next, 1 - matcher._home)


def _check_index(store: ConjunctionStore, index: Index, home: int) -> None:
    uses: Counter[int] = Counter()
    schemas: Counter[int] = Counter()
    buckets: Counter[int] = Counter()
    points = 0
    for number in range(int(store.counters[StoreCounter.TOP])):
        if store.owner[number] < 0 or store.rows[number, HashedColumn.HOME] != home:
            continue
        point = int(store.rows[number, HashedColumn.POINT])
        while point >= 0:
            points += 1
            row = index.points[point].tolist()
            schema = index.schemas.keys[row[HashPointColumn.SCHEMA]].tolist()
            schemas[row[HashPointColumn.SCHEMA]] += 1
            buckets[row[HashPointColumn.BUCKET]] += 1
            bucket = index.buckets.keys[row[HashPointColumn.BUCKET]].tolist()
            assert row[HashPointColumn.POSITION] < bucket[BucketColumn.SIZE] >> SIZE_BITS
            word = int(index.members.rows[bucket[BucketColumn.MEMBERS] + row[HashPointColumn.POSITION], 1])
            assert (word >> 32, word & 0xFFFFFFFF) == (store.rows[number, StoreColumn.RECORD], point)
            for k in range(schema[SchemaColumn.SIZE]):
                at = row[HashPointColumn.COORDINATES]
                clause = at if schema[SchemaColumn.SIZE] == 1 else int(index.coordinates.rows[at + k, 0])
                uses[clause] += 1
                place = int(index.schema_places.rows[schema[SchemaColumn.PLACES] + k, 0])
                assert int(index.clauses.keys[clause, 0]) & _MASK == index.places[place, PlaceColumn.FIELD]
            point = row[HashPointColumn.NEXT]
    assert points == index.tops[IndexTop.LIVE_POINTS]
    assert len(buckets) == hash_index.live_entries(index.buckets)
    assert all(index.buckets.keys[entry, BucketColumn.SIZE] >> SIZE_BITS == n for entry, n in buckets.items())
    assert len(schemas) == hash_index.live_entries(index.schemas)
    assert all(index.schemas.keys[entry, SchemaColumn.POINTS] == n for entry, n in schemas.items())
    assert len(uses) == hash_index.live_entries(index.clauses)
    assert all(index.clauses.keys[entry, ClauseColumn.USES] == n for entry, n in uses.items())
    _check_lists(index, set(schemas))
    _check_clauses(index, set(uses))


def _check_lists(index: Index, schemas: set[int]) -> None:
    listed = set()
    for place in range(int(index.tops[IndexTop.TOP_PLACE])):
        row = index.places[place].tolist()
        assert (row[PlaceColumn.LIST] >= 0) == (row[PlaceColumn.LIST_COUNT] > 0)
        for position in range(row[PlaceColumn.LIST_COUNT]):
            word = int(index.schema_lists.rows[row[PlaceColumn.LIST] + position, 1])
            schema = index.schemas.keys[word % SINGLE].tolist()
            assert (schema[SchemaColumn.PIVOT], schema[SchemaColumn.POSITION]) == (place, position)
            assert (word >= SINGLE) == (schema[SchemaColumn.SIZE] == 1)
            listed.add(word % SINGLE)
    assert listed == schemas


def _check_clauses(index: Index, entries: set[int]) -> None:
    by_place: dict[int, list[list[int]]] = {}
    for entry in entries:
        row = index.clauses.keys[entry].tolist()
        by_place.setdefault(int(index.place[row[0] & _MASK]), []).append(row)
    for place in range(int(index.tops[IndexTop.TOP_PLACE])):
        row, held = index.places[place].tolist(), by_place.get(place, [])
        ids = [clause[ClauseColumn.ID] for clause in held]
        assert (
            len(set(ids))
            == len(ids)
            == row[PlaceColumn.EQUALITIES] + row[PlaceColumn.OTHERS]
            == row[PlaceColumn.TOP_ID] - row[PlaceColumn.FREE_COUNT]
        )
        assert sum(clause[ClauseColumn.CLASS] < 0 for clause in held) == row[PlaceColumn.EQUALITIES]
        for class_ in range(row[PlaceColumn.CLASSES]):
            mine = [clause for clause in held if clause[ClauseColumn.CLASS] == class_]
            chain = index.chains.rows[row[PlaceColumn.CHAINS] + class_].tolist()
            assert chain[ChainColumn.LIVE] == len(mine)
            _check_bounds(index, row, class_, mine, is_exact=chain[ChainColumn.STALE] == 0)


def _check_bounds(
    index: Index, row: list[int], class_: int, clauses: list[list[int]], *, is_exact: bool
) -> None:
    """Check a class's bounds against all its clauses: never too narrow, and exact if none has gone since."""
    ranked = bool(index.settings[HashSetting.RANKED])
    for shape in range(SHAPES):
        if ranked and class_ // int(index.settings[HashSetting.CLASS_COUNT]) != shape:
            assert not any(_shape(clause) == shape for clause in clauses)
            continue
        at = row[PlaceColumn.BOUNDS] + (class_ if ranked else SHAPES * class_ + shape)
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
