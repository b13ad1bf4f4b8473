"""The choice of the smaller normal form, by estimates that avoid computing the larger one."""

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

# A form is not computed if its estimate is both larger than `_CHEAP` predicates and `_RATIO` times the other's.
_RATIO: Final = 4
_CHEAP: Final = 256

Form = TypeVar("Form", Dnf, Cnf)


def to_normal(
    condition: Condition,
    max_conjunctions: int = MAX_CONJUNCTIONS,
    max_clauses: int = MAX_CLAUSES,
    *,
    dnf: Dnf | None = None,
) -> Dnf | Cnf:
    """Return the disjunctive normal form, or the conjunctive one if that has fewer predicates in all.

    The sizes are estimated first; both forms are computed only if the estimates do not decide. A condition that is
    always or never true becomes a `Dnf`. `dnf` is the disjunctive form, if it is known already. Raise
    `NormalFormError` if both forms exceed their limits.

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
    if dnf is None and not _is_much_larger(disjunctive, conjunctive):
        dnf = _try(conjunctions_of, normal, max_conjunctions)
    if dnf is not None and (_is_flat(dnf) or _is_much_larger(conjunctive, disjunctive)):
        return dnf
    cnf = _try(clauses_of, normal, max_clauses)
    if cnf is None:
        return _only_dnf(normal, max_conjunctions, max_clauses) if dnf is None else dnf
    if not all(cnf.clauses):
        return Dnf((), cnf.never)
    if not cnf.clauses:
        return Dnf(((),))
    return dnf if dnf is not None and _size(dnf.conjunctions) <= _size(cnf.clauses) else cnf


def dnf_unless_larger(condition: Condition, max_conjunctions: int = MAX_CONJUNCTIONS) -> Dnf | Cnf:
    """Return the disjunctive normal form, or the result of `to_normal` where the disjunctive form is much larger."""
    plain = plain_conjunction(condition)
    if plain is not None:
        return Dnf((plain,))
    normal = to_nnf(condition)
    if _is_much_larger(_most_predicates(normal, And), _most_predicates(normal, Or)):
        return to_normal(normal, max_conjunctions)
    return conjunctions_of(normal, max_conjunctions)


def _try(make: Callable[[Condition, int], Form], normal: Condition, limit: int) -> Form | None:
    try:
        return make(normal, limit)
    except NormalFormError:
        return None


def _only_dnf(normal: Condition, max_conjunctions: int, max_clauses: int) -> Dnf:
    """Return the disjunctive normal form of a condition whose conjunctive form exceeds its limit."""
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


def _is_much_larger(larger: int, smaller: int) -> bool:
    return larger > _CHEAP and larger > _RATIO * smaller


def _is_flat(dnf: Dnf) -> bool:
    """Return whether a form has one conjunction, or single predicates only; no conjunctive form is smaller."""
    return len(dnf.conjunctions) <= 1 or all(len(conjunction) == 1 for conjunction in dnf.conjunctions)


def _size(parts: tuple[tuple[Predicate, ...], ...]) -> int:
    return sum(map(len, parts))


def _most_predicates(normal: Condition, product: type[And] | type[Or]) -> int:
    """Return an upper bound of the predicates after the connective `product` is distributed."""
    return _size_bounds(normal, product)[1]


def _size_bounds(normal: Condition, product: type[And] | type[Or]) -> tuple[int, int]:
    """Return the number of parts after distribution, and the number of predicates in all of them."""
    if not isinstance(normal, (And, Or)):
        return 1, 0 if isinstance(normal, Constant) else 1
    parts, predicates = _size_bounds(normal.conditions[0], product)
    for member in normal.conditions[1:]:
        more, added = _size_bounds(member, product)
        if isinstance(normal, product):
            parts, predicates = parts * more, predicates * more + added * parts
        else:
            parts, predicates = parts + more, predicates + added
    return parts, predicates
