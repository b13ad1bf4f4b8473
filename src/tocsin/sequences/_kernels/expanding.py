"""From outputs to those who hear of them, and what no longer matters is let go."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.sequences._kernels.instances import duration_of, release
from tocsin.sequences.running.state import (
    DROPPED,
    EPOCH,
    EXPIRED,
    FIRST,
    NODE,
    START,
    State,
)
from tocsin.structures.jit import kernel

_CHAIN = 8


@kernel
def expand(
    state: State, begin: int, finish: int, numbers: NDArray[np.int64], outputs: NDArray[np.int64]
) -> int:
    """Write the subscription and the output of each witness; return how many there are, even if not all fit."""
    holders, rows = state.holders, state.outputs.rows
    count = np.int64(0)
    for row in range(begin, finish):
        holder = np.int64(state.places.rows[rows[row, 0], FIRST])
        while holder >= 0:
            if holders.number[holder] >= 0 and holders.since[holder] < rows[row, 3]:
                if count < numbers.shape[0]:
                    numbers[count] = holders.number[holder]
                    outputs[count] = row
                count += 1
            holder = np.int64(holders.next[holder])
    return count


@kernel
def expire(state: State, top: int) -> int:
    """Release the instances that no later event can be the next of, for they have lasted too long."""
    rows, places = state.instances.rows, state.places
    count = np.int64(0)
    for instance in range(top):
        node = rows[instance, NODE]
        if node >= 0 and duration_of(rows[instance, START], state.counters[EPOCH]) > places.longest[node]:
            places.deaths[node, EXPIRED] += 1
            last = places.last_death
            last[node, 0], last[node, 1] = EXPIRED, -1
            last[node, 2], last[node, 3] = state.counters[EPOCH], rows[instance, START]
            release(state, np.int64(instance))
            count += 1
    return count


@kernel
def release_all(state: State, instances: NDArray[np.int64]) -> None:
    """Release instances for which there is no memory."""
    rows, places = state.instances.rows, state.places
    for i in range(instances.shape[0]):
        node = rows[instances[i], NODE]
        places.deaths[node, DROPPED] += 1
        last = places.last_death
        last[node, 0], last[node, 1] = DROPPED, -1
        last[node, 2], last[node, 3] = state.counters[EPOCH], rows[instances[i], START]
        release(state, instances[i])


@kernel
def mark_links(links: NDArray[np.int64], heads: NDArray[np.int64], marks: NDArray[np.uint8]) -> None:
    """Mark the links that chains are made of, given by their last ones."""
    for i in range(heads.shape[0]):
        link = heads[i]
        while link >= 0 and marks[link] == 0:
            marks[link] = 1
            link = links[link, 1]


@kernel
def move_links(links: NDArray[np.int64], marks: NDArray[np.uint8], moved: NDArray[np.int64]) -> int:
    """Move the marked links together; write where each has gone, and return how many there are.

    A link comes after the one before it, so that all are written where nothing is read any more.
    """
    count = np.int64(0)
    for link in range(marks.shape[0]):
        if marks[link]:
            before = links[link, 1]
            links[count, 0] = links[link, 0]
            links[count, 1] = moved[before] if before >= 0 else before
            moved[link] = count
            count += 1
    return count
