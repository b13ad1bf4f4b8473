"""Which conjunctions an event satisfies: the way down the tree (BE-Tree, 4)."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.be_tree._kernels.evaluation import evaluate
from tocsin.matching.be_tree.state import (
    CHECKS,
    DIRECTORY,
    EPOCH,
    EVENTS,
    FROM,
    HIGHEST,
    KEY,
    LEAF,
    LEFT,
    LOW,
    LOWEST,
    MISSES,
    NEXT,
    PAIR_FIELD,
    PARTITIONS,
    POINT,
    QUEUE_ROOM,
    RIGHT,
    ROOM,
    ROOT,
    ROWS,
    SPLIT,
    TO,
    TREE,
    VISITS,
    State,
)
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures import hash_index
from tocsin.structures.jit import helper, kernel, prefetch

_NUMBER, _STRING, _BIG, _ANY, _TEXT = (
    int(Field.NUMBER),
    int(Field.STRING),
    int(Field.BIG),
    int(Field.ANY),
    int(Field.TEXT),
)
_LOW_HALF: Final = 0xFFFFFFFF
_MANY: Final = 4  # times as many partitions as an event has fields, and these are looked up
_LINE: Final = 4  # rows of a leaf in a cache line
_AHEAD: Final = 8  # cache lines of a leaf that are asked for ahead


@kernel
def match(
    state: State,
    events: EncodedEvents,
    start: int,
    found: NDArray[np.int64],
    offsets: NDArray[np.int64],
) -> int:
    """Write the conjunctions that each event from `start` on satisfies; return how many events were done.

    Those of event i are `found[offsets[i]:offsets[i + 1]]`. Fewer events than all are done if there is no room in
    `found` or in the queue.
    """
    for event in range(start, events.offsets.shape[0] - 1):
        state.tops[EPOCH] += 1
        present = _unfold(state, events, event)
        count = _search(state, present, offsets[event], found)
        if count < 0:
            return np.int64(event)
        offsets[event + 1] = count
        state.totals[EVENTS] += 1.0
    return events.offsets.shape[0] - 1


@helper
def _unfold(state: State, events: EncodedEvents, event: int) -> int:
    """Write the pairs of an event in rows, and the fields it has; return how many fields these are.

    A value is a pair of its field. A number that no float equals has its place among the numbers besides. Every
    attribute has the field ANY, too, for which there is nothing to compare.
    """
    slots, pairs, present = state.attributes.slots, state.pairs, state.present
    epoch = state.tops[EPOCH] << 32
    at, count = np.int64(0), np.int64(0)
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        attribute, kind = field // FIELDS, field % FIELDS
        key, low, high = events.keys[j], events.lows[j], events.highs[j]
        is_symbol = kind in (_STRING, _BIG, _TEXT)
        word = slots[attribute]
        before = np.int64(-1)
        if word >> 32 == state.tops[EPOCH]:
            before = word & _LOW_HALF
        else:
            present[count, 0], present[count, 1] = attribute * FIELDS + _ANY, at
            count += 1
            state.attributes.seen[attribute] += 1
        if kind != _TEXT or key < 0:  # of the tests that a string passes, the last pair stands for all
            present[count, 0], present[count, 1] = field, at
            count += 1
        row = pairs[at]
        row[PAIR_FIELD], row[KEY], row[LOW], row[NEXT] = field, key, low, before
        row[POINT] = low if low == high else np.int64(HIGHEST)
        row[FROM], row[TO] = (key, key) if is_symbol else (low, high)
        slots[attribute] = epoch | at
        at += 1
        if kind == _BIG:
            number = field + _NUMBER - _BIG
            row = pairs[at]
            row[PAIR_FIELD], row[KEY], row[LOW], row[NEXT] = number, np.int64(LOWEST), low, at - 1
            row[POINT], row[FROM], row[TO] = np.int64(HIGHEST), low, high
            present[count, 0], present[count, 1] = number, at
            count += 1
            slots[attribute] = epoch | at
            at += 1
    return count


@helper
def _search(state: State, present: int, count: int, found: NDArray[np.int64]) -> int:
    """Write the conjunctions that an event satisfies; return how many by now, or -1 if there is no room.

    The tree is gone down a level at a time, and what a level's nodes hold is asked for before any of it is looked at:
    the tree is larger than the caches, and so the misses overlap.
    """
    nodes, queue = state.nodes, state.queue
    queue[0] = ROOT
    begin, end = np.int64(0), np.int64(1)
    while begin < end:
        last = end
        for i in range(begin, last):
            _ask_for(state, queue[i] & _LOW_HALF)
        for i in range(begin, last):
            node, pair = queue[i] & _LOW_HALF, queue[i] >> 32
            row = nodes[node]
            if count + row[ROWS] > found.shape[0]:
                state.tops[ROOM] = count + row[ROWS]
                return np.int64(-1)
            if end + 2 + min(row[PARTITIONS], present) > queue.shape[0]:
                state.tops[QUEUE_ROOM] = end + 2 + present
                return np.int64(-1)
            if row[LEAF] >= 0:
                before = count
                count, failed = evaluate(state, node, count, found)
                row[MISSES] += failed
                state.totals[CHECKS] += failed + count - before
            end = _into_halves(state, node, pair, end)
            if row[PARTITIONS] > 0:
                end = _into_partitions(state, node, present, end)
        begin = last
    state.totals[VISITS] += end
    return count


@helper
def _ask_for(state: State, node: int) -> None:
    """Ask for a node's leaf and its directory, to be looked at soon."""
    row = state.nodes[node]
    if row[LEAF] >= 0:
        rows = min(row[ROWS], np.int64(_AHEAD * _LINE))
        for at in range(row[LEAF], row[LEAF] + rows, _LINE):
            prefetch(state.leaves.rows, 2 * at)
    if row[DIRECTORY] >= 0:
        prefetch(state.directories.rows, row[DIRECTORY])


