"""Compiled views: the parts of a view that decide how it is maintained."""

from __future__ import annotations

from typing import TypeAlias

from msgspec import Struct

from tocsin.model.conditions import Condition
from tocsin.model.queries import SelectItem
from tocsin.model.terms import Literal, Parameter, Term

LEFT = "left."
RIGHT = "right."


class Bound(Struct, frozen=True):
    """One end of a range; it is not within if `open`."""

    term: Literal | Parameter
    open: bool = False


class CompiledRangeView(Struct, frozen=True):
    """A view that one range of one attribute decides: its subscriptions live as points, its messages are rectangles.

    Without `x` every row is within. Rows count if x is a number, or if `moments` a timestamp. `y` is the aggregated
    term; None if rows are counted. All bounds must hold.
    """

    aggregate: str  # a name of `RANGE_AGGREGATES`
    table: str
    x: str | None
    moments: bool
    y: Term | None
    lows: tuple[Bound, ...] = ()
    highs: tuple[Bound, ...] = ()


class CompiledRowView(Struct, frozen=True):
    """A view of any condition over the rows of a table, or over the pairs of rows of two: its rows are kept.

    Of two tables, attributes are `left.…` and `right.…`, and pairs are made where all attributes of `equal` are equal.
    `aggregate` is `rows`, or another name of the registry with the aggregated term `y`, None if rows are counted. `select`
    are the selected terms of each row; if there are none, all its attributes, named as the view names its tables.
    """

    aggregate: str
    tables: tuple[str, ...]
    condition: Condition
    y: Term | None = None
    select: tuple[SelectItem, ...] = ()
    aliases: tuple[str, ...] = ()
    equal: tuple[tuple[str, str], ...] = ()  # paths within the left and the right table


CompiledView: TypeAlias = CompiledRangeView | CompiledRowView
