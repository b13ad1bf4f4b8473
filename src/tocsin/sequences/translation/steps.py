"""Translating a sequence, step by step, to an expression of the algebra."""

from __future__ import annotations

from collections.abc import Iterator

from tocsin.language.printer import source_text
from tocsin.model.conditions import TRUE, Condition, Operator, Predicate
from tocsin.model.errors import SubscriptionError
from tocsin.model.event import STREAM
from tocsin.model.queries import From, Sequence, Source, Step
from tocsin.model.queries import Next as NextStep
from tocsin.model.terms import Elapsed, Literal, Parameter, Span
from tocsin.model.values import Kind
from tocsin.sequences.algebra import (
    HIDDEN,
    Compute,
    Computed,
    Expression,
    Next,
    OutputValues,
    Project,
    Rename,
    Select,
    Stream,
    output_values,
)
from tocsin.sequences.ticks import LONGEST, Ticks, ticks_in
from tocsin.sequences.translation.folds import iteration
from tocsin.sequences.translation.scope import Carried, StepScope


def expression_of(query: Sequence, ticks: Ticks) -> Expression:
    """Return a sequence as an expression, or raise `SubscriptionError` naming the part that has no meaning.

    Parameters stay where they are; one beside `duration` or after `within` counts ticks.

    >>> from tocsin.language import parse
    >>> expression_of(parse("from stock a next stock b on b.price > a.price within 5 ticks"), Ticks())
    Select(of=Next(left=Rename(of=Stream(name='stock', of=None), alias='a'), ...
    """
    expression = _sequence(query, ticks.common(_sources(query)))
    if query.publish is not None:
        _check_names(output_values(expression))
    return expression


def parenthesised_name(query: Sequence) -> str:
    """Return the name of the stream of a sequence in parentheses; equal sequences have equal names.

    >>> from tocsin.language import parse
    >>> parenthesised_name(parse("from stock a next stock b"))
    '$(from stock a next stock b)'
    """
    return f"${source_text(query)}"


def _sequence(query: Sequence, tick: int) -> Expression:
    scope = StepScope(tick)
    names = _aliases(query.steps)
    expression: Expression | None = None
    for step, alias in zip(query.steps, names, strict=True):
        scope.aliases.append(alias)
        source = Rename(_source(step.source, alias, scope), alias)
        if expression is None or isinstance(step, From):
            expression = _first(step, source, scope)
        elif isinstance(step, NextStep):
            on = scope.condition(step.on)
            expression = Next(expression, source, on)
        else:
            expression = iteration(expression, source, step, scope)
        if not isinstance(step, From):
            expression = _select(expression, scope.condition(step.where))
    assert expression is not None  # noqa: S101 - a sequence has a step
    if query.within is not None:
        limit = Predicate(Elapsed(), Operator.LE, (_within(query.within, tick),))
        expression = Select(expression, limit)
    if query.select:
        items = tuple(Computed(item.name, scope.term(item.term)) for item in query.select)
        expression = Project(expression, items)
    return expression


def _first(step: Step, source: Expression, scope: StepScope) -> Expression:
    expression = _select(source, scope.condition(step.where))
    if not isinstance(step, From) or not step.compute:
        return expression
    values = tuple(Computed(value.name, scope.term(value.term)) for value in step.compute)
    scope.compute(step.compute)
    return Compute(expression, values)


def _select(expression: Expression, where: Condition) -> Expression:
    return expression if where == TRUE else Select(expression, where)


def _source(source: Source, alias: str, scope: StepScope) -> Stream:
    """Return the stream that a step reads, and note which attributes its events can have, if that is known."""
    if isinstance(source, str):
        return Stream(source)
    inner = _sequence(source, scope.tick)
    outputs = output_values(inner)
    _check_names(outputs)
    scope.carried[alias] = Carried(outputs.names, () if outputs.selected else tuple(_aliases(source.steps)))
    return Stream(parenthesised_name(source), inner)


def _check_names(outputs: OutputValues) -> None:
    """Refuse a name that no attribute of an event can have."""
    if STREAM in outputs.names:
        raise SubscriptionError(
            f"its matches become events, which cannot have an attribute `{STREAM}`; select it under another name"
        )


def _aliases(steps: tuple[Step, ...]) -> list[str]:
    """Return the name of each step's event: its alias, or else the name of its stream.

    If that is taken, the step's number is appended.
    """
    taken = {step.alias for step in steps if step.alias is not None}
    names: list[str] = []
    for number, step in enumerate(steps, start=1):
        name = step.alias
        if name is None:
            plain = step.source if isinstance(step.source, str) else "step"
            name, count = plain, number
            while name in taken:
                name, count = f"{plain}{HIDDEN}{count}", count + 1
            taken.add(name)
        names.append(name)
    return names


def _within(length: Span | Parameter, tick: int) -> Literal | Parameter:
    if isinstance(length, Parameter):
        return length
    ticks = ticks_in(length, tick)
    if ticks > LONGEST:
        raise SubscriptionError(
            f"`within {length.amount} {length.unit}` is {ticks:,} ticks, more than the {LONGEST:,} that a duration "
            "can have; leave it out"
        )
    return Literal(ticks, Kind.NUMBER)


def _sources(query: Sequence) -> Iterator[str]:
    for step in query.steps:
        if isinstance(step.source, str):
            yield step.source
        else:
            yield from _sources(step.source)
