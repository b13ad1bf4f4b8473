"""The three shapes of a standing question: a filter, a sequence, a view."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import Parameter, Span, Term


class SelectItem(Struct, frozen=True, gc=False):
    """A selected term and the name it is given."""

    term: Term
    name: str


class Computation(Struct, frozen=True, gc=False):
    """`name = term` in `compute`."""

    name: str
    term: Term


class Filter(Struct, frozen=True, gc=False):
    """One event at a time; every stream if `stream` is None, the whole event if `select` is empty."""

    condition: Condition
    stream: str | None = None
    select: tuple[SelectItem, ...] = ()


class From(Struct, frozen=True, gc=False):
    """The first event of a sequence."""

    source: Source
    alias: str | None = None
    where: Condition = TRUE
    compute: tuple[Computation, ...] = ()


class Next(Struct, frozen=True, gc=False):
    """The next event of `source` for which `on` holds; others are passed over."""

    source: Source
    alias: str | None = None
    on: Condition = TRUE
    where: Condition = TRUE


class Fold(Struct, frozen=True, gc=False):
    """Again and again the next event for which `on` holds; the first that fails `while_` ends it."""

    source: Source
    alias: str | None = None
    on: Condition = TRUE
    while_: Condition = TRUE
    compute: tuple[Computation, ...] = ()
    where: Condition = TRUE


class Sequence(Struct, frozen=True, gc=False):
    """Several events, one after another; the first step is a `From`, the rest are `Next` and `Fold`."""

    steps: tuple[Step, ...]
    within: Span | Parameter | None = None
    select: tuple[SelectItem, ...] = ()
    publish: str | None = None


class Table(Struct, frozen=True, gc=False):
    """A table that a view reads, and the name the view gives it."""

    name: str
    alias: str | None = None


class View(Struct, frozen=True, gc=False):
    """The state of a table, or of two joined; all columns if `select` is empty."""

    select: tuple[SelectItem, ...]
    tables: tuple[Table, ...]
    on: Condition = TRUE
    where: Condition = TRUE
    distinct: bool = False


def conditions_of(step: Step) -> tuple[Condition, ...]:
    """Return a step's conditions: `on`, `while` and `where`, as far as it has them."""
    if isinstance(step, From):
        return (step.where,)
    return (step.on, step.where) if isinstance(step, Next) else (step.on, step.while_, step.where)


Source: TypeAlias = str | Sequence
Step: TypeAlias = From | Next | Fold
Query: TypeAlias = Filter | Sequence | View
