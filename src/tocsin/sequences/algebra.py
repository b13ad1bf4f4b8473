"""Cayuga's algebra: the meaning of a sequence, independent of how it is found.

An occurrence has a `start`, an `end`, and data by name. A name is an `Attribute`: with an alias, of an event of that
step; without one, a computed or selected value.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, TypeAlias

from msgspec import Struct

from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import AggregateFunction, Term

LAST: Final = "last"
"""The alias of the event before, in an iteration."""

HIDDEN: Final = "#"
"""The prefix of the names of intermediate values, which are never shown."""


class Accumulated(Struct, frozen=True):
    """An aggregate so far, `old`, after one more value, `new`; an absent value changes nothing.

    SUM adds numbers, MIN and MAX keep the lesser or greater of two comparable values, COUNT counts the values that are
    present. `old` may be absent too; it is None where the aggregate begins.
    """

    function: AggregateFunction
    old: Term | None
    new: Term


Item: TypeAlias = Term | Accumulated


class Computed(Struct, frozen=True):
    """A named value."""

    name: str
    term: Item


class Stream(Struct, frozen=True):
    """The events of a stream, including published ones; their attributes have no alias.

    A sequence in parentheses is a stream of its own: `of` is that sequence, and `name` is made of its canonical text,
    so that equal ones are shared. Its events have the selected values, or else attributes, named `"alias.x"` if it has
    several steps, and the computed values.
    """

    name: str
    of: Expression | None = None


class Rename(Struct, frozen=True):
    """Renaming: the same occurrences, in which x is called alias.x."""

    of: Expression
    alias: str


class Select(Struct, frozen=True):
    """Selection: the occurrences that satisfy a condition; their `duration` is end - start + 1."""

    of: Expression
    where: Condition


class Compute(Struct, frozen=True):
    """Aggregate: the same occurrences with values computed from their data, all from the data as it was before."""

    of: Expression
    values: tuple[Computed, ...]


class Project(Struct, frozen=True):
    """Projection and renaming: the same occurrences with only these values, under new names."""

    of: Expression
    values: tuple[Computed, ...]


class Union(Struct, frozen=True):
    """Union of bags: the occurrences of all members, duplicates included."""

    of: tuple[Expression, ...]


class Next(Struct, frozen=True):
    """Conditional sequence: each occurrence of `left` with the next ones of `right` that satisfy `on`.

    The next ones start after `left` has ended and satisfy the condition; among these, they are all that end first.
    """

    left: Expression
    right: Expression
    on: Condition = TRUE


class Iterate(Struct, frozen=True):
    """Iteration: each occurrence of `left` with the next ones of `right`, again and again.

    An iteration that fails `while_` ends the occurrence. Every other one is a result and continues, with the data of
    `left`, the event of this iteration under its alias, and the computed values renewed. `last.x` is x of the iteration
    before; in the first one, of the nearest of `lefts` (aliases, nearest first) whose data has x. In `on`, `while_` and
    `compute`, a computed value is its value before this iteration. `begin` are the values that aggregates begin with,
    computed from the data of `left`.
    """

    left: Expression
    right: Expression
    alias: str
    lefts: tuple[str, ...]
    on: Condition = TRUE
    while_: Condition = TRUE
    compute: tuple[Computed, ...] = ()
    begin: tuple[Computed, ...] = ()


Expression: TypeAlias = Stream | Rename | Select | Compute | Project | Union | Next | Iterate


class OutputValues(Struct, frozen=True):
    """The names of the values in a sequence's matches, and whether `select` chose them."""

    names: tuple[str, ...]
    selected: bool


def reads_of(expression: Expression) -> frozenset[str]:
    """Return the streams that an expression reads, including those of sequences in parentheses."""
    return frozenset(
        name
        for stream in streams_in(expression)
        for name in ([stream.name] if stream.of is None else reads_of(stream.of))
    )


def streams_in(expression: Expression) -> Iterator[Stream]:
    """Yield the streams of an expression from left to right; a sequence in parentheses is one stream."""
    if isinstance(expression, Stream):
        yield expression
    elif isinstance(expression, (Next, Iterate)):
        yield from streams_in(expression.left)
        yield from streams_in(expression.right)
    elif isinstance(expression, Union):
        for member in expression.of:
            yield from streams_in(member)
    else:
        yield from streams_in(expression.of)


def output_values(expression: Expression) -> OutputValues:
    """Return the names of the values that an expression selects, or else computes."""
    if isinstance(expression, Project):
        return OutputValues(tuple(value.name for value in expression.values), True)
    names = dict.fromkeys(name for values in _computed_values(expression) for name in _shown(values))
    return OutputValues(tuple(names), False)


def _computed_values(expression: Expression) -> Iterator[tuple[Computed, ...]]:
    """Yield the computed values of an expression from left to right, but not those in parentheses."""
    if isinstance(expression, (Rename, Select)):
        yield from _computed_values(expression.of)
    elif isinstance(expression, Compute):
        yield from _computed_values(expression.of)
        yield expression.values
    elif isinstance(expression, Next):
        yield from _computed_values(expression.left)
    elif isinstance(expression, Iterate):
        yield from _computed_values(expression.left)
        yield expression.compute
    elif isinstance(expression, Union):
        for member in expression.of:
            yield from _computed_values(member)


def _shown(values: tuple[Computed, ...]) -> tuple[str, ...]:
    return tuple(value.name for value in values if not value.name.startswith(HIDDEN))
