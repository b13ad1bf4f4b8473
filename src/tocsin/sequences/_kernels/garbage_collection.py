"""Garbage collection: instances that cannot be completed, and links of chains that nothing refers to."""

from __future__ import annotations

import numpy as np

from tocsin.sequences._kernels.instances import duration_of, record_death, release
from tocsin.sequences.running.state import NONE, Death, InstanceColumn, LinkColumn, State, StateCounter
from tocsin.structures.array_types import Int64s, UInt8s
from tocsin.structures.jit import kernel


@kernel
def expire(state: State, top: int) -> None:
    """Release the instances that have lasted too long for any later event."""
    rows = state.instances.rows
    for instance in range(top):
        node = rows[instance, InstanceColumn.NODE]
        if node < 0:
            continue
        duration = duration_of(rows[instance, InstanceColumn.START], state.counters[StateCounter.EPOCH])
        if duration > state.places.longest[node]:
            record_death(state, instance, np.int64(Death.EXPIRED), np.int64(NONE))
            release(state, np.int64(instance))


@kernel
def drop(state: State, instances: Int64s) -> None:
    """Release instances because the memory limit was reached."""
    for i in range(instances.shape[0]):
        record_death(state, instances[i], np.int64(Death.DROPPED), np.int64(NONE))
        release(state, instances[i])


@kernel
def mark_links(links: Int64s, heads: Int64s, marks: UInt8s) -> None:
    """Mark the links of chains, given by their last links."""
    for i in range(heads.shape[0]):
        link = heads[i]
        while link >= 0 and marks[link] == 0:
            marks[link] = 1
            link = links[link, LinkColumn.PREVIOUS]


@kernel
def move_links(links: Int64s, marks: UInt8s, moved: Int64s) -> int:
    """Compact the marked links; write the new position of each, and return how many there are.

    A link stands after its predecessor, so no link is overwritten before it was moved.
    """
    count = np.int64(0)
    for link in range(marks.shape[0]):
        if marks[link]:
            before = links[link, LinkColumn.PREVIOUS]
            links[count, LinkColumn.EVENT] = links[link, LinkColumn.EVENT]
            links[count, LinkColumn.PREVIOUS] = moved[before] if before >= 0 else before
            moved[link] = count
            count += 1
    return count
