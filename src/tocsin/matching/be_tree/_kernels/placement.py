"""How conjunctions come into the tree, and out of it (BE-Tree, 4)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.be_tree._kernels.intervals import field_at, interval_at
from tocsin.matching.be_tree._kernels.leaves import append, cut_out, growth
from tocsin.matching.be_tree._kernels.nodes import (
    directory_growth,
    new_node,
    new_partition,
    partition_on,
    prune,
)
from tocsin.matching.be_tree._kernels.ranks import MARGIN, expected_rank, refresh
from tocsin.matching.be_tree._kernels.splitting import is_overfull, relieve_all
from tocsin.matching.be_tree.state import (
    DECAYED,
    HIGH,
    HOPEFUL,
    LEFT,
    NODE,
    PARTITION,
    PARTITIONS,
    RANK,
    RIGHT,
    ROOT,
    SHORT_DIRECTORY,
    SHORT_OF,
    SPLIT,
    STAMP,
    TODO,
    TOP_NODE,
    TREE,
    WANTS,
    Expressions,
    State,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.structures.jit import helper, kernel

_BETWEEN, _NOT_BETWEEN, _TEXT = int(Op.BETWEEN), int(Op.NOT_BETWEEN), int(Field.TEXT)


@kernel
def place(state: State, forms: Expressions, start: int) -> int:
    """Insert conjunctions from `start` on; return how many are in, fewer than all if there was no room.

    The last may have made a leaf too long: what is in `todo` is done by the next call.
    """
    i = np.int64(start)
    while relieve_all(state) and i < forms.numbers.shape[0]:
        count = _draft(state, forms, i)
        _want(state, count)
        node = _descend(state, count)
        if node < 0:
            return i
        append(state, node, state.draft, count)
        if state.about[node, PARTITION] >= 0:
            refresh(state, np.int64(state.about[node, PARTITION]))
        if is_overfull(state, node):
            state.todo[0] = node
            state.tops[TODO] = 1
        i += 1
    return i


@helper
def _draft(state: State, forms: Expressions, i: int) -> int:
    """Write a conjunction as it is to be in a leaf; return its rows."""
    draft, at = state.draft, np.int64(1)
    for q in range(forms.offsets[i], forms.offsets[i + 1]):
        draft[at, 0], draft[at, 1] = forms.lows[q], forms.tags[q]
        at += 1
        if forms.tags[q] >> FIELD_BITS in (_BETWEEN, _NOT_BETWEEN):
            draft[at, 0], draft[at, 1] = forms.highs[q], np.int64(HIGH) << FIELD_BITS
            at += 1
    draft[0, 0], draft[0, 1] = forms.numbers[i], at - 1
    return at


@helper
def _want(state: State, count: int) -> None:
    """Write the fields that the draft speaks of, each once, with the interval that its value must lie in.

    The interval is the one that `interval_on` finds in a leaf: what is led by one and dealt by another may be lost.
    """
    wants, fields, end = state.wants, state.fields, np.int64(0)
    state.tops[STAMP] += 1
    stamp = state.tops[STAMP]
    for at in range(1, count):
        field = field_at(state, state.draft, at)
        if field < 0:
            continue
        low, high = interval_at(state, state.draft, at)
        known = np.int64(fields.last[field])
        if fields.stamp[field] != stamp:
            fields.stamp[field], fields.last[field] = stamp, end
            wants[end, 0], wants[end, 1], wants[end, 2] = field, low, high
            end += 1
        elif field % FIELDS != _TEXT and max(wants[known, 1], low) <= min(wants[known, 2], high):
            wants[known, 1], wants[known, 2] = max(wants[known, 1], low), min(wants[known, 2], high)
    state.tops[WANTS] = end


@helper
def _has_room(state: State, count: int) -> bool:
    tops = state.tops
    tops[SHORT_OF] = 2 * count + 4
    tops[SHORT_DIRECTORY] = 0
    return (
        tops[TOP_NODE] + 3 <= state.nodes.shape[0]
        and state.partition_index.counters[1] + 2 <= state.partition_index.chain.shape[0]
        and state.partition_index.counters[1] + 2 <= state.partitions.shape[0]
        and state.leaves.top[0] + tops[SHORT_OF] <= state.leaves.rows.shape[0]
        and state.todo.shape[0] > 0
    )


@helper
def _descend(state: State, count: int) -> int:
    """Return the node that the draft is to be put into, with room in its leaf; -1 if there is none.

    At each node the way leads into the partition of best rank. Where that has decayed and a new one is expected to be
    much better, the new one is made.
    """
    if not _has_room(state, count):
        return np.int64(-1)
    wants, node, used = state.wants, np.int64(ROOT), np.int64(0)
    while state.nodes[node, PARTITIONS] > 0:
        which, partition = _best_partition(state, node, used)
        if which < 0:
            break
        if state.partitions[partition, DECAYED] != 0:
            better = _better_field(state, node, used, state.figures[partition, RANK] + MARGIN)
            if better >= 0:
                state.tops[SHORT_DIRECTORY] = directory_growth(state, node)
                if state.directories.top[0] + state.tops[SHORT_DIRECTORY] > state.directories.rows.shape[0]:
                    return np.int64(-1)
                which, partition = better, new_partition(state, node, wants[better, 0])
        for column in range(3):
            wants[used, column], wants[which, column] = wants[which, column], wants[used, column]
        node = _enclosing(state, partition, wants[used, 1], wants[used, 2])
        used += 1
    more = growth(state, node, count)
    if state.leaves.top[0] + more > state.leaves.rows.shape[0]:
        state.tops[SHORT_OF] = more
        return np.int64(-1)
    state.about[node, HOPEFUL] += used < state.tops[WANTS]
    return node


@helper
def _best_partition(state: State, node: int, used: int) -> tuple[int, int]:
    """Return which of the fields that are wanted still has the best partition of a node, and that; or -1."""
    which, best, rank = np.int64(-1), np.int64(-1), -np.inf
    for w in range(used, state.tops[WANTS]):
        partition = partition_on(state, node, state.wants[w, 0])
        if partition >= 0 and state.figures[partition, RANK] > rank:
            which, best, rank = np.int64(w), partition, state.figures[partition, RANK]
    return which, best


@helper
def _better_field(state: State, node: int, used: int, rank: float) -> int:
    """Return which of the fields that are wanted would have a new partition of more than this rank; or -1."""
    which = np.int64(-1)
    for w in range(used, state.tops[WANTS]):
        its = expected_rank(state, state.wants[w, 0], np.int64(1))
        if its > rank and partition_on(state, node, state.wants[w, 0]) < 0:
            which, rank = np.int64(w), its
    return which


@helper
def _enclosing(state: State, partition: int, low: int, high: int) -> int:
    """Return the node of the smallest interval in a partition's tree that encloses another."""
    node = np.int64(state.partitions[partition, TREE])
    while True:
        row = state.nodes[node]
        if row[LEFT] < 0 and row[RIGHT] < 0:
            return node
        if high <= row[SPLIT]:
            if row[LEFT] < 0:
                row[LEFT] = new_node(state, node, partition, state.bounds[node, 0], row[SPLIT])
            node = row[LEFT]
        elif low > row[SPLIT]:
            if row[RIGHT] < 0:
                row[RIGHT] = new_node(state, node, partition, row[SPLIT] + 1, state.bounds[node, 1])
            node = row[RIGHT]
        else:
            return node


@kernel
def take_out(state: State, numbers: NDArray[np.int64]) -> None:
    """Take conjunctions out of the tree, and with them the nodes that nothing else is in."""
    for i in range(numbers.shape[0]):
        node = np.int64(state.forms[numbers[i], NODE])
        if node >= 0:
            cut_out(state, numbers[i])
            prune(state, node)
