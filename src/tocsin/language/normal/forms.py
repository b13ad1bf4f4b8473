"""Disjunctive and conjunctive normal form, with a limit on their size, and the choice of the smaller one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Final, TypeAlias, TypeVar

from msgspec import Struct

from tocsin.language.normal.merge import UnsatisfiableError, is_plain, is_satisfiable, merge
from tocsin.language.normal.negation import join_equalities, to_nnf, without_repeats
from tocsin.language.normal.predicates import rewrite
from tocsin.model.conditions import And, Condition, Constant, Operator, Or, Predicate, all_of, any_of, leaves
from tocsin.model.errors import NormalFormError

MAX_CONJUNCTIONS: Final = 1024
MAX_CLAUSES: Final = 1024
_MERGED_EARLY: Final = 32  # with more conjunctions, unsatisfiable ones are dropped before distributing on
_DISTRIBUTED: Final = 16  # times the limit: more are not computed in order to be reduced
_ABSORBED: Final = 256  # with more members, absorption would compare too many pairs

Predicates: TypeAlias = tuple[Predicate, ...]


class Dnf(Struct, frozen=True):
    """A disjunction of conjunctions: without any it is false, with an empty one it is true.

    `never` holds a reason for each conjunction that was dropped because no event can satisfy it.
    """

    conjunctions: tuple[Predicates, ...]
    never: tuple[str, ...] = ()


class Cnf(Struct, frozen=True):
    """A conjunction of clauses, each a disjunction of predicates; with an empty clause it is false."""

    clauses: tuple[Predicates, ...]
    never: tuple[str, ...] = ()

    def condition(self) -> Condition:
        """Return the equivalent condition."""
        return all_of([any_of(list(clause)) for clause in self.clauses])


def to_dnf(condition: Condition, max_conjunctions: int = MAX_CONJUNCTIONS) -> Dnf:
    """Return the disjunctive normal form, simplified, or raise `NormalFormError` past the limit.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> [len(c) for c in to_dnf(parse_condition("(a = 1 or b = 2) and c > 3")).conjunctions]
    [2, 2]
    >>> to_dnf(parse_condition("a = 1 and a = 2")).never
    ('no value of a satisfies `a = 1 and a = 2`',)
    """
    plain = plain_conjunction(condition)
    return conjunctions_of(to_nnf(condition), max_conjunctions) if plain is None else Dnf((plain,))


def conjunctions_of(condition: Condition, max_conjunctions: int) -> Dnf:
    """Return the disjunctive normal form of a negation normal form."""
    never: dict[str, None] = {}
    found = _expand(condition, And, max_conjunctions, never)
    merged = _merge_all(found, never)
    return Dnf(tuple(_absorb(merged)), tuple(never))


def to_cnf(condition: Condition, max_clauses: int = MAX_CLAUSES) -> Cnf:
    """Return the conjunctive normal form, simplified, or raise `NormalFormError` past the limit.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> [len(c) for c in to_cnf(parse_condition("(a = 1 and b = 2) or c > 3")).clauses]
    [2, 2]
    """
    return clauses_of(to_nnf(condition), max_clauses)


def clauses_of(condition: Condition, max_clauses: int) -> Cnf:
    """Return the conjunctive normal form of a negation normal form."""
    found = _expand(condition, Or, max_clauses, {})
    clauses = [clause for clause in map(_join_lists, found) if not _is_certain(clause)]
    # Clauses of one predicate form a conjunction, and the predicates of a conjunction merge.
    units = tuple(clause[0] for clause in clauses if len(clause) == 1)
    try:
        single = merge(units) if units else ()
    except UnsatisfiableError as reason:
        return Cnf(((),), (str(reason),))
    return Cnf(tuple(_absorb([*((p,) for p in single), *(c for c in clauses if len(c) != 1)])))


def never_reasons(condition: Condition) -> tuple[str, ...]:
    """Return the reason for each predicate of a condition that no event can satisfy by itself."""
    never: dict[str, None] = {}
    _merge_all([(predicate,) for predicate in leaves(to_nnf(condition))], never)
    return tuple(never)


def plain_conjunction(condition: Condition) -> Predicates | None:
    """Return the condition as a conjunction without interacting predicates, or None.

    Most filters are such conjunctions, and this way is faster than the general one.
    """
    found: list[Predicate] = []
    for member in condition.conditions if type(condition) is And else (condition,):
        predicate = rewrite(member) if type(member) is Predicate else member
        if type(predicate) is not Predicate:
            return None
        found.append(predicate)
    conjunction = tuple(found)
    return conjunction if is_plain(conjunction) else None


def _expand(
    condition: Condition, product: type[And] | type[Or], limit: int, never: dict[str, None]
) -> list[Predicates]:
    """Return a negation normal form as lists of predicates; the connective `product` is distributed over the other."""
    if isinstance(condition, Predicate):
        return [(condition,)]
    if isinstance(condition, Constant):
        return [()] if condition.truth is (product is And) else []
    if isinstance(condition, product) and all(isinstance(c, Predicate) for c in condition.conditions):
        return [condition.conditions]  # type: ignore[list-item]
    parts = [_expand(member, product, limit, never) for member in condition.conditions]  # type: ignore[union-attr]
    if not isinstance(condition, product):
        found = without_repeats([one for part in parts for one in part])
        return _limit(found, product, limit, never)
    found = [()]
    for part in sorted(parts, key=len):
        if len(found) * len(part) > limit * _DISTRIBUTED:  # too many to compute and then reduce
            raise _too_large(product, limit)
        found = without_repeats([_unite(left, right) for left in found for right in part])
        if len(found) > _MERGED_EARLY:
            found = _merge_all(found, never) if product is And else found
        found = _limit(found, product, limit, never)
    return found


def _unite(left: Predicates, right: Predicates) -> Predicates:
    return tuple(without_repeats([*left, *right]))


def _limit(
    found: list[Predicates], product: type[And] | type[Or], limit: int, never: dict[str, None]
) -> list[Predicates]:
    """Return `found`, reduced if it exceeds the limit; raise `NormalFormError` if it still does."""
    if len(found) <= limit:
        return found
    kept = list(_merge_all(found, never)) if product is And else [c for c in found if not _is_certain(c)]
    if len(kept) > limit:
        raise _too_large(product, limit)
    return kept


def _too_large(product: type[And] | type[Or], limit: int) -> NormalFormError:
    """Return the error for a normal form larger than `limit`; `product` tells which of the two forms it is."""
    name, parts, setting = (
        ("disjunctive", "conjunctions", "max_conjunctions")
        if product is And
        else ("conjunctive", "clauses", "max_clauses")
    )
    gather = "gather alternatives of one attribute with `in (…)`"
    remedy = f"{gather}, or take its conjunctive form (`to_cnf`)" if product is And else f"or {gather}"
    return NormalFormError(
        f"the {name} normal form has more than {limit:,} {parts}, the limit that `{setting}` sets; "
        f"split the subscription, {remedy}",
        setting=setting,
        limit=limit,
    )


def _merge_all(found: Iterable[Predicates], never: dict[str, None]) -> list[Predicates]:
    """Return the satisfiable conjunctions, merged and without repeats; add the reasons of the others to `never`."""
    kept: list[Predicates] = []
    for conjunction in found:
        try:
            kept.append(merge(conjunction) if conjunction else ())
        except UnsatisfiableError as reason:
            never[str(reason)] = None
    return without_repeats(kept)


def _absorb(found: list[Predicates]) -> list[Predicates]:
    """Drop members that a shorter one implies: `a or (a and b)` is `a`."""
    if not 1 < len(found) <= _ABSORBED:
        return found
    sets = [frozenset(one) for one in found]
    return [
        one
        for i, one in enumerate(found)
        if not any(sets[j] < sets[i] or (sets[j] == sets[i] and j < i) for j in range(len(found)))
    ]


def _join_lists(clause: Predicates) -> Predicates:
    """Return a clause with its equalities joined into lists, and without unsatisfiable predicates."""
    return tuple(join_equalities([p for p in clause if is_satisfiable(p)]))  # type: ignore[arg-type]


def _is_certain(clause: Predicates) -> bool:
    """Return whether a clause is true for every event, as `a is missing or a is present` is."""
    missing = {p.subject for p in clause if p.operator is Operator.MISSING}
    return any(p.operator is Operator.PRESENT and p.subject in missing for p in clause)


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
    smaller = dnf is not None and _size(dnf.conjunctions) <= _size(cnf.clauses)
    return dnf if dnf is not None and smaller and cnf.clauses and all(cnf.clauses) else _decided(cnf)


def dnf_unless_cnf_is_smaller(condition: Condition, max_conjunctions: int = MAX_CONJUNCTIONS) -> Dnf | Cnf:
    """Return the disjunctive normal form, or the result of `to_normal` where the conjunctive form is much smaller.

    Raise `NormalFormError` if the result has more than `max_conjunctions`.
    """
    plain = plain_conjunction(condition)
    if plain is not None:
        return Dnf((plain,))
    normal = to_nnf(condition)
    if _is_much_larger(_most_predicates(normal, And), _most_predicates(normal, Or)):
        return to_normal(normal, max_conjunctions)
    return conjunctions_of(normal, max_conjunctions)


def dnf_unless_too_large(
    condition: Condition, max_conjunctions: int = MAX_CONJUNCTIONS, max_clauses: int = MAX_CLAUSES
) -> Dnf | Cnf:
    """Return the disjunctive normal form, or the conjunctive one where that has too many conjunctions.

    Raise `NormalFormError` if both forms exceed their limits.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> alternatives = [" or ".join(f"{name}{i} = {i}" for i in range(6)) for name in "abcd"]
    >>> normal = dnf_unless_too_large(parse_condition(" and ".join(f"({one})" for one in alternatives)))
    >>> [len(clause) for clause in normal.clauses]
    [6, 6, 6, 6]
    """
    plain = plain_conjunction(condition)
    if plain is not None:
        return Dnf((plain,))
    normal = to_nnf(condition)
    dnf = None
    if not _stays_too_large(normal, max_conjunctions) or _size_bounds(normal, Or)[0] > max_clauses:
        dnf = _try(conjunctions_of, normal, max_conjunctions)
    if dnf is not None:
        return dnf
    cnf = _try(clauses_of, normal, max_clauses)
    return _only_dnf(normal, max_conjunctions, max_clauses) if cnf is None else _decided(cnf)


def _stays_too_large(normal: Condition, max_conjunctions: int) -> bool:
    """Tell whether distribution gives too many conjunctions, and it would take seconds, or be in vain, to reduce them."""
    most = _size_bounds(normal, And)[0]
    if most <= max_conjunctions:
        return False
    subjects = [predicate.subject for predicate in leaves(normal)]
    # Only predicates of one subject merge, or contradict each other.
    return most > _DISTRIBUTED * max_conjunctions or len(set(subjects)) == len(subjects)


def _decided(cnf: Cnf) -> Dnf | Cnf:
    """Return a conjunctive form, or the disjunctive one of a condition that is never or always true."""
    if not all(cnf.clauses):
        return Dnf((), cnf.never)
    return cnf if cnf.clauses else Dnf(((),))


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
