"""Which partitions have become worse than they were, and what would be better off elsewhere (BE-Tree, 5)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.be_tree._kernels.intervals import field_at
from tocsin.matching.be_tree._kernels.nodes import partition_on
from tocsin.matching.be_tree._kernels.ranks import MARGIN, expected_rank, guess, rank, refresh
from tocsin.matching.be_tree.state import (
    BEST,
    DECAYED,
    FIELD,
    LEAF,
    LOSS,
    MEMBERS,
    MISSED,
    MISSES,
    NODE,
    OWN,
    OWNER,
    PARTITION,
    RANK,
    RECYCLED,
    SPOT,
    TOP_FORM,
    TOP_NODE,
    State,
)
from tocsin.structures.jit import helper, kernel

_ENOUGH: Final = 8.0  # times that a member was looked at in vain, in a window: fewer may be chance
_REMEMBERED: Final = 0.9  # of how much better a rank once was, after each window
_MOST: Final = 1 << 30  # misses that are counted
_KEPT: Final = 0.5  # of what was known, when a window has been counted


@kernel
def collect(state: State, start: int, end: int) -> int:
    """Add what was looked at in vain in nodes from `start` to `end` up by partition; return where it stopped."""
    end = min(np.int64(end), state.tops[TOP_NODE])
    for node in range(start, end):
        partition = np.int64(state.about[node, PARTITION])
        if state.about[node, MEMBERS] >= 0 and partition >= 0:
            missed = state.partitions[partition, MISSED] + state.nodes[node, MISSES]
            state.partitions[partition, MISSED] = min(missed, np.int64(_MOST))
        state.nodes[node, MISSES] = 0
    return end


@kernel
def judge(state: State, start: int, end: int, events: int) -> int:
    """Rank partitions from `start` to `end` by what so many events lost there; mark those whose rank has fallen.

    If it is not known how many there were, all that is counted is forgotten. Returns where it stopped.
    """
    end = min(np.int64(end), state.partition_index.counters[1])
    for partition in range(start, end):
        row = state.partitions[partition]
        if row[OWNER] < 0:
            continue
        figures = state.figures[partition]
        missed, own = np.int64(row[MISSED]), max(np.int64(row[OWN]), np.int64(1))
        # What was guessed before any event had come is measured by how large events turned out to be.
        guessed = rank(state, own, guess(state, np.int64(row[FIELD])))
        best = guessed if figures[LOSS] < 0 else figures[BEST]
        row[MISSED] = 0
        if events == 0:
            continue
        lost = missed / (own * np.float64(events))
        figures[LOSS] = lost if figures[LOSS] < 0 else _KEPT * figures[LOSS] + (1.0 - _KEPT) * lost
        refresh(state, partition)
        figures[BEST] = max(figures[RANK], figures[RANK] + _REMEMBERED * (best - figures[RANK]))
        has_decayed = figures[BEST] > figures[RANK] + MARGIN and missed >= _ENOUGH * own
        if has_decayed and row[DECAYED] == 0:
            state.totals[RECYCLED] += 1.0
        row[DECAYED] = has_decayed
    return end


@kernel
def to_be_moved(state: State, start: int, end: int, numbers: NDArray[np.int64]) -> tuple[int, int]:
    """Write which conjunctions from `start` to `end` are below a partition whose rank has fallen, and have a better one.

    Returns where it stopped, which is before `end` if there is no more room, and how many there are.
    """
    count = np.int64(0)
    end = min(np.int64(end), state.tops[TOP_FORM])
    for number in range(start, end):
        if state.owner[number] < 0:
            continue
        if count == numbers.shape[0]:
            return np.int64(number), count
        partition = np.int64(state.about[state.forms[number, NODE], PARTITION])
        while partition >= 0 and state.partitions[partition, DECAYED] == 0:
            partition = np.int64(state.about[state.partitions[partition, OWNER], PARTITION])
        if partition >= 0 and _has_better(state, number, partition):
            numbers[count] = number
            count += 1
    return end, count


@helper
def _has_better(state: State, number: int, partition: int) -> bool:
    """Tell whether a conjunction below a partition would be much better off in another of the same node."""
    rows, form = state.leaves.rows, state.forms[number]
    least = state.figures[partition, RANK] + MARGIN
    own, owner = state.partitions[partition, FIELD], np.int64(state.partitions[partition, OWNER])
    at = state.nodes[form[NODE], LEAF] + form[SPOT]
    for row in range(at + 1, at + 1 + rows[at, 1]):
        field = field_at(state, rows, row)
        if field < 0 or field == own:
            continue
        other = partition_on(state, owner, field)
        its = state.figures[other, RANK] if other >= 0 else expected_rank(state, field, np.int64(1))
        if its > least:
            return True
    return False
