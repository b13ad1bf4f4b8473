"""Subscriptions as a table of points: an event is checked against the rows with one of its coordinates (AMKH)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import Any, Final

import pyarrow as pa
from msgspec import Struct

from tocsin.model.options import Validity
from tocsin.spark.join.checks import CheckOperator, Constant, JoinCheck, ValueFamily
from tocsin.spark.join.schemas import EMPTY, Schema, choose_schemas

_MAX_LIST: Final = 8  # values of a list that is hashed; each is a point
_MAX_POINTS: Final = 64  # of a conjunction

FIELDS: Final = {ValueFamily.NUMBER: "number", ValueFamily.TEXT: "text", ValueFamily.WHOLE: "whole"}
_CONSTANTS: Final = (("number", pa.float64()), ("text", pa.string()), ("whole", pa.int64()))
_KEY: Final = pa.struct([("attribute", pa.int32()), *_CONSTANTS])
_CHECK: Final = pa.struct(
    [
        *((name, pa.int32()) for name in ("position", "family", "operator")),
        *_CONSTANTS,
        *((f"{name}s", pa.list_(kind)) for name, kind in _CONSTANTS),
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


class SqlSubscription(Struct, frozen=True):
    """A subscription that Spark SQL can decide: its validity, and its conjunctions as checks."""

    id: str
    validity: Validity
    conjunctions: Sequence[tuple[JoinCheck, ...]]


class PointTable(Struct, frozen=True):
    """The table, and the schemas that its rows are hashed by; a row's `schema` is a position among them."""

    table: Any  # pa.Table
    schemas: tuple[Schema, ...]
    has_earlier: bool  # whether some subscription has several conjunctions


def points_of(subscriptions: Sequence[SqlSubscription]) -> PointTable:
    """Return the points of subscriptions, each conjunction hashed by the schema that is chosen for its equalities.

    A conjunction carries the earlier ones of its subscription: an event matches by the first that holds, so only once.
    """
    keyed = [_keyed(checks) for one in subscriptions for checks in one.conjunctions]
    chosen = choose_schemas(Counter(tuple(keys) for keys in keyed), _distinct(keyed))
    schemas = tuple(sorted(set(chosen.values()))) or (EMPTY,)
    numbers = {schema: number for number, schema in enumerate(schemas)}
    rows = _Rows()
    found = iter(keyed)
    for one in subscriptions:
        earlier: list[tuple[JoinCheck, ...]] = []
        for checks in one.conjunctions:
            keys = next(found)
            schema = chosen[tuple(keys)]
            for point in _points(checks, keys, schema):
                rows.add(one, numbers[schema], point, earlier)
            earlier.append(checks)
    has_earlier = any(len(one.conjunctions) > 1 for one in subscriptions)
    return PointTable(rows.table(), schemas, has_earlier)


class _Point(Struct, frozen=True):
    keys: Sequence[JoinCheck]  # equalities, by attribute
    checks: Sequence[JoinCheck]


def _keyed(checks: Iterable[JoinCheck]) -> dict[int, JoinCheck]:
    """Return the checks that a conjunction may be hashed by, by attribute, ascending."""
    found: dict[int, JoinCheck] = {}
    points = 1
    for check in sorted(checks, key=lambda one: (len(one.values), one.attribute.number)):
        size = len(check.values)
        if not 0 < size <= _MAX_LIST or points * size > _MAX_POINTS or check.attribute.number in found:
            continue
        points *= size
        found[check.attribute.number] = check
    return dict(sorted(found.items()))


def _distinct(keyed: Iterable[dict[int, JoinCheck]]) -> dict[int, int]:
    """Return how many values each attribute is compared with."""
    values: dict[int, set[Constant]] = {}
    for keys in keyed:
        for number, check in keys.items():
            values.setdefault(number, set()).update(check.values)
    return {number: len(found) for number, found in values.items()}


def _points(checks: Sequence[JoinCheck], keys: dict[int, JoinCheck], schema: Schema) -> Iterator[_Point]:
    """Return a conjunction's points: one for each combination of values that its keys allow."""
    hashed = [keys[number] for number in schema]
    for values in product(*(check.values for check in hashed)):
        narrowed = {check: check.narrowed(value) for check, value in zip(hashed, values, strict=True)}
        yield _Point([narrowed[check] for check in hashed], [narrowed.get(check, check) for check in checks])


class _Rows:
    """The table's rows, in columns; checks are interned, since most are shared by many subscriptions."""

    def __init__(self) -> None:
        self._ids: list[str] = []
        self._validities: list[Validity] = []
        self._schemas: list[int] = []
        self._keys, self._checks, self._earlier = _Lists(), _Lists(), _Lists()
        self._group_ends = [0]
        self._known: dict[JoinCheck, int] = {}

    def add(
        self, one: SqlSubscription, schema: int, point: _Point, earlier: Iterable[tuple[JoinCheck, ...]]
    ) -> None:
        """Add a point."""
        self._ids.append(one.id)
        self._validities.append(one.validity)
        self._schemas.append(schema)
        self._keys.add(self._numbers(point.keys))
        self._checks.add(self._numbers(point.checks))
        for checks in earlier:
            self._earlier.add(self._numbers(checks))
        self._group_ends.append(len(self._earlier.ends) - 1)

    def table(self) -> Any:
        """Return the rows as an Arrow table."""
        cells = pa.array(map(_cell, self._known), _CHECK)
        begins = [one.valid_from for one in self._validities]
        ends = [one.valid_until for one in self._validities]
        keys = pa.array((_key(check) for check in self._known), _KEY)
        columns = [
            pa.array(self._ids, pa.string()),
            pa.array(begins, pa.int64()),
            pa.array(ends, pa.int64()),
            pa.array(self._schemas, pa.int32()),
            self._keys.taken_from(keys),
            self._checks.taken_from(cells),
            pa.ListArray.from_arrays(pa.array(self._group_ends, pa.int32()), self._earlier.taken_from(cells)),
        ]
        return pa.table(columns, schema=_SCHEMA)

    def _numbers(self, checks: Iterable[JoinCheck]) -> list[int]:
        known = self._known
        return [known.setdefault(check, len(known)) for check in checks]


class _Lists:
    """Lists of places in a pool; list i ends at ends[i + 1]."""

    def __init__(self) -> None:
        self.ends = [0]
        self._places: list[int] = []

    def add(self, places: list[int]) -> None:
        """Add a list."""
        self._places += places
        self.ends.append(len(self._places))

    def taken_from(self, pool: Any) -> Any:
        """Return the lists of a pool's elements."""
        values = pool.take(pa.array(self._places, pa.int32()))
        return pa.ListArray.from_arrays(pa.array(self.ends, pa.int32()), values)


def _key(check: JoinCheck) -> dict[str, Any] | None:
    """Return an equality as a key in the table; None for any other check."""
    if check.operator is not CheckOperator.EQ:
        return None
    return {"attribute": check.attribute.number, FIELDS[check.attribute.family]: check.constants[0]}


def _cell(check: JoinCheck) -> dict[str, Any]:
    """Return a check as a cell of the table."""
    cell: dict[str, Any] = {
        "position": check.attribute.position,
        "family": int(check.attribute.family),
        "operator": int(check.operator),
    }
    field = FIELDS[check.attribute.family]
    if check.operator.has_list:
        cell[f"{field}s"] = list(check.constants)
    elif check.constants:
        cell[field] = check.constants[0]
    return cell
