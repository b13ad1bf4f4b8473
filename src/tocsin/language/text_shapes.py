"""Shapes of texts: texts that differ in their constants only are parsed once, and their constants read from then on.

Most of a million texts are a few conditions with other constants. The first text of a shape is parsed; if it is a plain
conjunction of comparisons with constants, the next ones are cut at their constants, and found by what is left.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.normal import Dnf
from tocsin.model.conditions import And, Condition, Conjunction, Operator, Predicate
from tocsin.model.queries import Filter, Query
from tocsin.model.terms import Attribute, Literal, Parameter, literal
from tocsin.model.values import Kind, Value

# Strings and numbers as the tokens define them. A digit behind a letter belongs to a name.
_CONSTANT: Final = re.compile(
    r"('[^']*+(?:''[^']*+)*+'|(?<![\w.])(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)"
)
COMPARISONS: Final = frozenset((Operator.EQ, Operator.NE, Operator.LT, Operator.LE, Operator.GT, Operator.GE))
_EXACT: Final = 2.0**53  # below it every integer is a float
MOST_SHAPES: Final = 4096
"""Shapes that are remembered."""


class TextShape(Struct, frozen=True, eq=False):
    """A filter whose condition is a conjunction of comparisons, each of an attribute of its own with a constant.

    `query` and `normal` have a parameter `1`, `2`, … for each constant.
    """

    query: Filter
    normal: Dnf
    kinds: tuple[Kind, ...]
    is_negative: tuple[bool, ...]  # numbers with a minus sign before them

    def conjunction(self, constants: Sequence[Value]) -> Conjunction:
        """Return the predicates with these constants."""
        return tuple(
            [
                Predicate(predicate.subject, predicate.operator, (Literal(value, kind),))
                for predicate, kind, value in zip(
                    self.normal.conjunctions[0], self.kinds, constants, strict=True
                )
            ]
        )

    def columns(self, constants: Sequence[Sequence[Value]]) -> dict[str, NDArray[Any]]:
        """Return a column for each parameter, with the constants of many texts."""
        return {
            str(i): _numbers(values) if kind is Kind.NUMBER else _objects(values)
            for i, (kind, values) in enumerate(zip(self.kinds, zip(*constants, strict=True), strict=True), 1)
        }

    def bind(self, conjunction: Conjunction) -> Filter:
        """Return the filter of such a conjunction."""
        return Filter(_condition(conjunction), self.query.stream, self.query.select)


class ShapedText(NamedTuple):
    """A text as its shape and its constants, in the order in which they are written."""

    shape: TextShape
    constants: list[Value]

    def filter(self) -> Filter:
        """Return the filter that the text says."""
        return self.shape.bind(self.shape.conjunction(self.constants))


ShapeKey: TypeAlias = tuple[str, ...]
"""The text between the constants, and last the kinds of these: `n` for a number, `s` for a string."""

_shapes: dict[ShapeKey, TextShape | None] = {}  # None for texts of other kinds


def shaped_text(text: str) -> ShapedText | None:
    """Return a text by its shape, or None if no text of this shape was remembered or the shape is not simple.

    >>> from tocsin.language.parsing.parser import parse
    >>> remember_shape("a = 1 and b > 'x'", parse("a = 1 and b > 'x'"))
    >>> found = shaped_text("a = -2 and b > 'it''s'")
    >>> found is None, shaped_text("a = 2.50 and b > 'it''s'").constants
    (True, [2.5, "it's"])
    """
    cut = cut_text(text)
    if cut is None:
        return None
    key, written = cut
    shape = _shapes.get(key)
    if shape is None:
        return None
    constants = read_constants(written, shape.is_negative)
    return None if constants is None else ShapedText(shape, constants)


def one_of_each_shape(texts: Iterable[str]) -> Iterator[str]:
    """Yield one text of each shape.

    >>> list(one_of_each_shape(["a = 1", "a = 2", "b > 'x'"]))
    ['a = 1', "b > 'x'"]
    """
    seen: set[ShapeKey | str] = set()
    for text in texts:
        cut = cut_text(text)
        key = text if cut is None else cut[0]
        if key not in seen:
            seen.add(key)
            yield text


def remember_shape(text: str, query: Query) -> None:
    """Remember the shape of a text and its query, for the texts that differ from it in their constants only.

    The query must have given no warning.
    """
    cut = cut_text(text)
    if cut is None or cut[0] in _shapes:
        return
    key, written = cut
    if len(_shapes) >= MOST_SHAPES:
        _shapes.clear()
    is_negative = negative_constants(key, len(written))
    constants = read_constants(written, is_negative)
    _shapes[key] = None if constants is None else _shape(query, constants, is_negative)


def cut_text(text: str) -> tuple[ShapeKey, list[str]] | None:
    """Return the text between the constants with the kinds of these, and the constants; None where that is not safe."""
    # Quoted names and comments may contain quotes and digits; a lone surrogate is an error that the parser reports.
    if '"' in text or "--" in text or not (text.isascii() or text.isprintable()):
        return None
    pieces = _CONSTANT.split(text)
    written = pieces[1::2]
    kinds = "".join(["s" if one[0] == "'" else "n" for one in written])
    return (*pieces[::2], kinds), written


def negative_constants(key: ShapeKey, count: int) -> tuple[bool, ...]:
    """Tell for each constant whether a minus sign stands right before it.

    Where that is an operation, the query is of no simple shape.
    """
    return tuple(piece.rstrip().endswith("-") for piece in key[:count])


def read_constants(written: Sequence[str], is_negative: Sequence[bool]) -> list[Value] | None:
    """Return the values of constants; None if the parser refuses one of them."""
    found: list[Value] = []
    for one, negative in zip(written, is_negative, strict=True):
        if one[0] == "'":
            inner = one[1:-1]
            found.append(inner.replace("''", "'") if "'" in inner else inner)
            continue
        try:
            value: int | float = int(one) if one.isdigit() else float(one)
        except ValueError:  # more digits than Python reads
            return None
        if type(value) is float and math.isinf(value):
            return None
        value = -value if negative else value
        found.append(literal(value).value if type(value) is float else value)
    return found


def _shape(query: Query, constants: list[Value], is_negative: tuple[bool, ...]) -> TextShape | None:
    """Return the shape of a query, if it is a simple one and its constants are these, in the same order."""
    if not isinstance(query, Filter):
        return None
    members = query.condition.conditions if isinstance(query.condition, And) else (query.condition,)
    predicates = [p for p in members if isinstance(p, Predicate) and _is_simple(p)]
    attributes = {predicate.subject for predicate in predicates}
    literals = [operand for predicate in predicates for operand in predicate.operands]
    given = [literal(value) for value in constants]
    if len(predicates) < len(members) or len(attributes) < len(members) or literals != given:
        return None
    conjunction = tuple(
        Predicate(predicate.subject, predicate.operator, (Parameter(str(i)),))
        for i, predicate in enumerate(predicates, 1)
    )
    bound = Filter(_condition(conjunction), query.stream, query.select)
    return TextShape(bound, Dnf((conjunction,)), tuple(one.kind for one in given), is_negative)


def _condition(conjunction: Conjunction) -> Condition:
    return And(conjunction) if len(conjunction) > 1 else conjunction[0]


def _numbers(values: Sequence[Any]) -> NDArray[Any]:
    """Return numbers as floats if these equal them, or else as they are."""
    try:
        floats = np.array(values, dtype=np.float64)
    except OverflowError:
        return _objects(values)
    return floats if np.abs(floats).max() < _EXACT else _objects(values)


def _objects(values: Sequence[Any]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values))


def _is_simple(predicate: Predicate) -> bool:
    return (
        type(predicate.subject) is Attribute
        and predicate.operator in COMPARISONS
        and isinstance(predicate.operands[0], Literal)
    )