@helper
def _push(state: State, node: int, pair: int, end: int) -> int:
    state.queue[end] = (pair << 32) | node
    prefetch(state.nodes, node * state.nodes.shape[1])
    prefetch(state.nodes, (node + 1) * state.nodes.shape[1] - 1)
    return end + 1


@helper
def _into_halves(state: State, node: int, first: int, end: int) -> int:
    """Go on to the halves of a node's interval in which the value of a pair may lie; return the queue's end."""
    row, pairs = state.nodes[node], state.pairs
    if row[LEFT] < 0 and row[RIGHT] < 0:
        return end
    is_left, is_right = pairs[first, FROM] <= row[SPLIT], pairs[first, TO] > row[SPLIT]
    field = pairs[first, PAIR_FIELD]
    if field % FIELDS == _TEXT:  # a string passes several tests, each a pair
        is_left, is_right, pair = False, False, first
        while pair >= 0:
            key = pairs[pair, KEY]
            if pairs[pair, PAIR_FIELD] == field and state.bounds[node, 0] <= key <= state.bounds[node, 1]:
                is_left |= key <= row[SPLIT]
                is_right |= key > row[SPLIT]
            pair = pairs[pair, NEXT]
    if is_left and row[LEFT] >= 0:
        end = _push(state, row[LEFT], first, end)
    if is_right and row[RIGHT] >= 0:
        end = _push(state, row[RIGHT], first, end)
    return end


@helper
def _into_partitions(state: State, node: int, present: int, end: int) -> int:
    """Go on to the partitions of a node whose fields the event has; return the queue's end.

    The smaller side is gone through: the node's directory, or the event's fields.
    """
    row, rows = state.nodes[node], state.directories.rows
    if row[PARTITIONS] <= _MANY * present:
        for i in range(row[DIRECTORY], row[DIRECTORY] + row[PARTITIONS]):
            field, tree = rows[i, 0] >> 32, rows[i, 0] & _LOW_HALF
            word = state.attributes.slots[field // FIELDS]
            if word >> 32 == state.tops[EPOCH]:
                pair = _pair_of(state, field, word & _LOW_HALF)
                if pair >= 0:
                    end = _push(state, tree, pair, end)
    elif node == ROOT:
        for i in range(present):
            tree = np.int64(state.fields.tree[state.present[i, 0]])
            if tree >= 0:
                end = _push(state, tree, state.present[i, 1], end)
    else:
        for i in range(present):
            field, nothing = state.present[i, 0], np.int64(0)
            bucket = hash_index.bucket_of(state.partition_index, node, field, nothing)
            partition = hash_index.find_in(state.partition_index, bucket, node, field, nothing)
            if partition >= 0:
                end = _push(state, np.int64(state.partitions[partition, TREE]), state.present[i, 1], end)
    return end


@helper
def _pair_of(state: State, field: int, pair: int) -> int:
    """Return the last pair of a field, or -1; the pairs of its attribute are those from `pair` on."""
    if field % FIELDS == _ANY:
        return pair
    while pair >= 0 and state.pairs[pair, PAIR_FIELD] != field:
        pair = state.pairs[pair, NEXT]
    return pair
