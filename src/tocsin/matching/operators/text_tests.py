"""The tests on strings of all predicates, and the evaluation of strings against them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.matching.operators.index import OperatorIndex, PassedTests, Patterns, Texts
from tocsin.matching.operators.registry import operator_indexes
from tocsin.model.conditions import Operator
from tocsin.structures.interning import InterningTable

if TYPE_CHECKING:
    from tocsin.matching.operators.uses import UseCounts

IS_TEXT: Final = -1  # follows the codes that a string passes, so that `not contains` knows it is a string
_CODE_BITS: Final = 32
_CODE: Final = (1 << _CODE_BITS) - 1


def pattern_symbol(operator: Operator, constant: str) -> str:
    """Return the symbol of an operator and its constant."""
    return f"{operator}\t{constant}"


def pattern_of(symbol: str) -> tuple[Operator, str]:
    """Return the operator and the constant of a symbol."""
    operator, _, constant = symbol.partition("\t")
    return Operator(operator), constant


class TextTests:
    """The tests of each attribute by code; `patterns` has their operators and constants.

    One thread changes the tests at a time; several may call `passed` at once. New tests enter the operators' indexes at the
    next `passed`, so that a vocabulary that is only saved builds no index. After a change that was interrupted, or ran
    out of memory, the indexes are rebuilt from the counts.
    """

    def __init__(self, patterns: InterningTable[str]) -> None:
        self.version = 0  # changes whenever a test of an attribute is added or removed
        self.attributes: dict[int, int] = {}  # number of tests by attribute
        self._patterns = patterns
        self._indexes: dict[Operator, OperatorIndex] = {}
        self._lock = Lock()
        self._sound = True  # the indexes, the counts and the queue agree

    @cached_property
    def _uses(self) -> UseCounts:
        from tocsin.matching.operators.uses import UseCounts  # noqa: PLC0415 - it imports the compiler

        return UseCounts()

    def __len__(self) -> int:
        return sum(self.attributes.values())

    def retain(self, attributes: Keys, codes: Keys) -> None:
        """Count one use of each of these tests."""
        self._retain(attributes, codes, np.ones(len(codes), dtype=np.int64))

    def release(self, attributes: Keys, codes: Keys) -> None:
        """Count one use less of each; the codes must still be in `patterns`."""
        if not len(codes):
            return
        with self._changing():
            ended, indexed = self._uses.take(attributes, codes)
            self._count(attributes[ended], -1)
            for operator, tests in self._by_operator(attributes[indexed], codes[indexed]).items():
                self._indexes[operator].remove(tests)

    def merge(self, other: TextTests) -> None:
        """Add the uses of other tests with the same codes."""
        self.restore(other.contents())

    def contents(self) -> Keys:
        """Return a row of attribute, code and number of uses for each test, as `restore` takes them."""
        return self._uses.rows() if self.attributes else np.zeros((0, 3), dtype=np.int64)

    def restore(self, rows: Keys) -> None:
        """Add the `contents` of other tests."""
        self._retain(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy())

    def passed(self, attributes: Keys, strings: Sequence[str]) -> PassedTests:
        """Return, for each string, the tests on its attribute that it passes: ascending codes, then `IS_TEXT`."""
        texts = Texts(attributes, strings)
        numbers = np.arange(len(strings), dtype=np.int64)
        parts = [(numbers << _CODE_BITS) | _CODE]
        with self._changing():
            self._settle()
            for index in self._indexes.values():
                offsets, codes = index.passed(texts)
                if len(codes):
                    parts.append((np.repeat(numbers, np.diff(offsets)) << _CODE_BITS) | codes)
        found = np.sort(np.concatenate(parts)) if len(parts) > 1 else parts[0]
        codes = found & _CODE
        last = codes == _CODE
        codes[last] = IS_TEXT
        ends = np.zeros(len(strings) + 1, dtype=np.int64)
        ends[1:] = np.flatnonzero(last) + 1
        return PassedTests(ends, codes)

    def _retain(self, attributes: Keys, codes: Keys, more: Keys) -> None:
        if not len(codes):
            return
        with self._changing():
            self._count(attributes[self._uses.add(attributes, codes, more)], 1)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Hold the lock. After an exception, the next holder rebuilds the indexes."""
        with self._lock:
            if not self._sound:
                self._start_over()
            self._sound = False
            yield
            self._sound = True

    def _start_over(self) -> None:
        """Drop the indexes and queue all tests again."""
        self._indexes = {}
        self._uses.wait_again()
        held = dict(zip(*map(np.ndarray.tolist, np.unique_counts(self._uses.rows()[:, 0])), strict=True))
        self.attributes.update(held)  # never empty in between: encoders read it without the lock
        for attribute in [attribute for attribute in self.attributes if attribute not in held]:
            del self.attributes[attribute]
        self.version += 1

    def _count(self, attributes: Keys, change: int) -> None:
        """Add `change` to the number of tests of these attributes, once for each time one is named."""
        for attribute, count in zip(*map(np.ndarray.tolist, np.unique_counts(attributes)), strict=True):
            total = self.attributes.get(attribute, 0) + change * count
            self.version += 1
            if total:
                self.attributes[attribute] = total
            else:
                del self.attributes[attribute]

    def _settle(self) -> None:
        """Insert the queued tests into the indexes of their operators."""
        waiting = self._uses.waiting()
        if waiting is not None:
            for operator, tests in self._by_operator(*waiting).items():
                if operator not in self._indexes:
                    self._indexes[operator] = operator_indexes()[operator]()
                self._indexes[operator].insert(tests)

    def _by_operator(self, attributes: Keys, codes: Keys) -> dict[Operator, Patterns]:
        """Return the tests by operator."""
        symbol = self._patterns.value
        read = [symbol(code).partition("\t") for code in codes.tolist()]
        operators = np.array([operator for operator, _, _ in read], dtype=object)
        found = {}
        for operator in sorted(set(operators.tolist())):
            rows = np.flatnonzero(operators == operator)
            constants = [read[row][2] for row in rows.tolist()]
            found[Operator(operator)] = Patterns(attributes[rows], codes[rows], constants)
        return found
