"""Plans as trees, which the command line and notebooks show."""

from __future__ import annotations

from typing import Final

from tocsin.display.text import counted
from tocsin.display.trees import Branch, Style, StyledText
from tocsin.matching.plans import (
    ConjunctionPlan,
    FilterCosts,
    FilterPlan,
    PathKind,
    events_text,
    number_text,
    percentage,
)

_MOST: Final = 8  # conjunctions that are shown, the costliest
_GUESSED: Final = "no events have been counted: all shares are guesses from the constants of subscriptions"
_BAR: Final = 20
_KINDS: Final = {
    PathKind.EVERY_EVENT: "by every event",
    PathKind.PRESENCE: "by the presence of an attribute",
    PathKind.EQUALITY: "by an equality",
    PathKind.LIST: "by a list",
    PathKind.RANGE: "by a range",
    PathKind.EQUALITIES: "by equalities together",
    PathKind.EQUALITIES_AND_RANGES: "by equalities and ranges together",
    PathKind.OTHER: "by other paths",
}


def plan_trees(plan: FilterPlan) -> list[Branch]:
    """Return a tree for each conjunction, the costliest first, and what to do about them."""
    order = sorted(plan.conjunctions, key=lambda one: -one.cost)
    trees = [_conjunction(one) for one in order[:_MOST]] or [Branch(plan.why)]
    if len(order) > 1:
        total = f"{counted(len(order), 'conjunction')}, {number_text(plan.checks)} checks per event in all"
        left = sum(one.cost for one in order[_MOST:])
        hidden = f"; {len(order) - _MOST:,} are not shown, {number_text(left)} checks" if left else ""
        trees.append(Branch(StyledText(total + hidden, Style.STRONG)))
    trees += [_remedy(text) for text in plan.advice]
    return trees if plan.counted else [*trees, Branch(StyledText(_GUESSED, Style.UNKNOWN))]


def cost_trees(costs: FilterCosts) -> list[Branch]:
    """Return what all filters cost, and a tree for each of the costliest."""
    shown, checks = len(costs.filters), number_text(costs.checks)
    line = (
        f"{counted(len(costs.by_rank), 'filter')}, {counted(costs.conjunctions, 'conjunction')}: "
        f"an event is expected to be checked against {checks} of these"
    )
    if 0 < shown < len(costs.by_rank):
        which = "the costliest has" if shown == 1 else f"the costliest {shown} have"
        line += f"; {which} {percentage(costs.share_of(shown))} of that"
    trees = [Branch(StyledText(line, Style.STRONG), branches=_kinds(costs))]
    trees += [_cost(one, costs) for one in costs.filters]
    return trees if costs.counted else [*trees, Branch(StyledText(_GUESSED, Style.UNKNOWN))]


def _kinds(costs: FilterCosts) -> list[Branch]:
    """Return a line for each kind of path, if there are several."""
    if len(costs.by_kind) < 2:
        return []
    return [
        Branch(
            f"{_KINDS[one.kind]}: {counted(one.conjunctions, 'conjunction')}, ",
            StyledText(_checks(one.checks), Style.COUNT),
        )
        for one in costs.by_kind
    ]


def _cost(plan: FilterPlan, costs: FilterCosts) -> Branch:
    share = plan.checks / (costs.checks or 1.0)
    bar = "▇" * max(round(_BAR * plan.checks / (float(costs.by_rank[0]) or 1.0)), 1)
    checks = _checks(plan.checks)
    return Branch(
        StyledText(str(plan.subscription), Style.STRONG),
        "  ",
        StyledText(f"{checks} per event", Style.COUNT),
        StyledText(f", {percentage(share)} of all  ", Style.QUIET),
        StyledText(bar, Style.GOOD),
        branches=[Branch(plan.why), *map(_remedy, plan.advice)],
    )


def _checks(number: float) -> str:
    text = number_text(number)
    return f"{text} {'check' if text == '1' else 'checks'}"


def _remedy(text: str) -> Branch:
    return Branch(StyledText("→ ", Style.GOOD), text)


def _conjunction(plan: ConjunctionPlan) -> Branch:
    others = (
        f", {counted(plan.sharing - 1, 'other conjunction')} with the same path" if plan.sharing > 1 else ""
    )
    tree = Branch(
        StyledText(f"checked by {events_text(plan.cost)}", Style.STRONG), StyledText(others, Style.QUIET)
    )
    if plan.kind is PathKind.EVERY_EVENT:
        tree.add("reached by every event: it has no access path")
    elif len(plan.path) == 1 and not plan.path[0].cell_text:
        tree.add(f"reached by {plan.path_text}")
    else:
        reached = tree.add(f"reached by {plan.path_text}")
        for part in plan.path:
            cell = f"{part.cell_text}  " if part.cell_text else ""
            line = part.text if len(plan.path) > 1 else ""
            reached.add(
                f"{line}  {cell}".strip(), "  ", StyledText(events_text(part.probability), Style.QUIET)
            )
    if plan.in_sections < 1.0:
        tree.add(
            f"of {events_text(plan.share)}, each meets {percentage(plan.in_sections)} of the conjunctions there, by their ranges"
        )
    for place, check in enumerate(plan.checks):
        holds = "in Python" if check.in_python else f"holds for {percentage(check.probability)}"
        tree.add(f"{'then' if place == 0 else 'and'} {check.text}  ", StyledText(holds, Style.QUIET))
    if not plan.checks:
        tree.add("then nothing else: these events match")
    if plan.hot:
        tree.add(StyledText("in batches, evaluated for 512 events at once", Style.QUIET))
    return tree
