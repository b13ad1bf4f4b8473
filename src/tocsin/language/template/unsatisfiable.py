"""The rows of a template that can never match, found for all rows at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.language.normal import Cnf, Dnf
from tocsin.language.template.columns import Column
from tocsin.model.conditions import Conjunction, Operator
from tocsin.model.terms import Literal, Parameter, Term
from tocsin.model.values import Kind

_LOWER: Final = {Operator.GT: True, Operator.GE: False, Operator.EQ: False, Operator.BETWEEN: False}
_EXACT: Final = 2**53
_UPPER: Final = {Operator.LT: True, Operator.LE: False, Operator.EQ: False, Operator.BETWEEN: False}


def empty_rows(normal: Dnf | Cnf, columns: Mapping[str, Column], size: int) -> NDArray[np.bool_]:
    """Return the rows whose bounds on some attribute leave no number, in every alternative.

    Only numeric columns are checked; any other row that can never match is kept and never matches. The clauses of
    one predicate are checked together, other clauses one by one.
    """
    if isinstance(normal, Dnf):
        return _all_empty(normal.conjunctions, columns, size)
    never = _empty(tuple(clause[0] for clause in normal.clauses if len(clause) == 1), columns, size)
    for clause in normal.clauses:
        never |= _all_empty([(predicate,) for predicate in clause], columns, size)
    return never


def _all_empty(
    conjunctions: Iterable[Conjunction], columns: Mapping[str, Column], size: int
) -> NDArray[np.bool_]:
    """Tell for each row whether all conjunctions are unsatisfiable."""
    never = np.ones(size, dtype=np.bool_)
    for conjunction in conjunctions:
        never &= _empty(conjunction, columns, size)
        if not never.any():
            break
    return never


def _empty(conjunction: Conjunction, columns: Mapping[str, Column], size: int) -> NDArray[np.bool_]:
    """Tell for each row whether the bounds on some subject of the conjunction exclude each other."""
    bounds: dict[Term, tuple[list[tuple[Column, bool]], list[tuple[Column, bool]]]] = {}
    for predicate in conjunction:
        sides = bounds.setdefault(predicate.subject, ([], []))
        for side, strict, operand in zip(sides, (_LOWER, _UPPER), (0, -1), strict=True):
            if predicate.operator in strict:
                numbers = _numbers(predicate.operands[operand], columns)
                if numbers is not None:
                    side.append((numbers, strict[predicate.operator]))
    empty = np.zeros(size, dtype=np.bool_)
    for lows, highs in bounds.values():
        for low, low_strict in lows:
            for high, high_strict in highs:
                if (_exact(low) and _exact(high)) or low.dtype == high.dtype:
                    empty |= (low >= high) if low_strict or high_strict else (low > high)
    return empty


def _exact(column: Column) -> bool:
    """Return whether NumPy compares these numbers exactly with numbers of another type."""
    return (
        column.dtype.kind == "f"
        or not column.size
        or bool(column.min() >= -_EXACT and column.max() <= _EXACT)
    )


def _numbers(term: Term, columns: Mapping[str, Column]) -> Column | None:
    if isinstance(term, Literal) and term.kind is Kind.NUMBER and abs(term.value) <= _EXACT:  # type: ignore[arg-type]
        return np.asarray(term.value)
    if isinstance(term, Parameter) and columns[term.name].dtype.kind in "iuf":
        return columns[term.name]
    return None
