"""Explanations of views as trees: the answer, the rows before and after an event, and the answer that it gives."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from tocsin.display.text import shortened
from tocsin.display.trees import Branch, Style, StyledText
from tocsin.language.explanation_tree import outside_lines, reason_tree
from tocsin.language.printer import value_text
from tocsin.model.subscription import Answer, AnswerItem

if TYPE_CHECKING:
    from tocsin.views.explanation import ViewExplanation

_WIDTH: Final = 500  # of an answer


def view_trees(why: ViewExplanation, *, before: str = "its answer", event: str = "the event") -> list[Branch]:
    """Return the explanation of a view; `before` names the time of the present answer, and `event` the event."""
    trees = [Branch(why.maintenance), Branch(f"{before}: {answer_text(why.answer, _WIDTH)}")]
    if why.before is not None:
        trees += [Branch("the row that it replaces:"), reason_tree(why.before)]
    if not why.outside:
        trees += [Branch(f"{event}:"), reason_tree(why.reason)]
    return [*trees, *outside_lines(why.outside), _verdict(why)]


def _verdict(why: ViewExplanation) -> Branch:
    if not why.matched:
        return Branch(StyledText("it does not change the answer", Style.BAD))
    return Branch(
        StyledText("it changes the answer to", Style.GOOD), f" {answer_text(why.new_answer, _WIDTH)}"
    )


def answer_text(answer: Answer | AnswerItem, width: int | None = None) -> str:
    """Return an answer, or one of its values or rows, in one line, cut to a width."""
    text = _text(answer)
    return text if width is None else shortened(text, width)


def _text(answer: Answer | AnswerItem) -> str:
    if answer is None:
        return "null"
    if isinstance(answer, tuple):
        return f"({', '.join(map(_text, answer))})"
    if isinstance(answer, Mapping):
        return f"{{{', '.join(f'{name}={_text(one)}' for name, one in answer.items())}}}"
    return value_text(answer)
