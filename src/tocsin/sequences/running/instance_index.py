"""Where the AI-index pays: at nodes where it spares more than its upkeep costs."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.sequences._kernels import entering
from tocsin.sequences.running.state import KEYED, MADE, USES, WAITING, State
from tocsin.structures import hash_index

_OFTEN: Final = 10_000  # instances that are made between two reviews
_ENOUGH: Final = 64  # instances that tell something of a node
_UPKEEP: Final = 4.0  # what it costs to enter a key and take it out, in instances that are looked at in vain
_MARGIN: Final = 1.5  # by which it has to be worth a change


class InstanceIndexTuner:
    """Switches the table of what instances wait for on and off, node by node."""

    def __init__(self) -> None:
        self._made = 0
        self.switched = 0

    def review(self, state: State) -> State:
        """Return the state with each node's instances found by their keys where that pays, if it is time to look."""
        made, places = int(state.counters[MADE]), state.places
        top = hash_index.top_entry(state.graph.entries)
        if made - self._made < max(
            _OFTEN, top
        ):  # to look through all places costs no more than to make so many
            return state
        self._made = made
        nodes = np.flatnonzero(places.upkeep[:top] >= _ENOUGH)
        nodes = nodes[places.rows[nodes, USES] > 0]
        cost, spared = _UPKEEP * places.upkeep[nodes], places.spared[nodes]
        keyed = places.rows[nodes, KEYED] > 0
        change = np.where(keyed, spared * _MARGIN < cost, spared > cost * _MARGIN)
        for node in nodes[change].tolist():
            keys = hash_index.with_room(state.instances.keys, int(places.rows[node, WAITING]))
            state = state._replace(instances=state.instances._replace(keys=keys))
            entering.rekey(state, node, int(places.rows[node, KEYED] == 0))
            self.switched += 1
        places.upkeep[nodes] //= 2
        places.spared[nodes] //= 2
        return state
