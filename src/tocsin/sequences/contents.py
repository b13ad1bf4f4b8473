"""What an expression reads, and what there is to tell of what it finds."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from tocsin.sequences.algebra import (
    HIDDEN,
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


class Telling(Struct, frozen=True):
    """The names of the values that a sequence tells, and whether they were selected: then there is nothing else."""

    names: tuple[str, ...]
    selected: bool


def reads_of(expression: Expression) -> frozenset[str]:
    """Return the streams that an expression reads, those of sequences in parentheses instead of them."""
    return frozenset(
        name
        for stream in streams_in(expression)
        for name in ([stream.name] if stream.of is None else reads_of(stream.of))
    )


def streams_in(expression: Expression) -> Iterator[Stream]:
    """Return the streams of an expression from left to right; sequences in parentheses are among them as one."""
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


def telling_of(expression: Expression) -> Telling:
    """Return what an expression tells: what it selects, or else what it computes, each name once."""
    if isinstance(expression, Project):
        return Telling(tuple(value.name for value in expression.values), True)
    names = dict.fromkeys(name for values in _computed(expression) for name in _shown(values))
    return Telling(tuple(names), False)


def _computed(expression: Expression) -> Iterator[tuple[Computed, ...]]:
    """Return the computed values of an expression from left to right, without those in parentheses."""
    if isinstance(expression, (Rename, Select)):
        yield from _computed(expression.of)
    elif isinstance(expression, Compute):
        yield from _computed(expression.of)
        yield expression.values
    elif isinstance(expression, Next):
        yield from _computed(expression.left)
    elif isinstance(expression, Iterate):
        yield from _computed(expression.left)
        yield expression.compute
    elif isinstance(expression, Union):
        for member in expression.of:
            yield from _computed(member)


def _shown(values: tuple[Computed, ...]) -> tuple[str, ...]:
    return tuple(value.name for value in values if not value.name.startswith(HIDDEN))
