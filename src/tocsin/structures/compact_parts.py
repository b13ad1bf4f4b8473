"""Arrays of integers, strings and bytes as compact parts of saved state, and back.

Integers are written as their distance from the smallest one, in as few bytes as the largest distance takes; an array of equal
integers takes none. Arrays of few different runs are written run by run.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s, UInt64s
from tocsin.structures.packed_strings import PackedStrings

_WIDTHS: Final = (np.uint8, np.uint16, np.uint32, np.uint64)
_MASK: Final = 2**64 - 1


class PartsWriter:
    """Collects named arrays, strings and bytes."""

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.members: dict[str, NDArray[Any] | bytes] = {}
        self._layouts: dict[str, list[int]] = {}

    def integers(self, name: str, numbers: NDArray[Any]) -> None:
        """Write an array of integers."""
        count = len(numbers)
        low, high = (int(numbers.min()), int(numbers.max())) if count else (0, 0)
        self._layouts[name] = [count, low]
        if low == high:
            return
        width = next(one for one in _WIDTHS if high - low <= np.iinfo(one).max)
        distances = numbers.astype(np.int64, copy=False).view(np.uint64) - np.uint64(low & _MASK)
        self.members[name] = distances.astype(width)

    def runs(self, name: str, numbers: NDArray[Any]) -> None:
        """Write an array of integers in which neighbours are mostly equal."""
        begins = np.flatnonzero(numbers[1:] != numbers[:-1]) + 1 if len(numbers) else np.zeros(0, np.int64)
        firsts = np.append(0, begins)[: len(numbers)]
        self.integers(f"{name}.lengths", np.diff(np.append(firsts, len(numbers))))
        self.integers(f"{name}.values", numbers[firsts])

    def array(self, name: str, array: NDArray[Any]) -> None:
        """Write an array as it is."""
        if len(array):
            self.members[name] = np.ascontiguousarray(array)

    def strings(self, name: str, strings: list[str]) -> None:
        """Write strings."""
        packed = PackedStrings(strings)
        self.bytes(f"{name}.text", packed.data)
        self.integers(f"{name}.lengths", np.diff(packed.offsets.astype(np.int64)))

    def bytes(self, name: str, data: bytes) -> None:
        """Write bytes."""
        if data:
            self.members[name] = data

    def parts(self) -> Parts:
        """Return all that was written."""
        return Parts(self.about | {"integers": self._layouts, "members": sorted(self.members)}, self.members)


class PartsReader:
    """Reads what a `PartsWriter` wrote; what does not fit raises `ValueError`, `KeyError` or `TypeError`."""

    def __init__(self, parts: Parts) -> None:
        self.about = parts.about
        self._members = parts.members
        self._layouts = parts.about["integers"]
        # The very first parts lack the list.
        if sorted(parts.members) != parts.about.get("members", sorted(parts.members)):
            raise ValueError("some of its members are missing")

    def integers(self, name: str) -> Int64s:
        """Return an array of integers."""
        count, low = map(int, self._layouts[name])
        distances = self._members.get(name)
        if distances is None:
            return np.full(count, low, dtype=np.int64)
        if not isinstance(distances, np.ndarray) or distances.dtype not in _WIDTHS:
            raise TypeError(f"`{name}` is no array of integers")
        if distances.shape != (count,):
            raise ValueError(f"`{name}` has another length than {count}")
        return (distances.astype(np.uint64) + np.uint64(low & _MASK)).view(np.int64)

    def runs(self, name: str) -> Int64s:
        """Return an array that was written run by run."""
        lengths = self.integers(f"{name}.lengths")
        if (lengths < 1).any():
            raise ValueError(f"`{name}` has a run without a value")
        return np.repeat(self.integers(f"{name}.values"), lengths)

    def words(self, name: str, columns: int) -> UInt64s:
        """Return an array of rows of words."""
        array = self._members.get(name, np.zeros((0, columns), dtype=np.uint64))
        if not isinstance(array, np.ndarray) or array.dtype != np.uint64 or array.shape[1:] != (columns,):
            raise TypeError(f"`{name}` has no rows of {columns} words")
        return array

    def strings(self, name: str) -> list[str]:
        """Return strings."""
        offsets = np.append(0, np.cumsum(self.integers(f"{name}.lengths")))
        return list(PackedStrings.of_parts(self.bytes(f"{name}.text"), offsets))

    def bytes(self, name: str) -> bytes:
        """Return bytes."""
        data = self._members.get(name, b"")
        if not isinstance(data, bytes):
            raise TypeError(f"`{name}` is an array")
        return data
