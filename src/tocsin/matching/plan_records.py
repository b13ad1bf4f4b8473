"""Plans as documents in JSON."""

from __future__ import annotations

from typing import Any, Final

from tocsin.language.printer import value_text
from tocsin.matching.plans import ConjunctionPlan, FilterCosts, FilterPlan
from tocsin.model.values import Value

_RANKS: Final = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 10_000, 100_000)


def plan_record(plan: FilterPlan) -> dict[str, Any]:
    """Return a filter's plan."""
    return {
        "subscription": plan.subscription,
        "checks": plan.checks,
        "why": plan.why,
        "advice": list(plan.advice),
        "conjunctions": [_conjunction(one) for one in plan.conjunctions],
    }


def cost_record(costs: FilterCosts) -> dict[str, Any]:
    """Return the costs of all filters; `share_of_top` is the share of the checks by number of filters."""
    count = len(costs.by_rank)
    ranks = sorted({*(rank for rank in _RANKS if rank < count), count} if count else set())
    return {
        "filters": count,
        "conjunctions": costs.conjunctions,
        "checks": costs.checks,
        "by_kind": [
            {"path": one.kind.value, "conjunctions": one.conjunctions, "checks": one.checks}
            for one in costs.by_kind
        ],
        "share_of_top": {str(rank): costs.share_of(rank) for rank in ranks},
        "top": [{**plan_record(one), "share": one.checks / (costs.checks or 1.0)} for one in costs.filters],
    }


def _conjunction(plan: ConjunctionPlan) -> dict[str, Any]:
    parts = []
    for part in plan.path:
        record: dict[str, Any] = {"text": part.text, "attribute": part.attribute, "share": part.probability}
        if part.cell is not None:
            record["from"], record["to"] = (_bound(bound) for bound in part.cell)
        parts.append(record)
    return {
        "text": str(plan),
        "path": plan.kind.value,
        "share": plan.share,
        "sharing": plan.sharing,
        "in_sections": plan.in_sections,
        "hot": plan.hot,
        "parts": parts,
        "checks": [
            {"text": check.text, "share": check.probability, "in_python": check.in_python}
            for check in plan.checks
        ],
    }


def _bound(value: Value | None) -> Any:
    """Return the end of a cell as JSON has it: a number or a text."""
    return value if value is None or isinstance(value, (bool, int, float, str)) else value_text(value)
