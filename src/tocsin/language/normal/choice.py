"""The smaller of the two normal forms, without making the larger where that can be foreseen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

from tocsin.language.normal.forms import (
    MAX_CLAUSES,
    MAX_CONJUNCTIONS,
    Cnf,
    Dnf,
    clauses_of,
    conjunctions_of,
    plain_conjunction,
)
from tocsin.language.normal.negation import to_nnf
from tocsin.model.conditions import And, Condition, Constant, Or, Predicate
from tocsin.model.errors import NormalFormError

_FAR: Final = 4  # a form is not made if it may be so many times as large as the other,
_CHEAP: Final = 256  # unless it has at most so many predicates, which takes no time worth saving

Form = TypeVar("Form", Dnf, Cnf)


def to_normal(
    condition: Condition,
    max_conjunctions: int = MAX_CONJUNCTIONS,
    max_clauses: int = MAX_CLAUSES,
    *,
    dnf: Dnf | None = None,
) -> Dnf | Cnf:
    """Return the disjunctive normal form, or the conjunctive one if that has fewer predicates in all.

    How large they would be is told by the condition's shape; both are made only where that leaves it open. What
    nothing satisfies, or everything, is a `Dnf`. `dnf` is the disjunctive form, if it is known already. Raise
    `NormalFormError` if both are past their limits.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> type(to_normal(parse_condition("a = 1 and b = 2 or c = 3 and d = 4"))).__name__
    'Dnf'
    >>> [len(clause) for clause in to_normal(parse_condition("(a = 1 or b = 2) and (c = 3 or d = 4)")).clauses]
    [2, 2]
    """
    if dnf is None:
        plain = plain_conjunction(condition)
        if plain is not None:
            return Dnf((plain,))
    elif _is_flat(dnf):
        return dnf
    normal = to_nnf(condition)
    disjunctive, conjunctive = _most_predicates(normal, And), _most_predicates(normal, Or)
    if dnf is None and not _is_far(disjunctive, conjunctive):
        dnf = _attempted(conjunctions_of, normal, max_conjunctions)
    if dnf is not None and (_is_flat(dnf) or _is_far(conjunctive, disjunctive)):
        return dnf
    cnf = _attempted(clauses_of, normal, max_clauses)
    if cnf is None:
        return _only_dnf(normal, max_conjunctions, max_clauses) if dnf is None else dnf
    if not all(cnf.clauses):
        return Dnf((), cnf.never)
    if not cnf.clauses:
        return Dnf(((),))
    return dnf if dnf is not None and _size(dnf.conjunctions) <= _size(cnf.clauses) else cnf


def dnf_unless_far(condition: Condition, max_conjunctions: int = MAX_CONJUNCTIONS) -> Dnf | Cnf:
    """Return the disjunctive normal form, or what `to_normal` says where it would be by far the larger one."""
    plain = plain_conjunction(condition)
    if plain is not None:
        return Dnf((plain,))
    normal = to_nnf(condition)
    if _is_far(_most_predicates(normal, And), _most_predicates(normal, Or)):
        return to_normal(normal, max_conjunctions)
    return conjunctions_of(normal, max_conjunctions)


def _attempted(make: Callable[[Condition, int], Form], normal: Condition, limit: int) -> Form | None:
    try:
        return make(normal, limit)
    except NormalFormError:
        return None


def _only_dnf(normal: Condition, max_conjunctions: int, max_clauses: int) -> Dnf:
    """Return the disjunctive normal form of a condition whose conjunctive one is past its limit."""
    try:
        return conjunctions_of(normal, max_conjunctions)
    except NormalFormError as fault:
        raise NormalFormError(
            f"the disjunctive normal form has more than {max_conjunctions:,} conjunctions and the conjunctive one "
            f"more than {max_clauses:,} clauses, the limits that `max_conjunctions` and `max_clauses` set; "
            "split the subscription, or gather alternatives of one attribute with `in (…)`",
            setting=fault.setting,
            limit=fault.limit,
        ) from None


def _is_far(larger: int, smaller: int) -> bool:
    return larger > _CHEAP and larger > _FAR * smaller


def _is_flat(dnf: Dnf) -> bool:
    """Tell whether a form has one conjunction, or single predicates only: no clauses say it in fewer."""
    return len(dnf.conjunctions) <= 1 or all(len(conjunction) == 1 for conjunction in dnf.conjunctions)


def _size(parts: tuple[tuple[Predicate, ...], ...]) -> int:
    return sum(map(len, parts))


def _most_predicates(normal: Condition, product: type[And] | type[Or]) -> int:
    """Return how many predicates there are at the most once `product` is multiplied out."""
    return _counted(normal, product)[1]


def _counted(normal: Condition, product: type[And] | type[Or]) -> tuple[int, int]:
    """Return into how many parts a condition is multiplied out, and how many predicates they have in all."""
    if not isinstance(normal, (And, Or)):
        return 1, 0 if isinstance(normal, Constant) else 1
    parts, predicates = _counted(normal.conditions[0], product)
    for member in normal.conditions[1:]:
        more, theirs = _counted(member, product)
        if isinstance(normal, product):
            parts, predicates = parts * more, predicates * more + theirs * parts
        else:
            parts, predicates = parts + more, predicates + theirs
    return parts, predicates
