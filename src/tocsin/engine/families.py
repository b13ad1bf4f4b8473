"""Families of views as the engine holds them: what they read, and how far they have followed it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tocsin.model import Event
from tocsin.views.changes import Row, RowChange
from tocsin.views.family import Family
from tocsin.views.plan import Plan, RangePlan
from tocsin.views.table import Table

if TYPE_CHECKING:
    from tocsin.views.range_family import RangeFamily


class Pending(Struct, frozen=True):
    """A change that its event has made, and that the views have not followed yet."""

    mark: int
    event: Event
    now: int
    change: RowChange


class HeldFamily(Struct, eq=False):
    """A family, the tables it reads, how many subscriptions it has, and how many of the pending changes it knows of.

    While it follows a change it is `open`; if it stays so, the call was broken off, and it has to be built anew.
    """

    plan: Plan  # of its first subscription
    family: Family
    tables: tuple[str, ...]
    ranged: RangeFamily | None
    left: int = 0
    known: int = 0
    open: bool = False


class TableContents:
    """The rows of a table, as often as they are asked for: one that is joined with itself is read twice."""

    def __init__(self, table: Table) -> None:
        self._table = table

    def __iter__(self) -> Iterator[tuple[int, Row]]:
        return self._table.rows()


def new_family(plan: Plan, matcher: str | None) -> HeldFamily:
    """Return an empty family for subscriptions of a plan; `matcher` names the index that holds them."""
    if isinstance(plan, RangePlan):
        from tocsin.views.range_family import RangeFamily  # noqa: PLC0415 - it brings the compiler

        ranged = RangeFamily(plan.kind, matcher, plan)
        return HeldFamily(plan, ranged, (plan.table,), ranged)
    from tocsin.views.row_family import RowFamily  # noqa: PLC0415 - it brings the compiler

    return HeldFamily(plan, RowFamily(plan.tables, plan.equal, matcher), plan.tables, None)


def family_key(plan: Plan) -> tuple[Any, ...]:
    """Return what subscriptions of one family have in common."""
    if isinstance(plan, RangePlan):
        return plan.kind, plan.table, plan.x, plan.moments, plan.y
    return plan.tables, plan.equal
