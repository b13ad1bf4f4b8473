"""The tests on strings that are held, and which of them a string passes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.matching.operators.index import OperatorIndex, Passed, Patterns, Texts
from tocsin.matching.operators.registry import operator_indexes
from tocsin.model.conditions import Operator
from tocsin.structures.symbols import SymbolTable

__all__ = ["IS_TEXT", "TextTests", "pattern_of", "pattern_symbol"]

IS_TEXT: Final = (
    -1
)  # stands behind the tests that a string passes: were there none, it is a string all the same
_CODE_BITS: Final = 32
_CODE: Final = (1 << _CODE_BITS) - 1


def pattern_symbol(operator: Operator, constant: str) -> str:
    """Return an operator and its constant as one symbol."""
    return f"{operator}\t{constant}"


def pattern_of(symbol: str) -> tuple[Operator, str]:
    """Return the operator and the constant of a symbol."""
    operator, _, constant = symbol.partition("\t")
    return Operator(operator), constant


class TextTests:
    """The tests that are held of each attribute, by code; `patterns` says what the codes mean.

    Who changes what is held does so one at a time; several may ask at once. What is new goes into the operators'
    indexes when somebody asks, so that a vocabulary that is only written down builds none.
    """

    def __init__(self, patterns: SymbolTable[str]) -> None:
        self.version = 0  # changes whenever a test comes to be held of an attribute, or ceases to be
        self.attributes: dict[int, int] = {}  # those that are tested, with the number of tests
        self._patterns = patterns
        self._uses: dict[int, int] = {}  # attribute and code in one -> predicates that hold the test
        self._waiting: dict[int, None] = {}  # those of them that are in no index yet
        self._indexes: dict[Operator, OperatorIndex] = {}
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._uses)

    def hold(self, attributes: Keys, codes: Keys) -> None:
        """Count one more use of each of these tests."""
        self._hold(_keys(attributes, codes), (1,) * len(codes))

    def release(self, attributes: Keys, codes: Keys) -> None:
        """Count one use less of each; what the codes mean must still be known."""
        gone = []
        with self._lock:
            for key in _keys(attributes, codes):
                self._uses[key] -= 1
                if not self._uses[key]:
                    del self._uses[key]
                    self._count(key >> _CODE_BITS, -1)
                    if key in self._waiting:
                        del self._waiting[key]
                    else:
                        gone.append(key)
            for operator, tests in self._by_operator(gone).items():
                self._indexes[operator].remove(tests)

    def take_in(self, other: TextTests) -> None:
        """Hold, besides its own, what other tests hold whose codes mean the same."""
        self._hold(other._uses.keys(), other._uses.values())

    def contents(self) -> Keys:
        """Return what `restore` takes: attribute, code and number of uses of each test, a row each."""
        rows = [(key >> _CODE_BITS, key & _CODE, uses) for key, uses in self._uses.items()]
        return np.array(rows, dtype=np.int64).reshape(-1, 3)

    def restore(self, rows: Keys) -> None:
        """Hold what other tests held; there is nothing held yet."""
        self._hold(_keys(rows[:, 0], rows[:, 1]), rows[:, 2].tolist())

    def passed(self, attributes: Keys, strings: Sequence[str]) -> Passed:
        """Return which tests of its attribute each string passes: ascending codes, and `IS_TEXT` behind them."""
        texts = Texts(attributes, strings)
        numbers = np.arange(len(strings), dtype=np.int64)
        parts = [(numbers << _CODE_BITS) | _CODE]
        with self._lock:
            self._settle()
            for index in self._indexes.values():
                offsets, codes = index.passed(texts)
                parts.append((np.repeat(numbers, np.diff(offsets)) << _CODE_BITS) | codes)
        found = np.sort(np.concatenate(parts)) if len(parts) > 1 else parts[0]
        ends = np.zeros(len(strings) + 1, dtype=np.int64)
        last = (found & _CODE) == _CODE
        ends[1:] = np.flatnonzero(last) + 1
        return Passed(ends, np.where(last, IS_TEXT, found & _CODE))

    def _hold(self, keys: Iterable[int], uses: Iterable[int]) -> None:
        with self._lock:
            for key, more in zip(keys, uses, strict=True):
                held = self._uses.get(key)
                if held is None:
                    self._uses[key] = more
                    self._waiting[key] = None
                    self._count(key >> _CODE_BITS, 1)
                else:
                    self._uses[key] = held + more

    def _count(self, attribute: int, change: int) -> None:
        self.version += 1
        held = self.attributes.get(attribute, 0) + change
        if held:
            self.attributes[attribute] = held
        else:
            del self.attributes[attribute]

    def _settle(self) -> None:
        """Enter what is waiting into the indexes of its operators."""
        if self._waiting:
            for operator, tests in self._by_operator(self._waiting).items():
                if operator not in self._indexes:
                    self._indexes[operator] = operator_indexes()[operator]()
                self._indexes[operator].insert(tests)
            self._waiting.clear()

    def _by_operator(self, keys: Iterable[int]) -> dict[Operator, Patterns]:
        found: dict[Operator, tuple[list[int], list[str]]] = {}
        for key in keys:
            operator, constant = pattern_of(self._patterns.symbol(key & _CODE))
            of_operator = found.setdefault(operator, ([], []))
            of_operator[0].append(key)
            of_operator[1].append(constant)
        return {
            operator: Patterns(
                (both := np.array(tests, dtype=np.int64)) >> _CODE_BITS, both & _CODE, constants
            )
            for operator, (tests, constants) in found.items()
        }


def _keys(attributes: Keys, codes: Keys) -> list[int]:
    keys: list[int] = ((attributes << _CODE_BITS) | codes).tolist()
    return keys
