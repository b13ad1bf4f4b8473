"""The static part of questions: what can be asked of the event alone, so that a matcher holds it."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import Final

from tocsin.model.conditions import FALSE, TRUE, And, Condition, Or, Predicate, all_of
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.sequences.compiling.questions import All, Atom, Question
from tocsin.sequences.compiling.values import Given, Read

_MOST: Final = (
    32  # conjunctions of one static part: a guard's and an edge's together are within what a matcher takes
)


def split(questions: Iterable[Question]) -> tuple[Condition, list[Question]]:
    """Return the static part of questions that must all hold, and those that have more to them.

    A question that mixes both is among the second; what it says of the event alone, whatever the rest may be, is in
    the first as well. So is one that would make the first have too many alternatives for an index.
    """
    static: list[Condition] = []
    dynamic: list[Question] = []
    alternatives = 1
    for question in questions:
        relaxed, whole = _relaxed(question)
        grown = alternatives * _alternatives(relaxed)
        if grown > _MOST:
            dynamic.append(question)
            continue
        alternatives = max(grown, 1)
        if relaxed != TRUE:
            static += relaxed.conditions if isinstance(relaxed, And) else (relaxed,)
        if not whole:
            dynamic.append(question)
    return FALSE if FALSE in static else all_of(list(dict.fromkeys(static))), dynamic


def _alternatives(condition: Condition) -> int:
    """Return how many conjunctions a condition without `not` has at most, multiplied out."""
    if isinstance(condition, And):
        return prod(map(_alternatives, condition.conditions))
    if isinstance(condition, Or):
        return sum(map(_alternatives, condition.conditions))
    return 1


def _relaxed(question: Question) -> tuple[Condition, bool]:
    """Return a condition on the event alone that holds wherever a question does, and whether it is all of it."""
    if isinstance(question, Atom):
        predicate = _predicate(question)
        return (TRUE, False) if predicate is None else (predicate, True)
    members = [_relaxed(member) for member in question.of]
    whole = all(member[1] for member in members)
    conditions = [member[0] for member in members]
    if isinstance(question, All):
        return _all(conditions), whole
    if not conditions:
        return FALSE, True
    if TRUE in conditions:
        return TRUE, whole
    return conditions[0] if len(conditions) == 1 else Or(tuple(conditions)), whole


def _all(conditions: list[Condition]) -> Condition:
    return all_of([condition for condition in conditions if condition != TRUE])


def _predicate(atom: Atom) -> Predicate | None:
    """Return a question that compares an attribute of the event with constants as a predicate."""
    if not isinstance(atom.subject, Read) or not isinstance(atom.subject.column, str):
        return None
    operands: list[Literal | Parameter] = []
    for operand in atom.operands:
        if not isinstance(operand, Given):
            return None
        operands.append(operand.constant)
    return Predicate(Attribute(atom.subject.column), atom.operator, tuple(operands))
