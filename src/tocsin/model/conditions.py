"""Conditions: predicates, and the boolean expressions built of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from enum import StrEnum
from typing import Final, TypeAlias

from msgspec import Struct

from tocsin.model.terms import Alternatives, Term, literal


class Operator(StrEnum):
    """The operator of a predicate; the value is its text."""

    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    BETWEEN = "between"
    NOT_BETWEEN = "not between"
    IN = "in"
    NOT_IN = "not in"
    LIKE = "like"
    NOT_LIKE = "not like"
    STARTS_WITH = "starts with"
    NOT_STARTS_WITH = "not starts with"
    ENDS_WITH = "ends with"
    NOT_ENDS_WITH = "not ends with"
    CONTAINS = "contains"
    NOT_CONTAINS = "not contains"
    REGEX = "~"
    NOT_REGEX = "!~"
    MISSING = "is missing"
    PRESENT = "is present"


class Predicate(Struct, frozen=True, gc=False):
    """A test of `subject`: two operands for `between`, any number for `in`, none for `is missing`."""

    subject: Term
    operator: Operator
    operands: tuple[Term, ...] = ()


class And(Struct, frozen=True, gc=False):
    """All of two or more conditions."""

    conditions: tuple[Condition, ...]


class Or(Struct, frozen=True, gc=False):
    """Any of two or more conditions."""

    conditions: tuple[Condition, ...]


class Not(Struct, frozen=True, gc=False):
    """The opposite; of an unknown, unknown."""

    condition: Condition


class Constant(Struct, frozen=True, gc=False):
    """`true` or `false`."""

    truth: bool


Condition: TypeAlias = Predicate | And | Or | Not | Constant
Conjunction: TypeAlias = tuple[Predicate, ...]

TRUE: Final = Constant(True)
FALSE: Final = Constant(False)

PAIRS: Final = (
    (Operator.EQ, Operator.NE),
    (Operator.LT, Operator.GE),
    (Operator.GT, Operator.LE),
    (Operator.BETWEEN, Operator.NOT_BETWEEN),
    (Operator.IN, Operator.NOT_IN),
    (Operator.LIKE, Operator.NOT_LIKE),
    (Operator.STARTS_WITH, Operator.NOT_STARTS_WITH),
    (Operator.ENDS_WITH, Operator.NOT_ENDS_WITH),
    (Operator.CONTAINS, Operator.NOT_CONTAINS),
    (Operator.REGEX, Operator.NOT_REGEX),
    (Operator.MISSING, Operator.PRESENT),
)

NEGATED: Final[dict[Operator, Operator]] = dict(PAIRS) | {b: a for a, b in PAIRS}
"""The operator that is true exactly where the first is false; both are unknown for the same values."""

NEGATIONS: Final = frozenset(
    o for o in Operator if o.startswith("not ") or o in (Operator.NE, Operator.NOT_REGEX)
)
"""The negative operators."""

FLIPPED: Final[dict[Operator, Operator]] = {
    Operator.EQ: Operator.EQ,
    Operator.NE: Operator.NE,
    Operator.LT: Operator.GT,
    Operator.LE: Operator.GE,
    Operator.GT: Operator.LT,
    Operator.GE: Operator.LE,
}
"""The operator of the same comparison with its two sides exchanged."""


def clause_predicate(clause: Conjunction) -> Predicate:
    """Return one predicate that is true where any predicate of a clause is."""
    return Predicate(Alternatives(clause), Operator.EQ, (literal(True),))


def alternatives_of(predicate: Predicate) -> Conjunction:
    """Return the clause of a `clause_predicate`; any other predicate is a clause of its own."""
    subject = predicate.subject
    return subject.predicates if type(subject) is Alternatives else (predicate,)


def leaves(condition: Condition) -> Iterator[Predicate]:
    """Yield the predicates of a condition, in the order they are written."""
    if isinstance(condition, Predicate):
        yield condition
    elif isinstance(condition, Not):
        yield from leaves(condition.condition)
    elif isinstance(condition, (And, Or)):
        for member in condition.conditions:
            yield from leaves(member)


def map_predicates(condition: Condition, change: Callable[[Predicate], Predicate]) -> Condition:
    """Return a condition with `change` applied to each of its predicates."""
    if isinstance(condition, Predicate):
        return change(condition)
    if isinstance(condition, Not):
        return Not(map_predicates(condition.condition, change))
    if isinstance(condition, Constant):
        return condition
    return type(condition)(tuple(map_predicates(member, change) for member in condition.conditions))


def map_terms(condition: Condition, change: Callable[[Term], Term]) -> Condition:
    """Return a condition with `change` applied to the subject and the operands of each of its predicates."""

    def change_terms(predicate: Predicate) -> Predicate:
        operands = tuple(map(change, predicate.operands))
        return Predicate(change(predicate.subject), predicate.operator, operands)

    return map_predicates(condition, change_terms)


def all_of(conditions: list[Condition]) -> Condition:
    """Return the conjunction: `true` of none, the condition itself of one."""
    return conditions[0] if len(conditions) == 1 else And(tuple(conditions)) if conditions else TRUE


def any_of(conditions: list[Condition]) -> Condition:
    """Return the disjunction: `false` of none, the condition itself of one."""
    return conditions[0] if len(conditions) == 1 else Or(tuple(conditions)) if conditions else FALSE
