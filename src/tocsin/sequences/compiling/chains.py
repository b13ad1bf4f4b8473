"""An expression as a chain of steps, each with formulas over values."""

from __future__ import annotations

from msgspec import Struct, field

from tocsin.model.conditions import TRUE, And, Condition, all_of
from tocsin.model.errors import SubscriptionError
from tocsin.sequences.algebra import (
    Compute,
    Computed,
    Expression,
    Iterate,
    Next,
    Project,
    Rename,
    Select,
    Stream,
    Union,
)
from tocsin.sequences.compiling.formulas import Formula, conjuncts_of, values_in
from tocsin.sequences.compiling.scopes import ValueScope
from tocsin.sequences.compiling.values import DURATION


class Link(Struct):
    """One step: the event it waits for, and the formulas about the event and the values held.

    `guard` makes an event the next one, `going` continues an iteration, and `where` leaves the step; each is a list of
    formulas that must all hold. The values held here are made in the scope `before`, of the event before, and made anew
    in the scope `again`, of an iteration; the step ends in the scope `after`.
    """

    stream: Stream
    alias: str
    after: ValueScope
    before: ValueScope | None = None
    again: ValueScope | None = None
    guard: list[Formula] = field(default_factory=list)
    going: list[Formula] = field(default_factory=list)
    where: list[Formula] = field(default_factory=list)
    renewed: frozenset[str] = frozenset()  # computed values that an iteration changes
    on: Condition = TRUE
    while_: Condition = TRUE
    selected: Condition = TRUE


class Chain(Struct):
    """The steps in order, and the values of `select`, if there is one."""

    links: list[Link]
    selected: tuple[Computed, ...] | None = None


def chain_of(expression: Expression) -> Chain:
    """Return an expression as a chain, or raise `SubscriptionError` if it is not left-deep."""
    if isinstance(expression, Project):
        return Chain(_links(expression.of), expression.values)
    return Chain(_links(expression))


def _links(expression: Expression) -> list[Link]:
    spine: list[Select | Compute | Next | Iterate] = []
    while not isinstance(expression, Rename):
        if not isinstance(expression, (Select, Compute, Next, Iterate)):
            raise _refused(expression)
        spine.append(expression)
        expression = expression.left if isinstance(expression, (Next, Iterate)) else expression.of
    links = [Link(_stream(expression), expression.alias, ValueScope(expression.alias))]
    for above in reversed(spine):
        last = links[-1]
        if isinstance(above, Next):
            links.append(_next(last.after, above))
        elif isinstance(above, Iterate):
            links.append(_iterated(last.after, above))
        elif isinstance(above, Select):
            last.where += conjuncts_of(above.where, last.after.value)
            last.selected = both(last.selected, above.where)
        else:
            last.after = last.after.computing(above.values)
    return links


def _next(before: ValueScope, expression: Next) -> Link:
    stream, alias, filtered, computed = _right(expression.right)
    scope = ValueScope(alias, before.held | {before.alias}, before.names()).computing(computed)
    guard = conjuncts_of(filtered, scope.value) + conjuncts_of(expression.on, scope.value)
    return Link(stream, alias, scope, before, guard=guard, on=both(filtered, expression.on))


def _iterated(before: ValueScope, expression: Iterate) -> Link:
    stream, alias, filtered, computed = _right(expression.right)
    begun = before.beginning(expression.lefts, expression.begin)
    renewed = [value.name for value in (*computed, *expression.compute)]
    names = tuple(dict.fromkeys((*begun.names(), *renewed)))
    held = before.held | {before.alias}
    scope = ValueScope(alias, held, names, folded=True).computing(computed)
    guard = conjuncts_of(filtered, scope.value) + conjuncts_of(expression.on, scope.value)
    after = scope.computing(expression.compute)
    return Link(
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


def _right(expression: Expression) -> tuple[Stream, str, Condition, tuple[Computed, ...]]:
    """Return a right operand's stream and alias, its condition on each event, and the values computed from it."""
    if isinstance(expression, Rename):
        return _stream(expression), expression.alias, TRUE, ()
    if isinstance(expression, Select):
        stream, alias, filtered, computed = _right(expression.of)
        own = ValueScope(alias).computing(computed)
        asked = [
            value for formula in conjuncts_of(expression.where, own.value) for value in values_in(formula)
        ]
        if DURATION in asked:
            raise SubscriptionError(
                f"`duration` of an event of `{alias}` alone cannot be asked here; "
                "publish these events under a name of their own, and read that"
            )
        return stream, alias, both(filtered, expression.where), computed
    if isinstance(expression, Compute):
        stream, alias, filtered, computed = _right(expression.of)
        return stream, alias, filtered, (*computed, *expression.values)
    raise _refused(expression)


def _stream(expression: Rename) -> Stream:
    if not isinstance(expression.of, Stream):
        raise _refused(expression.of)
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


def _refused(expression: Expression) -> SubscriptionError:
    if isinstance(expression, Union):
        return SubscriptionError(
            "a union is made by publishing: let several subscriptions `publish as` one name, and read that"
        )
    what = {Project: "`select`", Stream: "a stream without an alias"}.get(type(expression), "a sequence")
    return SubscriptionError(
        f"{what} cannot stand here: put the part that is to be read as one event in parentheses"
    )
