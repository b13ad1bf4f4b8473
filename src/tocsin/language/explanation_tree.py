"""Explanations of conditions as trees."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tocsin.display.text import shortened
from tocsin.display.trees import Branch, Style, StyledText
from tocsin.language.printer import value_text

if TYPE_CHECKING:
    from tocsin.language.explanation import EventExplanation, Reason

WIDTH: Final = 60  # of a value
_MARKS: Final = {
    True: StyledText("✓", Style.GOOD),
    False: StyledText("✗", Style.BAD),
    None: StyledText("?", Style.UNKNOWN),
}


def reason_tree(reason: Reason) -> Branch:
    """Return a condition as a tree: each part with its truth, each predicate with the value it was tested on."""
    mark = _MARKS[reason.truth]
    if reason.connective is None:
        return Branch(mark, f" {reason.text}  ", StyledText(tested_value(reason), Style.QUIET))
    return Branch(mark, f" {reason.connective}", branches=map(reason_tree, reason.parts))


def tested_value(reason: Reason) -> str:
    """Return the value that a predicate was tested on, in words."""
    if reason.value is None:
        is_absent = reason.truth is None or "missing" in reason.text or "present" in reason.text
        return "absent" if is_absent else ""
    caveat = ", not comparable" if reason.truth is None else ""
    return f"it is {shortened(value_text(reason.value), WIDTH)}{caveat}"


def outside_lines(outside: tuple[str, ...]) -> list[Branch]:
    """Return why an event does not reach the condition, a line each."""
    return [Branch(_MARKS[False], f" {reason}") for reason in outside]


def filter_trees(why: EventExplanation) -> list[Branch]:
    """Return the explanation of a filter: its condition, why the event is outside, and the verdict."""
    return [reason_tree(why.reason), *outside_lines(why.outside), verdict(why)]


def verdict(why: EventExplanation) -> Branch:
    """Return whether a filter matches, and the predicates to blame if it does not."""
    if why.matched:
        return Branch(StyledText("it matches", Style.GOOD))
    failed = ", ".join(f"{reason.text} ({tested_value(reason)})" for reason in why.failed)
    return Branch(StyledText("it does not match", Style.BAD), f": {failed}" if failed else "")
