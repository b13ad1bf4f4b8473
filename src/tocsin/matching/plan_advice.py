"""Why a filter costs what it does, and how to make it cheaper."""

from __future__ import annotations

from typing import Final

from tocsin.display.text import shortened
from tocsin.language.printer import name_text
from tocsin.matching.plans import (
    ConjunctionPlan,
    FilterPlan,
    PathKind,
    events_text,
    percentage,
    predicate_text,
)
from tocsin.model.conditions import NEGATIONS, Operator, Predicate
from tocsin.model.terms import Attribute

_CHEAP: Final = 0.01  # of the events: there is nothing to gain
_WIDE: Final = 0.2  # of the events, from which on a predicate rules out too few
_MANY: Final = 16  # conjunctions
_NAMED: Final = 3  # predicates, attributes
_WIDTH: Final = 60  # characters of a predicate
_EVERY: Final = 0.9995  # of the events: all of them, as `events_text` says it
_RANGES: Final = frozenset((Operator.LT, Operator.LE, Operator.GT, Operator.GE, Operator.BETWEEN))


def why(plan: FilterPlan) -> str:
    """Return why so many events reach the conjunction of a filter that costs most."""
    if not plan.conjunctions:
        return "it has no conjunction: it never matches"
    costliest = max(plan.conjunctions, key=lambda one: one.cost)
    reason = _reason(costliest)
    if costliest.in_sections < 1.0:
        reason += f"; by its range it is checked for {percentage(costliest.in_sections)} of these"
    if len(plan.conjunctions) == 1:
        return reason
    return f"{len(plan.conjunctions):,} conjunctions; the costliest: {reason}"


def advice(plan: FilterPlan) -> tuple[str, ...]:
    """Return what would make a filter cheaper, the most specific first; nothing if few events reach it."""
    if plan.checks < _CHEAP:
        return ()
    found: dict[str, None] = {}
    costly = [one for one in plan.conjunctions if one.cost >= 0.5 * max(c.cost for c in plan.conjunctions)]
    for one in costly[:_MANY]:
        found |= dict.fromkeys(_remedies(one))
    if plan.selective or not found:
        found[_equality(plan, costly[0])] = None
    if len(plan.conjunctions) > _MANY:
        found["it has so many conjunctions through `or` between attributes: each costs something"] = None
    return tuple(found)


def _reason(plan: ConjunctionPlan) -> str:
    share = events_text(plan.share)
    if plan.kind is PathKind.EVERY_EVENT:
        if not plan.checks:
            return "every event: it has no predicate"
        return f"every event: {_no_path(plan)}"
    if plan.kind is PathKind.PRESENCE:
        name = name_text(plan.path[0].attribute)
        return f"reached by the presence of `{name}`: {_have(plan.share)} it{_without_index(plan)}"
    texts = _texts([part.predicate for part in plan.path if part.predicate is not None])
    if plan.kind in (PathKind.EQUALITY, PathKind.LIST):
        return f"{texts} holds for {share}"
    if plan.kind is PathKind.RANGE:
        have = "has" if plan.share >= _EVERY else "have"
        return f"{share} {have} a value in the cell around {texts}"
    return f"reached by {texts} together: {share}"


def _without_index(plan: ConjunctionPlan) -> str:
    """Return that a range rules out most events, but is no access path, if that is so."""
    if plan.in_sections < 1.0:
        return ""
    for check in plan.checks:
        if check.predicate.operator in _RANGES and not check.in_python and check.probability < _WIDE:
            return f"; ranges such as {_quoted(check.predicate)} are indexed where more filters have them"
    return ""


def _have(share: float) -> str:
    return "every event has" if share >= _EVERY else f"{percentage(share)} of events have"


def _no_path(plan: ConjunctionPlan) -> str:
    """Return why no predicate of a conjunction can be an access path."""
    missing = [check for check in plan.checks if check.predicate.operator is Operator.MISSING]
    in_python = [check for check in plan.checks if check.in_python]
    parts = []
    if missing:
        parts.append(f"{_texts([one.predicate for one in missing])} holds where there is no value to look up")
    if in_python:
        parts.append(f"{_texts([one.predicate for one in in_python])} is evaluated in Python")
    if not parts:
        return f"{_texts([one.predicate for one in plan.checks])} rules out hardly any"
    return ", and ".join(parts)


def _texts(predicates: list[Predicate]) -> str:
    texts = [_quoted(one) for one in predicates[:_NAMED]]
    return " and ".join([*texts, *(["…"] if len(predicates) > _NAMED else [])])


def _quoted(predicate: Predicate) -> str:
    return f"`{shortened(predicate_text(predicate), _WIDTH)}`"


def _remedies(plan: ConjunctionPlan) -> list[str]:
    """Return what the predicates of a conjunction could be instead."""
    found = []
    is_unselective = plan.kind in (PathKind.EVERY_EVENT, PathKind.PRESENCE)
    likely = {part.predicate: part.probability for part in plan.path if part.predicate is not None}
    likely |= {check.predicate: check.probability for check in plan.checks}
    in_python = {check.predicate for check in plan.checks if check.in_python}
    for predicate in plan.predicates[:_NAMED]:
        text, operator = _quoted(predicate), predicate.operator
        is_no_path = operator in NEGATIONS or operator is Operator.MISSING or predicate in in_python
        if is_no_path and not is_unselective:  # another predicate is the access path
            continue
        if predicate in in_python:
            found.append(
                f"beside {text}, compare an attribute with a constant: with a range that follows from it"
            )
        elif operator in NEGATIONS:
            found.append(f"replace {text} by what is wanted: an equality, or a list with `in (…)`")
        elif operator is Operator.MISSING:
            found.append(f"add a predicate beside {text} on an attribute that such events have")
        elif operator in _RANGES and likely[predicate] >= _WIDE and _is_reached_by(plan, predicate):
            found.append(f"narrow the range {text}: it holds for {events_text(likely[predicate])}")
        elif operator is Operator.IN and likely[predicate] >= _WIDE and _is_reached_by(plan, predicate):
            found.append(f"shorten the list {text}: it holds for {events_text(likely[predicate])}")
    return found


def _is_reached_by(plan: ConjunctionPlan, predicate: Predicate) -> bool:
    """Tell whether an access path is by the attribute of a predicate, which may be as good as another then."""
    return plan.kind is PathKind.PRESENCE or predicate in {part.predicate for part in plan.path}


def _equality(plan: FilterPlan, costly: ConjunctionPlan) -> str:
    """Return the advice to add an equality, with the attributes for it if some are known."""
    used = {one.subject.path for one in costly.predicates if isinstance(one.subject, Attribute)}
    names = [f"`{name_text(path)}`" for path in plan.selective if path not in used][:_NAMED]
    if names:
        return f"add an equality on {' or '.join(names)}, where a value holds for few events"
    return "add an equality on an attribute with many values"
