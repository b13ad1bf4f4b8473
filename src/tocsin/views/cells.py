"""The cells of a table: a kind and a 64-bit word each."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.timestamps import from_microseconds
from tocsin.model.values import Value
from tocsin.structures.array_types import Bools, Int64s, UInt8s
from tocsin.views.changes import Floats

Key: TypeAlias = Hashable
"""The key of a row: the value of one attribute, or a tuple of several; `true` is not 1."""

# The kinds of cells. They are plain integers: comparing a NumPy scalar with a member of an IntEnum took 26 µs, with an integer 0.3.
ABSENT: Final = 0
FLOAT: Final = 1  # the word is the bits of a float
INTEGER: Final = 2
BOOLEAN: Final = 3
MOMENT: Final = 4  # microseconds
CODED: Final = 5  # the code of a text, of an integer beyond 64 bits, or of an opaque value

_BOOLEANS: Final = {truth: ("boolean", truth) for truth in (False, True)}


def key_of(values: Sequence[Value]) -> Key:
    """Return the key that the values of its attributes make."""
    if len(values) == 1:
        return values[0] if type(values[0]) is not bool else _BOOLEANS[values[0]]
    return tuple([value if type(value) is not bool else _BOOLEANS[value] for value in values])


def decode(cells: Cells | Column, position: int, values: Sequence[Any]) -> Value:
    """Return the value of a cell that is not absent; `values` are those of codes."""
    kind = cells.kinds.item(position)
    if kind == FLOAT:
        return cells.floats.item(position)
    word = cells.words.item(position)
    if kind == INTEGER:
        return word
    if kind == CODED:
        return values[word]  # type: ignore[no-any-return]
    return from_microseconds(word) if kind == MOMENT else bool(word)


def decode_all(column: Column, values: Sequence[Any]) -> list[Any]:
    """Return the values of cells, None for absent ones; `values` are those of codes."""
    kinds = np.flatnonzero(np.bincount(column.kinds)).tolist()
    if len(kinds) == 1:
        return _of_kind(kinds[0], column, values)
    found = np.empty(len(column.kinds), dtype=object)
    for kind in kinds:
        of = np.flatnonzero(column.kinds == kind)
        own = _of_kind(kind, column.take(of), values)
        found[of] = np.fromiter(own, dtype=object, count=len(own))
    listed: list[Any] = found.tolist()
    return listed


def _of_kind(kind: int, column: Column, values: Sequence[Any]) -> list[Any]:
    """Return the values of cells that are all of one kind."""
    if kind == ABSENT:
        return [None] * len(column.kinds)
    if kind == FLOAT:
        return column.floats.tolist()  # type: ignore[no-any-return]
    words: list[int] = column.words.tolist()
    if kind == CODED:
        return list(map(values.__getitem__, words))
    if kind == INTEGER:
        return words
    return list(map(from_microseconds, words)) if kind == MOMENT else list(map(bool, words))


class Cells:
    """One attribute of all rows."""

    def __init__(self, slots: int) -> None:
        self.kinds: UInt8s = np.zeros(slots, dtype=np.uint8)
        self.words: Int64s = np.zeros(slots, dtype=np.int64)
        self.floats = self.words.view(np.float64)  # the same bits, for cells that hold floats

    def grow(self, slots: int) -> None:
        """Make room for so many rows."""
        self.kinds = np.concatenate([self.kinds, np.zeros(slots - len(self.kinds), dtype=np.uint8)])
        self.words = np.concatenate([self.words, np.zeros(slots - len(self.words), dtype=np.int64)])
        self.floats = self.words.view(np.float64)

    @property
    def nbytes(self) -> int:
        """Return the bytes of both arrays."""
        return self.kinds.nbytes + self.words.nbytes


class Column(Struct, frozen=True):
    """One attribute of some rows, in their order."""

    kinds: UInt8s
    words: Int64s

    @property
    def floats(self) -> Floats:
        """Return the bits of all words as floats."""
        return self.words.view(np.float64)

    def take(self, positions: IdArray) -> Column:
        """Return only these rows."""
        return Column(self.kinds[positions], self.words[positions])

    def numbers(self) -> Floats:
        """Return the numbers as floats, NaN for other values."""
        found = np.full(len(self.kinds), np.nan)
        floats, whole = self.kinds == FLOAT, self.kinds == INTEGER
        found[floats] = self.floats[floats]
        found[whole] = self.words[whole]
        return found

    def inexact(self) -> Bools:
        """Tell which cells are whole numbers that no float holds."""
        with np.errstate(invalid="ignore"):  # what rounds to 2**63 is none of them
            return np.asarray(
                (self.kinds == INTEGER) & (self.words.astype(np.float64).astype(np.int64) != self.words)
            )
