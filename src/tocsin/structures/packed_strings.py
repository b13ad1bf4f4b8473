"""Sequences of strings that are made when somebody asks for them; a Python string takes 49 bytes and its characters."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Self, overload

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.array_types import Int64s

_SLICE: Final = 1 << 14  # strings that are made at a time
_ANY: Final = "surrogatepass"  # a half of a surrogate pair is for others to refuse


class LazyStrings(Sequence[str]):
    """A sequence of strings that are not stored as such; it equals any sequence of the same strings."""

    __slots__ = ()

    @abstractmethod
    def at(self, position: int) -> str:
        """Return the string at a position from 0 on."""

    @abstractmethod
    def listed(self, begin: int, end: int) -> list[str]:
        """Return the strings from `begin` to `end`."""

    @abstractmethod
    def at_all(self, positions: Int64s) -> list[str]:
        """Return the strings at these positions as a list."""

    @abstractmethod
    def take(self, positions: Int64s, /) -> Self:
        """Return the strings at these positions."""

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        """Return one string, or a list of those in a slice."""
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            return (
                self.listed(begin, max(begin, end))
                if step == 1
                else [self.at(i) for i in range(begin, end, step)]
            )
        return self.at(range(len(self))[index])

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), _SLICE):
            yield from self.listed(begin, min(begin + _SLICE, len(self)))

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Sequence)
            and len(self) == len(other)
            and all(one == another for one, another in zip(self, other, strict=True))
        )

    __hash__ = None  # it equals lists, which have none

    def __repr__(self) -> str:
        shown = ", ".join(map(repr, self[:3]))
        return f"<{len(self):,} strings: {shown}{', …' if len(self) > 3 else ''}>"


class PackedStrings(LazyStrings):
    """Strings as one block of UTF-8.

    >>> packed = PackedStrings(["a", "größe", ""])
    >>> packed[1], list(packed.take(np.array([2, 0]))), packed == ["a", "größe", ""]
    ('größe', ['', 'a'], True)
    """

    __slots__ = ("_data", "_offsets")

    def __init__(self, strings: Sequence[str]) -> None:
        joined = "".join(strings)
        self._data = joined.encode(errors=_ANY)
        lengths: Iterator[int] = map(len, strings)
        if len(self._data) > len(joined):  # some characters take several bytes
            lengths = (len(one.encode(errors=_ANY)) for one in strings)
        offsets = np.zeros(len(strings) + 1, dtype=np.int64)
        np.cumsum(np.fromiter(lengths, dtype=np.int64, count=len(strings)), out=offsets[1:])
        is_short = len(self._data) < 1 << 32
        self._offsets: NDArray[np.uint32] | Int64s = offsets.astype(np.uint32) if is_short else offsets

    @classmethod
    def of_parts(cls, data: bytes, offsets: NDArray[Any]) -> PackedStrings:
        """Return the strings of which these are `data` and `offsets`, or raise `ValueError` if they do not fit."""
        fits = offsets.ndim == 1 and offsets.dtype in (np.uint32, np.int64) and len(offsets) > 0
        if not fits or offsets[0] != 0 or offsets[-1] != len(data) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError("the ends of strings do not fit their characters")
        packed = cls(())
        packed._data, packed._offsets = data, offsets
        return packed

    @property
    def data(self) -> bytes:
        """Return the characters of all strings in UTF-8."""
        return self._data

    @property
    def offsets(self) -> NDArray[np.uint32] | Int64s:
        """Return where in `data` each string begins, and the end of the last one."""
        return self._offsets

    def __len__(self) -> int:
        return len(self._offsets) - 1

    def at(self, position: int) -> str:
        """Return the string at a position from 0 on."""
        offsets = self._offsets
        return self._data[offsets.item(position) : offsets.item(position + 1)].decode(errors=_ANY)

    def listed(self, begin: int, end: int) -> list[str]:
        """Return the strings from `begin` to `end`."""
        data, offsets = self._data, self._offsets[begin : end + 1].tolist()
        return [data[a:b].decode(errors=_ANY) for a, b in pairwise(offsets)]

    def at_all(self, positions: Int64s) -> list[str]:
        """Return the strings at these positions as a list."""
        data = self._data
        begins, ends = self._offsets[positions].tolist(), self._offsets[positions + 1].tolist()
        return [data[a:b].decode(errors=_ANY) for a, b in zip(begins, ends, strict=True)]

    def take(self, positions: Int64s, /) -> PackedStrings:
        """Return the strings at these positions."""
        return PackedStrings(self.at_all(positions))
