"""Pushing formulas down to the earliest step where they mean the same, and bounds of duration to the nodes."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from tocsin.model.conditions import Operator
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.values import Kind
from tocsin.sequences.algebra import LAST
from tocsin.sequences.compiling.chains import Link
from tocsin.sequences.compiling.formulas import Atom, Formula, rewritten, values_in
from tocsin.sequences.compiling.values import DURATION, Given, Held, Read

_WIDEST: Final = 2**63 - 1


def push(links: list[Link]) -> None:
    """Move every formula that does not depend on a step's event to the step before.

    A formula over held values that do not change has its truth when the instance is made, so the edge that makes the
    instance tests it: an instance that fails it could never be completed. Values that an iteration changes are tested in
    the iteration.
    """
    for place in range(len(links) - 1, 0, -1):
        link, earlier = links[place], links[place - 1]
        for formulas in (link.guard, link.going, link.where):
            ready = [formula for formula in formulas if _is_ready(formula, link)]
            formulas[:] = [formula for formula in formulas if formula not in ready]
            for formula in ready:
                moved = rewritten(formula, lambda held, link=link: link.before.of(held.key))  # type: ignore[misc]
                earlier.where += [one for one in moved if one not in earlier.where]
        # The guard, or the test of the iteration, has tested these already.
        link.where = [q for q in link.where if q not in link.guard and q not in link.going]


def bound(links: list[Link]) -> list[int | Parameter | None]:
    """Return the longest duration of an instance at each node, and remove the formulas that it implies.

    A duration never becomes shorter, so an instance that exceeds the bound of any later step can be dropped.
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
        for formulas in (link.guard, link.going, link.where):
            formulas[:] = [formula for formula in formulas if not _is_implied(formula, longest)]
    return found


def _is_ready(formula: Formula, link: Link) -> bool:
    for value in values_in(formula):
        if value is DURATION or isinstance(value, Read):
            return False
        if isinstance(value, Held) and isinstance(value.key, Attribute):
            changing = link.renewed if value.key.alias is None else ()
            if value.key.alias == LAST or value.key.path in changing:
                return False
    return True


def _bounds(formulas: Iterable[Formula]) -> list[int | Parameter]:
    return [one for one in map(_bound, formulas) if one is not None]


def _bound(formula: Formula) -> int | Parameter | None:
    """Return the longest duration that satisfies a formula, if the formula is such a bound."""
    if not isinstance(formula, Atom) or formula.subject is not DURATION:
        return None
    if formula.operator not in (Operator.LE, Operator.LT) or not isinstance(formula.operands[0], Given):
        return None
    constant = formula.operands[0].constant
    if isinstance(constant, Parameter):
        return constant if formula.operator is Operator.LE else None
    if constant.kind is not Kind.NUMBER or not isinstance(constant, Literal):
        return None
    assert isinstance(constant.value, (int, float))  # noqa: S101 - a number
    longest = math.ceil(constant.value) - 1 if formula.operator is Operator.LT else math.floor(constant.value)
    return longest if longest <= _WIDEST else None


def _is_implied(formula: Formula, longest: int | Parameter | None) -> bool:
    """Tell whether every instance that is not dropped satisfies a formula about the duration."""
    asked = _bound(formula)
    if asked is None:
        return False
    return asked == longest or (isinstance(asked, int) and isinstance(longest, int) and longest <= asked)
