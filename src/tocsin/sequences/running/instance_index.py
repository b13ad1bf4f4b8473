"""Cayuga's AI-index: used at the nodes where it spares more work than its upkeep costs."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.sequences._kernels import graph as kernels
from tocsin.sequences.running.state import PlaceColumn, State, StateCounter
from tocsin.structures import hash_index

_INTERVAL: Final = 10_000  # instances made between two reviews
_ENOUGH: Final = 64  # instances that say something about a node
_UPKEEP: Final = 4.0  # the cost of adding and removing a key, in instances examined in vain
_MARGIN: Final = 1.5  # a switch must be worth this much more


class InstanceIndexTuner:
    """Switches the index of the instances' keys on and off, node by node."""

    def __init__(self) -> None:
        self.next_review = _INTERVAL  # when so many instances have been made
        self.switched = 0

    def restart(self, made: int) -> None:
        """Begin anew, after so many instances have been made."""
        self.next_review = made + _INTERVAL

    def tune(self, state: State) -> State:
        """Return the state with the index switched at the nodes where that pays."""
        places, top = state.places, hash_index.top_entry(state.graph.entries)
        # A review reads all places, which costs no more than making as many instances.
        self.next_review = int(state.counters[StateCounter.MADE]) + max(_INTERVAL, top)
        nodes = np.flatnonzero(places.upkeep[:top] >= _ENOUGH)
        nodes = nodes[places.rows[nodes, PlaceColumn.USES] > 0]
        cost, spared = _UPKEEP * places.upkeep[nodes], places.spared[nodes]
        keyed = places.rows[nodes, PlaceColumn.KEYED] > 0
        change = np.where(keyed, spared * _MARGIN < cost, spared > cost * _MARGIN)
        for node in nodes[change].tolist():
            keys = hash_index.with_room(state.instances.keys, int(places.rows[node, PlaceColumn.WAITING]))
            state = state._replace(instances=state.instances._replace(keys=keys))
            kernels.rekey(state, node, int(places.rows[node, PlaceColumn.KEYED] == 0))
            self.switched += 1
        places.upkeep[nodes] //= 2
        places.spared[nodes] //= 2
        return state
