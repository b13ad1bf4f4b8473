"""Negation normal form: `not` becomes part of the operators of predicates."""

from __future__ import annotations

from typing import TypeVar

from tocsin.language.normal.predicates import members, membership, rewrite
from tocsin.model.conditions import (
    FALSE,
    NEGATED,
    TRUE,
    And,
    Condition,
    Constant,
    Not,
    Operator,
    Or,
    Predicate,
    all_of,
    any_of,
)
from tocsin.model.terms import Literal, Term

Item = TypeVar("Item")


def to_nnf(condition: Condition) -> Condition:
    """Return a condition without `not` that is true for exactly the same events.

    Nested `and` and `or` are flattened, constants and repeats removed, and equalities of one attribute joined:
    `a = 1 or a = 2` becomes `a in (1, 2)`.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> from tocsin.language.printer import condition_text
    >>> condition_text(to_nnf(parse_condition("not (a < 3 and (b = 1 or b = 2))")))
    'a >= 3 or b not in (1, 2)'
    """
    return _push(condition, negate=False)


def _push(condition: Condition, *, negate: bool) -> Condition:
    """Return the condition, negated if `negate`, with every `not` resolved into the operators of the predicates."""
    if isinstance(condition, Predicate):
        operator = NEGATED[condition.operator] if negate else condition.operator
        return rewrite(Predicate(condition.subject, operator, condition.operands) if negate else condition)
    if isinstance(condition, Constant):
        return condition if not negate else FALSE if condition.truth else TRUE
    if isinstance(condition, Not):
        return _push(condition.condition, negate=not negate)
    pushed = [_push(member, negate=negate) for member in condition.conditions]
    return _conjunction(pushed) if isinstance(condition, And) is not negate else _disjunction(pushed)


def _conjunction(parts: list[Condition]) -> Condition:
    flat = _flatten(parts, And)
    if FALSE in flat:
        return FALSE
    # Inequalities of one attribute are joined like equalities, but only for constants of one kind:
    # `a not in (1, 'x')` is true for 'y', `a != 1 and a != 'x'` for nothing.
    return all_of(_join(flat, Operator.NE, Operator.NOT_IN, mixed=False))


def _disjunction(parts: list[Condition]) -> Condition:
    flat = _flatten(parts, Or)
    return TRUE if TRUE in flat else any_of(join_equalities(flat))


def join_equalities(alternatives: list[Condition]) -> list[Condition]:
    """Return `alternatives` with the equalities of each subject joined into one list."""
    return _join(alternatives, Operator.EQ, Operator.IN, mixed=True)


def _flatten(parts: list[Condition], kind: type[And] | type[Or]) -> list[Condition]:
    """Return the members in order, without repeats and without the connective's neutral constant."""
    neutral = TRUE if kind is And else FALSE
    flat: list[Condition] = []
    for condition in parts:
        if isinstance(condition, kind):
            flat += condition.conditions
        elif condition != neutral:
            flat.append(condition)
    return without_repeats(flat)


def without_repeats(items: list[Item]) -> list[Item]:
    """Return the items in order without repeats; comparing a few is faster than hashing them."""
    if len(items) > 8:
        return list(dict.fromkeys(items))
    return [item for i, item in enumerate(items) if item not in items[:i]]


def _join(parts: list[Condition], one: Operator, many: Operator, *, mixed: bool) -> list[Condition]:
    """Return `parts` with the predicates of operators `one` and `many` joined, for each subject, into one list."""
    concerned = [c for c in parts if type(c) is Predicate and (c.operator is one or c.operator is many)]
    if len(concerned) < 2:
        return parts
    gathered: dict[tuple[object, ...], list[Predicate]] = {}
    for condition in concerned:
        key = _key(condition, mixed=mixed)
        if key is not None:
            gathered.setdefault(key, []).append(condition)
    joined: dict[Condition, Condition | None] = {}
    for group in gathered.values():
        if len(group) > 1:
            operands: tuple[Term, ...] = tuple(operand for p in group for operand in p.operands)
            joined |= dict.fromkeys(group)
            joined[group[0]] = membership(group[0].subject, members(operands), negated=one is Operator.NE)
    if not joined:
        return parts
    replaced = [joined.get(condition, condition) for condition in parts]
    return [condition for condition in replaced if condition is not None]


def _key(predicate: Predicate, *, mixed: bool) -> tuple[object, ...] | None:
    kinds = {operand.kind if isinstance(operand, Literal) else None for operand in predicate.operands}
    if None in kinds or (not mixed and len(kinds) > 1):
        return None
    return (predicate.subject,) if mixed else (predicate.subject, next(iter(kinds)))
