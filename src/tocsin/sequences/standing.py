"""Where a sequence stands: how many instances wait at each node, some of them, and why others have ended."""

from __future__ import annotations

from enum import StrEnum
from typing import Protocol, runtime_checkable

from msgspec import Struct

from tocsin.model.event import Event
from tocsin.model.terms import Attribute
from tocsin.model.values import Value

__all__ = ["Ended", "Instance", "RunnerStats", "Standing", "Viewed", "Waiting"]


class Ended(StrEnum):
    """Why an instance ended without going on, in words."""

    EXPIRED = "its time was over"
    STUCK = "no edge could be taken"
    BROKEN = "`while` failed"
    DROPPED = "the memory limit was reached"


class Instance(Struct, frozen=True):
    """One instance: since when, until when so far, its values by what they are, and the events of its steps."""

    start: int
    end: int
    values: tuple[tuple[Attribute, Value | None], ...] = ()
    events: tuple[Event, ...] = ()


class Waiting(Struct, frozen=True):
    """What waits at one node of an automaton, and what has ended there.

    `ended` counts by reason; `last` is the last one that ended, and the event at which it did.
    """

    instances: int
    samples: tuple[Instance, ...] = ()
    ended: tuple[tuple[Ended, int], ...] = ()
    last: tuple[Ended, Event | None] | None = None


class Standing(Struct, frozen=True):
    """One subscription: its nodes in the order of its automaton's; `inner` those of sequences in parentheses.

    Nodes are shared: what is counted is of all subscriptions that share them.
    """

    nodes: tuple[Waiting, ...]
    inner: tuple[tuple[str, Standing], ...] = ()


class RunnerStats(Struct, frozen=True):
    """What a runner holds, all its subscriptions together; `dropped` instances were ended by the memory limit."""

    subscriptions: int = 0
    nodes: int = 0
    instances: int = 0
    bytes: int = 0
    dropped: int = 0


@runtime_checkable
class Viewed(Protocol):
    """What a runner offers beside running, so that its user can be told what it does."""

    def view(self, number: int, samples: int = 3) -> Standing:
        """Return where a subscription stands, with up to so many instances of each node, the newest first."""

    def stats(self) -> RunnerStats:
        """Return what is held."""
