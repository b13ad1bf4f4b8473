"""Predicates over columns: the truth of a predicate for all rows of a batch at once.

The answers are those of `tocsin.language.semantics.truth`. What arrays cannot compute exactly (sums beyond 64 bits, two columns of
strings, a large integer beside a float) is left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, Protocol, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.formats.arrow_cells import plain_values, valid_cells
from tocsin.formats.opaque_columns import is_opaque
from tocsin.language.semantics import COMPARE, arithmetic, truth
from tocsin.matching.encoding.codes import EXACT
from tocsin.matching.encoding.columns import (
    distinct_texts,
    in_microseconds,
    is_text,
)
from tocsin.matching.word_truths import WordTruths
from tocsin.model.conditions import NEGATIONS, Operator, Predicate
from tocsin.model.terms import Arithmetic, ArithmeticOperator, Attribute, Literal, Negative, Term
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Kind

Mask: TypeAlias = NDArray[np.bool_]

_NEGATIVE: Final = (NEGATIONS | {Operator.PRESENT}) - COMPARE.keys()
_ARITHMETIC: Final[dict[ArithmeticOperator, Callable[[Any, Any], NDArray[Any]]]] = {
    ArithmeticOperator.ADD: np.add,
    ArithmeticOperator.SUBTRACT: np.subtract,
    ArithmeticOperator.MULTIPLY: np.multiply,
}
_WIDEST: Final = 2**62


class ColumnBatch(Protocol):
    """Rows whose values can be read by the column."""

    def __len__(self) -> int: ...

    def leaves_at(self, path: str) -> Sequence[Any]:
        """Return the Arrow arrays with the values at a path, one for each kind of value; none if no row has one."""


class ColumnTruth:
    """Evaluates predicates over one batch; what several predicates need of a column is computed once."""

    def __init__(self, batch: ColumnBatch, words: WordTruths | None = None) -> None:
        self._batch = batch
        self._words = words or WordTruths()
        self._columns: dict[str, list[_Values]] = {}
        self._known: dict[int, tuple[Predicate, Mask | None]] = {}

    def holds(self, predicate: Predicate) -> Mask | None:
        """Return which rows satisfy a predicate, or None if each has to be read to know it."""
        found = self._known.get(id(predicate))
        if found is None:
            try:
                with np.errstate(all="ignore"):  # the values of rows that have none
                    mask: Mask | None = self._evaluate(predicate).true
            except _NeedsRows:
                mask = None
            found = self._known[id(predicate)] = (
                predicate,
                mask,
            )  # the predicate lives as long as its id is used
        return found[1]

    def _evaluate(self, predicate: Predicate) -> _Truth:
        operator, subject = predicate.operator, predicate.subject
        if operator in _NEGATIVE:
            opposite = self._evaluate(self._words.opposite(predicate))
            false = ~opposite.true
            return _Truth(false if opposite.known is None else false & opposite.known, opposite.known)
        if isinstance(subject, Attribute):
            if operator is Operator.MISSING:
                return _Truth(~self._present(subject.path), None)
            if all(isinstance(operand, Literal) for operand in predicate.operands):
                parts = [self._beside_constants(predicate, one) for one in self._values(subject.path)]
                return _either(parts, len(self._batch))
        if operator in COMPARE:
            return self._compare(operator, subject, predicate.operands[0])
        if operator is Operator.BETWEEN:
            above = self._compare(Operator.GE, subject, predicate.operands[0])
            below = self._compare(Operator.LE, subject, predicate.operands[1])
            known = _both(above.known, below.known)
            both = above.true & below.true
            return _Truth(both if known is None else both & known, known)
        raise _NeedsRows

    def _beside_constants(self, predicate: Predicate, column: _Values) -> _Truth:
        if column.kind is Kind.STRING:
            return _of_words(predicate, column, self._words)
        return _beside_constants(predicate, column)

    def _compare(self, operator: Operator, left: Term, right: Term) -> _Truth:
        """Compare two terms, of which numbers alone are compared here."""
        if not _is_number_term(left) and not _is_number_term(right):
            kinds = [
                {one.kind for one in self._values(term.path)}
                if isinstance(term, Attribute)
                else {_kind(term)}
                for term in (left, right)
            ]
            if any(kind - {Kind.NUMBER} for kind in kinds) and all(kinds):
                raise _NeedsRows
        first, second = self._number(left), self._number(right)
        if first is None or second is None:
            return _nothing(len(self._batch))
        return _compared(operator, first, second)

    def _number(self, term: Term) -> _Values | None:
        """Return the values of a term that is a number; None if it is one in no row."""
        if isinstance(term, Literal):
            return _constant(term.value) if term.kind is Kind.NUMBER else None  # type: ignore[arg-type]
        if isinstance(term, Attribute):
            found = [one for one in self._values(term.path) if one.kind is Kind.NUMBER]
            if len(found) > 1:  # floats, and integers that are none
                raise _NeedsRows
            return found[0] if found else None
        if isinstance(term, Negative):
            return self._combine(ArithmeticOperator.SUBTRACT, _constant(0), self._number(term.term))
        if isinstance(term, Arithmetic):
            return self._combine(term.operator, self._number(term.left), self._number(term.right))
        raise _NeedsRows

    def _combine(
        self, operator: ArithmeticOperator, left: _Values | None, right: _Values | None
    ) -> _Values | None:
        """Return two numbers combined, as exactly as Python does; None if there is a result in no row."""
        if left is None or right is None:
            return None
        if not isinstance(left.values, np.ndarray) and not isinstance(right.values, np.ndarray):
            result = arithmetic(operator, left.values, right.values)
            return None if result is None else _constant(result)
        valid = _both(left.valid, right.valid)
        if operator is ArithmeticOperator.DIVIDE:
            if max(left.bound, right.bound) > EXACT:
                raise _NeedsRows
            divisor = np.asarray(right.values)
            if not divisor.all():
                valid = _both(valid, np.broadcast_to(divisor != 0, len(self._batch)))
            quotient = np.true_divide(left.values, np.where(divisor == 0, 1, divisor))
            return _Values(Kind.NUMBER, quotient, valid, float(np.abs(quotient).max(initial=0.0)))
        bound = (
            left.bound * right.bound if operator is ArithmeticOperator.MULTIPLY else left.bound + right.bound
        )
        # A float may stand for an integer: up to 2**53 both give the same result.
        if not bound <= (EXACT if left.is_float or right.is_float else _WIDEST):
            raise _NeedsRows
        return _Values(Kind.NUMBER, _ARITHMETIC[operator](left.values, right.values), valid, bound)

    def _present(self, path: str) -> Mask:
        """Return which rows have a value at a path."""
        found = np.zeros(len(self._batch), dtype=np.bool_)
        for one in self._values(path):
            if one.valid is None:
                return np.ones(len(self._batch), dtype=np.bool_)
            found |= one.valid
        return found

    def _values(self, path: str) -> list[_Values]:
        found = self._columns.get(path)
        if found is None:
            found = [_read(leaf) for leaf in self._batch.leaves_at(path) if leaf.null_count < len(leaf)]
            self._columns[path] = found
        return found


class _NeedsRows(Exception):  # noqa: N818 - it is no error
    """A predicate that Python has to evaluate row by row."""


class _Truth(NamedTuple):
    true: Mask
    known: Mask | None  # None if it is known for all rows; what is true is known


class _Values(NamedTuple):
    """Values of one kind: numbers, booleans, times in microseconds, or positions among the distinct `words`.

    `values` may be a single number, a constant. No number is larger than `bound`, except in rows without a value.
    """

    kind: Kind
    values: NDArray[Any] | int | float
    valid: Mask | None = None
    bound: float = 0
    words: Sequence[str | None] = ()

    @property
    def is_float(self) -> bool:
        return isinstance(self.values, float) or (
            isinstance(self.values, np.ndarray) and self.values.dtype.kind == "f"
        )


def _read(leaf: Any) -> _Values:
    """Return the values of an Arrow array."""
    kind = leaf.type
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        return _read(leaf.dictionary_decode())
    if pa.types.is_dictionary(kind) or is_text(kind):
        words, positions, valid = distinct_texts(leaf)
        return _Values(Kind.STRING, positions, valid, words=words)
    if is_opaque(kind):
        return _Values(Kind.OPAQUE, np.zeros(len(leaf), dtype=np.int64), valid_cells(leaf))
    values, valid = plain_values(leaf)
    if pa.types.is_boolean(kind):
        return _Values(Kind.BOOLEAN, values, valid)
    if pa.types.is_temporal(kind):
        return _Values(Kind.TIMESTAMP, in_microseconds(values, kind), valid)
    if values.dtype.kind == "f":
        values = values.astype(np.float64)
        numbers = values if valid is None else values[valid]
        bound = float(np.abs(numbers).max(initial=0.0))
        return _Values(Kind.NUMBER, values, valid, bound)
    bound = max(int(values.max(initial=0)), -int(values.min(initial=0)))
    if bound >= 2**63:
        return _Values(Kind.NUMBER, values.astype(np.uint64), valid, bound)
    return _Values(Kind.NUMBER, values.astype(np.int64), valid, bound)


def _constant(value: int | float) -> _Values:
    return _Values(Kind.NUMBER, value, None, abs(value))


def _beside_constants(predicate: Predicate, column: _Values) -> _Truth:
    """Return the truth of a predicate over constants and one column, which has no strings."""
    values = column.values
    assert isinstance(values, np.ndarray)  # noqa: S101 - of a column
    constants = [one for one in predicate.operands if isinstance(one, Literal) and one.kind is column.kind]
    others = [_operand(one) for one in constants]
    operator = predicate.operator
    if operator is Operator.IN and others:
        equal = [_compared(Operator.EQ, column, one) for one in others]
        return _Truth(np.logical_or.reduce([one.true for one in equal]), column.valid)
    if operator is Operator.BETWEEN and len(others) == 2:
        above = _compared(Operator.GE, column, others[0])
        return _Truth(above.true & _compared(Operator.LE, column, others[1]).true, column.valid)
    if operator in COMPARE and others:
        return _compared(operator, column, others[0])
    return _nothing(len(values))  # another kind, or a test of strings


def _operand(constant: Literal) -> _Values:
    """Return a constant as the columns of its kind have it."""
    if constant.kind is Kind.TIMESTAMP:
        return _Values(Kind.TIMESTAMP, microseconds(constant.value))  # type: ignore[arg-type]
    if constant.kind is Kind.NUMBER:
        return _constant(constant.value)  # type: ignore[arg-type]
    return _Values(constant.kind, constant.value)  # type: ignore[arg-type]


def _of_words(predicate: Predicate, column: _Values, truths: WordTruths) -> _Truth:
    """Return the truth of a predicate over strings: each distinct one is read once."""
    operator, subject, words = predicate.operator, predicate.subject, column.words
    assert isinstance(subject, Attribute)  # noqa: S101 - the caller has looked
    constants = [one for one in predicate.operands if isinstance(one, Literal)]
    if operator in (Operator.EQ, Operator.IN) and {one.kind for one in constants} == {Kind.STRING}:
        members = {one.value for one in constants}
        found: list[bool | None] = [word in members for word in words]
    else:
        known_words = truths.of(predicate)
        found = []
        for word in words:
            if word is None:
                found.append(None)
                continue
            if word not in known_words:
                known_words[word] = truth(predicate, {subject.path: word})
            found.append(known_words[word])
    positions = np.asarray(column.values)
    true = np.array([one is True for one in found], dtype=np.bool_)[positions]
    known = column.valid
    if None in found:
        known = _both(known, np.array([one is not None for one in found], dtype=np.bool_)[positions])
    return _Truth(true if known is None else true & known, known)


def _compared(operator: Operator, left: _Values, right: _Values) -> _Truth:
    """Compare values of one kind."""
    if left.kind is Kind.NUMBER:
        for one, other in ((left, right), (right, left)):
            # NumPy compares an integer with a float as floats; Python compares them exactly.
            if not one.is_float and one.bound > (EXACT if other.is_float else _WIDEST):
                raise _NeedsRows
    valid = _both(left.valid, right.valid)
    true: Any = COMPARE[operator](left.values, right.values)  # arrays are compared item by item
    if not isinstance(true, np.ndarray):  # two constants
        raise _NeedsRows
    return _Truth(true if valid is None else true & valid, valid)


def _either(parts: list[_Truth], count: int) -> _Truth:
    """Return the truth of a predicate over a column that has values of several kinds; a row has one of them."""
    if not parts:
        return _nothing(count)
    if len(parts) == 1:
        return parts[0]
    known = [np.ones(count, dtype=np.bool_) if one.known is None else one.known for one in parts]
    return _Truth(np.logical_or.reduce([one.true for one in parts]), np.logical_or.reduce(known))


def _nothing(count: int) -> _Truth:
    """Return the truth of a predicate that is unknown for all rows."""
    none = np.zeros(count, dtype=np.bool_)
    return _Truth(none, none)


def _both(first: Mask | None, second: Mask | None) -> Mask | None:
    return second if first is None else first if second is None else first & second


def _is_number_term(term: Term) -> bool:
    return isinstance(term, (Arithmetic, Negative)) or _kind(term) is Kind.NUMBER


def _kind(term: Term) -> Kind | None:
    return term.kind if isinstance(term, Literal) else None
