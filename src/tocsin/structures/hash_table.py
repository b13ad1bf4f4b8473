"""Numbers by the hashes of their keys, in two arrays and without the compiler.

Open addressing with linear probing. The keys themselves are elsewhere: the caller compares them where hashes are equal.
`tocsin.structures.hash_index` is for kernels, and stores integer keys.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.growth import roomier

_EMPTY: Final = -1
_GONE: Final = -2  # was in use: a probe must go on here
_LEAST: Final = 64


class HashTable:
    """The numbers of keys by their 64-bit hashes; several keys may share one.

    >>> table = HashTable()
    >>> table.insert(np.array([0, 1, 2]), np.array([7, 7, 9]))
    >>> sorted(table.numbers_of(7)), list(table.numbers_of(8)), len(table)
    ([0, 1], [], 3)
    >>> table.remove(0)
    >>> list(table.numbers_of(7))
    [1]
    """

    __slots__ = ("_hashes", "_live", "_table", "_used")

    def __init__(self) -> None:
        self._table: Int32s = np.full(_LEAST, _EMPTY, dtype=np.int32)  # [a power of two]
        self._hashes: Int64s = np.zeros(0, dtype=np.int64)  # [number]
        self._live = 0
        self._used = 0  # at least as many as are not empty

    def __len__(self) -> int:
        return self._live

    def numbers_of(self, hashed: int) -> Iterator[int]:
        """Yield the numbers of all keys with this hash."""
        table, hashes, mask = self._table, self._hashes, len(self._table) - 1
        at = hashed & mask
        while (number := table.item(at)) != _EMPTY:
            if number >= 0 and hashes.item(number) == hashed:
                yield number
            at = (at + 1) & mask

    def find(self, hashes: Int64s) -> tuple[Int64s, Int64s]:
        """Return pairs of a position in `hashes` and a number with that hash."""
        table, mask = self._table, len(self._table) - 1
        positions = np.arange(len(hashes), dtype=np.int64)
        at = hashes & mask
        found: list[tuple[Int64s, Int64s]] = []
        while len(positions) and self._live:
            numbers = table[at].astype(np.int64)
            stored = numbers >= 0
            same = np.flatnonzero(stored)[self._hashes[numbers[stored]] == hashes[positions[stored]]]
            if len(same):
                found.append((positions[same], numbers[same]))
            going_on = numbers != _EMPTY
            positions, at = positions[going_on], (at[going_on] + 1) & mask
        none = np.empty(0, dtype=np.int64)
        return np.concatenate([none, *(one for one, _ in found)]), np.concatenate(
            [none, *(one for _, one in found)]
        )

    def insert(self, numbers: Int64s, hashes: Int64s) -> None:
        """Insert numbers, none of which is in the table, with the hashes of their keys."""
        if not len(numbers):
            return
        top = int(numbers.max()) + 1
        if top > len(self._hashes):
            longer = np.zeros(roomier(len(self._hashes), top), dtype=np.int64)
            longer[: len(self._hashes)] = self._hashes
            self._hashes = longer
        self._hashes[numbers] = hashes
        self._live += len(numbers)
        self._used += len(numbers)
        if 2 * self._used > len(self._table):
            self._rebuild(numbers)
        else:
            self._place(numbers)

    def insert_one(self, number: int, hashed: int) -> None:
        """Insert one number, which is not in the table, with the hash of its key."""
        if number >= len(self._hashes) or 2 * self._used + 2 > len(self._table):
            self.insert(np.array([number]), np.array([hashed]))
            return
        self._hashes[number] = hashed
        self._live += 1
        self._used += 1
        table, mask = self._table, len(self._table) - 1
        place = hashed & mask
        while table.item(place) >= 0:
            place = (place + 1) & mask
        table[place] = number

    def remove(self, number: int) -> None:
        """Remove a number that is in the table."""
        table, mask = self._table, len(self._table) - 1
        at = self._hashes.item(number) & mask
        while table.item(at) != number:
            at = (at + 1) & mask
        table[at] = _GONE
        self._live -= 1

    def remove_all(self, numbers: Int64s) -> None:
        """Remove numbers that are in the table."""
        table, mask = self._table, len(self._table) - 1
        self._live -= len(numbers)
        at = self._hashes[numbers] & mask
        while len(numbers):
            here = table[at] == numbers
            table[at[here]] = _GONE
            numbers, at = numbers[~here], (at[~here] + 1) & mask

    def _rebuild(self, new: Int64s) -> None:
        """Make a table that is between a quarter and half full, without gaps that probes must pass."""
        present = np.concatenate([self._table[self._table >= 0].astype(np.int64), new])
        size = max(_LEAST, 1 << (2 * len(present) - 1).bit_length())
        self._table = np.full(size, _EMPTY, dtype=np.int32)
        self._used = len(present)
        self._place(present)

    def _place(self, numbers: Int64s) -> None:
        table, mask = self._table, len(self._table) - 1
        at = self._hashes[numbers] & mask
        # All probe side by side; of several at one place, the last written stays and the others go on.
        while len(numbers):
            free = table[at] < 0
            table[at[free]] = numbers[free]
            left = table[at] != numbers
            numbers, at = numbers[left], (at[left] + 1) & mask
