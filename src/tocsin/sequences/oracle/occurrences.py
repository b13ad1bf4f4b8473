"""All occurrences of an expression in a finite stream, by the definitions of the operators.

This defines the right answer; every call computes it anew from all events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import count
from typing import TypeAlias

from msgspec import Struct
from msgspec.structs import replace

from tocsin.language.semantics import condition_truth
from tocsin.model.conditions import Condition, map_terms
from tocsin.model.event import Event
from tocsin.model.terms import Arithmetic, ArithmeticOperator, Attribute, Elapsed, Literal, Negative, Term
from tocsin.model.values import Value
from tocsin.sequences import algebra
from tocsin.sequences.arithmetic import accumulate, combine
from tocsin.sequences.matches import SequenceMatch, Step, published_event

Data: TypeAlias = Mapping[Attribute, Value]


class Taken(Struct, frozen=True):
    """The events of one step, in order; only a fold has several."""

    alias: str
    events: tuple[Event, ...]


class Occurrence(Struct, frozen=True):
    """An occurrence from `start` to `end`.

    `position` is that of the event that completed it; `began` is the end of its first event, in nested sequences too.
    """

    data: Mapping[Attribute, Value]
    start: int
    end: int
    steps: tuple[Taken, ...]
    began: int
    position: int

    @property
    def duration(self) -> int:
        """Return how many ticks it took, the first and the last included."""
        return self.end - self.start + 1


def occurrences(expression: algebra.Expression, events: Sequence[Event]) -> list[Occurrence]:
    """Return all occurrences of `expression` in `events`, which may be in any order and include published ones."""
    if isinstance(expression, algebra.Stream):
        return _stream(expression, events)
    if isinstance(expression, algebra.Union):
        return [found for member in expression.of for found in occurrences(member, events)]
    if isinstance(expression, algebra.Next):
        return _next(expression, events)
    if isinstance(expression, algebra.Iterate):
        return _iterate(expression, events)
    of = occurrences(expression.of, events)
    if isinstance(expression, algebra.Rename):
        return [_rename(found, expression.alias) for found in of]
    if isinstance(expression, algebra.Select):
        return [found for found in of if holds(expression.where, found.data, found.duration)]
    keeps = isinstance(expression, algebra.Compute)  # a projection keeps nothing
    return [
        replace(
            found,
            data=_with_values(found.data if keeps else {}, expression.values, found.data, found.duration),
        )
        for found in of
    ]


def match_of(expression: algebra.Expression, found: Occurrence, *, full: bool = False) -> SequenceMatch:
    """Return an occurrence as a match; with `full`, it has every event of its steps."""
    steps = tuple(
        Step(step.alias, step.events[0], step.events[-1], step.events if full else None)
        for step in found.steps
    )
    return SequenceMatch(
        steps, {name: found.data.get(Attribute(name)) for name in algebra.output_values(expression).names}
    )


def _stream(stream: algebra.Stream, events: Sequence[Event]) -> list[Occurrence]:
    """Return an occurrence for each event of the stream; a nested sequence is matched first."""
    if stream.of is None:
        return [
            _event_occurrence(event, event.end, position)
            for position, event in enumerate(events)
            if event.stream == stream.name
        ]
    selected = algebra.output_values(stream.of).selected
    return [
        _event_occurrence(
            published_event(
                stream.name, match_of(stream.of, found), selected=selected, start=found.start, end=found.end
            ),
            found.began,
            found.position,
        )
        for found in occurrences(stream.of, events)
    ]


def _event_occurrence(event: Event, began: int, position: int) -> Occurrence:
    data = {Attribute(path): value for path, value in event.attributes.items()}
    return Occurrence(data, event.start, event.end, (Taken("", (event,)),), began, position)


def _rename(found: Occurrence, alias: str) -> Occurrence:
    data = {Attribute(name.path, alias): value for name, value in found.data.items()}
    steps = tuple(Taken(alias, step.events) for step in found.steps)
    return replace(found, data=data, steps=steps)


def _next(expression: algebra.Next, events: Sequence[Event]) -> list[Occurrence]:
    rights = _sort_by_end(occurrences(expression.right, events))
    return [
        _extend(left, right, {**left.data, **right.data}, right.steps)
        for left in occurrences(expression.left, events)
        for right in _following(rights, left.end, left.start, expression.on, left.data)
    ]


def _sort_by_end(found: list[Occurrence]) -> list[Occurrence]:
    return sorted(found, key=lambda each: each.end)


def _following(
    rights: list[Occurrence], after: int, start: int, on: Condition, data: Data
) -> list[Occurrence]:
    """Return all occurrences that end first, of those that start later than `after` and satisfy a condition.

    `rights` are in the order of their end; the left occurrence began at `start`.
    """
    found: list[Occurrence] = []
    for right in rights:
        if found and right.end > found[0].end:
            break
        if after < right.start and holds(on, {**data, **right.data}, right.end - start + 1):
            found.append(right)
    return found


class _Partial(Struct, frozen=True):
    """An unfinished iteration: the data of its left with the values computed so far, and the event before."""

    data: Data
    last: Data
    end: int
    taken: tuple[Event, ...]


def _iterate(expression: algebra.Iterate, events: Sequence[Event]) -> list[Occurrence]:
    """Return the occurrences of a fold: one for each iteration that can be reached from its left."""
    rights = _sort_by_end(occurrences(expression.right, events))
    found: list[Occurrence] = []
    for left in occurrences(expression.left, events):
        last = {
            Attribute(name.path, algebra.LAST): value
            for alias in reversed(expression.lefts)  # the nearest comes last, and overrides
            for name, value in left.data.items()
            if name.alias == alias
        }
        initial_data = _with_values(left.data, expression.begin, {**left.data, **last}, left.duration)
        waiting = [_Partial(initial_data, last, left.end, ())]
        while waiting:
            partial = waiting.pop()
            for right, extended in _iterations(expression, left.start, partial, rights):
                waiting.append(extended)
                taken = (Taken(expression.alias, extended.taken),)
                found.append(_extend(left, right, {**extended.data, **right.data}, taken))
    return found


def _iterations(
    expression: algebra.Iterate, start: int, partial: _Partial, rights: list[Occurrence]
) -> Iterator[tuple[Occurrence, _Partial]]:
    """Yield each possible next iteration of a partial: its event, and the new partial."""
    before = {**partial.data, **partial.last}
    for right in _following(rights, partial.end, start, expression.on, before):
        data, duration = {**before, **right.data}, right.end - start + 1
        if holds(expression.while_, data, duration):
            computed = _with_values(partial.data, expression.compute, data, duration)
            last = {Attribute(name.path, algebra.LAST): value for name, value in right.data.items()}
            yield right, _Partial(computed, last, right.end, (*partial.taken, *right.steps[0].events))


def _extend(left: Occurrence, right: Occurrence, data: Data, taken: tuple[Taken, ...]) -> Occurrence:
    """Return an occurrence that ends with a later one."""
    return replace(left, data=data, end=right.end, steps=(*left.steps, *taken), position=right.position)


def _with_values(before: Data, values: tuple[algebra.Computed, ...], data: Data, duration: int) -> Data:
    """Return `before` with values computed from `data`; an absent value removes the name."""
    after = dict(before)
    for value in values:
        name, computed = Attribute(value.name), value_of(value.term, data, duration)
        if computed is None:
            after.pop(name, None)
        else:
            after[name] = computed
    return after


def holds(condition: Condition, data: Data, duration: int) -> bool:
    """Tell whether a condition is true, rather than false or unknown."""
    values: dict[str, Value] = {}
    numbers = count()

    def name_value(term: Term) -> Term:
        if isinstance(term, Literal):  # stays a constant, beside which a text may be read as a timestamp
            return term
        name, value = str(next(numbers)), value_of(term, data, duration)
        if value is not None:
            values[name] = value
        return Attribute(name)

    return condition_truth(map_terms(condition, name_value), values) is True


def value_of(item: algebra.Item, data: Data, duration: int) -> Value | None:
    """Return the value of a term or an aggregate, or None where it is absent."""
    if isinstance(item, algebra.Accumulated):
        old = None if item.old is None else value_of(item.old, data, duration)
        return accumulate(item.function, old, value_of(item.new, data, duration))
    if isinstance(item, Attribute):
        return data.get(item)
    if isinstance(item, Literal):
        return item.value
    if isinstance(item, Elapsed):
        return duration
    if isinstance(item, Arithmetic):
        left, right = (value_of(side, data, duration) for side in (item.left, item.right))
        return combine(item.operator, left, right)
    if isinstance(item, Negative):
        return combine(ArithmeticOperator.SUBTRACT, 0, value_of(item.term, data, duration))
    raise TypeError(f"{type(item).__name__} has no value in an expression")
