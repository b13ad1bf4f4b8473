"""Why an event would change a view's answer, or would not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tocsin.language.explanation import EventExplanation, Reason, explain_condition
from tocsin.language.printer import condition_text
from tocsin.model import Subscription, View
from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import same_answer
from tocsin.views.changes import Row
from tocsin.views.compiled import CompiledRangeView, CompiledView

if TYPE_CHECKING:
    from tocsin.display.trees import Branch


class ViewExplanation(EventExplanation, frozen=True, kw_only=True):
    """How a view is maintained, its present answer, and the answer that an event would give it.

    `matched` tells whether the event would change the answer, to `new_answer`. `reason` explains the condition over the event's
    row, and `before` over the row that it would replace, if there is one. With two tables no single row decides the
    condition, and neither is evaluated.
    """

    maintenance: str
    answer: Answer
    new_answer: Answer
    before: Reason | None = None

    def trees(self) -> list[Branch]:
        """Return the answer, the rows before and after the event, and the answer that it gives."""
        from tocsin.views.explanation_tree import view_trees  # noqa: PLC0415 - to look at it is rare

        return view_trees(self)


def explain_view(
    subscription: Subscription,
    compiled: CompiledView,
    answer: Answer,
    new_answer: Answer,
    *,
    rows: tuple[Row | None, Row | None] | None = None,
    not_reached_reasons: tuple[str, ...] = (),
) -> ViewExplanation:
    """Return the explanation of an event: the rows before and after it, or the reasons why it does not reach the view."""
    view = subscription.query
    assert isinstance(view, View)  # noqa: S101 - the caller checked
    reason, before = Reason(condition_text(view.where), None), None
    if rows is not None and len(view.tables) == 1:
        old, new = rows
        reason = explain_condition(view.where, new or {})
        before = None if old is None else explain_condition(view.where, old)
    return ViewExplanation(
        subscription=subscription.id,
        matched=not not_reached_reasons and not same_answer(answer, new_answer),
        reason=reason,
        outside=not_reached_reasons,
        maintenance=_maintenance(compiled),
        answer=answer,
        new_answer=new_answer,
        before=before,
    )


def _maintenance(compiled: CompiledView) -> str:
    if isinstance(compiled, CompiledRangeView):
        by = f"a range of `{compiled.x}`" if compiled.x is not None else "every row"
        return f"{compiled.aggregate} over {by}: a change is reformulated to messages for the affected ranges"
    members = "pairs of rows" if len(compiled.tables) == 2 else "rows"
    return f"{compiled.aggregate}: the {members} that satisfy its condition are kept"
