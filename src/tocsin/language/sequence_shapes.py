"""Shapes of sequences: texts that differ only in constants that decide nothing are parsed and compiled once.

A text is cut at its constants. Some of them are *free*: whatever such a constant is, the query has the same structure, no
warning and the same automaton but for this constant. All others (a length of time, a member of a list, a pattern, a constant
in an aggregate) belong to the shape. What is free is found by parsing the text with a parameter in the constant's place.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from enum import Enum
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.language.parsing.parser import read
from tocsin.language.template.binding import bind_query
from tocsin.language.template.columns import Column
from tocsin.language.text_shapes import (
    COMPARISONS,
    MOST_SHAPES,
    ShapeKey,
    cut_text,
    negative_constants,
    read_constants,
)
from tocsin.model import queries
from tocsin.model.conditions import And, Predicate, leaves
from tocsin.model.errors import LanguageError
from tocsin.model.queries import Query, computations_of, conditions_of, sequences_in
from tocsin.model.terms import Arithmetic, Attribute, Literal, Negative, Parameter, Term, subterms
from tocsin.model.values import Value


class SequenceShape(Struct, frozen=True, eq=False):
    """A sequence with a parameter `c0`, `c1`, … for each free constant, in the order in which they are written."""

    query: queries.Sequence
    free: tuple[int, ...]  # their positions among the constants of a text
    is_negative: tuple[bool, ...]  # numbers with a minus sign before them

    def bind(self, constants: Sequence[Value]) -> queries.Sequence:
        """Return the sequence with these constants."""
        if not constants:
            return self.query
        bound = bind_query(self.query, {_name(i): value for i, value in enumerate(constants)})
        assert isinstance(bound, queries.Sequence)  # noqa: S101 - binding keeps the kind of a query
        return bound

    def columns(self, constants: Sequence[Sequence[Value]]) -> dict[str, Column]:
        """Return a column for each parameter, with the constants of many texts as they are, not as floats."""
        size = len(constants)
        return {
            _name(i): np.fromiter((one[i] for one in constants), dtype=object, count=size)
            for i in range(len(self.free))
        }


class ShapedSequence(NamedTuple):
    """A sequence as its shape and its free constants."""

    shape: SequenceShape
    constants: list[Value]

    def query(self) -> queries.Sequence:
        """Return the sequence."""
        return self.shape.bind(self.constants)


class _Seen(Enum):
    """Most shapes come once, and are not worth more than a note."""

    ONCE = 0


class _Places(NamedTuple):
    """Which constants of the texts with one key are free, and which decide something."""

    free: tuple[int, ...]
    fixed: tuple[int, ...]


_ShapeId: TypeAlias = tuple[ShapeKey, tuple[str, ...]]  # a key, and the fixed constants as they are written

_places: dict[ShapeKey, _Places | _Seen] = {}
_shapes: dict[_ShapeId, SequenceShape | _Seen | None] = {}  # None for texts without a shape


def shaped_sequence(text: str) -> ShapedSequence | None:
    """Return a sequence by its shape, or None if no such shape is remembered.

    >>> from tocsin.language.parsing.parser import parse
    >>> text = "from stock a next stock b on b.price > {} * a.price within {} ticks"
    >>> for number in (1.5, 1.6):
    ...     remember_sequence(text.format(number, 5), parse(text.format(number, 5)))
    >>> shaped_sequence(text.format(2, 5)).constants, shaped_sequence(text.format(2, 6))
    ([2], None)
    """
    cut = cut_text(text)
    if cut is None:
        return None
    key, written = cut
    places = _places.get(key)
    if not isinstance(places, _Places):
        return None
    shape = _shapes.get((key, _chosen(written, places.fixed)))
    if not isinstance(shape, SequenceShape):
        return None
    constants = read_constants(_chosen(written, places.free), shape.is_negative)
    return None if constants is None else ShapedSequence(shape, constants)


def remember_sequence(text: str, query: Query) -> None:
    """Remember the shape of a text and its query, once the shape has come twice. The query must have given no warning."""
    cut = cut_text(text) if isinstance(query, queries.Sequence) else None
    if cut is None or not isinstance(query, queries.Sequence):
        return
    key, written = cut
    places = _places.get(key)
    if places is None:
        _note(_places, key, _Seen.ONCE)
        return
    learner = _Learner(key, written, query)
    may_be_once = isinstance(places, _Places)
    if not isinstance(places, _Places):
        places = _places[key] = learner.places()
    id_ = key, _chosen(written, places.fixed)
    if may_be_once and id_ not in _shapes:
        _note(_shapes, id_, _Seen.ONCE)
    elif _shapes.get(id_, _Seen.ONCE) is _Seen.ONCE:
        _note(_shapes, id_, learner.shape(places.free))


class _Learner:
    """Finds what is free in a text whose query is known."""

    def __init__(self, key: ShapeKey, written: list[str], query: queries.Sequence) -> None:
        self._pieces = key[:-1]
        self._written = written
        self._query = query
        self._is_negative = negative_constants(key, len(written))

    def places(self) -> _Places:
        """Return which constants are free."""
        numbers = range(len(self._written))
        free = tuple(i for i in numbers if self.shape((i,)) is not None)
        return _Places(free, tuple(i for i in numbers if i not in free))

    def shape(self, free: tuple[int, ...]) -> SequenceShape | None:
        """Return the shape in which these constants are free, or None if one of them is not."""
        is_negative = tuple(self._is_negative[i] for i in free)
        constants = read_constants(_chosen(self._written, free), is_negative)
        if constants is None:
            return None
        try:
            query, cursor = read(self._with_parameters(free), template=True)
        except LanguageError:  # only a constant may stand there
            return None
        names = tuple(map(_name, range(len(free))))
        if not isinstance(query, queries.Sequence) or tuple(cursor.parameters or ()) != names:
            return None
        shape = SequenceShape(query, free, is_negative)
        is_free = _free_parameters(query) == set(names) and len(list(_parameters(query))) == len(names)
        return shape if is_free and repr(shape.bind(constants)) == repr(self._query) else None

    def _with_parameters(self, free: tuple[int, ...]) -> str:
        """Return the text with parameters in the places of these constants, and of the minus signs before them."""
        parts: list[str] = []
        for i, (piece, constant) in enumerate(zip(self._pieces, (*self._written, ""), strict=True)):
            if i in free:
                before = piece.rstrip()[:-1] if self._is_negative[i] else piece
                parts += [before, f" :{_name(free.index(i))} "]
            else:
                parts += [piece, constant]
        return "".join(parts)


def _free_parameters(query: queries.Sequence) -> set[str]:
    """Return the parameters that decide nothing, whatever constant of their kind they are replaced by.

    The constant is compared with an attribute, by itself or after arithmetic with other attributes, in a conjunction of
    predicates; if by itself, nothing else restricts this attribute of this step to constants; if in arithmetic, nothing
    else is the same but for its constants. So no condition is found to hold never, nothing is merged, and nothing is
    computed before an event comes.
    """
    restricted = _restricted(query)
    repeated = _parameters_of_repeated(query)
    found: set[str] = set()
    for number, step in enumerate(query.steps):
        for condition in conditions_of(step):
            members = condition.conditions if isinstance(condition, And) else (condition,)
            predicates = [one for one in members if isinstance(one, Predicate)]
            if len(predicates) < len(members):
                continue
            for one in predicates:
                if one.operator not in COMPARISONS or not isinstance(one.subject, Attribute):
                    continue
                if isinstance(one.operands[0], Arithmetic):
                    found |= _operand_parameters(one.operands[0])
                elif isinstance(one.operands[0], Parameter):
                    owner = _owner(query, number, one.subject)
                    if restricted[None] == 0 and restricted[owner] == 1:
                        found.add(one.operands[0].name)
    return found - repeated


_Owned: TypeAlias = tuple[int, str] | None


def _restricted(query: queries.Sequence) -> Counter[_Owned]:
    """Count the predicates over a single attribute and constants, by the attribute and the number of its step."""
    return Counter(
        _owner(query, number, attributes.pop())
        for number, step in enumerate(query.steps)
        for condition in conditions_of(step)
        for leaf in leaves(condition)
        if len(attributes := set(_attributes_of(leaf))) == 1
    )


def _parameters_of_repeated(query: queries.Sequence) -> set[str]:
    """Return the parameters of arithmetic that some other arithmetic equals if its constants do.

    One program computes equal arithmetic once. Predicates over an event of their step are in programs of that step; other
    predicates and computed values may be in any.
    """
    seen: dict[str, list[tuple[int | None, set[str]]]] = {}

    def note(number: int | None, owner: int, term: Term) -> None:
        for part in subterms(term):
            if isinstance(part, (Arithmetic, Negative)):
                names = {inner.name for inner in subterms(part) if isinstance(inner, Parameter)}
                seen.setdefault(_without_constants(query, owner, part), []).append((number, names))

    for number, step in enumerate(query.steps):
        for one in (leaf for condition in conditions_of(step) for leaf in leaves(condition)):
            owners = {_owner(query, number, attribute) for attribute in _attributes_of(one)}
            place = number if any(owner is not None and owner[0] == number for owner in owners) else None
            for term in (one.subject, *one.operands):
                note(place, number, term)
        for computation in computations_of(step):
            note(None, number, computation.term)
    for item in query.select:
        note(None, len(query.steps) - 1, item.term)
    return {
        name
        for uses in seen.values()
        for i, (place, names) in enumerate(uses)
        if any(i != j and (place is None or other in (None, place)) for j, (other, _) in enumerate(uses))
        for name in names
    }


def _without_constants(query: queries.Sequence, number: int, term: Term) -> str:
    """Return the text of a term of a step without its constants; equal attributes have equal texts."""
    if isinstance(term, (Literal, Parameter)):
        return "?"
    if isinstance(term, Arithmetic):
        left, right = (_without_constants(query, number, side) for side in (term.left, term.right))
        return f"({left} {term.operator} {right})"
    if isinstance(term, Negative):
        return f"-{_without_constants(query, number, term.term)}"
    owner = _owner(query, number, term) if isinstance(term, Attribute) else None
    return repr(term) if owner is None else repr(owner)


def _attributes_of(predicate: Predicate) -> Iterator[Attribute]:
    for term in (predicate.subject, *predicate.operands):
        yield from (part for part in subterms(term) if isinstance(part, Attribute))


def _owner(query: queries.Sequence, number: int, attribute: Attribute) -> _Owned:
    """Return the number of an attribute's step and its path; None where another name may stand for the same value.

    A computed value has no step, and is another attribute under a second name if it is nothing but that.
    """
    path, alias = attribute.path, attribute.alias
    computed = [one.term for step in query.steps for one in computations_of(step) if one.name == path]
    if alias is None and computed:
        return None if any(isinstance(term, (Attribute, Literal)) for term in computed) else (-1, path)
    if alias is None:
        return number, path
    named = [i for i, step in enumerate(query.steps) if alias in (step.alias, step.source)]
    return (named[0], path) if len(named) == 1 else None


def _operand_parameters(operand: Term) -> set[str]:
    """Return the parameters of an operand that are not combined with constants alone."""
    if isinstance(operand, Parameter):
        return {operand.name}
    if not isinstance(operand, Arithmetic):
        return set()
    found: set[str] = set()
    for side, other in ((operand.left, operand.right), (operand.right, operand.left)):
        if any(isinstance(part, Attribute) for part in subterms(other)) or not isinstance(side, Parameter):
            found |= _operand_parameters(side)
    return found


def _parameters(query: queries.Sequence) -> Iterator[str]:
    """Yield the name of each parameter, as often as it is used."""
    for sequence in sequences_in(query):
        if isinstance(sequence.within, Parameter):
            yield sequence.within.name
        terms = [item.term for item in sequence.select]
        for step in sequence.steps:
            terms += [computation.term for computation in computations_of(step)]
            for predicate in (leaf for condition in conditions_of(step) for leaf in leaves(condition)):
                terms += [predicate.subject, *predicate.operands]
        for part in (part for term in terms for part in subterms(term)):
            if isinstance(part, Parameter):
                yield part.name


def _note(known: dict[Any, Any], key: Hashable, value: object) -> None:
    """Remember something; where there is too much, begin anew."""
    if len(known) >= MOST_SHAPES:
        known.clear()
    known[key] = value


def _chosen(written: Sequence[str], places: tuple[int, ...]) -> tuple[str, ...]:
    return tuple([written[i] for i in places])


def _name(position: int) -> str:
    return f"c{position}"
