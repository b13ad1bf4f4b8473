"""Matching an event: the nodes it visits, level by level (BE-Tree, §4)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NO_STATE_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.be_tree._kernels.evaluation import evaluate
from tocsin.matching.be_tree.state import (
    HIGHEST,
    LOWEST,
    MOST_EVENTS,
    ROOT,
    BeTreeStateAddress,
    Node,
    Pair,
    Partition,
    State,
    Top,
    Total,
)
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures import hash_index
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel, prefetch

_LOW_HALF: Final = 0xFFFFFFFF
_MANY: Final = 4  # with so many times more partitions than the event has fields, the fields are looked up
_LINE: Final = 4  # rows of a leaf in a cache line
_AHEAD: Final = 8  # cache lines of a leaf that are prefetched


@kernel
def match(state: State, events: EncodedEvents, start: int, found: Int64s, offsets: Int64s) -> int:
    """Write the conjunctions that each event from `start` on satisfies; return the number of events done.

    The matches of event i are `found[offsets[i]:offsets[i + 1]]`. It stops at an event for which `found` or the queue has no
    room.
    """
    for event in range(start, events.offsets.shape[0] - 1):
        state.tops[Top.EPOCH] += 1
        present = _encode_pairs(state, events, event)
        count = _search(state, present, offsets[event], found)
        if count < 0:
            return np.int64(event)
        offsets[event + 1] = count
        state.totals[Total.EVENTS] += 1.0
    return events.offsets.shape[0] - 1


@kernel
def match_event(address: BeTreeStateAddress, event: SingleEventAddress) -> int:
    """Find the conjunctions that a single event satisfies, and write their ids: see `gather_single`."""
    state: State = load(address)
    single: SingleEvent = load(event)
    if not make_keys(single):
        return np.int64(NOT_EXACT)
    if state.tops[Top.EPOCH] + 2 > MOST_EVENTS:
        forget_events(state)
    state.tops[Top.NEEDED_MATCHES] = state.tops[Top.NEEDED_QUEUE] = 0
    if match(state, single.events, np.int64(0), single.found, single.offsets) == 0:
        return np.int64(NO_ROOM if state.tops[Top.NEEDED_MATCHES] > 0 else NO_STATE_ROOM)
    return gather_single(state.store, single)


@kernel
def forget_events(state: State) -> None:
    """Forget the attributes of events, so that events can be numbered from 1 again."""
    for attribute in range(state.attributes.slots.shape[0]):
        state.attributes.slots[attribute] = 0
    state.tops[Top.EPOCH] = 0


@helper
def _encode_pairs(state: State, events: EncodedEvents, event: int) -> int:
    """Write the pairs of an event, and its fields; return the number of fields.

    A value is a pair of its field. A number that no float equals is also a pair of the field NUMBER, which has its
    position in the order. Every attribute has the field ANY, too, which has no values to compare.
    """
    slots, pairs, present = state.attributes.slots, state.pairs, state.present
    epoch = state.tops[Top.EPOCH] << 32
    at, count = np.int64(0), np.int64(0)
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        attribute, kind = field // FIELDS, field % FIELDS
        key, low, high = events.keys[j], events.lows[j], events.highs[j]
        is_symbol = kind in (Field.STRING, Field.BIG, Field.TEXT)
        word = slots[attribute]
        before = np.int64(-1)
        if word >> 32 == state.tops[Top.EPOCH]:
            before = word & _LOW_HALF
        else:
            present[count, 0], present[count, 1] = attribute * FIELDS + Field.ANY, at
            count += 1
            state.attributes.seen[attribute] += 1
        if kind != Field.TEXT or key < 0:  # a string passes several tests; the last pair stands for all
            present[count, 0], present[count, 1] = field, at
            count += 1
        row = pairs[at]
        row[Pair.FIELD], row[Pair.KEY], row[Pair.LOW], row[Pair.NEXT] = field, key, low, before
        row[Pair.POINT] = low if low == high else np.int64(HIGHEST)
        row[Pair.FROM], row[Pair.TO] = (key, key) if is_symbol else (low, high)
        slots[attribute] = epoch | at
        at += 1
        if kind == Field.BIG:
            number = field + Field.NUMBER - Field.BIG
            row = pairs[at]
            row[Pair.FIELD], row[Pair.KEY] = number, np.int64(LOWEST)
            row[Pair.LOW], row[Pair.NEXT] = low, at - 1
            row[Pair.POINT], row[Pair.FROM], row[Pair.TO] = np.int64(HIGHEST), low, high
            present[count, 0], present[count, 1] = number, at
            count += 1
            slots[attribute] = epoch | at
            at += 1
    return count


@helper
def _search(state: State, present: int, count: int, found: Int64s) -> int:
    """Write the conjunctions that an event satisfies; return how many by now, or -1 if there is no room.

    The tree is larger than the caches, so the leaves and directories of a level are prefetched before any is read.
    """
    nodes, queue = state.nodes, state.queue
    queue[0] = ROOT
    begin, end = np.int64(0), np.int64(1)
    while begin < end:
        last = end
        for i in range(begin, last):
            _prefetch_node(state, queue[i] & _LOW_HALF)
        for i in range(begin, last):
            node, pair = queue[i] & _LOW_HALF, queue[i] >> 32
            row = nodes[node]
            if count + row[Node.ROWS] > found.shape[0]:
                state.tops[Top.NEEDED_MATCHES] = count + row[Node.ROWS]
                return np.int64(-1)
            if end + 2 + min(row[Node.PARTITIONS], present) > queue.shape[0]:
                state.tops[Top.NEEDED_QUEUE] = end + 2 + present
                return np.int64(-1)
            if row[Node.LEAF] >= 0:
                before = count
                count, failed = evaluate(state, node, count, found)
                row[Node.MISSES] += failed
                state.totals[Total.CHECKS] += failed + count - before
            end = _queue_children(state, node, pair, end)
            if row[Node.PARTITIONS] > 0:
                end = _queue_partitions(state, node, present, end)
        begin = last
    state.totals[Total.VISITS] += end
    return count


@helper
def _prefetch_node(state: State, node: int) -> None:
    """Prefetch a node's leaf and its directory."""
    row = state.nodes[node]
    if row[Node.LEAF] >= 0:
        rows = min(row[Node.ROWS], np.int64(_AHEAD * _LINE))
        for at in range(row[Node.LEAF], row[Node.LEAF] + rows, _LINE):
            prefetch(state.leaves.rows, 2 * at)
    if row[Node.DIRECTORY] >= 0:
        prefetch(state.directories.rows, row[Node.DIRECTORY])


