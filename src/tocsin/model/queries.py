"""The three kinds of query: a filter, a sequence, a view."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import Final, TypeAlias

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
    """A condition on single events; of every stream if `stream` is None. An empty `select` selects the whole event."""

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
    """The first later event of `source` that satisfies `on`."""

    source: Source
    alias: str | None = None
    on: Condition = TRUE
    where: Condition = TRUE


class Fold(Struct, frozen=True, gc=False):
    """A run of later events, each the next that satisfies `on`; the first that fails `while_` ends the run."""

    source: Source
    alias: str | None = None
    on: Condition = TRUE
    while_: Condition = TRUE
    compute: tuple[Computation, ...] = ()
    where: Condition = TRUE


class Sequence(Struct, frozen=True, gc=False):
    """Several events in order; the first step is a `From`, the others are `Next` and `Fold`."""

    steps: tuple[Step, ...]
    within: Span | Parameter | None = None
    select: tuple[SelectItem, ...] = ()
    publish: str | None = None


class Table(Struct, frozen=True, gc=False):
    """A table that a view reads, and its alias."""

    name: str
    alias: str | None = None


class View(Struct, frozen=True, gc=False):
    """A query over a table, or over two joined tables; an empty `select` selects all columns."""

    select: tuple[SelectItem, ...]
    tables: tuple[Table, ...]
    on: Condition = TRUE
    where: Condition = TRUE
    distinct: bool = False


Source: TypeAlias = str | Sequence
Step: TypeAlias = From | Next | Fold
Query: TypeAlias = Filter | Sequence | View


def field_of(clause: str) -> str:
    """Return the field of a step that holds a clause; `while` is reserved in Python."""
    return "while_" if clause == "while" else clause


STEPS: Final[dict[str, type[Step]]] = {"from": From, "next": Next, "fold": Fold}
"""The kinds of step by keyword."""

CLAUSES: Final = {
    "from": ("where", "compute"),
    "next": ("on", "where"),
    "fold": ("on", "while", "compute", "where"),
}
"""The clauses of each kind of step, in the order in which they are written."""


_KEYWORDS: Final = {kind: keyword for keyword, kind in STEPS.items()}
_READ_CLAUSES: Final = {kind: attrgetter(*map(field_of, CLAUSES[word])) for kind, word in _KEYWORDS.items()}


def keyword_of(step: Step) -> str:
    """Return the keyword that begins a step."""
    return _KEYWORDS[type(step)]


def clauses_of(step: Step) -> Iterator[tuple[str, Condition | tuple[Computation, ...]]]:
    """Return a step's clauses, in the order in which they are written."""
    kind = type(step)
    return zip(CLAUSES[_KEYWORDS[kind]], _READ_CLAUSES[kind](step), strict=True)


def conditions_of(step: Step) -> tuple[Condition, ...]:
    """Return a step's conditions, in the order in which they are written."""
    return tuple(condition_clauses(step).values())


def condition_clauses(step: Step) -> dict[str, Condition]:
    """Return a step's conditions by clause, in the order in which they are written."""
    return {word: clause for word, clause in clauses_of(step) if not isinstance(clause, tuple)}


def computations_of(step: Step) -> tuple[Computation, ...]:
    """Return the computed values of a step; a `Next` has none."""
    return () if isinstance(step, Next) else step.compute


def sequences_in(query: Sequence) -> Iterator[Sequence]:
    """Yield a sequence, and all sequences in parentheses within it."""
    yield query
    for step in query.steps:
        if isinstance(step.source, Sequence):
            yield from sequences_in(step.source)
