"""Why an event would change a view's answer, or would not."""

from __future__ import annotations

from collections.abc import Callable

from tocsin.language.explanation import EventExplanation, Reason, explain_condition
from tocsin.language.printer import condition_text
from tocsin.model import Subscription, View
from tocsin.model.subscription import Answer
from tocsin.views.answers import same_answer
from tocsin.views.changes import RowChange
from tocsin.views.plan import Plan, RangePlan


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
    *,
    change: RowChange,
    answer_after: Callable[[RowChange], Answer],
) -> ViewExplanation:
    """Return how a view stands; `change` is what an event would do, unless something keeps it `outside`."""
    view = held.query
    assert isinstance(view, View)  # noqa: S101 - the caller asked
    reason, before, then = Reason(condition_text(view.where), None), None, answer
    if not outside:
        if len(view.tables) == 1:
            reason = explain_condition(view.where, change.new or {})
            before = None if change.old is None else explain_condition(view.where, change.old)
        then = answer_after(change)
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
