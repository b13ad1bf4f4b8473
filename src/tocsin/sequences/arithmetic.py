"""Arithmetic of sequences, on 64 bits, the same in Python and in kernels.

Integers are exact as long as the result fits into 64 bits; otherwise the nearest floats are used. An event's integer
that does not fit counts as the nearest float. A quotient is the quotient of the nearest floats.
"""

from __future__ import annotations

import math
import operator as python
from typing import Final

from tocsin.language.semantics import ARITHMETIC
from tocsin.model.terms import AggregateFunction, ArithmeticOperator
from tocsin.model.values import Opaque, Value, kind_of

_WIDE: Final = 2**63


def combine(operator: ArithmeticOperator, left: Value | None, right: Value | None) -> int | float | None:
    """Combine two numbers; return None for other kinds, for division by zero, and if the result is NaN.

    >>> combine(ArithmeticOperator.ADD, 2**62, 2**62), combine(ArithmeticOperator.DIVIDE, 7, 2)
    (9.223372036854776e+18, 3.5)
    """
    first, second = _number(left), _number(right)
    if first is None or second is None:
        return None
    if operator is ArithmeticOperator.DIVIDE:
        return None if second == 0 else _known(float(first) / float(second))
    result = ARITHMETIC[operator](first, second)
    if isinstance(result, int) and not -_WIDE <= result < _WIDE:
        return _known(ARITHMETIC[operator](float(first), float(second)))
    return _known(result)


def accumulate(function: AggregateFunction, old: Value | None, new: Value | None) -> Value | None:
    """Return an aggregate so far, `old`, after one more value, `new`; a value of the wrong kind changes nothing.

    >>> accumulate(AggregateFunction.SUM, None, 2), accumulate(AggregateFunction.SUM, 2, "dear")
    (2, 2)
    """
    if function is AggregateFunction.COUNT:
        counted = 0 if old is None else old
        return counted if new is None else combine(ArithmeticOperator.ADD, counted, 1)
    if function is AggregateFunction.SUM:
        if _number(new) is None:
            return old
        return combine(ArithmeticOperator.ADD, 0 if old is None else old, new)
    if old is None or new is None:
        return new if old is None else old
    if isinstance(old, Opaque) or isinstance(new, Opaque):  # what can be compared comes first
        return old if isinstance(new, Opaque) else new
    if kind_of(old) is not kind_of(new):
        return old
    better = python.lt if function is AggregateFunction.MIN else python.gt
    return new if better(new, old) else old


def _number(value: Value | None) -> int | float | None:
    """Return a value as an operand of arithmetic, or None if it is no number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return value if isinstance(value, float) else _fitting(value)


def _known(result: int | float) -> int | float | None:
    if isinstance(result, float):
        return None if math.isnan(result) else result
    return _fitting(result)


def _fitting(value: int) -> int | float | None:
    """Return an integer that fits into 64 bits as it is, another as the nearest float, if there is one."""
    if -_WIDE <= value < _WIDE:
        return value
    try:
        return float(value)
    except OverflowError:
        return None
