"""Estimates of the number of events that satisfy a predicate."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final

from msgspec import Struct

from tocsin.language.normal.predicates import attributes_of
from tocsin.language.semantics import text_truth
from tocsin.matching.statistics.distribution import Distribution
from tocsin.model.conditions import NEGATED, NEGATIONS, Operator, Predicate
from tocsin.model.terms import Literal
from tocsin.model.timestamps import parse_timestamp
from tocsin.model.values import Kind

# Shares assumed for comparisons without counts, where their attributes are present (the figures of System R).
_OF_COMPARED: Final = {Operator.EQ: 0.1, Operator.NE: 0.9}
_OF_OTHERS: Final = 1 / 3
_OF_TEXTS: Final = 0.1  # of a text test, where there are no frequent strings to try it on

_NOTHING: Final = {kind: Distribution(kind, 0, 0) for kind in Kind}


class AttributeStatistics(Struct, frozen=True):
    """Statistics of one attribute: the number of events with it, and its values by kind.

    Strings that parse as timestamps are counted as timestamps too; `texts` is the number of events with such a string.
    """

    count: int
    kinds: Mapping[Kind, Distribution]
    texts: int = 0

    def of(self, kind: Kind) -> Distribution:
        """Return the distribution of a kind, empty if there are no values."""
        return self.kinds.get(kind) or _NOTHING[kind]

    def known(self, kinds: set[Kind]) -> int:
        """Return the number of events with a value that is comparable with constants of these kinds."""
        both = Kind.STRING in kinds and Kind.TIMESTAMP in kinds
        return sum(self.of(kind).count for kind in kinds) - (self.texts if both else 0)


def satisfying(predicate: Predicate, attribute: AttributeStatistics) -> float:
    """Return the number of events that satisfy a predicate over one attribute and constants."""
    operator, constants = predicate.operator, _constants(predicate)
    if operator in NEGATIONS:
        positive = Predicate(predicate.subject, NEGATED[operator], predicate.operands)
        return max(_known(positive, constants, attribute) - _positive(positive, constants, attribute), 0.0)
    return _positive(predicate, constants, attribute)


def assumed(predicate: Predicate, presence: Callable[[str], float]) -> float:
    """Return the assumed share of events that satisfy a predicate without counts.

    `presence` returns the share of events that have an attribute.
    """
    present = prod(presence(attribute.path) for attribute in attributes_of(predicate))
    if predicate.operator is Operator.PRESENT:
        return present
    if predicate.operator is Operator.MISSING:
        return 1.0 - present
    return present * _OF_COMPARED.get(predicate.operator, _OF_OTHERS)


def _positive(predicate: Predicate, constants: Sequence[Literal], attribute: AttributeStatistics) -> float:
    """Return about how many events satisfy a predicate that is not negated."""
    operator = predicate.operator
    if operator is Operator.IN:
        return _in(constants, attribute)
    if operator is Operator.BETWEEN:
        return _between(constants[0], constants[1], attribute)
    constant = constants[0]
    values = attribute.of(constant.kind)
    if operator is Operator.EQ:
        return values.equal_to(constant.value)
    if operator is Operator.LT:
        return values.below(constant.value)
    if operator is Operator.LE:
        return values.up_to(constant.value)
    if operator is Operator.GT:
        return max(values.count - values.up_to(constant.value), 0.0)
    if operator is Operator.GE:
        return max(values.count - values.below(constant.value), 0.0)
    return _text(operator, constant, attribute)


def _known(predicate: Predicate, constants: Sequence[Literal], attribute: AttributeStatistics) -> float:
    """Return the number of events for which a predicate is true or false, not unknown."""
    kinds = {constant.kind for constant in constants}
    if predicate.operator is Operator.BETWEEN and len(kinds) > 1:
        return attribute.texts if kinds == {Kind.STRING, Kind.TIMESTAMP} else 0.0
    if predicate.operator in (Operator.EQ, Operator.IN, Operator.BETWEEN):
        return attribute.known(kinds)
    return attribute.of(Kind.STRING).count if kinds == {Kind.STRING} else 0.0


def _in(constants: Sequence[Literal], attribute: AttributeStatistics) -> float:
    """Return about how many events have one of these constants."""
    members = set(constants)
    times = {constant.value for constant in members if constant.kind is Kind.TIMESTAMP}
    found = 0.0
    for constant in members:
        if constant.kind is Kind.STRING and times and parse_timestamp(str(constant.value)) in times:
            continue  # its events are counted with the timestamp
        found += attribute.of(constant.kind).equal_to(constant.value)
    return min(found, attribute.known({constant.kind for constant in members}))


def _between(low: Literal, high: Literal, attribute: AttributeStatistics) -> float:
    if low.kind is high.kind:
        values = attribute.of(low.kind)
        return max(values.up_to(high.value) - values.below(low.value), 0.0)
    if not attribute.texts or {low.kind, high.kind} != {Kind.STRING, Kind.TIMESTAMP}:
        return 0.0
    return attribute.texts * _OF_OTHERS  # the string is compared both as a string and as a timestamp


def _text(operator: Operator, constant: Literal, attribute: AttributeStatistics) -> float:
    """Return the number of events that pass a text test; the rest is assumed to be like the frequent strings."""
    if constant.kind is not Kind.STRING:
        return 0.0
    texts = attribute.of(Kind.STRING)
    passing = sum(
        count for text, count in texts.frequent.items() if text_truth(operator, text, constant.value)
    )
    tested = texts.count - texts.rest
    return passing + texts.rest * (passing / tested if tested else _OF_TEXTS)


def _constants(predicate: Predicate) -> list[Any]:
    return [operand for operand in predicate.operands if isinstance(operand, Literal)]
