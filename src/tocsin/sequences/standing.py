"""Where a sequence stands: how many instances wait at each node, some of them, and why others have ended."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from msgspec import Struct

from tocsin.model.event import Event
from tocsin.model.terms import Attribute
from tocsin.model.values import Value
from tocsin.sequences.runner import Runner

if TYPE_CHECKING:
    from tocsin.sequences.running.sequences import SequenceStats  # it brings the compiler


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


class Counted(Runner, Protocol):
    """What runs sequences and tells what it holds."""

    def stats(self) -> SequenceStats:
        """Return what is held and what has passed through."""


@runtime_checkable
class Viewed(Protocol):
    """What a runner may offer beside running: to tell where a subscription stands."""

    def view(self, number: int, samples: int = 3) -> Standing:
        """Return where a subscription stands, with up to so many instances of each node, the newest first."""
