"""Adaptation: partitions whose rank has fallen, and conjunctions to move out of them (BE-Tree, §5)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree._kernels.intervals import field_at
from tocsin.matching.be_tree._kernels.nodes import partition_on
from tocsin.matching.be_tree._kernels.ranks import MARGIN, expected_rank, guess, rank, refresh
from tocsin.matching.be_tree.state import Figure, Node, NodeInfo, Partition, State, StoredColumn, Top, Total
from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel

_ENOUGH: Final = 8.0  # misses per member in a window: fewer may be chance
_REMEMBERED: Final = 0.9  # of the lead of the best rank, after each window
_MOST: Final = 1 << 30  # misses are counted up to here
_KEPT: Final = 0.5  # weight of earlier windows in the loss


@kernel
def collect(state: State, start: int, end: int) -> int:
    """Add the misses of nodes from `start` to `end` to their partitions; return the end."""
    end = min(np.int64(end), state.tops[Top.NODES])
    for node in range(start, end):
        partition = np.int64(state.info[node, NodeInfo.PARTITION])
        if state.info[node, NodeInfo.MEMBERS] >= 0 and partition >= 0:
            missed = state.partitions[partition, Partition.MISSED] + state.nodes[node, Node.MISSES]
            state.partitions[partition, Partition.MISSED] = min(missed, np.int64(_MOST))
        state.nodes[node, Node.MISSES] = 0
    return end


@kernel
def judge(state: State, start: int, end: int, events: int) -> int:
    """Rank partitions from `start` to `end` by their misses in so many events; mark those whose rank has fallen.

    Misses are discarded if the number of events is 0, which stands for unknown. Returns the end.
    """
    end = min(np.int64(end), state.partition_index.counters[1])
    for partition in range(start, end):
        row = state.partitions[partition]
        if row[Partition.OWNER] < 0:
            continue
        figures = state.figures[partition]
        missed, own = np.int64(row[Partition.MISSED]), max(np.int64(row[Partition.MEMBERS]), np.int64(1))
        # A rank guessed before the first window is compared with a guess that knows the size of events.
        guessed = rank(state, own, guess(state, np.int64(row[Partition.FIELD])))
        best = guessed if figures[Figure.LOSS] < 0 else figures[Figure.BEST]
        row[Partition.MISSED] = 0
        if events == 0:
            continue
        lost = missed / (own * np.float64(events))
        figures[Figure.LOSS] = (
            lost if figures[Figure.LOSS] < 0 else _KEPT * figures[Figure.LOSS] + (1.0 - _KEPT) * lost
        )
        refresh(state, partition)
        figures[Figure.BEST] = max(
            figures[Figure.RANK], figures[Figure.RANK] + _REMEMBERED * (best - figures[Figure.RANK])
        )
        has_decayed = figures[Figure.BEST] > figures[Figure.RANK] + MARGIN and missed >= _ENOUGH * own
        if has_decayed and row[Partition.DECAYED] == 0:
            state.totals[Total.RECYCLED] += 1.0
        row[Partition.DECAYED] = has_decayed
    return end


@kernel
def to_be_moved(state: State, start: int, end: int, numbers: Int64s) -> tuple[int, int]:
    """Write the conjunctions from `start` to `end` below a partition whose rank has fallen that have a better one.

    Returns the conjunction it stopped at, before `end` if `numbers` is full, and the number written.
    """
    count = np.int64(0)
    end = min(np.int64(end), state.store.counters[StoreCounter.TOP])
    for number in range(start, end):
        if state.store.owner[number] < 0:
            continue
        if count == numbers.shape[0]:
            return np.int64(number), count
        partition = np.int64(state.info[state.store.rows[number, StoredColumn.NODE], NodeInfo.PARTITION])
        while partition >= 0 and state.partitions[partition, Partition.DECAYED] == 0:
            partition = np.int64(state.info[state.partitions[partition, Partition.OWNER], NodeInfo.PARTITION])
        if partition >= 0 and _has_better(state, number, partition):
            numbers[count] = number
            count += 1
    return end, count


@helper
def _has_better(state: State, number: int, partition: int) -> bool:
    """Tell whether a conjunction below a partition has a field with a much better partition of the same node."""
    rows, stored = state.leaves.rows, state.store.rows[number]
    least = state.figures[partition, Figure.RANK] + MARGIN
    own = state.partitions[partition, Partition.FIELD]
    owner = np.int64(state.partitions[partition, Partition.OWNER])
    at = state.nodes[stored[StoredColumn.NODE], Node.LEAF] + stored[StoredColumn.ROW]
    for row in range(at + 1, at + 1 + rows[at, 1]):
        field = field_at(state, rows, row)
        if field < 0 or field == own:
            continue
        other = partition_on(state, owner, field)
        its = state.figures[other, Figure.RANK] if other >= 0 else expected_rank(state, field, np.int64(1))
        if its > least:
            return True
    return False
