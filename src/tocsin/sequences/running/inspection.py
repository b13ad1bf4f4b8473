"""Where a subscription stands in the graph."""

from __future__ import annotations

import numpy as np

from tocsin.model.event import Event
from tocsin.sequences.automaton import Node
from tocsin.sequences.inspection import EndReason, Instance, NodeState, SequenceState
from tocsin.sequences.programs import Tag
from tocsin.sequences.running.events import KeptEvents
from tocsin.sequences.running.holders import HolderTable
from tocsin.sequences.running.state import (
    BASE,
    DROPPED,
    END,
    EXPIRED,
    FIRST,
    NEXT,
    NODE,
    SOURCE,
    START,
    STOPPED,
    TOUCHED,
    TOUCHED_COUNT,
    WAITING,
    State,
)
from tocsin.sequences.running.values import ValueCodec


class Inspector:
    """Reads what waits at the nodes of a subscription, and what has ended there."""

    def __init__(self, state: State, holders: HolderTable, words: ValueCodec, events: KeptEvents) -> None:
        self._state = state
        self._holders = holders
        self._words = words
        self._events = events

    def standing(self, entry: int, samples: int) -> SequenceState:
        """Return where a holder stands, with up to so many instances of each node, the newest first."""
        info = self._holders.info(entry)
        places = self._path(entry)
        return SequenceState(
            tuple(
                self._waiting(place, node, samples)
                for place, node in zip(places, info.automaton.nodes, strict=True)
            ),
            tuple((name, self.standing(self._holders.inner[name], samples)) for name in info.inner),
        )

    def _path(self, entry: int) -> list[int]:
        """Return the nodes that lead to what an entry holds, in order."""
        sources = self._state.places.rows[:, SOURCE]
        place = int(sources[self._state.holders.end[entry]])
        found: list[int] = []
        while place >= 0:
            found.append(place)
            place = int(sources[place])
        return found[::-1]

    def _waiting(self, place: int, node: Node, samples: int) -> NodeState:
        state = self._state
        rows = state.instances.rows
        touched = state.instances.touched[: state.counters[TOUCHED_COUNT]]
        gone = int((rows[touched[touched >= 0], NODE] == place).sum())
        shown: list[Instance] = []
        instance = int(state.places.rows[place, FIRST])
        while instance >= 0 and len(shown) < samples:
            if not rows[instance, TOUCHED]:
                shown.append(self._instance(instance, node))
            instance = int(rows[instance, NEXT])
        reasons = _reasons(node)
        counts = [(reasons[reason], int(count)) for reason, count in enumerate(state.places.deaths[place])]
        last = state.places.last_death[place]
        ended = None
        if last[0] >= 0:
            ended = reasons[int(last[0])], self._events.event(int(last[1])) if last[1] >= 0 else None
        return NodeState(
            int(state.places.rows[place, WAITING]) - gone,
            tuple(shown),
            tuple((reason, count) for reason, count in counts if count),
            ended,
        )

    def _instance(self, instance: int, node: Node) -> Instance:
        row = self._state.instances.rows[instance]
        slots = self._state.arena.slots.rows[row[BASE] : row[BASE] + len(node.slots)]
        values = tuple(
            (name, self._words.decoded(int(tag), int(value)))
            for name, (tag, value) in zip(node.slots, slots, strict=True)
            if name is not None
        )
        numbers = np.unique(slots[slots[:, 0] == Tag.EVENT, 1]).tolist()
        events = [self._events.event(number) for number in numbers]
        kept: tuple[Event, ...] = tuple(event for event in events if event is not None)
        return Instance(int(row[START]), int(row[END]), values, kept)


def _reasons(node: Node) -> dict[int, EndReason]:
    """Return why instances end at a node; where it is a fold's, they stop because `while` fails."""
    stopped = EndReason.STUCK if node.rebind is None else EndReason.BROKEN
    return {EXPIRED: EndReason.EXPIRED, STOPPED: stopped, DROPPED: EndReason.DROPPED}
