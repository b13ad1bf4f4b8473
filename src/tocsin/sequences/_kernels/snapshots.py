"""Instances in the order of their lists, for snapshots, and their keys after a snapshot is restored."""

from __future__ import annotations

import numpy as np

from tocsin.sequences._kernels.instances import enter_key
from tocsin.sequences.running.state import InstanceColumn, PlaceColumn, State
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import kernel


@kernel
def list_instances(rows: Int64s, firsts: Int64s, found: Int64s) -> int:
    """Write the instances of nodes, of which `firsts` are the first ones; return how many there are."""
    count = np.int64(0)
    for i in range(firsts.shape[0]):
        instance = firsts[i]
        while instance >= 0:
            found[count] = instance
            count += 1
            instance = rows[instance, InstanceColumn.NEXT]
    return count


@kernel
def enter_keys(state: State, count: int) -> None:
    """Enter the first `count` instances in the index of keys, the last of each list first; there must be room."""
    for i in range(count):
        instance = np.int64(count - 1 - i)
        node = state.instances.rows[instance, InstanceColumn.NODE]
        if state.places.rows[node, PlaceColumn.KEYED] > 0:
            enter_key(state, instance)