@helper
def _push(state: State, node: int, pair: int, end: int) -> int:
    state.queue[end] = (pair << 32) | node
    prefetch(state.nodes, node * state.nodes.shape[1])
    prefetch(state.nodes, (node + 1) * state.nodes.shape[1] - 1)
    return end + 1


@helper
def _queue_children(state: State, node: int, first: int, end: int) -> int:
    """Queue the children of a node whose intervals may have the value of a pair; return the queue's end."""
    row, pairs = state.nodes[node], state.pairs
    if row[Node.LEFT] < 0 and row[Node.RIGHT] < 0:
        return end
    is_left, is_right = pairs[first, Pair.FROM] <= row[Node.SPLIT], pairs[first, Pair.TO] > row[Node.SPLIT]
    field = pairs[first, Pair.FIELD]
    if field % FIELDS == Field.TEXT:  # a string passes several tests, each a pair
        is_left, is_right, pair = False, False, first
        while pair >= 0:
            key = pairs[pair, Pair.KEY]
            if pairs[pair, Pair.FIELD] == field and state.bounds[node, 0] <= key <= state.bounds[node, 1]:
                is_left |= key <= row[Node.SPLIT]
                is_right |= key > row[Node.SPLIT]
            pair = pairs[pair, Pair.NEXT]
    if is_left and row[Node.LEFT] >= 0:
        end = _push(state, row[Node.LEFT], first, end)
    if is_right and row[Node.RIGHT] >= 0:
        end = _push(state, row[Node.RIGHT], first, end)
    return end


@helper
def _queue_partitions(state: State, node: int, present: int, end: int) -> int:
    """Queue the partitions of a node whose fields the event has; return the queue's end.

    The smaller side is scanned: the node's directory, or the event's fields.
    """
    row, rows = state.nodes[node], state.directories.rows
    if row[Node.PARTITIONS] <= _MANY * present:
        for i in range(row[Node.DIRECTORY], row[Node.DIRECTORY] + row[Node.PARTITIONS]):
            field, tree = rows[i, 0] >> 32, rows[i, 0] & _LOW_HALF
            word = state.attributes.slots[field // FIELDS]
            if word >> 32 == state.tops[Top.EPOCH]:
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
                end = _push(
                    state, np.int64(state.partitions[partition, Partition.TREE]), state.present[i, 1], end
                )
    return end


@helper
def _pair_of(state: State, field: int, pair: int) -> int:
    """Return the last pair of a field, or -1; `pair` is the first pair of its attribute."""
    if field % FIELDS == Field.ANY:
        return pair
    while pair >= 0 and state.pairs[pair, Pair.FIELD] != field:
        pair = state.pairs[pair, Pair.NEXT]
    return pair
