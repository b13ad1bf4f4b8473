"""Subscriptions and notifications."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Literal, TypeAlias

from msgspec import Struct

from tocsin.model.event import Event
from tocsin.model.queries import Query
from tocsin.model.ticks import StreamTicks
from tocsin.model.timestamps import format_rfc3339, microseconds
from tocsin.model.values import Value

AnswerItem: TypeAlias = Value | Mapping[str, Value | None]
"""An item of an answer: a value, or a row by the names of its columns."""

Answer: TypeAlias = Value | tuple[AnswerItem, ...] | None
"""The answer of a view: a number or null, the distinct values in order, or the rows in order of arrival."""


class Subscription(Struct, frozen=True):
    """A query with an id. It applies to an event iff `valid_from <= event.end < valid_until`: ticks or datetimes.

    `weight` is the weight of its predicates in a ranking: one for all, or by attribute. With `witness="full"` the
    notifications of a sequence name all events of each step, otherwise the first and the last.
    """

    id: str
    query: Query
    valid_from: int | datetime | None = None
    valid_until: int | datetime | None = None
    weight: float | Mapping[str, float] = 1.0
    witness: Literal["full"] | None = None

    def outside_validity(self, event: Event, ticks: StreamTicks) -> list[str]:
        """Return the reasons why the subscription does not apply to an event at its end; none if it applies.

        `ticks` has the length of a tick of the event's stream.
        """
        return [*self._outside(event, ticks, "from", self.valid_from), *self.after_validity(event, ticks)]

    def after_validity(self, event: Event, ticks: StreamTicks) -> list[str]:
        """Return why the subscription does not apply any more to an event, if it does not."""
        return self._outside(event, ticks, "until", self.valid_until)

    def _outside(
        self, event: Event, ticks: StreamTicks, which: str, bound: int | datetime | None
    ) -> list[str]:
        if bound is None:
            return []
        end, limit, shown = event.end, bound, str(bound)
        if isinstance(bound, datetime):
            end, limit = event.end * ticks.length(event.stream), microseconds(bound)
            shown = format_rfc3339(bound)
        assert isinstance(limit, int)  # noqa: S101 - a datetime was counted
        if (end >= limit) == (which == "from"):
            return []
        return [f"it is valid {which} {shown}, the event ended at {ticks.shown(event.end, event.stream)}"]


class WitnessStep(Struct, frozen=True, gc=False):
    """One step of a completed sequence: its alias, and the ids of its first and last event.

    `chain` holds the ids of all its events, if the subscription has `witness="full"`.
    """

    alias: str
    first: str
    last: str
    chain: tuple[str, ...] | None = None


# No notification and no event is part of a cycle: the garbage collector, which took longer to look through them than it took to make
# them, is not told of them.
class Notification(Struct, frozen=True, gc=False, repr_omit_defaults=True):
    """A message to one subscriber about one event, one completed sequence, or one change of an answer.

    `values` holds the selected values, or the computed values of a sequence that selects nothing. `witness` holds the
    steps of a sequence. For a `view`, `old` and `new` are the answers before and after; if they are lists of values
    or rows, `removed` and `added` are the difference; a first answer has no event and no `old`. `generation` is the
    version of the subscriptions, `score` the score of a ranked notification.
    """

    subscription: str
    event_ids: tuple[str, ...]
    events: tuple[Event, ...] = ()
    values: Mapping[str, Value | None] | None = None
    old: Answer = None
    new: Answer = None
    start: int | None = None
    end: int | None = None
    generation: int = 0
    score: float | None = None
    witness: tuple[WitnessStep, ...] | None = None
    view: bool = False
    removed: tuple[AnswerItem, ...] = ()
    added: tuple[AnswerItem, ...] = ()
