"""Changes of a table: of whole rows, and of points, for ranges."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from msgspec import Struct

from tocsin.model.values import Value
from tocsin.structures.array_types import Float64s

Floats: TypeAlias = Float64s
Row: TypeAlias = Mapping[str, Value]
"""The attributes of one row, by dotted path; it is never changed."""


class RowChange(Struct, frozen=True):
    """One change of one row, as a family sees it: the new row as the family reads it, None if the row has gone.

    `slot` is the row's number in its table, given again once the row has gone.
    """

    table: str
    slot: int
    new: Any


class PointChanges(Struct, frozen=True):
    """Changes, one after another, of points (x, y): ranges are over x, and y is aggregated.

    Where there is no point, x and y are NaN: without an old point the new one is added, without a new one the old is
    removed. An x is finite. Several points may be equal.
    """

    old_x: Floats
    old_y: Floats
    new_x: Floats
    new_y: Floats

    def __len__(self) -> int:
        return len(self.old_x)

    def part(self, begin: int, end: int | None = None) -> PointChanges:
        """Return the changes from position `begin` to before `end`, or to the last."""
        part = slice(begin, end)
        return PointChanges(self.old_x[part], self.old_y[part], self.new_x[part], self.new_y[part])
