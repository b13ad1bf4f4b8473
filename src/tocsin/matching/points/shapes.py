"""The conjunctions that are points: at most two constants, each compared with an attribute from below and from above."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Keys, Op
from tocsin.matching.points import state as arrays
from tocsin.matching.points.state import ShapeColumn
from tocsin.structures.array_types import Bools, Float64s, Int64s

_SIGN: Final = 0x7FFFFFFFFFFFFFFF
_MIX: Final = np.uint64(0x9E3779B97F4A7C15)
_MOST_COMPARED: Final = 4
# Of `a < c`, say, the constant lies above the attribute. By operator: whether it does, and whether it may be equal.
_ABOVE: Final = {Op.LT: (True, False), Op.LE: (True, True), Op.GT: (False, False), Op.GE: (False, True)}


class Shape(Struct, frozen=True):
    """The predicates of a conjunction by their tags, and the role of each: an equality, or one of two coordinates."""

    tags: tuple[int, ...]
    roles: tuple[int, ...]

    @property
    def equalities(self) -> list[int]:
        """Return the places of the equalities."""
        return [place for place, role in enumerate(self.roles) if role < arrays.FIRST_AXIS]

    def on_axis(self, axis: int) -> list[int]:
        """Return the places of the comparisons with one coordinate."""
        return [
            place
            for place, role in enumerate(self.roles)
            if role in (arrays.FIRST_AXIS + axis, arrays.BETWEEN)
        ]

    def fits(self, lows: Int64s, highs: Int64s) -> Bools:
        """Return which rows of constants are points: all constants of a coordinate are equal, and all are finite."""
        fit = np.ones(len(lows), dtype=np.bool_)
        for axis in (0, 1):
            places = self.on_axis(axis)
            for place in places:
                fit &= (lows[:, place] == lows[:, places[0]]) | (self.roles[place] == arrays.BETWEEN)
                fit &= np.isfinite(numbers_of(lows[:, place])) & np.isfinite(numbers_of(highs[:, place]))
        return fit

    def points(self, lows: Int64s, highs: Int64s) -> tuple[Float64s, Float64s]:
        """Return the coordinates that rows of constants are; one that is compared with nothing is 0."""
        found = []
        for axis in (0, 1):
            places = self.on_axis(axis)
            is_upper = bool(places) and axis == 1 and self.roles[places[0]] == arrays.BETWEEN
            keys = (highs if is_upper else lows)[:, places[0]] if places else np.zeros(len(lows), np.int64)
            found.append(numbers_of(keys))
        return found[0], found[1]

    def row(self) -> Int64s:
        """Return the shape as a row for the kernels; no conjunction has it yet."""
        row = np.zeros(ShapeColumn.SIDES + 8, dtype=np.int64)
        row[ShapeColumn.WIDTH] = len(self.tags)
        row[ShapeColumn.TAGS : ShapeColumn.TAGS + len(self.tags)] = self.tags
        row[ShapeColumn.ROLES : ShapeColumn.ROLES + len(self.roles)] = self.roles
        meant = [self.tags[place] & FIELD_MASK for place in self.equalities]
        row[ShapeColumn.EQUALS] = len(meant)
        row[ShapeColumn.FIELDS : ShapeColumn.FIELDS + len(meant)] = meant
        row[ShapeColumn.SIDES : ShapeColumn.SIDES + 8 : 2] = arrays.NO_FIELD
        for tag, role in zip(self.tags, self.roles, strict=True):
            for axis, is_above, is_equal in _sides(Op(tag >> FIELD_BITS), role):
                side = ShapeColumn.SIDES + 4 * axis + (0 if is_above else 2)
                row[side], row[side + 1] = tag & FIELD_MASK, is_equal
        return row

    @classmethod
    def of_row(cls, row: Int64s) -> Shape:
        """Return the shape that gave this row."""
        width = int(row[ShapeColumn.WIDTH])
        return cls(
            tuple(row[ShapeColumn.TAGS : ShapeColumn.TAGS + width].tolist()),
            tuple(row[ShapeColumn.ROLES : ShapeColumn.ROLES + width].tolist()),
        )


def _sides(op: Op, role: int) -> Iterator[tuple[int, bool, bool]]:
    """Yield which coordinates a predicate compares, whether they lie above its attribute, and may be equal."""
    if role == arrays.BETWEEN:
        yield from ((0, False, True), (1, True, True))
    elif role >= arrays.FIRST_AXIS:
        yield role - arrays.FIRST_AXIS, *_ABOVE[op]


def shapes_of(tags: tuple[int, ...]) -> list[Shape]:
    """Return the shapes that conjunctions of predicates with these tags may have; none if they are no points.

    Three or four comparisons make a point if some share a constant, which depends on the constants.
    """
    if len(tags) > arrays.MOST_PREDICATES:
        return []
    roles: list[int | None] = [None] * len(tags)
    compared: list[int] = []
    equals = 0
    for place, tag in enumerate(tags):
        op, field = Op(tag >> FIELD_BITS), Field((tag & FIELD_MASK) % FIELDS)
        if op is Op.EQ and field not in (Field.TEXT, Field.ANY):
            roles[place] = equals
            equals += 1
        elif op in _ABOVE and field is Field.NUMBER:
            compared.append(place)
        elif op is Op.BETWEEN and field is Field.NUMBER:
            roles[place] = arrays.BETWEEN
        else:
            return []
    betweens = roles.count(arrays.BETWEEN)
    if equals > arrays.MOST_EQUALS or betweens + bool(compared) != 1 or len(compared) > _MOST_COMPARED:
        return []
    found = []
    for axes in product((0, 1), repeat=len(compared)):
        aboves = [
            (axis, _ABOVE[Op(tags[p] >> FIELD_BITS)][0]) for axis, p in zip(axes, compared, strict=True)
        ]
        is_first = not axes or axes[0] == 0
        if is_first and len(set(aboves)) == len(aboves) and (len(axes) != 2 or axes[1]):
            given = {place: arrays.FIRST_AXIS + axis for place, axis in zip(compared, axes, strict=True)}
            chosen = tuple(given[p] if role is None else role for p, role in enumerate(roles))
            found.append(Shape(tags, chosen))
    return found


def numbers_of(keys: Keys) -> Float64s:
    """Return the floats that have these keys."""
    return np.asarray(keys ^ ((keys >> 63) & _SIGN)).view(np.float64)


def alike(rows: Int64s) -> Iterator[Int64s]:
    """Yield the places of rows that are equal, for each that there is."""
    places = np.arange(len(rows))
    if not len(rows) or (rows == rows[0]).all():
        if len(rows):
            yield places
        return
    mixed = np.zeros(len(rows), dtype=np.uint64)
    for column in rows.T:
        mixed = (mixed ^ column.astype(np.uint64)) * _MIX
        mixed ^= mixed >> np.uint64(29)
    order = np.argsort(mixed, kind="stable")
    ends = np.flatnonzero(np.diff(mixed[order])) + 1
    for part in np.split(order, ends):
        same = (rows[part] == rows[part[0]]).all(axis=1)
        if same.all():
            yield part
        else:  # others that are mixed to the same number
            yield part[same]
            yield from (part[~same][found] for found in alike(rows[part[~same]]))
