"""Codes that stand for values, so that arrays can hold them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any

from tocsin.model.values import Kind, Value, kind_of


def _of_kind(value: Value) -> tuple[Kind, Value]:
    return kind_of(value), value


class Codes:
    """Codes of values, from 0; one is given again once all places that have its value have let it go.

    Two values are the same if their keys are: by default, their kind and what they equal.
    """

    def __init__(self, key: Callable[[Any], Hashable] = _of_kind) -> None:
        self.values: list[Any] = []  # by code
        self._key = key
        self._codes: dict[Hashable, int] = {}
        self._places: Counter[int] = Counter()
        self._free: list[int] = []

    def find(self, value: Any) -> int:
        """Return the code of a value that has one."""
        return self._codes[self._key(value)]

    def take(self, value: Any, places: int = 1) -> int:
        """Return the code of a value for one more place, or for several, a new one if none has it yet."""
        key = self._key(value)
        code = self._codes.get(key)
        if code is None:
            code = self._free.pop() if self._free else len(self.values)
            self._codes[key] = code
            self.values[code : code + 1] = [value]
        self._places[code] += places
        return code

    def let_go(self, codes: Iterable[int]) -> None:
        """Take note that places have lost their value; of each place, its code."""
        for code in codes:
            self._places[code] -= 1
            if not self._places[code]:
                del self._places[code]
                del self._codes[self._key(self.values[code])]
                self.values[code] = None
                self._free.append(code)
