"""Conjunctions for a conjunctive normal form that is too large to be expanded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tocsin.language.normal.forms import Cnf, Dnf, conjunctions_of
from tocsin.language.normal.negation import to_nnf
from tocsin.model.conditions import Conjunction, Operator, Predicate, clause_predicate
from tocsin.model.terms import Attribute, Literal, Parameter

MAX_DISTRIBUTED: Final = 64  # conjunctions that one CNF may become
_SELECTIVE: Final = {
    Operator.EQ: 0,
    Operator.IN: 1,
    Operator.STARTS_WITH: 2,
    Operator.ENDS_WITH: 2,
    Operator.CONTAINS: 2,
    Operator.BETWEEN: 3,
    Operator.LT: 4,
    Operator.LE: 4,
    Operator.GT: 4,
    Operator.GE: 4,
}
_UNSELECTIVE: Final = 5


def partly_distributed(clauses: Sequence[Conjunction], most: int = MAX_DISTRIBUTED) -> Dnf:
    """Return equivalent conjunctions, in which only some of the clauses are distributed.

    The others stay as they are, each as one predicate of every conjunction. Equalities find candidates best, so clauses
    of few equalities are distributed first: at least one clause, and more while there are at most `most` conjunctions.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> from tocsin.language.normal.forms import to_cnf
    >>> from tocsin.language.printer import condition_text
    >>> cnf = to_cnf(parse_condition("(a = 1 or b = 1) and (c > 1 or d > 1) and e = 1"))
    >>> for conjunction in partly_distributed(cnf.clauses, most=2).conjunctions:
    ...     print(*map(condition_text, conjunction), sep=", ")
    e = 1, a = 1, (c > 1 or d > 1)
    e = 1, b = 1, (c > 1 or d > 1)
    """
    distributed: list[Conjunction] = [clause for clause in clauses if len(clause) == 1]
    rest = sorted((clause for clause in clauses if len(clause) > 1), key=_rank)
    count = 1
    while rest and (count == 1 or count * len(rest[0]) <= most):
        count *= len(rest[0])
        distributed.append(rest.pop(0))
    expanded = conjunctions_of(to_nnf(Cnf(tuple(distributed)).condition()), count)
    return Dnf(tuple(_completed(conjunction, rest) for conjunction in expanded.conjunctions), expanded.never)


def _completed(conjunction: Conjunction, rest: Sequence[Conjunction]) -> Conjunction:
    """Return a conjunction with the clauses that none of its own predicates satisfies already."""
    present = set(conjunction)
    return (*conjunction, *(clause_predicate(clause) for clause in rest if present.isdisjoint(clause)))


def _rank(clause: Conjunction) -> tuple[int, int]:
    """Return a number that is lower the fewer events a clause may let through."""
    return max(map(_selectivity, clause)), len(clause)


def _selectivity(predicate: Predicate) -> int:
    constants = all(type(operand) in (Literal, Parameter) for operand in predicate.operands)
    if type(predicate.subject) is not Attribute or not constants:
        return _UNSELECTIVE
    return _SELECTIVE.get(predicate.operator, _UNSELECTIVE)
