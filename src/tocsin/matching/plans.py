"""Plans that a user can read: how an event reaches a conjunction, and what is evaluated then."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Protocol, runtime_checkable

import numpy as np
from msgspec import Struct

from tocsin.display.text import counted, shortened, summary
from tocsin.language.printer import condition_text, name_text, value_text
from tocsin.matching.batches import EventBatch
from tocsin.model.conditions import Predicate
from tocsin.model.values import Value
from tocsin.structures.array_types import Float64s

if TYPE_CHECKING:
    from tocsin.display.trees import Branch

_TEXT: Final = 100  # characters of a predicate that are shown


class PathKind(StrEnum):
    """How an event reaches a conjunction."""

    EVERY_EVENT = "every event"
    PRESENCE = "presence"
    EQUALITY = "equality"
    LIST = "list"
    RANGE = "range"
    EQUALITIES = "equalities"
    EQUALITIES_AND_RANGES = "equalities and ranges"
    OTHER = "other"


class PathPart(Struct, frozen=True):
    """A part of an access path: a value that an event must have.

    `predicate` is the one that the part stands for; None if it is the presence of `attribute`. Of a range, `cell` are the values
    between which an event's value leads to the conjunction, None where there is no bound.
    """

    attribute: str
    probability: float
    predicate: Predicate | None = None
    cell: tuple[Value | None, Value | None] | None = None

    @property
    def text(self) -> str:
        """Return the predicate, or the presence of the attribute."""
        if self.predicate is None:
            return f"the presence of {name_text(self.attribute)}"
        return predicate_text(self.predicate)

    @property
    def cell_text(self) -> str:
        """Return the values of the cell; nothing if there is none."""
        if self.cell is None:
            return ""
        low, high = (None if bound is None else _rounded(bound) for bound in self.cell)
        if low is None and high is None:
            return "any value"
        if high is None:
            return f"values from {low}"
        return f"values below {high}" if low is None else f"values from {low} to {high}"


class PlannedCheck(Struct, frozen=True):
    """A predicate that is evaluated for events that have reached a conjunction, and how likely it is to hold."""

    predicate: Predicate
    probability: float
    in_python: bool = False

    @property
    def text(self) -> str:
        """Return the predicate."""
        return predicate_text(self.predicate)


class ConjunctionPlan(Struct, frozen=True):
    """The access path of a conjunction, and the predicates that are evaluated behind it, in their order.

    `share` is the share of events that are expected to reach it, and `sharing` how many conjunctions have the same access path,
    this one among them. Where these are divided into sections by their ranges, `in_sections` is the share of them that such an
    event is checked against. A `hot` path is reached so often that batches evaluate it for many events at once.
    """

    kind: PathKind
    share: float
    sharing: int
    path: tuple[PathPart, ...] = ()
    checks: tuple[PlannedCheck, ...] = ()
    hot: bool = False
    in_sections: float = 1.0

    @property
    def cost(self) -> float:
        """Return the share of events that the conjunction is expected to be checked for."""
        return self.share * self.in_sections

    @property
    def path_text(self) -> str:
        """Return how events reach the conjunction."""
        if self.kind is PathKind.EVERY_EVENT:
            return "every event"
        if self.kind is PathKind.OTHER:
            return "an access path of another kind"
        texts = [part.text for part in self.path]
        return " and ".join(texts) + (" together" if len(texts) > 1 else "")

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """Return the predicates of the conjunction."""
        named = [part.predicate for part in self.path if part.predicate is not None]
        return tuple(dict.fromkeys([*named, *(check.predicate for check in self.checks)]))

    def __str__(self) -> str:
        then = ", ".join(check.text for check in self.checks)
        reached = (
            f"reached by {self.path_text}" if self.kind is not PathKind.EVERY_EVENT else "no access path"
        )
        return f"checked by {events_text(self.cost)}: {reached}" + (f"; then {then}" if then else "")


class FilterPlan(Struct, frozen=True):
    """The plans of all conjunctions of a filter's normal form.

    `counted` is how many events the expectations come from; without any, they are guesses from the constants of subscriptions.
    `selective` are the attributes in which an equality holds for few events, the fewest first.
    """

    subscription: str | int
    conjunctions: tuple[ConjunctionPlan, ...]
    counted: int
    selective: tuple[str, ...] = ()

    @property
    def checks(self) -> float:
        """Return how many conjunctions of this filter an event is expected to be checked against."""
        return sum(one.cost for one in self.conjunctions)

    @property
    def why(self) -> str:
        """Return what its costliest conjunction costs, and why."""
        from tocsin.matching.plan_advice import why  # noqa: PLC0415 - to look at it is rare

        return why(self)

    @property
    def advice(self) -> tuple[str, ...]:
        """Return how to make the filter cheaper; nothing if few events reach it."""
        from tocsin.matching.plan_advice import advice  # noqa: PLC0415

        return advice(self)

    def trees(self) -> list[Branch]:
        """Return the plan as trees, as the command line prints it."""
        from tocsin.matching.plan_trees import plan_trees  # noqa: PLC0415

        return plan_trees(self)

    def record(self) -> dict[str, Any]:
        """Return the plan as a document in JSON."""
        from tocsin.matching.plan_records import plan_record  # noqa: PLC0415

        return plan_record(self)

    def __str__(self) -> str:
        from tocsin.display.trees import text_of  # noqa: PLC0415

        return text_of(self.trees())

    def __repr__(self) -> str:
        facts = [
            f"`{self.subscription}`",
            counted(len(self.conjunctions), "conjunction"),
            f"checked by {events_text(self.checks)}"
            if len(self.conjunctions) == 1
            else f"{number_text(self.checks)} checks per event",
        ]
        return summary(self, facts, first=[self.why] if self.conjunctions else [])

    def _repr_html_(self) -> str:
        from tocsin.display.html import box, head  # noqa: PLC0415
        from tocsin.display.trees import html_of  # noqa: PLC0415

        return box(head(str(self.subscription)), f'<div class="mono">{html_of(self.trees())}</div>')


class KindCosts(Struct, frozen=True):
    """How many conjunctions have a kind of path, and how many checks they are expected to cost an event."""

    kind: PathKind
    conjunctions: int
    checks: float


class FilterCosts(Struct, frozen=True, eq=False):
    """How many checks all filters cost an event, and the plans of the costliest.

    A check is one conjunction that one event is checked against. `by_rank` are the expected checks per event of each filter,
    in descending order; `by_kind` are those of all conjunctions with a kind of path, the costliest first.
    """

    filters: tuple[FilterPlan, ...]
    by_rank: Float64s
    by_kind: tuple[KindCosts, ...]
    counted: int

    @property
    def conjunctions(self) -> int:
        """Return how many conjunctions there are."""
        return sum(one.conjunctions for one in self.by_kind)

    @property
    def checks(self) -> float:
        """Return how many conjunctions an event is expected to be checked against."""
        return float(self.by_rank.sum())

    def share_of(self, count: int) -> float:
        """Return the share of the checks that the costliest filters have."""
        return float(self.by_rank[:count].sum()) / (self.checks or 1.0)

    def trees(self) -> list[Branch]:
        """Return the costs as trees, as the command line prints them."""
        from tocsin.matching.plan_trees import cost_trees  # noqa: PLC0415 - to look at it is rare

        return cost_trees(self)

    def record(self) -> dict[str, Any]:
        """Return the costs as a document in JSON."""
        from tocsin.matching.plan_records import cost_record  # noqa: PLC0415

        return cost_record(self)

    def chart(self) -> str:
        """Return the share of the checks that the costliest filters have, by their number, as a drawing in SVG."""
        from tocsin.display.rank_chart import rank_chart  # noqa: PLC0415

        return rank_chart(np.cumsum(self.by_rank), "checks", "filters")

    def __iter__(self) -> Iterator[FilterPlan]:
        return iter(self.filters)

    def __str__(self) -> str:
        from tocsin.display.trees import text_of  # noqa: PLC0415

        return text_of(self.trees())

    def __repr__(self) -> str:
        of = f"{number_text(self.checks)} checks per event of {counted(len(self.by_rank), 'filter')}"
        most = [f"{one.subscription} ({number_text(one.checks)})" for one in self.filters[:4]]
        return summary(self, [of], first=most)

    def _repr_html_(self) -> str:
        from tocsin.display.html import box, head  # noqa: PLC0415
        from tocsin.display.trees import html_of  # noqa: PLC0415

        title = f"{number_text(self.checks)} checks per event of {counted(len(self.by_rank), 'filter')}"
        return box(head(title), self.chart(), f'<div class="mono">{html_of(self.trees())}</div>')


@runtime_checkable
class PlanningMatcher(Protocol):
    """A matcher that chooses an access path for each conjunction, and explains its choice."""

    def explain_plan(self, id: int) -> FilterPlan:
        """Return how events reach a subscription; raise `MatcherError` if it is not stored."""

    def explain_costs(self, top: int) -> FilterCosts:
        """Return how many checks all subscriptions cost, and the plans of so many that cost most."""

    def observe(self, events: EventBatch) -> None:
        """Count events like those to expect."""

    def maintain(self) -> None:
        """Choose access paths anew for all conjunctions, with the present statistics of events."""


def predicate_text(predicate: Predicate) -> str:
    """Return a predicate in one line; a long list is cut."""
    return shortened(condition_text(predicate), _TEXT)


def percentage(share: float) -> str:
    """Return a share in percent with two digits that count: `12 %`, `0.02 %`.

    >>> [percentage(share) for share in (1, 0.9987, 0.1234, 0.01234, 0.000234, 1e-9)]
    ['100 %', '99.9 %', '12 %', '1.2 %', '0.023 %', 'less than 0.0001 %']
    """
    hundredths = 100.0 * share
    if hundredths >= 99.95:
        return "100 %"
    if hundredths >= 90:
        return f"{hundredths:.3g} %"
    if hundredths >= 9.95:
        return f"{hundredths:.0f} %"
    if hundredths < 0.0001:
        return "less than 0.0001 %" if share > 0 else "0 %"
    return f"{float(f'{hundredths:.2g}'):.6f}".rstrip("0").rstrip(".") + " %"


def events_text(share: float) -> str:
    """Return a share of events: `every event`, `0.02 % of events`."""
    return "every event" if share >= 0.9995 else f"{percentage(share)} of events"


def number_text(number: float) -> str:
    """Return a number of checks with three digits that count.

    >>> [number_text(number) for number in (0, 0.000123456, 0.98765, 12.345, 1234.5)]
    ['0', '0.000123', '0.988', '12.3', '1,234']
    """
    if number >= 1000:
        return f"{number:,.0f}"
    return f"{float(f'{number:.3g}'):.9f}".rstrip("0").rstrip(".") if number else "0"


def _rounded(value: Value) -> str:
    """Return a bound of a cell; a number in six digits, since it is next to a constant."""
    if isinstance(value, float):
        return f"{value:,.6g}" if abs(value) < 1e15 else f"{value:g}"
    return value_text(value)
