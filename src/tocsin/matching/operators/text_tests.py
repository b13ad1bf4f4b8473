"""The tests on strings that are held, and which of them a string passes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Final

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.matching.operators.index import OperatorIndex, Passed, Patterns, Texts
from tocsin.matching.operators.registry import operator_indexes
from tocsin.model.conditions import Operator
from tocsin.structures.interning import InterningTable

if TYPE_CHECKING:
    from tocsin.matching.operators.uses import UseCounts

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
    indexes when somebody asks, so that a vocabulary that is only written down builds none. Where a change is cut short,
    by an interrupt or for want of memory, the indexes are built anew from what is held.
    """

    def __init__(self, patterns: InterningTable[str]) -> None:
        self.version = 0  # changes whenever a test comes to be held of an attribute, or ceases to be
        self.attributes: dict[int, int] = {}  # those that are tested, with the number of tests
        self._patterns = patterns
        self._indexes: dict[Operator, OperatorIndex] = {}
        self._lock = Lock()
        self._sound = True  # the indexes, the counts and what waits agree with one another

    @cached_property
    def _uses(self) -> UseCounts:
        from tocsin.matching.operators.uses import UseCounts  # noqa: PLC0415 - it brings the compiler

        return UseCounts()

    def __len__(self) -> int:
        return sum(self.attributes.values())

    def hold(self, attributes: Keys, codes: Keys) -> None:
        """Count one more use of each of these tests."""
        self._hold(attributes, codes, np.ones(len(codes), dtype=np.int64))

    def release(self, attributes: Keys, codes: Keys) -> None:
        """Count one use less of each; what the codes mean must still be known."""
        if not len(codes):
            return
        with self._changing():
            ended, indexed = self._uses.take(attributes, codes)
            self._count(attributes[ended], -1)
            for operator, tests in self._by_operator(attributes[indexed], codes[indexed]).items():
                self._indexes[operator].remove(tests)

    def take_in(self, other: TextTests) -> None:
        """Hold, besides its own, what other tests hold whose codes mean the same."""
        self.restore(other.contents())

    def contents(self) -> Keys:
        """Return what `restore` takes: attribute, code and number of uses of each test, a row each."""
        return self._uses.rows() if self.attributes else np.zeros((0, 3), dtype=np.int64)

    def restore(self, rows: Keys) -> None:
        """Hold what other tests held, besides what is held already."""
        self._hold(rows[:, 0].copy(), rows[:, 1].copy(), rows[:, 2].copy())

    def passed(self, attributes: Keys, strings: Sequence[str]) -> Passed:
        """Return which tests of its attribute each string passes: ascending codes, and `IS_TEXT` behind them."""
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
        return Passed(ends, codes)

    def _hold(self, attributes: Keys, codes: Keys, more: Keys) -> None:
        if not len(codes):
            return
        with self._changing():
            self._count(attributes[self._uses.add(attributes, codes, more)], 1)

    @contextmanager
    def _changing(self) -> Iterator[None]:
        """Keep others out. What is left by an exception is put right by whoever comes next."""
        with self._lock:
            if not self._sound:
                self._start_over()
            self._sound = False
            yield
            self._sound = True

    def _start_over(self) -> None:
        """Drop the indexes: all that is held waits again."""
        self._indexes = {}
        self._uses.wait_again()
        held = dict(zip(*map(np.ndarray.tolist, np.unique_counts(self._uses.rows()[:, 0])), strict=True))
        self.attributes.update(held)  # never empty in between: others look into it without the lock
        for attribute in [attribute for attribute in self.attributes if attribute not in held]:
            del self.attributes[attribute]
        self.version += 1

    def _count(self, attributes: Keys, change: int) -> None:
        """Count more tests, or less, of these attributes; one may be named several times."""
        for attribute, count in zip(*map(np.ndarray.tolist, np.unique_counts(attributes)), strict=True):
            held = self.attributes.get(attribute, 0) + change * count
            self.version += 1
            if held:
                self.attributes[attribute] = held
            else:
                del self.attributes[attribute]

    def _settle(self) -> None:
        """Enter what is waiting into the indexes of its operators."""
        waiting = self._uses.waiting()
        if waiting is not None:
            for operator, tests in self._by_operator(*waiting).items():
                if operator not in self._indexes:
                    self._indexes[operator] = operator_indexes()[operator]()
                self._indexes[operator].insert(tests)

    def _by_operator(self, attributes: Keys, codes: Keys) -> dict[Operator, Patterns]:
        symbol = self._patterns.value
        read = [symbol(code).partition("\t") for code in codes.tolist()]
        operators = np.array([operator for operator, _, _ in read], dtype=object)
        found = {}
        for operator in sorted(set(operators.tolist())):
            rows = np.flatnonzero(operators == operator)
            constants = [read[row][2] for row in rows.tolist()]
            found[Operator(operator)] = Patterns(attributes[rows], codes[rows], constants)
        return found
