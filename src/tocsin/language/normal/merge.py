"""Merging the predicates of a conjunction that constrain the same attribute."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NoReturn

from tocsin.language.normal.predicates import attributes_of, kind_conflict, members, membership
from tocsin.language.printer import condition_text, term_text
from tocsin.model.conditions import Conjunction, Operator, Predicate
from tocsin.model.terms import Attribute, Literal
from tocsin.model.values import Kind, Value

_ALL_KINDS: Final = frozenset(Kind)
_BOUNDS: Final = {
    Operator.LT: (False, True),
    Operator.LE: (False, False),
    Operator.GT: (True, True),
    Operator.GE: (True, False),
}  # (is it a lower bound, is it strict)
_PRESENCE: Final = (Operator.MISSING, Operator.PRESENT)
_ALGEBRA: Final = frozenset(
    (*_BOUNDS, Operator.EQ, Operator.NE, Operator.IN, Operator.NOT_IN, Operator.BETWEEN, Operator.NOT_BETWEEN)
)


class UnsatisfiableError(Exception):
    """No event can satisfy a conjunction; the text gives the reason."""


def merge(conjunction: Conjunction) -> Conjunction:
    """Return the conjunction with each attribute's predicates merged, or raise `UnsatisfiableError`.

    >>> from tocsin.language.parsing.parser import parse_condition
    >>> from tocsin.model.conditions import And
    >>> print(condition_text(And(merge(parse_condition("a > 1 and a >= 3 and a <= 9 and a != 12 and b = 1").conditions))))
    a between 3 and 9 and b = 1
    """
    if len(conjunction) == 1:
        if not is_satisfiable(conjunction[0]):
            _raise_unsatisfiable(conjunction)
        return conjunction
    if is_plain(conjunction):
        return conjunction
    constant, other = _group_by_attribute(conjunction)
    for predicate in other:
        if not is_satisfiable(predicate):
            _raise_unsatisfiable([predicate])
    merged: list[Predicate] = []
    for attribute, group in constant.items():
        is_merged = len(group) == 1 and is_satisfiable(group[0])
        merged += group if is_merged else _merge_attribute(attribute, group)
    return (*merged, *other)


def is_plain(conjunction: Conjunction) -> bool:
    """Return whether each predicate is satisfiable and has an attribute of its own, so that nothing merges."""
    attributes = {
        p.subject for p in conjunction if p.operator not in _PRESENCE and type(p.subject) is Attribute
    }
    return len(attributes) == len(conjunction) and all(is_satisfiable(p) for p in conjunction)


def _group_by_attribute(conjunction: Conjunction) -> tuple[dict[Attribute, list[Predicate]], list[Predicate]]:
    """Return the predicates over constants by attribute, and the other predicates; presence is resolved here."""
    missing = {p.subject: p for p in conjunction if p.operator is Operator.MISSING}
    constant: dict[Attribute, list[Predicate]] = {}
    other: list[Predicate] = list(missing.values())
    present: list[Predicate] = []
    constrained: set[Attribute] = set()
    for predicate in dict.fromkeys(conjunction):
        if predicate.operator is Operator.MISSING:
            continue
        named = attributes_of(predicate)
        if absent := next((attribute for attribute in named if attribute in missing), None):
            text = condition_text(predicate)
            raise UnsatisfiableError(f"`{text}` needs {term_text(absent)}, which must be missing")
        if predicate.operator is Operator.PRESENT:
            present.append(predicate)
            continue
        constrained |= named
        subject = predicate.subject
        if isinstance(subject, Attribute) and all(isinstance(o, Literal) for o in predicate.operands):
            constant.setdefault(subject, []).append(predicate)
        else:
            other.append(predicate)
    # A true predicate implies that its attributes are present.
    other += [p for p in present if not attributes_of(p) <= constrained]
    return constant, other


def is_satisfiable(predicate: Predicate) -> bool:
    """Return whether some value satisfies a single predicate."""
    if kind_conflict(predicate) is not None:
        return False
    if predicate.operator not in (Operator.BETWEEN, Operator.NOT_BETWEEN):
        return True
    low, high = predicate.operands
    if not isinstance(low, Literal) or not isinstance(high, Literal):
        return True
    if low.kind is not high.kind:
        return bool(_admitted_by(low) & _admitted_by(high))
    return predicate.operator is Operator.NOT_BETWEEN or low.value <= high.value  # type: ignore[operator]


def _raise_unsatisfiable(group: Collection[Predicate]) -> NoReturn:
    for predicate in group:
        if (reason := kind_conflict(predicate)) is not None:
            raise UnsatisfiableError(reason)
    shown = " and ".join(condition_text(p) for p in list(group)[:4]) + (" and …" if len(group) > 4 else "")
    raise UnsatisfiableError(f"no value of {term_text(next(iter(group)).subject)} satisfies `{shown}`")


def _merge_attribute(attribute: Attribute, group: list[Predicate]) -> list[Predicate]:
    """Return fewer predicates that are equivalent to `group`, or raise if no value satisfies all of them."""
    kinds = _ALL_KINDS
    for predicate in group:
        kinds &= admitted_kinds(predicate)
    if not kinds:
        _raise_unsatisfiable(group)
    relevant = [_restrict(predicate, kinds) for predicate in group]
    algebra = [p for p in relevant if p.operator in _ALGEBRA]
    patterns = [p for p in relevant if p.operator not in _ALGEBRA]
    if len({o.kind for p in algebra for o in p.operands if isinstance(o, Literal)}) > 1:
        # A string may be compared both as text and as a timestamp, and the two orders differ.
        return list(dict.fromkeys(relevant))
    if not algebra:
        return patterns
    region = _Region(algebra)
    merged = region.predicates(attribute)
    if merged is None:
        _raise_unsatisfiable(group)
    return [*merged, *patterns]


def _admitted_by(constant: Literal) -> frozenset[Kind]:
    """Return the kinds of value that can be compared with `constant`."""
    return frozenset((Kind.TIMESTAMP, Kind.STRING) if constant.kind is Kind.TIMESTAMP else (constant.kind,))


def admitted_kinds(predicate: Predicate) -> frozenset[Kind]:
    """Return the kinds of value that can satisfy `predicate`."""
    sets = [_admitted_by(o) for o in predicate.operands if isinstance(o, Literal)]
    if predicate.operator in (Operator.IN, Operator.NOT_IN):
        return frozenset[Kind]().union(*sets)
    return frozenset.intersection(*sets)


def _restrict(predicate: Predicate, kinds: frozenset[Kind]) -> Predicate:
    """Drop the members of a list that cannot be compared with a value of these kinds."""
    if predicate.operator not in (Operator.IN, Operator.NOT_IN):
        return predicate
    kept = tuple(o for o in members(predicate.operands) if _admitted_by(o) & kinds)
    return membership(predicate.subject, kept, negated=predicate.operator is Operator.NOT_IN)


class _Region:
    """The values of one kind that satisfy a set of predicates over constants."""

    def __init__(self, predicates: list[Predicate]) -> None:
        self.kind = predicates[0].operands[0].kind  # type: ignore[union-attr]
        self.chosen: set[Value] | None = None
        self.low: tuple[Value, bool] | None = None  # the bound, and whether it is strict
        self.high: tuple[Value, bool] | None = None
        self.excluded: set[Value] = set()
        self.gaps: list[tuple[Value, Value]] = []
        self.free: list[Predicate] = []  # true for every value of the kind
        for predicate in predicates:
            self._add(predicate)

    def predicates(self, attribute: Attribute) -> list[Predicate] | None:
        """Return the fewest equivalent predicates, or None if no value is left."""
        if self.chosen is not None:
            left = tuple(Literal(v, self.kind) for v in self.chosen if self._allows(v))
            return [membership(attribute, members(left))] if left else None
        self._tighten()
        if self._is_empty():
            return None
        if self.low and self.high and self.low[0] == self.high[0]:
            only = self.low[0]
            return [membership(attribute, (Literal(only, self.kind),))] if self._allows(only) else None
        found = [*self._bounds(attribute), *self._exclusions(attribute), *self._gaps(attribute)]
        return found or self.free[:1]

    def _add(self, predicate: Predicate) -> None:
        """Restrict the region by one more predicate."""
        operator = predicate.operator
        values = [operand.value for operand in predicate.operands if isinstance(operand, Literal)]
        if operator in (Operator.EQ, Operator.IN):
            self.chosen = set(values) if self.chosen is None else self.chosen & set(values)
        elif operator in (Operator.NE, Operator.NOT_IN):
            self.excluded |= set(values)
        elif operator is Operator.BETWEEN:
            self._raise_low(values[0], strict=False)
            self._lower_high(values[1], strict=False)
        elif operator is Operator.NOT_BETWEEN:
            if values[0] <= values[1]:  # type: ignore[operator]
                self.gaps.append((values[0], values[1]))
            else:
                self.free.append(predicate)
        else:
            lower, strict = _BOUNDS[operator]
            (self._raise_low if lower else self._lower_high)(values[0], strict=strict)

    def _raise_low(self, value: Value, *, strict: bool) -> None:
        if self.low is None or (value, strict) > self.low:
            self.low = (value, strict)

    def _lower_high(self, value: Value, *, strict: bool) -> None:
        if self.high is None or (value, not strict) < (self.high[0], not self.high[1]):
            self.high = (value, strict)

    def _above(self, value: Value) -> bool:
        return self.low is None or (value >= self.low[0] and not (self.low[1] and value == self.low[0]))  # type: ignore[operator]

    def _below(self, value: Value) -> bool:
        return self.high is None or (value <= self.high[0] and not (self.high[1] and value == self.high[0]))  # type: ignore[operator]

    def _allows(self, value: Value) -> bool:
        return (
            self._above(value)
            and self._below(value)
            and value not in self.excluded
            and not any(low <= value <= high for low, high in self.gaps)  # type: ignore[operator]
        )

    def _is_empty(self) -> bool:
        if self.low is None or self.high is None:
            return False
        return not self._below(self.low[0]) if not self.low[1] else self.low[0] >= self.high[0]  # type: ignore[operator]

    def _tighten(self) -> None:
        """Move the bounds past gaps and excluded values that touch them; drop gaps and values outside the bounds."""
        for low, high in sorted(self.gaps):
            if self.low is not None and low <= self.low[0] <= high:  # type: ignore[operator]
                self._raise_low(high, strict=True)
        for low, high in sorted(self.gaps, reverse=True):
            if self.high is not None and low <= self.high[0] <= high:  # type: ignore[operator]
                self._lower_high(low, strict=True)
        if self.low is not None and self.low[0] in self.excluded:
            self.low = (self.low[0], True)
        if self.high is not None and self.high[0] in self.excluded:
            self.high = (self.high[0], True)
        self.gaps = [gap for gap in dict.fromkeys(self.gaps) if self._above(gap[1]) and self._below(gap[0])]
        self.excluded = {
            v
            for v in self.excluded
            if self._above(v) and self._below(v) and not any(low <= v <= high for low, high in self.gaps)  # type: ignore[operator]
        }

    def _bounds(self, attribute: Attribute) -> list[Predicate]:
        """Return the predicates that state the lower and the upper bound; two inclusive bounds become a `between`."""
        if self.low and self.high and not self.low[1] and not self.high[1]:
            ends = Literal(self.low[0], self.kind), Literal(self.high[0], self.kind)
            return [Predicate(attribute, Operator.BETWEEN, ends)]
        sides = ((self.low, Operator.GT, Operator.GE), (self.high, Operator.LT, Operator.LE))
        return [
            Predicate(attribute, strict if bound[1] else loose, (Literal(bound[0], self.kind),))
            for bound, strict, loose in sides
            if bound is not None
        ]

    def _exclusions(self, attribute: Attribute) -> list[Predicate]:
        constants = members(tuple(Literal(v, self.kind) for v in self.excluded))
        return [membership(attribute, constants, negated=True)] if constants else []

    def _gaps(self, attribute: Attribute) -> list[Predicate]:
        return [
            Predicate(attribute, Operator.NOT_BETWEEN, (Literal(low, self.kind), Literal(high, self.kind)))
            for low, high in self.gaps
        ]
