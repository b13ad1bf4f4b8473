"""All occurrences of an expression in a finite stream, by the definitions of the operators.

This defines the right answer; every call computes it anew from all events.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from tocsin.model.conditions import Condition
from tocsin.model.event import Event
from tocsin.model.terms import Attribute
from tocsin.model.values import Value
from tocsin.sequences.algebra import (
    LAST,
    Compute,
    Computed,
    Expression,
    Iterate,
    Next,
    Rename,
    Select,
    Stream,
    Union,
    output_values,
)
from tocsin.sequences.matches import SequenceMatch, Step, published_event
from tocsin.sequences.oracle.evaluation import Data, holds, value_of


class Taken(Struct, frozen=True):
    """The events of one step, in order; only a fold has several."""

    alias: str
    events: tuple[Event, ...]


class Occurrence(Struct, frozen=True):
    """An occurrence from `start` to `end`.

    `place` is the position of the event that completed it, and `began` the end of its first event, in parentheses too.
    """

    data: Mapping[Attribute, Value]
    start: int
    end: int
    steps: tuple[Taken, ...]
    began: int
    place: int

    @property
    def duration(self) -> int:
        """Return how many ticks it took, the first and the last included."""
        return self.end - self.start + 1


def occurrences(expression: Expression, events: Sequence[Event]) -> list[Occurrence]:
    """Return all occurrences of `expression` in `events`, which may be in any order and include published ones."""
    if isinstance(expression, Stream):
        return _stream(expression, events)
    if isinstance(expression, Union):
        return [found for member in expression.of for found in occurrences(member, events)]
    if isinstance(expression, Next):
        return _next(expression, events)
    if isinstance(expression, Iterate):
        return _iterate(expression, events)
    of = occurrences(expression.of, events)
    if isinstance(expression, Rename):
        return [_renamed(found, expression.alias) for found in of]
    if isinstance(expression, Select):
        return [found for found in of if holds(expression.where, found.data, found.duration)]
    if isinstance(expression, Compute):
        return [
            _with(found, _replaced(found.data, expression.values, found.data, found.duration)) for found in of
        ]
    return [_with(found, _replaced({}, expression.values, found.data, found.duration)) for found in of]


def match_of(expression: Expression, found: Occurrence, *, full: bool = False) -> SequenceMatch:
    """Return an occurrence as a match; with `full`, it has every event of its steps."""
    steps = tuple(
        Step(step.alias, step.events[0], step.events[-1], step.events if full else None)
        for step in found.steps
    )
    return SequenceMatch(
        steps, {name: found.data.get(Attribute(name)) for name in output_values(expression).names}
    )


def _stream(stream: Stream, events: Sequence[Event]) -> list[Occurrence]:
    if stream.of is None:
        return [
            _of_event(event, event.end, place)
            for place, event in enumerate(events)
            if event.stream == stream.name
        ]
    selected = output_values(stream.of).selected
    return [
        _of_event(
            published_event(
                stream.name, match_of(stream.of, found), selected=selected, start=found.start, end=found.end
            ),
            found.began,
            found.place,
        )
        for found in occurrences(stream.of, events)
    ]


def _of_event(event: Event, began: int, place: int) -> Occurrence:
    data = {Attribute(path): value for path, value in event.attributes.items()}
    return Occurrence(data, event.start, event.end, (Taken("", (event,)),), began, place)


def _renamed(found: Occurrence, alias: str) -> Occurrence:
    data = {Attribute(name.path, alias): value for name, value in found.data.items()}
    steps = tuple(Taken(alias, step.events) for step in found.steps)
    return Occurrence(data, found.start, found.end, steps, found.began, found.place)


def _next(expression: Next, events: Sequence[Event]) -> list[Occurrence]:
    rights = _by_end(occurrences(expression.right, events))
    return [
        Occurrence(
            {**left.data, **right.data},
            left.start,
            right.end,
            (*left.steps, *right.steps),
            left.began,
            right.place,
        )
        for left in occurrences(expression.left, events)
        for right in _following(rights, left.end, left.start, expression.on, left.data)
    ]


def _by_end(found: list[Occurrence]) -> list[Occurrence]:
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


def _iterate(expression: Iterate, events: Sequence[Event]) -> list[Occurrence]:
    rights = _by_end(occurrences(expression.right, events))
    found: list[Occurrence] = []
    for left in occurrences(expression.left, events):
        last = {
            Attribute(name.path, LAST): value
            for alias in reversed(expression.lefts)  # the nearest comes last, and overrides
            for name, value in left.data.items()
            if name.alias == alias
        }
        begun = _replaced(left.data, expression.begin, {**left.data, **last}, left.duration)
        waiting = [_Partial(begun, last, left.end, ())]
        while waiting:
            partial = waiting.pop()
            for right, after in _iterations(expression, left.start, partial, rights):
                waiting.append(after)
                found.append(
                    Occurrence(
                        {**after.data, **right.data},
                        left.start,
                        right.end,
                        (*left.steps, Taken(expression.alias, after.taken)),
                        left.began,
                        right.place,
                    )
                )
    return found


def _iterations(
    expression: Iterate, start: int, partial: _Partial, rights: list[Occurrence]
) -> Iterator[tuple[Occurrence, _Partial]]:
    """Return each possible next iteration of a partial: its event, and the new partial."""
    before = {**partial.data, **partial.last}
    for right in _following(rights, partial.end, start, expression.on, before):
        data, duration = {**before, **right.data}, right.end - start + 1
        if holds(expression.while_, data, duration):
            computed = _replaced(partial.data, expression.compute, data, duration)
            last = {Attribute(name.path, LAST): value for name, value in right.data.items()}
            yield right, _Partial(computed, last, right.end, (*partial.taken, *right.steps[0].events))


def _with(found: Occurrence, data: Data) -> Occurrence:
    return Occurrence(data, found.start, found.end, found.steps, found.began, found.place)


def _replaced(before: Data, values: tuple[Computed, ...], data: Data, duration: int) -> Data:
    """Return `before` with values computed from `data`; an absent value removes the name."""
    after = dict(before)
    for value in values:
        name, computed = Attribute(value.name), value_of(value.term, data, duration)
        if computed is None:
            after.pop(name, None)
        else:
            after[name] = computed
    return after
