"""The arrays that a BE-Tree is made of.

A *node* is the paper's c-node, together with the interval of the c-directory that it belongs to: it has a leaf with
conjunctions (the l-node) and a directory of *partitions* (p-nodes), one for each of some fields. A partition is a
binary tree of nodes over the values of its field: the c-directory. The root is a node without an interval.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.conjunction_store import state as conjunction_store
from tocsin.matching.conjunction_store.state import ConjunctionStore
from tocsin.matching.encoding.codes import FIELDS
from tocsin.structures import blocks, hash_index
from tocsin.structures.array_types import Float64s, Int32s, Int64s, zeros
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

LOWEST: Final = -(2**63)  # no lower bound; also a key that no number has
HIGHEST: Final = 2**63 - 1  # no upper bound; also a position in the order that no value has
MOST_EVENTS: Final = 1 << 30  # events that can be numbered
ROOT: Final = 0  # the node that every event visits


class Node(IntEnum):
    """Columns of `State.nodes`, in the order of their use when events are matched."""

    SPLIT = 0  # values up to this one belong to the left child, those above to the right one
    LEFT = 1  # the child, or -1
    RIGHT = 2
    LEAF = 3  # the first row of its leaf, or -1
    ROWS = 4  # of the leaf
    DIRECTORY = 5  # the first row of its directory, or -1
    PARTITIONS = 6  # in the directory
    MISSES = 7  # members that events failed since the last review


class NodeInfo(IntEnum):
    """Columns of `State.info`: about a node, beyond what matching reads."""

    PARENT = 0  # in its tree, or the owner of its partition; of a free node, the next one
    PARTITION = 1  # that it belongs to, or -1
    MEMBERS = 2  # conjunctions in its leaf; -1 if the node is free
    CAPACITY = 3  # members that it may have
    LEAF_CLASS = 4  # of the leaf's block
    DIRECTORY_CLASS = 5
    DEAD = 6  # rows of the leaf whose conjunctions are gone
    DIVISIBLE = 7  # members with unused fields that arrived since the last attempt to partition the leaf


class Partition(IntEnum):
    """Columns of `State.partitions`."""

    OWNER = 0  # the node whose directory it is in
    FIELD = 1
    TREE = 2  # the topmost node of its tree
    POSITION = 3  # in the directory
    MEMBERS = 4  # conjunctions in the leaves of its own nodes
    MISSED = 5  # times that events failed one of them in the current window
    DECAYED = 6  # whether its rank has fallen, so that its conjunctions are to be moved


class Figure(IntEnum):
    """Columns of `State.figures`: the rank of a partition."""

    LOSS = 0  # the probability that an event fails one of its conjunctions; negative while unknown
    RANK = 1
    BEST = 2  # its best rank, which fades


class StoredColumn(IntEnum):
    """This matcher's columns of `State.store.rows`."""

    NODE = 1  # or -1
    ROW = 2  # its first row, counted from the first of the leaf


class ValueList(IntEnum):
    """Columns of `State.lists`: a list that `in` and `not in` predicates name."""

    FIRST = 0  # its first member
    COUNT = 1
    USES = 2  # predicates that name it; 0 if the row is unused
    FIELD = 3  # of its members, or that of any value if they have several
    LEAST = 4  # the range of their keys
    GREATEST = 5


class Pair(IntEnum):
    """Columns of `State.pairs`."""

    FIELD = 0
    KEY = 1
    LOW = 2
    POINT = 3  # the key that is equal in the order, or HIGHEST if the value lies between two keys
    NEXT = 4  # the next pair of the attribute, or -1
    FROM = 5  # the range of keys to look for in a tree
    TO = 6


class Top(IntEnum):
    """Entries of `State.tops`: numbers ever used, free lists, and missing capacity."""

    NODES = 0
    FREE_NODE = 1
    LIVE_NODES = 2
    EPOCH = 3  # the number of the current event
    WANTS = 4  # entries of `State.wants`
    OVERFULL = 5  # entries of `State.overfull`
    STAMP = 6  # of the current count by fields, or of the current conjunction
    NEEDED_ROWS = 7  # missing capacity, as the last failed call found it
    NEEDED_DIRECTORY_ROWS = 8
    NEEDED_MATCHES = 9
    NEEDED_QUEUE = 10


class Setting(IntEnum):
    """Entries of `State.settings`."""

    CAPACITY = 0  # the paper's max_cap
    MIN_PARTITION = 1  # members that a partition is made for
    ALPHA = 2  # weight of loss against gain


class Total(IntEnum):
    """Entries of `State.totals`."""

    EVENTS = 0  # matched, ever
    VISITS = 1  # nodes visited
    CHECKS = 2  # conjunctions evaluated
    WINDOWS = 3  # windows of events reviewed
    RECYCLED = 4  # partitions whose rank had fallen
    MOVES = 5  # conjunctions moved for it
    SCALE = 6  # attributes of an event per predicate of a conjunction


class Fields(NamedTuple):
    """By field. All but `tree` belong to the current count, if `stamp` says so."""

    tree: Int32s  # the tree of the root's partition, or -1
    stamp: Int64s
    tally: Int32s  # members of a leaf with a predicate on it; -1 if the path to the leaf has it
    # The member counted last; while a conjunction is placed, its row in `State.wants`
    last: Int32s


class Attributes(NamedTuple):
    """By attribute."""

    slots: Int64s  # the last event that had it, and below 32 bits the row of its first pair
    seen: Int64s  # events that had it in the current window
    share: Float64s  # share of the events that had it in the windows before
    uses: Int32s  # predicates on it


