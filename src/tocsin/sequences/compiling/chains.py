"""An expression as a chain of steps, each with formulas over values, as early in the chain as they can be tested."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Final

from msgspec import Struct, field

from tocsin.model.conditions import TRUE, And, Condition, Operator, all_of
from tocsin.model.errors import SubscriptionError
from tocsin.model.terms import Attribute, Literal, Parameter
from tocsin.model.values import Kind
from tocsin.sequences import algebra
from tocsin.sequences.compiling import ir
from tocsin.sequences.compiling.formulas import conjuncts_of, rewrite, values_in
from tocsin.sequences.compiling.scopes import ValueScope


class ChainStep(Struct):
    """One step: the event it waits for, and the formulas about the event and the values held.

    `guard` makes an event the next one, `going` continues an iteration, and `where` leaves the step; each is a list of
    formulas that must all hold. The values held here are made in the scope `before`, of the event before, and made anew
    in the scope `again`, of an iteration; the step ends in the scope `after`.
    """

    stream: algebra.Stream
    alias: str
    after: ValueScope
    before: ValueScope | None = None
    again: ValueScope | None = None
    guard: list[ir.Formula] = field(default_factory=list)
    going: list[ir.Formula] = field(default_factory=list)
    where: list[ir.Formula] = field(default_factory=list)
    renewed: frozenset[str] = frozenset()  # computed values that an iteration changes
    on: Condition = TRUE
    while_: Condition = TRUE
    selected: Condition = TRUE


class Chain(Struct):
    """The steps in order, and the values of `select`, if there is one."""

    steps: list[ChainStep]
    selected: tuple[algebra.Computed, ...] | None = None


def chain_of(expression: algebra.Expression) -> Chain:
    """Return an expression as a chain, or raise `SubscriptionError` if it is not left-deep."""
    if isinstance(expression, algebra.Project):
        return Chain(_steps_of(expression.of), expression.values)
    return Chain(_steps_of(expression))


def _steps_of(expression: algebra.Expression) -> list[ChainStep]:
    """Return the steps of an expression, the first stream's first; raise `SubscriptionError` if it is not left-deep."""
    spine: list[algebra.Select | algebra.Compute | algebra.Next | algebra.Iterate] = []
    while not isinstance(expression, algebra.Rename):
        if not isinstance(expression, (algebra.Select, algebra.Compute, algebra.Next, algebra.Iterate)):
            raise _refusal(expression)
        spine.append(expression)
        expression = (
            expression.left if isinstance(expression, (algebra.Next, algebra.Iterate)) else expression.of
        )
    steps = [ChainStep(_stream(expression), expression.alias, ValueScope(expression.alias))]
    for above in reversed(spine):
        last = steps[-1]
        if isinstance(above, algebra.Next):
            steps.append(_next(last.after, above))
        elif isinstance(above, algebra.Iterate):
            steps.append(_iteration(last.after, above))
        elif isinstance(above, algebra.Select):
            last.where += conjuncts_of(above.where, last.after.value)
            last.selected = both(last.selected, above.where)
        else:
            last.after = last.after.computing(above.values)
    return steps


def _next(before: ValueScope, expression: algebra.Next) -> ChainStep:
    stream, alias, filtered, computed = _right(expression.right)
    scope = ValueScope(alias, before.earlier_aliases | {before.alias}, before.names()).computing(computed)
    guard = conjuncts_of(filtered, scope.value) + conjuncts_of(expression.on, scope.value)
    return ChainStep(stream, alias, scope, before, guard=guard, on=both(filtered, expression.on))


def _iteration(before: ValueScope, expression: algebra.Iterate) -> ChainStep:
    """Return the step of an iteration."""
    stream, alias, filtered, computed = _right(expression.right)
    begun = before.beginning(expression.lefts, expression.begin)
    renewed = [value.name for value in (*computed, *expression.compute)]
    names = tuple(dict.fromkeys((*begun.names(), *renewed)))
    earlier_aliases = before.earlier_aliases | {before.alias}
    scope = ValueScope(alias, earlier_aliases, names, folded=True).computing(computed)
    guard = conjuncts_of(filtered, scope.value) + conjuncts_of(expression.on, scope.value)
    after = scope.computing(expression.compute)
    return ChainStep(
        stream,
        alias,
        after,
        begun,
        after.beginning((alias,), ()),
        guard,
        conjuncts_of(expression.while_, scope.value),
        renewed=frozenset(renewed),
        on=both(filtered, expression.on),
        while_=expression.while_,
    )


def _right(
    expression: algebra.Expression,
) -> tuple[algebra.Stream, str, Condition, tuple[algebra.Computed, ...]]:
    """Return a right operand's stream and alias, its condition on each event, and the values computed from it."""
    if isinstance(expression, algebra.Rename):
        return _stream(expression), expression.alias, TRUE, ()
    if isinstance(expression, algebra.Select):
        stream, alias, filtered, computed = _right(expression.of)
        own = conjuncts_of(expression.where, ValueScope(alias).computing(computed).value)
        values = [value for formula in own for value in values_in(formula)]
        if ir.DURATION in values:
            raise SubscriptionError(
                f"`duration` of an event of `{alias}` alone cannot be used here; "
                "publish these events under a name of their own, and read that"
            )
        return stream, alias, both(filtered, expression.where), computed
    if isinstance(expression, algebra.Compute):
        stream, alias, filtered, computed = _right(expression.of)
        return stream, alias, filtered, (*computed, *expression.values)
    raise _refusal(expression)


