"""The state of a sequence: how many instances wait at each node, some of them, and why others have ended."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from tocsin.model.event import Event
from tocsin.model.terms import Attribute
from tocsin.model.values import Value


class EndReason(StrEnum):
    """Why an instance ended before its sequence was completed."""

    EXPIRED = "its time was over"
    STUCK = "no edge could be taken"
    BROKEN = "`while` failed"
    DROPPED = "the memory limit was reached"


class Instance(Struct, frozen=True):
    """One instance: its start, its end so far, its values by name, and the events of its steps."""

    start: int
    end: int
    values: tuple[tuple[Attribute, Value | None], ...] = ()
    events: tuple[Event, ...] = ()


class NodeState(Struct, frozen=True):
    """The instances at one node of an automaton, and those that have ended there.

    `ended` counts by reason; `last` is the reason of the last one, with the event at which it ended.
    """

    instances: int
    samples: tuple[Instance, ...] = ()
    ended: tuple[tuple[EndReason, int], ...] = ()
    last: tuple[EndReason, Event | None] | None = None


class SequenceState(Struct, frozen=True):
    """The nodes of one subscription in the order of its automaton; `inner` are sequences in parentheses, by name.

    Subscriptions share nodes: the counts are of all that share one.
    """

    nodes: tuple[NodeState, ...]
    inner: tuple[tuple[str, SequenceState], ...] = ()
