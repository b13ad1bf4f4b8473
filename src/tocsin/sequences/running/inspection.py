"""Reading the state of a subscription in the graph."""

from __future__ import annotations

import numpy as np

from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.automaton import Node
from tocsin.sequences.inspection import EndReason, Instance, NodeState, SequenceState
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.holders import HolderTable
from tocsin.sequences.running.state import (
    Death,
    DeathColumn,
    InstanceColumn,
    PlaceColumn,
    State,
    StateCounter,
)
from tocsin.sequences.running.values import ValueCodec


class Inspector:
    """Reads the instances at the nodes of a subscription, and why others have ended there."""

    def __init__(self, state: State, holders: HolderTable, codec: ValueCodec, events: EventStore) -> None:
        self._state = state
        self._holders = holders
        self._codec = codec
        self._events = events

    def sequence(self, entry: int, samples: int) -> SequenceState:
        """Return the state of a holder, with up to `samples` instances of each node, the newest first."""
        holder = self._holders.holder(entry)
        nodes = zip(self._path(entry), holder.automaton.nodes, strict=True)
        return SequenceState(
            tuple(self._node(place, node, samples) for place, node in nodes),
            tuple((name, self.sequence(self._holders.inner[name], samples)) for name in holder.inner),
        )

    def _path(self, entry: int) -> list[int]:
        """Return the nodes that lead to the end of an entry, in order."""
        sources = self._state.places.rows[:, PlaceColumn.SOURCE]
        place = int(sources[self._state.holders.end[entry]])
        found: list[int] = []
        while place >= 0:
            found.append(place)
            place = int(sources[place])
        return found[::-1]

    def _node(self, place: int, node: Node, samples: int) -> NodeState:
        """Return the state of the node at an automaton's place, with up to `samples` of its instances."""
        state = self._state
        rows = state.instances.rows
        touched = state.instances.touched[: state.counters[StateCounter.TOUCHED]]
        used_up = int((rows[touched[touched >= 0], InstanceColumn.NODE] == place).sum())
        shown: list[Instance] = []
        instance = int(state.places.rows[place, PlaceColumn.FIRST])
        while instance >= 0 and len(shown) < samples:
            if not rows[instance, InstanceColumn.TOUCHED]:
                shown.append(self._instance(instance, node))
            instance = int(rows[instance, InstanceColumn.NEXT])
        reasons = _reasons(node)
        ended = zip(reasons, state.places.deaths[place].tolist(), strict=True)
        reason, number = state.places.last_death[place, [DeathColumn.REASON, DeathColumn.EVENT]].tolist()
        last = None
        if reason >= 0:
            last = reasons[reason], self._events.get(number) if number >= 0 else None
        return NodeState(
            int(state.places.rows[place, PlaceColumn.WAITING]) - used_up,
            tuple(shown),
            tuple((reason, count) for reason, count in ended if count),
            last,
        )

    def _instance(self, instance: int, node: Node) -> Instance:
        """Return an instance with its bound values and the events that are still stored."""
        row = self._state.instances.rows[instance].tolist()
        base = row[InstanceColumn.BASE]
        slots = self._state.arena.slots.rows[base : base + len(node.slots)]
        values = tuple(
            (name, self._codec.decode(tag, value))
            for name, (tag, value) in zip(node.slots, slots.tolist(), strict=True)
            if name is not None
        )
        numbers = np.unique(slots[slots[:, 0] == Tag.EVENT, 1]).tolist()
        events = tuple(event for number in numbers if (event := self._events.get(number)) is not None)
        return Instance(row[InstanceColumn.START], row[InstanceColumn.END], values, events)


def _reasons(node: Node) -> tuple[EndReason, ...]:
    """Return the reason of each `Death` at a node; instances of a fold stop because `while` fails."""
    stopped = EndReason.STUCK if node.rebind is None else EndReason.BROKEN
    return tuple(stopped if death is Death.STOPPED else EndReason[death.name] for death in Death)