def _stream(expression: algebra.Rename) -> algebra.Stream:
    if not isinstance(expression.of, algebra.Stream):
        raise _refusal(expression.of)
    return expression.of


def both(one: Condition, other: Condition) -> Condition:
    """Return the conjunction of two conditions."""
    members = [
        part
        for condition in (one, other)
        if condition != TRUE
        for part in (condition.conditions if isinstance(condition, And) else (condition,))
    ]
    return all_of(members)


def _refusal(expression: algebra.Expression) -> SubscriptionError:
    """Return the error for an expression that cannot be part of a chain."""
    if isinstance(expression, algebra.Union):
        return SubscriptionError(
            "a union is made by publishing: let several subscriptions `publish as` one name, and read that"
        )
    what = {algebra.Project: "`select`", algebra.Stream: "a stream without an alias"}.get(
        type(expression), "a sequence"
    )
    return SubscriptionError(
        f"{what} cannot stand here: put the part that is to be read as one event in parentheses"
    )


_WIDEST: Final = 2**63 - 1


def move_formulas_back(steps: list[ChainStep]) -> None:
    """Move every formula that does not depend on a step's event to the step before.

    A formula over held values that do not change has its truth when the instance is made, so the edge that makes the
    instance tests it: an instance that fails it could never be completed. Values that an iteration changes are tested in
    the iteration.
    """
    for position in range(len(steps) - 1, 0, -1):
        step, earlier = steps[position], steps[position - 1]
        for formulas in (step.guard, step.going, step.where):
            ready = [formula for formula in formulas if _is_ready(formula, step)]
            formulas[:] = [formula for formula in formulas if formula not in ready]
            for formula in ready:
                moved = rewrite(formula, lambda value, step=step: step.before.of(value.key))  # type: ignore[misc]
                earlier.where += [one for one in moved if one not in earlier.where]
        # The guard, or the test of the iteration, has tested these already.
        step.where = [q for q in step.where if q not in step.guard and q not in step.going]


def bound_durations(steps: list[ChainStep]) -> list[int | Parameter | None]:
    """Return the longest duration of an instance at each node, and remove the formulas that it implies.

    A duration never becomes shorter, so an instance that exceeds the bound of any later step can be dropped.
    """
    found: list[int | Parameter | None] = [None] * (len(steps) - 1)
    later: int | Parameter | None = None
    for position in range(len(steps) - 1, 0, -1):
        step = steps[position]
        own = _duration_limits((*step.guard, *step.going, *step.where))
        whole = [one for one in own if isinstance(one, int)]
        if isinstance(later, int):
            whole.append(later)
        parameters = [one for one in own if isinstance(one, Parameter)]
        longest = min(whole) if whole else parameters[0] if parameters else later
        found[position - 1] = later = longest
        for formulas in (step.guard, step.going, step.where):
            formulas[:] = [formula for formula in formulas if not _is_implied(formula, longest)]
    return found


def _is_ready(formula: ir.Formula, step: ChainStep) -> bool:
    """Tell whether a formula can be decided before the event: it reads only bound values that the step keeps."""
    for value in values_in(formula):
        if value is ir.DURATION or isinstance(value, ir.EventColumn):
            return False
        if isinstance(value, ir.Stored) and isinstance(value.key, Attribute):
            changing = step.renewed if value.key.alias is None else ()
            if value.key.alias == algebra.LAST or value.key.path in changing:
                return False
    return True


def _duration_limits(formulas: Iterable[ir.Formula]) -> list[int | Parameter]:
    return [one for one in map(_duration_limit, formulas) if one is not None]


def _duration_limit(formula: ir.Formula) -> int | Parameter | None:
    """Return the longest duration that satisfies a formula, if the formula is such a bound."""
    if not isinstance(formula, ir.Atom) or formula.subject is not ir.DURATION:
        return None
    if formula.operator not in (Operator.LE, Operator.LT) or not isinstance(formula.operands[0], ir.Const):
        return None
    constant = formula.operands[0].constant
    if isinstance(constant, Parameter):
        return constant if formula.operator is Operator.LE else None
    if constant.kind is not Kind.NUMBER or not isinstance(constant, Literal):
        return None
    assert isinstance(constant.value, (int, float))  # noqa: S101 - a number
    longest = math.ceil(constant.value) - 1 if formula.operator is Operator.LT else math.floor(constant.value)
    return longest if longest <= _WIDEST else None


def _is_implied(formula: ir.Formula, longest: int | Parameter | None) -> bool:
    """Tell whether every instance that is not dropped satisfies a formula about the duration."""
    limit = _duration_limit(formula)
    if limit is None:
        return False
    return limit == longest or (isinstance(limit, int) and isinstance(longest, int) and longest <= limit)
