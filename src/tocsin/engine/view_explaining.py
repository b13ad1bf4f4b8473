"""Why an event would change a view's answer, or would not."""

from __future__ import annotations

from collections.abc import Mapping

from tocsin.engine.results import EventExplanation
from tocsin.language.explanation import Reason, explain_condition
from tocsin.language.printer import condition_text
from tocsin.model import Event, Subscription, View
from tocsin.model.subscription import Answer
from tocsin.views.answers import same_answer
from tocsin.views.changes import Row
from tocsin.views.oracle import answer_of
from tocsin.views.plan import Plan, RangePlan
from tocsin.views.table import Table

__all__ = ["ViewExplanation", "explain_view"]


class ViewExplanation(EventExplanation, frozen=True, kw_only=True):
    """A view: how it is followed, and its present answer.

    `matched` tells whether the event would change the answer, to `then`; `reason` is how its row stands to
    the condition, and `before` how the row does that it would replace, if there is one. Of two tables, no row by
    itself says how a pair stands.
    """

    followed: str
    answer: Answer
    then: Answer
    before: Reason | None = None


def explain_view(
    held: Subscription,
    plan: Plan,
    answer: Answer,
    outside: tuple[str, ...],
    change: tuple[Mapping[str, Table], Event, Row | None],
) -> ViewExplanation:
    """Return how a view stands; `change` is an event, the tables, and the row it would leave, None if it deletes it."""
    view = held.query
    assert isinstance(view, View)  # noqa: S101 - the caller asked
    reason, before, then = Reason(condition_text(view.where), None), None, answer
    if not outside:
        tables, event, row = change
        table = tables[event.stream or ""]
        slot = table.slot(event.attributes)
        if len(view.tables) == 1:
            reason = explain_condition(view.where, row or {})
            before = None if slot is None else explain_condition(view.where, table.row(slot))
        rows = {one.name: dict(tables[one.name].rows()) for one in view.tables}
        if row is not None:
            rows[table.name][-1 if slot is None else slot] = row
        elif slot is not None:
            del rows[table.name][slot]
        then = answer_of(view, {name: some.values() for name, some in rows.items()})
    return ViewExplanation(
        subscription=held.id,
        matched=not outside and not same_answer(answer, then),
        reason=reason,
        outside=outside,
        followed=_followed(plan),
        answer=answer,
        then=then,
        before=before,
    )


def _followed(plan: Plan) -> str:
    if isinstance(plan, RangePlan):
        by = f"a range of `{plan.x}`" if plan.x is not None else "every row"
        return f"{plan.kind} over {by}: a change tells by itself which ranges it concerns"
    what = "pairs of rows" if len(plan.tables) == 2 else "rows"
    return f"{plan.kind}: the {what} that satisfy its condition are kept"
