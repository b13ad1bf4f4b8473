"""A standing question and whom it belongs to, and what its subscriber is told."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

from msgspec import Struct

from tocsin.model.event import Event
from tocsin.model.queries import Query
from tocsin.model.values import Value

Told: TypeAlias = Value | Mapping[str, Value | None]
"""A value, or a row by the names of what a view selects."""

Answer: TypeAlias = Value | tuple[Told, ...] | None
"""What a view answers: a number or null, the distinct values in order, or the rows in the order they came."""


class Subscription(Struct, frozen=True):
    """A query with an id. It applies to an event iff `valid_from <= event.end < valid_until`, in ticks.

    `weight` is what its predicates are worth in a ranking: all the same, or by attribute. With `witness="full"` a
    sequence tells all events of each step, else the first and the last.
    """

    id: str
    query: Query
    valid_from: int | None = None
    valid_until: int | None = None
    weight: float | Mapping[str, float] = 1.0
    witness: Literal["full"] | None = None

    def outside_validity(self, event: Event) -> list[str]:
        """Return why the subscription does not apply to an event that ended when this one did; empty if it does."""
        reasons = []
        if self.valid_from is not None and event.end < self.valid_from:
            reasons.append(f"it is valid from {self.valid_from}, the event ended at {event.end}")
        if self.valid_until is not None and event.end >= self.valid_until:
            reasons.append(f"it is valid until {self.valid_until}, the event ended at {event.end}")
        return reasons


class Witnessed(Struct, frozen=True):
    """One step of a sequence that was completed: its name, and the ids of its first and its last event.

    `chain` are those of all its events, if the subscription asked for the full witness.
    """

    alias: str
    first: str
    last: str
    chain: tuple[str, ...] | None = None


class Notification(Struct, frozen=True):
    """What one subscription is told about one event, one sequence of events, or one change of an answer.

    `values` holds what the query selected or, of a sequence that selects nothing, what it computed; `witness` the
    steps of a sequence. Of a `view`, `old` and `new` are the answers before and after, and where these are several
    values or rows, `removed` and `added` the difference; its first answer has no event and no `old`. `generation` is
    the state of the subscriptions that was matched, `score` what it is worth if it was ranked.
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
    witness: tuple[Witnessed, ...] | None = None
    view: bool = False
    removed: tuple[Told, ...] = ()
    added: tuple[Told, ...] = ()