class State(NamedTuple):
    """All arrays. Only the holder of the matcher's lock may write."""

    nodes: Int64s  # [nodes, Node]
    info: Int32s  # [nodes, NodeInfo]
    bounds: Int64s  # [nodes, 2] the least and the greatest value of its interval
    # Rows: a conjunction's number and the number of its rows, then these, each a key and a tag
    leaves: Blocks
    directories: Blocks  # rows: a field, and below 32 bits the tree of its partition
    partition_index: HashIndex  # keys: a node and a field; its entry is the partition's number
    partitions: Int32s  # [partitions, Partition]
    figures: Float64s  # [partitions, Figure]
    store: ConjunctionStore
    lists: Int64s  # [codes, ValueList]
    members: Blocks  # rows: a field and a key, in order within a list
    fields: Fields
    attributes: Attributes
    pairs: Int64s  # [pairs, Pair] of the current event
    present: Int64s  # [fields, 2] fields of the current event, each with its first pair
    queue: Int64s  # nodes that the event visits, and above 32 bits the pair that leads there
    draft: Int64s  # [rows, 2] the current conjunction, as a leaf stores it
    wants: Int64s  # [predicates, 3] its fields, and the interval that the value must lie in
    overfull: Int64s  # nodes whose leaves may exceed their capacity
    tops: Int64s  # [Top]
    settings: Float64s  # [Setting]
    totals: Float64s  # [Total]


class BeTreeStateAddress(NamedTuple):
    """The address of a `State`: see `tocsin.structures.addresses`."""

    words: Int64s


def new_state(capacity: int, min_partition: int, alpha: float) -> State:
    """Return the arrays of a tree with an empty root."""
    tops = np.zeros(len(Top), dtype=np.int64)
    tops[Top.FREE_NODE] = -1
    tops[[Top.NODES, Top.LIVE_NODES]] = 1
    totals = np.zeros(len(Total), dtype=np.float64)
    totals[Total.SCALE] = 1.0
    nodes = np.zeros((64, len(Node)), dtype=np.int64)
    info = np.zeros((64, len(NodeInfo)), dtype=np.int32)
    nodes[ROOT, [Node.LEFT, Node.RIGHT, Node.LEAF, Node.DIRECTORY]] = -1
    info[ROOT, [NodeInfo.PARENT, NodeInfo.PARTITION]] = -1
    info[ROOT, NodeInfo.CAPACITY] = capacity
    bounds = np.zeros((64, 2), dtype=np.int64)
    bounds[ROOT] = LOWEST, HIGHEST
    return zeros(
        State,
        64,
        nodes=nodes,
        info=info,
        bounds=bounds,
        leaves=blocks.new_blocks(2),
        directories=blocks.new_blocks(1),
        partition_index=hash_index.new_hash_index(2),
        partitions=len(Partition),
        figures=len(Figure),
        store=conjunction_store.new_store(len(StoredColumn) + 1),
        lists=len(ValueList),
        members=blocks.new_blocks(2),
        fields=zeros(Fields, 64, tree=np.full(64, -1, dtype=np.int32)),
        attributes=zeros(Attributes, 8),
        pairs=np.zeros((256, 8), dtype=np.int64),  # a power of two, so that a pair lies in one cache line
        present=np.zeros((256, 2), dtype=np.int64),
        queue=np.zeros(4096, dtype=np.int64),
        draft=2,
        wants=3,
        overfull=np.zeros(256, dtype=np.int64),
        tops=tops,
        settings=np.array([capacity, min_partition, alpha], dtype=np.float64),
        totals=totals,
    )


def with_attributes(state: State, count: int) -> State:
    """Return the state with room for so many attributes."""
    if count <= len(state.attributes.slots):
        return state
    attributes = grown(state.attributes, Attributes._fields, count)
    old = len(state.fields.tree)
    fields = grown(state.fields, Fields._fields, len(attributes.slots) * FIELDS)
    fields.tree[old:] = -1
    return state._replace(attributes=attributes, fields=fields)


def with_conjunctions(state: State, conjunctions: int, widest: int) -> State:
    """Return the state with room for more conjunctions, the widest of which has so many predicates."""
    state = state._replace(store=conjunction_store.with_room(state.store, conjunctions))
    return grown(grown(state, ("wants",), widest), ("draft",), 2 * widest + 1)


def with_nodes(state: State, conjunctions: int, rows: int) -> State:
    """Return the state with room to place some conjunctions of so many rows in all, and with the capacity in `tops`."""
    tops = state.tops
    some = min(conjunctions, 4096) + 64
    state = grown(state, ("nodes", "info", "bounds"), int(tops[Top.NODES]) + some)
    index = hash_index.with_room(state.partition_index, some)
    state = grown(state._replace(partition_index=index), ("partitions", "figures"), len(index.chain))
    state = state._replace(
        leaves=blocks.with_room(state.leaves, int(tops[Top.NEEDED_ROWS]) + 2 * min(rows, 1 << 16) + 64),
        directories=blocks.with_room(state.directories, int(tops[Top.NEEDED_DIRECTORY_ROWS]) + 2 * some),
    )
    return grown(state, ("overfull",), int(tops[Top.OVERFULL]) + 256)


def with_lists(state: State, codes: int) -> State:
    """Return the state with room for lists with codes below this."""
    return grown(state, ("lists",), codes)


def with_pairs(state: State, count: int) -> State:
    """Return the state with room for an event of so many pairs."""
    return grown(state, ("pairs", "present"), count)
