"""The subscriptions of a run by query: texts that differ in their constants only are read and compiled once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from operator import itemgetter
from types import MappingProxyType
from typing import Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.check import read_query
from tocsin.language.sequence_shapes import SequenceShape, remember_sequence, shaped_sequence
from tocsin.language.template.columns import Column
from tocsin.model import Query
from tocsin.model.conditions import leaves
from tocsin.model.queries import conditions_of, sequences_in
from tocsin.model.terms import Literal, Parameter, subterms
from tocsin.model.values import Value, kind_of
from tocsin.subscriptions.runs import Run

Equal: TypeAlias = Mapping[str, Literal | Parameter]
"""What stands for a parameter of a shape: the first parameter with an equal constant, or a constant of the shape itself."""


_NOTHING_EQUAL: Final[Equal] = MappingProxyType({})


class QueryPart(NamedTuple):
    """Subscriptions that share a query with parameters: their positions in the run, and their constants.

    Parameters of a template vary from row to row, and one part has all its rows. Those of texts stand for constants: all texts of a
    part have equal constants in the same places, as `equal` says.
    """

    positions: NDArray[np.int64]
    query: Query
    columns: Mapping[str, Column]
    equal: Equal = _NOTHING_EQUAL
    is_template: bool = False


class _Texts(Struct):
    """Texts of one shape, with equal constants in the same places."""

    shape: SequenceShape
    equal: Equal
    positions: list[int] = []
    constants: list[Sequence[Value]] = []


def parts_of(run: Run) -> Iterator[QueryPart]:
    """Yield the subscriptions of a run."""
    if run.template is not None:
        rows = run.template.rows
        yield QueryPart(np.arange(len(run)), run.template.template.query, rows.columns, is_template=True)
        return
    groups: dict[Hashable, _Texts] = {}
    for position, text in enumerate(run.texts):
        shaped = shaped_sequence(text)
        if shaped is None:
            checked = read_query(text)
            if not checked.warnings:
                remember_sequence(text, checked.query)
            yield QueryPart(np.array([position]), checked.query, {})
            continue
        shape, constants = shaped
        equal = _equal_constants(shape, constants)
        timed = tuple(isinstance(constant, datetime) for constant in constants)
        key = shape, tuple(sorted(equal.items(), key=itemgetter(0))), timed
        group = groups.setdefault(key, _Texts(shape, equal))
        group.positions.append(position)
        group.constants.append(constants)
    for group in groups.values():
        columns = group.shape.columns(group.constants)
        yield QueryPart(np.array(group.positions), group.shape.query, columns, group.equal)


def _equal_constants(shape: SequenceShape, constants: Sequence[Value]) -> Equal:
    """Return what stands for each parameter whose constant there is before it, or in the shape."""
    known: dict[Literal, Literal | Parameter] = {one: one for one in _literals(shape)}
    equal: dict[str, Literal | Parameter] = {}
    for name, constant in zip(shape.columns([constants]), constants, strict=True):
        first = known.setdefault(Literal(constant, kind_of(constant)), Parameter(name))
        if first != Parameter(name):
            equal[name] = first
    return equal


@lru_cache(maxsize=4096)
def _literals(shape: SequenceShape) -> frozenset[Literal]:
    """Return the constants that are part of a shape."""
    return frozenset(
        part
        for sequence in sequences_in(shape.query)
        for step in sequence.steps
        for condition in conditions_of(step)
        for leaf in leaves(condition)
        for term in (leaf.subject, *leaf.operands)
        for part in subterms(term)
        if isinstance(part, Literal)
    )
