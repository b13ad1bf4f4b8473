"""Cayuga's algebra: what a sequence means, before anything is said of how it is found.

An occurrence is something that happened, from `start` to `end`, with data by name. A name is an `Attribute`: of an
event of the alias it says, or, without an alias, a value that was computed or selected.
"""

from __future__ import annotations

from typing import Final, TypeAlias

from msgspec import Struct

from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import AggregateFunction, Term

LAST: Final = "last"
"""The alias under which an iteration knows the event before."""

HIDDEN: Final = "#"
"""How the name of a computed value begins that is needed on the way alone, and never told."""


class Accumulated(Struct, frozen=True):
    """An aggregate so far, `old`, after one more value, `new`; a value that is absent changes nothing.

    SUM adds numbers, MIN and MAX keep the lesser or greater of two comparable values, COUNT counts the values there
    are; `old` may be absent too, and is None where the aggregate begins.
    """

    function: AggregateFunction
    old: Term | None
    new: Term


Item: TypeAlias = Term | Accumulated


class Computed(Struct, frozen=True):
    """A value under a name of its own."""

    name: str
    term: Item


class Stream(Struct, frozen=True):
    """The events of a stream, or what is published under its name; attribute x is called x, without an alias.

    A sequence in parentheses is a stream of its own: `of` is that sequence, and `name` is made of its canonical text,
    so that equal ones can be shared. Its events have the selected values, or else alias.x as one name `"alias.x"`, and
    the computed values.
    """

    name: str
    of: Expression | None = None


class Rename(Struct, frozen=True):
    """Renaming: the same occurrences, in which x is called alias.x."""

    of: Expression
    alias: str


class Select(Struct, frozen=True):
    """Selection: those for which a condition holds; `duration` is their end - start + 1."""

    of: Expression
    where: Condition


class Compute(Struct, frozen=True):
    """Aggregate: the same occurrences with values computed of their data, all of them of the data as it was before."""

    of: Expression
    values: tuple[Computed, ...]


class Project(Struct, frozen=True):
    """Projection and renaming: the same occurrences with these values alone, under new names."""

    of: Expression
    values: tuple[Computed, ...]


class Union(Struct, frozen=True):
    """Union: the occurrences of all, each as often as it is in them."""

    of: tuple[Expression, ...]


class Next(Struct, frozen=True):
    """Conditional sequence: each of `left` with the next of `right` for which `on` holds.

    The next are all those that end first, among those that start after it ended and for which the condition holds.
    """

    left: Expression
    right: Expression
    on: Condition = TRUE


class Iterate(Struct, frozen=True):
    """Iteration: each of `left` with the next of `right`, again and again.

    An iteration for which `while_` fails is none, and nothing follows it. All others are told and go on: the data of
    `left`, the event of this iteration under its alias, and the computed values anew. `last.x` is x of the iteration
    before; at first, of the nearest of `lefts` (aliases, nearest first) whose data has x. A computed value, in `on`,
    `while_` and `compute`, is its value before this iteration. `begin` are values computed of the data of `left` before
    the first iteration: what aggregates begin with.
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
