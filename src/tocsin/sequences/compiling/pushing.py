"""Moving questions to the earliest step at which they mean the same, and bounds of duration to where they free state."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from tocsin.model.conditions import Operator
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.values import Kind
from tocsin.sequences.algebra import LAST
from tocsin.sequences.compiling.chains import Link
from tocsin.sequences.compiling.questions import Atom, Question, rewritten, values_in
from tocsin.sequences.compiling.values import DURATION, Given, Held, Read

_WIDEST: Final = 2**63 - 1


def push(links: list[Link]) -> None:
    """Move every question that can be answered before a step's event has come to the step before.

    Whatever a step asks of what is held, and stays the same as long as it is, is known when the instance is made:
    one for which it does not hold can never come to anything. So it is asked then, on the edge that makes it. What an
    iteration changes is asked in the iteration.
    """
    for place in range(len(links) - 1, 0, -1):
        link, earlier = links[place], links[place - 1]
        for questions in (link.guard, link.going, link.where):
            ready = [question for question in questions if _is_ready(question, link)]
            questions[:] = [question for question in questions if question not in ready]
            for question in ready:
                moved = rewritten(question, lambda held, link=link: link.before.of(held.key))  # type: ignore[misc]
                earlier.where += [one for one in moved if one not in earlier.where]
        # What made the event the next one, or the iteration go on, need not be asked again.
        link.where = [q for q in link.where if q not in link.guard and q not in link.going]


def bound(links: list[Link]) -> list[int | Parameter | None]:
    """Return the longest duration of an instance of each node, and leave out the questions that it answers.

    A duration never becomes shorter: an instance that has come to exceed any bound that it has yet to keep can be
    dropped.
    """
    found: list[int | Parameter | None] = [None] * (len(links) - 1)
    later: int | Parameter | None = None
    for place in range(len(links) - 1, 0, -1):
        link = links[place]
        own = _bounds((*link.guard, *link.going, *link.where))
        whole = [one for one in own if isinstance(one, int)]
        if isinstance(later, int):
            whole.append(later)
        parameters = [one for one in own if isinstance(one, Parameter)]
        longest = min(whole) if whole else parameters[0] if parameters else later
        found[place - 1] = later = longest
        for questions in (link.guard, link.going, link.where):
            questions[:] = [question for question in questions if not _is_kept(question, longest)]
    return found


def _is_ready(question: Question, link: Link) -> bool:
    for value in values_in(question):
        if value is DURATION or isinstance(value, Read):
            return False
        if isinstance(value, Held) and isinstance(value.key, Attribute):
            changing = link.renewed if value.key.alias is None else ()
            if value.key.alias == LAST or value.key.path in changing:
                return False
    return True


def _bounds(questions: Iterable[Question]) -> list[int | Parameter]:
    return [one for one in map(_bound, questions) if one is not None]


def _bound(question: Question) -> int | Parameter | None:
    """Return the longest duration for which a question holds, if it asks for just that."""
    if not isinstance(question, Atom) or question.subject is not DURATION:
        return None
    if question.operator not in (Operator.LE, Operator.LT) or not isinstance(question.operands[0], Given):
        return None
    constant = question.operands[0].constant
    if isinstance(constant, Parameter):
        return constant if question.operator is Operator.LE else None
    if constant.kind is not Kind.NUMBER or not isinstance(constant, Literal):
        return None
    assert isinstance(constant.value, (int, float))  # noqa: S101 - a number
    longest = (
        math.ceil(constant.value) - 1 if question.operator is Operator.LT else math.floor(constant.value)
    )
    return longest if longest <= _WIDEST else None


def _is_kept(question: Question, longest: int | Parameter | None) -> bool:
    """Tell whether a question about the duration holds for every instance that is not dropped."""
    asked = _bound(question)
    if asked is None:
        return False
    return asked == longest or (isinstance(asked, int) and isinstance(longest, int) and longest <= asked)
