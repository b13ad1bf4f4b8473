"""What a batch of rows alters, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.model.subscription import Answer
from tocsin.views.family import ViewChange
from tocsin.views.kinds.kind import Told, whole


class Altering(Struct, frozen=True):
    """Answers that rows of a batch altered, as columns, in the order of the rows."""

    rows: IdArray
    numbers: IdArray
    old: NDArray[Any]  # floats with NaN for null, or objects
    new: NDArray[Any]

    @classmethod
    def of_told(cls, told: Told, places: IdArray) -> Altering:
        """Return what a family told by the column; `places` are the rows of its changes."""
        return cls(places[told.change], told.places, told.old, told.new)

    @classmethod
    def of_changes(cls, changes: Sequence[ViewChange], places: IdArray) -> Altering:
        """Return what a family told one by one."""
        old = np.fromiter((one.old for one in changes), dtype=object, count=len(changes))
        new = np.fromiter((one.new for one in changes), dtype=object, count=len(changes))
        at = np.array([one.change for one in changes], dtype=np.int64)
        return cls(places[at], np.array([one.number for one in changes], dtype=np.int64), old, new)

    @classmethod
    def joined(cls, parts: Sequence[Altering]) -> Altering:
        """Return several as one, those of the first row in front."""
        if len(parts) == 1:
            return parts[0]
        none = np.empty(0, dtype=np.int64)
        mixed = any(part.new.dtype == object for part in parts)
        old = [_objects(part.old) if mixed else part.old for part in parts]
        new = [_objects(part.new) if mixed else part.new for part in parts]
        rows = np.concatenate([none, *(part.rows for part in parts)])
        order = np.argsort(rows, kind="stable")
        numbers = np.concatenate([none, *(part.numbers for part in parts)])
        empty = np.empty(0)
        return cls(
            rows[order],
            numbers[order],
            np.concatenate([empty, *old])[order] if old else empty,
            np.concatenate([empty, *new])[order] if new else empty,
        )

    def take(self, kept: NDArray[np.bool_]) -> Altering:
        """Return only some."""
        return Altering(self.rows[kept], self.numbers[kept], self.old[kept], self.new[kept])

    def change(self, place: int) -> ViewChange:
        """Return one of them."""
        return ViewChange(
            place, int(self.numbers[place]), self._answer(self.old[place]), self._answer(self.new[place])
        )

    def give_old(self, place: int, old: Answer) -> None:
        """Let one of them begin with another answer."""
        self.old[place] = np.nan if old is None and self.old.dtype != object else old

    def _answer(self, held: Any) -> Answer:
        return held if self.old.dtype == object else whole(float(held))


def _objects(column: NDArray[Any]) -> NDArray[Any]:
    """Return answers as Python has them."""
    if column.dtype == object:
        return column
    return np.fromiter((whole(number) for number in column.tolist()), dtype=object, count=len(column))
