"""Interning: values to small integers (codes) and back, with counts of uses.

One table serves all that intern: names and constants of predicates, columns and streams, the values of rows. Choose by how
long a code must live:

- `code` interns without counting a use. Such a code stays until `forget_unused`, or until uses of it were counted and the
  last one is released.
- `retain` and `release` count uses of many codes at once, `acquire` and `release_one` of one. A value whose last use is
  released is forgotten, and its code is handed out again.
- `forget_except` is for users that cannot count: they find out which codes are alive and forget the rest.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from collections.abc import Set as AbstractSet
from typing import Generic, TypeVar

import numpy as np

from tocsin.structures.array_types import Bools, Int64s
from tocsin.structures.slots import Slots

Value = TypeVar("Value", bound=Hashable)

_LEAST = 64


class InterningTable(Generic[Value]):
    """Values by code and codes by value. `version` changes whenever a code begins or ceases to stand for a value.

    >>> table = InterningTable[str]()
    >>> table.acquire("a"), table.acquire("b"), table.acquire("a"), table.values
    (0, 1, 0, ['a', 'b'])
    >>> table.release_one(1), table.release_one(0), dict(table.codes), table.acquire("c")
    (True, False, {'a': 0}, 1)
    """

    def __init__(self) -> None:
        self.codes: dict[Value, int] = {}
        self.values: list[Value | None] = []  # [code] None where the code is free
        self.version = 0
        self._uses: Int64s = np.zeros(_LEAST, dtype=np.int64)  # [code]
        self._slots = Slots()
        self._unused: set[int] = set()  # codes that `code` handed out and nobody has retained

    def __len__(self) -> int:
        return len(self.codes)

    def __iter__(self) -> Iterator[tuple[int, Value]]:
        return ((code, value) for value, code in self.codes.items())

    @property
    def top(self) -> int:
        """Return the number above every code ever handed out."""
        return len(self.values)

    def code(self, value: Value) -> int:
        """Return the code of a value; a new value gets a code without a use."""
        code = self.codes.get(value)
        if code is None:
            code = self._new(value)
            self._unused.add(code)
        return code

    def acquire(self, value: Value, uses: int = 1) -> int:
        """Return the code of a value and count uses of it; a new value gets a code."""
        code = self.codes.get(value)
        if code is None:
            code = self._new(value)
        elif self._unused:
            self._unused.discard(code)
        self._uses[code] += uses
        return code

    def value(self, code: int) -> Value:
        """Return the value of a code, or raise `KeyError` if the code is free."""
        value = self.values[code]
        if value is None:
            raise KeyError(code)
        return value

    def is_known(self, code: int) -> bool:
        """Tell whether a code stands for a value."""
        return code < len(self.values) and self.values[code] is not None

    def is_used(self, codes: Int64s) -> Bools:
        """Tell which of these codes have a use."""
        return np.asarray(self._uses[codes] > 0)

    def retain(self, codes: Int64s) -> None:
        """Count one use of each of these codes; a code that is repeated gets several."""
        if len(codes):
            np.add.at(self._uses, codes, 1)
            if self._unused:
                self._unused.difference_update(codes.tolist())

    def retain_one(self, code: int) -> None:
        """Count one use of a code."""
        self._uses[code] += 1
        if self._unused:
            self._unused.discard(code)

    def release(self, codes: Int64s) -> list[Value]:
        """Take back one use of each of these codes; return the values that are forgotten."""
        if not len(codes):
            return []
        np.subtract.at(self._uses, codes, 1)
        ended = np.unique(codes[self._uses[codes] == 0])
        return [self._forget(code) for code in ended.tolist()]

    def release_one(self, code: int) -> bool:
        """Take back one use of a code; return whether its value is forgotten."""
        self._uses[code] -= 1
        is_last = not self._uses[code]
        if is_last:
            self._forget(code)
        return is_last

    def forget_unused(self) -> None:
        """Forget the values that got a code without a use and were never retained."""
        for code in self._unused:
            self._forget(code)
        self._unused.clear()

    def forget_except(self, codes: AbstractSet[int]) -> None:
        """Forget all values but those of these codes; for tables in which no uses are counted."""
        for code in [code for code in self.codes.values() if code not in codes]:
            self._forget(code)
        self._unused &= codes

    def restore(self, values: list[Value | None], uses: Int64s) -> None:
        """Replace the table by the `contents` of another."""
        self.values = list(values)
        self._uses = np.zeros(max(_LEAST, len(values)), dtype=np.int64)
        self._uses[: len(values)] = uses[: len(values)]
        codes: dict[Value | None, int] = dict(zip(values, range(len(values)), strict=True))
        codes.pop(None, None)
        self.codes = codes
        self._find_free()
        self._unused = set()
        self.version += 1

    def copy(self) -> InterningTable[Value]:
        """Return a table of the same values and codes, none of them in use."""
        table: InterningTable[Value] = InterningTable()
        table.restore(self.values, np.zeros(self.top, dtype=np.int64))
        table._unused = set(self.codes.values())
        return table

    def agrees_with(self, other: InterningTable[Value]) -> bool:
        """Tell whether `merge` is possible: no value has two codes, and no code two values."""
        return all(
            self.codes[value] == code if value in self.codes else not self.is_known(code)
            for value, code in other.codes.items()
        )

    def merge(self, other: InterningTable[Value]) -> None:
        """Add the values of a table that this one agrees with, under the same codes and with their uses."""
        self.values += [None] * (other.top - self.top)
        if other.top > len(self._uses):
            self._uses = np.concatenate([self._uses, np.zeros(other.top, dtype=np.int64)])
        for value, code in other.codes.items():
            self.values[code] = value
            self.codes[value] = code
        self._uses[: other.top] += other._uses[: other.top]
        self._unused -= set(other.codes.values())
        self._find_free()
        self.version += 1

    def contents(self) -> tuple[list[Value | None], Int64s]:
        """Return the values and their uses by code, as `restore` takes them; values without a use are forgotten."""
        self.forget_unused()
        return list(self.values), self._uses[: len(self.values)].copy()

    def _new(self, value: Value) -> int:
        """Give a new value a code, with no uses yet, and return the code."""
        code = self._slots.take()
        if code < len(self.values):
            self.values[code] = value
        else:
            self.values.append(value)
            if code >= len(self._uses):
                self._uses = np.concatenate([self._uses, np.zeros(len(self._uses), dtype=np.int64)])
        self.codes[value] = code
        self.version += 1
        return code

    def _forget(self, code: int) -> Value:
        """Free a code and return the value that had it."""
        value = self.value(code)
        del self.codes[value]
        self.values[code] = None
        self._slots.give(code)
        self.version += 1
        return value

    def _find_free(self) -> None:
        """Rebuild the free list from the codes without a value."""
        is_dense = len(self.codes) == len(self.values)
        free = () if is_dense else (code for code, value in enumerate(self.values) if value is None)
        self._slots = Slots(self.top, free)
