"""Subscriptions as a table of points: a row for each coordinate that an event must have to be checked against one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from tocsin.spark.join.checks import Check, Constant, Family
from tocsin.spark.join.schemas import EMPTY, Schema, choose_schemas

__all__ = ["FIELDS", "Decided", "Points", "points_of"]

_MEMBERS: Final = 8  # values of a list that is hashed, a point each
_POINTS: Final = 64  # that a conjunction has at most

FIELDS: Final = {Family.NUMBER: "number", Family.TEXT: "text", Family.WHOLE: "whole"}
_KEY: Final = pa.struct(
    [("place", pa.int32()), ("number", pa.float64()), ("text", pa.string()), ("whole", pa.int64())]
)
_CHECK: Final = pa.struct(
    [
        ("within", pa.int32()),
        ("family", pa.int32()),
        ("test", pa.int32()),
        ("number", pa.float64()),
        ("text", pa.string()),
        ("whole", pa.int64()),
        ("numbers", pa.list_(pa.float64())),
        ("texts", pa.list_(pa.string())),
        ("wholes", pa.list_(pa.int64())),
    ]
)
_SCHEMA: Final = pa.schema(
    [
        ("subscription", pa.string()),
        ("valid_from", pa.int64()),
        ("valid_until", pa.int64()),
        ("schema", pa.int32()),
        ("keys", pa.list_(_KEY)),
        ("checks", pa.list_(_CHECK)),
        ("earlier", pa.list_(pa.list_(_CHECK))),
    ]
)


class Decided(Struct, frozen=True):
    """A subscription that Spark SQL can decide: its conjunctions, as checks, and when it applies."""

    id: str
    terms: tuple[int, int]
    conjunctions: Sequence[tuple[Check, ...]]


class Points(Struct, frozen=True):
    """The table, and the schemas that its rows are hashed by; a row's `schema` is a place in them."""

    table: Any  # pa.Table
    schemas: tuple[Schema, ...]
    has_earlier: bool  # whether some subscription has several conjunctions


def points_of(subscriptions: Sequence[Decided]) -> Points:
    """Return the points of subscriptions, each conjunction hashed by the schema that is chosen for its equalities.

    A conjunction carries those before it that satisfy the same subscription: an event is told by the first that holds,
    and so once.
    """
    keyed = [_keyed(checks) for one in subscriptions for checks in one.conjunctions]
    chosen = choose_schemas(Counter(tuple(keys) for keys in keyed), _distinct(keyed))
    schemas = tuple(sorted(set(chosen.values())))
    numbers = {schema: number for number, schema in enumerate(schemas)}
    rows: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    found = iter(keyed)
    cells: dict[Check, dict[str, Any]] = {}
    for one in subscriptions:
        earlier: list[list[dict[str, Any]]] = []
        for checks in one.conjunctions:
            keys = next(found)
            schema = chosen[tuple(keys)]
            for point in _points(checks, keys, schema):
                rows["subscription"].append(one.id)
                rows["valid_from"].append(one.terms[0])
                rows["valid_until"].append(one.terms[1])
                rows["schema"].append(numbers[schema])
                rows["keys"].append([_key(check) for check in point.keys])
                rows["checks"].append([_cell(check, cells) for check in point.checks])
                rows["earlier"].append(earlier or None)
            earlier = [*earlier, [_cell(check, cells) for check in checks]]
    columns = [pa.array(rows[field.name], field.type) for field in _SCHEMA]
    has_earlier = any(len(one.conjunctions) > 1 for one in subscriptions)
    return Points(pa.table(columns, schema=_SCHEMA), schemas or (EMPTY,), has_earlier)


class _Point(Struct, frozen=True):
    keys: Sequence[Check]  # equalities, by place
    checks: Sequence[Check]


def _keyed(checks: Iterable[Check]) -> dict[int, Check]:
    """Return the checks that a conjunction may be hashed by, by place, ascending."""
    found: dict[int, Check] = {}
    points = 1
    for check in sorted(checks, key=lambda one: (len(one.values), one.place.number)):
        size = len(check.values)
        if not 0 < size <= _MEMBERS or points * size > _POINTS or check.place.number in found:
            continue
        points *= size
        found[check.place.number] = check
    return dict(sorted(found.items()))


def _distinct(keyed: Iterable[dict[int, Check]]) -> dict[int, int]:
    """Return how many values each place is compared with."""
    values: dict[int, set[Constant]] = {}
    for keys in keyed:
        for place, check in keys.items():
            values.setdefault(place, set()).update(check.values)
    return {place: len(found) for place, found in values.items()}


def _points(checks: Sequence[Check], keys: dict[int, Check], schema: Schema) -> Iterator[_Point]:
    """Return a conjunction's points: one for each combination of values that its keys allow."""
    hashed = [keys[place] for place in schema]
    for values in product(*(check.values for check in hashed)):
        just = {check: check.narrowed(value) for check, value in zip(hashed, values, strict=True)}
        yield _Point([just[check] for check in hashed], [just.get(check, check) for check in checks])


def _key(check: Check) -> dict[str, Any]:
    return {"place": check.place.number, FIELDS[check.place.family]: check.constants[0]}


def _cell(check: Check, known: dict[Check, dict[str, Any]]) -> dict[str, Any]:
    """Return a check as the table holds it; a list has more than one constant, or is one by its test."""
    cell = known.get(check)
    if cell is None:
        cell = {"within": check.place.within, "family": int(check.place.family), "test": int(check.test)}
        field = FIELDS[check.place.family]
        if check.test.has_list:
            cell[f"{field}s"] = list(check.constants)
        elif check.constants:
            cell[field] = check.constants[0]
        known[check] = cell
    return cell
