"""Conditions whose names have become values."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from tocsin.language.normal import to_nnf
from tocsin.model.conditions import FLIPPED, And, Condition, Constant, Operator, Or, Predicate
from tocsin.model.terms import Attribute
from tocsin.sequences.compiling.values import (
    DURATION,
    NOTHING,
    Given,
    Held,
    Made,
    Value,
    made,
    parts_of,
    read_item,
)


class Atom(Struct, frozen=True):
    """A predicate over values."""

    subject: Value
    operator: Operator
    operands: tuple[Value, ...] = ()


class All(Struct, frozen=True):
    """All of some questions."""

    of: tuple[Question, ...]


class Any(Struct, frozen=True):
    """At least one of some questions."""

    of: tuple[Question, ...]


Question: TypeAlias = Atom | All | Any

ALWAYS: Final = All(())
NEVER: Final = Any(())

_PRESENCE: Final = (Operator.MISSING, Operator.PRESENT)
_LISTS: Final = (Operator.IN, Operator.NOT_IN)


def conjuncts_of(condition: Condition, named: Callable[[Attribute], Value]) -> list[Question]:
    """Return the questions that must all hold for a condition to hold; `named` says what its names stand for."""
    return _flat(_question(to_nnf(condition), named))


def rewritten(question: Question, change: Callable[[Held], Value]) -> list[Question]:
    """Return a question with what is held replaced, as questions that must all hold."""
    return _flat(_rewritten(question, change))


def values_in(question: Question) -> Iterator[Value]:
    """Return all values that a question speaks of, and what they are made of."""
    if isinstance(question, Atom):
        for value in (question.subject, *question.operands):
            yield from parts_of(value)
    else:
        for member in question.of:
            yield from values_in(member)


def _question(condition: Condition, named: Callable[[Attribute], Value]) -> Question:
    if isinstance(condition, Predicate):
        subject = read_item(condition.subject, named)
        return _atom(
            subject, condition.operator, tuple(read_item(operand, named) for operand in condition.operands)
        )
    if isinstance(condition, Constant):
        return ALWAYS if condition.truth else NEVER
    if isinstance(condition, And):
        return _all([_question(member, named) for member in condition.conditions])
    if isinstance(condition, Or):
        return _any([_question(member, named) for member in condition.conditions])
    raise TypeError("a negation normal form has no `not`")


def _atom(subject: Value, operator: Operator, operands: tuple[Value, ...]) -> Question:
    """Return the question, settled where something in it is never there, with a constant on the right."""
    if operator in _PRESENCE:
        if subject is NOTHING:
            return ALWAYS if operator is Operator.MISSING else NEVER
        return Atom(subject, operator)
    if subject is NOTHING or (operator not in _LISTS and NOTHING in operands):
        return NEVER
    if operator is Operator.BETWEEN and subject is DURATION:
        low, high = operands
        return All((Atom(subject, Operator.GE, (low,)), Atom(subject, Operator.LE, (high,))))
    if operator in FLIPPED and isinstance(subject, Given) and not isinstance(operands[0], Given):
        return Atom(operands[0], FLIPPED[operator], (subject,))
    return Atom(subject, operator, operands)


def _all(questions: list[Question]) -> Question:
    flat = [part for question in questions for part in _flat(question)]
    if NEVER in flat:
        return NEVER
    return flat[0] if len(flat) == 1 else All(tuple(flat))


def _any(questions: list[Question]) -> Question:
    flat = [
        part for question in questions for part in (question.of if isinstance(question, Any) else (question,))
    ]
    if ALWAYS in flat:
        return ALWAYS
    return flat[0] if len(flat) == 1 else Any(tuple(flat))


def _flat(question: Question) -> list[Question]:
    return list(question.of) if isinstance(question, All) else [question]


def _rewritten(question: Question, change: Callable[[Held], Value]) -> Question:
    if isinstance(question, Atom):
        operands = tuple(_changed(operand, change) for operand in question.operands)
        return _atom(_changed(question.subject, change), question.operator, operands)
    members = [_rewritten(member, change) for member in question.of]
    return _all(members) if isinstance(question, All) else _any(members)


def _changed(value: Value, change: Callable[[Held], Value]) -> Value:
    """Return a value with what is held replaced; what is made of checks and chains is in no question."""
    if isinstance(value, Held):
        return change(value)
    if isinstance(value, Made):
        return made(value.do, _changed(value.left, change), _changed(value.right, change))
    return value
