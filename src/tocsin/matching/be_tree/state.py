"""The arrays that a BE-Tree is made of.

A *node* is what the paper calls a c-node, together with the interval of a c-directory that it belongs to: it has a leaf
with conjunctions (the l-node) and a directory of *partitions* (p-nodes), one for each of some fields. A partition is a
binary tree of nodes over the values of its field: the c-directory. The root of all is a node without an interval.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import FIELDS, Keys
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import Blocks
from tocsin.structures.growth import grown
from tocsin.structures.hash_index import HashIndex

LOWEST: Final = -(2**63)  # a bound that is none; also a key that no number has
HIGHEST: Final = (
    2**63 - 1
)  # likewise; also a place in the order that no value has: the empty string's is the lowest
ROOT: Final = 0  # the node that every event comes to

# Columns of a node's row, in the order of use when events are matched
SPLIT: Final = 0  # values up to here are the left child's, those above the right one's
LEFT: Final = 1  # the child, or -1
RIGHT: Final = 2
LEAF: Final = 3  # the first row of its leaf, or -1
ROWS: Final = 4  # of the leaf
DIRECTORY: Final = 5  # the first row of its directory, or -1
PARTITIONS: Final = 6  # in the directory
MISSES: Final = 7  # members that were looked at in vain since that was last counted

# Columns of what else is known of a node
UP: Final = (
    0  # the node above it in its tree, or the one that has its partition; of a free node, the next one
)
PARTITION: Final = 1  # that it belongs to, or -1
MEMBERS: Final = 2  # conjunctions in its leaf; -1 if the node is free
CAPACITY: Final = 3  # how many of them there may be
LEAF_CLASS: Final = 4  # of the leaf's block
DIRECTORY_CLASS: Final = 5
DEAD: Final = 6  # rows of the leaf whose conjunctions are gone
HOPEFUL: Final = 7  # that came with fields to cut by, since it was last tried to cut

# Columns of a partition's row
OWNER: Final = 0  # the node whose directory it is in
FIELD: Final = 1
TREE: Final = 2  # the topmost node of its tree
PLACE: Final = 3  # in the directory
OWN: Final = 4  # conjunctions in the leaves of its own nodes
MISSED: Final = 5  # of those, looked at in vain in the window at hand
DECAYED: Final = 6  # whether its rank has fallen, and its conjunctions are to be placed anew

# Columns of a partition's figures
LOSS: Final = (
    0  # how probable it is that an event looks at a conjunction here in vain; negative if not known yet
)
RANK: Final = 1
BEST: Final = 2  # its rank at its best, by and by forgotten

# Columns of a conjunction's row; the first is SIBLING
NODE: Final = 1  # where it is, or -1
SPOT: Final = 2  # its first row, counted from the first of the leaf
SIZE: Final = 3  # predicates

# Columns of a list's row
MEMBER: Final = 0  # its first member
COUNT: Final = 1
USES: Final = 2  # none: the rest means nothing
KIND: Final = 3  # the field of its members, or that of any value if they are of several
LEAST: Final = 4  # their keys lie from here
MOST: Final = 5  # to here

# Columns of a pair's row
PAIR_FIELD: Final = 0
KEY: Final = 1
LOW: Final = 2
POINT: Final = 3  # the key that is equal in the order, or HIGHEST if the value lies between two keys
NEXT: Final = 4  # the next pair of the attribute, or -1
FROM: Final = 5  # in a tree the value is looked for from here
TO: Final = 6  # to here

HIGH: Final = 14  # the operator of a row that is the upper bound of the row before

# Places in `State.tops`
TOP_NODE: Final = 0
FREE_NODE: Final = 1
LIVE_NODES: Final = 2
TOP_FORM: Final = 3
FREE_FORM: Final = 4
LIVE_FORMS: Final = 5
PREDICATES: Final = 6
EPOCH: Final = 7  # the number of the event at hand
WANTS: Final = 8  # fields of the conjunction at hand, in `State.wants`
TODO: Final = 9  # nodes in `State.todo` whose leaves may have too many members
STAMP: Final = 10  # of the count by fields at hand, or of the conjunction
SHORT_OF: Final = 11  # rows of leaves that there was no room for,
SHORT_DIRECTORY: Final = 12  # and of directories
ROOM: Final = 13  # conjunctions that an event may satisfy, if there was no room for them,
QUEUE_ROOM: Final = 14  # or nodes that it comes to

# Places in `State.settings`
MOST_MEMBERS: Final = 0  # max_cap
LEAST_MEMBERS: Final = 1  # that a partition is made for
ALPHA: Final = 2  # what loss weighs against gain

# Places in `State.totals`
EVENTS: Final = 0  # matched, ever
VISITS: Final = 1  # nodes that they came to
CHECKS: Final = 2  # conjunctions that they were compared with
WINDOWS: Final = 3  # that were counted
RECYCLED: Final = 4  # partitions whose rank had fallen
MOVES: Final = 5  # conjunctions that were placed anew for it
SCALE: Final = 6  # attributes of an event, for each predicate of a conjunction


class Fields(NamedTuple):
    """By field. All but `tree` are of the count at hand, where `stamp` says so."""

    tree: NDArray[np.int32]  # the tree of the root's partition, or -1
    stamp: NDArray[np.int64]
    tally: NDArray[np.int32]  # members of a leaf that have a predicate on it; -1 if it is used already
    last: NDArray[
        np.int32
    ]  # the member that was counted last; of a conjunction at hand, its place in `State.wants`


class Attributes(NamedTuple):
    """By attribute."""

    slots: NDArray[np.int64]  # the last event that had it, and below 32 bits the row of its first pair
    seen: NDArray[np.int64]  # events that had it, in the window at hand
    share: NDArray[np.float64]  # of events, in the windows before
    uses: NDArray[np.int32]  # predicates that speak of it


class Expressions(NamedTuple):
    """Conjunctions: the predicates of number i are those from `offsets[i]` to `offsets[i + 1]`."""

    numbers: Keys  # int64[conjunctions]
    offsets: Keys  # int64[conjunctions + 1]
    tags: Keys  # int64[predicates]
    lows: Keys
    highs: Keys


class State(NamedTuple):
    """All arrays. Only who holds the matcher's lock may write."""

    nodes: NDArray[np.int64]  # [nodes, 8]
    about: NDArray[np.int32]  # [nodes, 8]
    bounds: NDArray[np.int64]  # [nodes, 2] the least and the greatest value of its interval
    leaves: Blocks  # rows: a conjunction's number and how many rows follow; of those, each a key and a tag
    directories: Blocks  # rows: a field, and below 32 bits the tree of its partition
    partition_index: HashIndex  # keys: a node and a field; its entry is the partition's number
    partitions: NDArray[np.int32]  # [partitions, 7]
    figures: NDArray[np.float64]  # [partitions, 3]
    forms: NDArray[np.int32]  # [conjunctions, 4]
    owner: NDArray[np.int32]  # [conjunctions] entry of its subscription's id, or -1
    ids: HashIndex  # keys: a subscription's id
    first: NDArray[np.int32]  # by entry of `ids`: its newest conjunction
    lists: NDArray[np.int64]  # [codes, 6]
    members: Blocks  # rows: a field and a key, in order within a list
    fields: Fields
    attributes: Attributes
    pairs: NDArray[np.int64]  # [pairs, 8] of the event at hand
    present: NDArray[np.int64]  # [fields, 2] that the event has, each with its first pair
    queue: NDArray[np.int64]  # nodes that it comes to, and above 32 bits by which pair
    draft: NDArray[np.int64]  # [rows, 2] the conjunction at hand, as it would be in a leaf
    wants: NDArray[np.int64]  # [predicates, 3] of that: a field, and from where to where its values must lie
    todo: NDArray[np.int64]
    tops: NDArray[np.int64]  # [15]
    settings: NDArray[np.float64]  # [3]
    totals: NDArray[np.float64]  # [7]


def new_state(capacity: int, min_partition: int, alpha: float) -> State:
    """Return the arrays of an empty tree: a root, and nothing in it."""
    tops = np.zeros(15, dtype=np.int64)
    tops[[FREE_NODE, FREE_FORM]] = -1
    tops[[TOP_NODE, LIVE_NODES]] = 1
    totals = np.zeros(7, dtype=np.float64)
    totals[SCALE] = 1.0
    nodes = np.zeros((64, 8), dtype=np.int64)
    about = np.zeros((64, 8), dtype=np.int32)
    nodes[ROOT, [LEFT, RIGHT, LEAF, DIRECTORY]] = -1
    about[ROOT, [UP, PARTITION]] = -1
    about[ROOT, CAPACITY] = capacity
    bounds = np.zeros((64, 2), dtype=np.int64)
    bounds[ROOT] = LOWEST, HIGHEST
    return State(
        nodes,
        about,
        bounds,
        blocks.new_blocks(2),
        blocks.new_blocks(1),
        hash_index.new_hash_index(2),
        np.zeros((64, 7), dtype=np.int32),
        np.zeros((64, 3), dtype=np.float64),
        np.zeros((64, 4), dtype=np.int32),
        np.zeros(64, dtype=np.int32),
        hash_index.new_hash_index(1),
        np.zeros(64, dtype=np.int32),
        np.zeros((64, 6), dtype=np.int64),
        blocks.new_blocks(2),
        Fields(
            np.full(64, -1, np.int32), np.zeros(64, np.int64), np.zeros(64, np.int32), np.zeros(64, np.int32)
        ),
        Attributes(
            np.zeros(8, np.int64), np.zeros(8, np.int64), np.zeros(8, np.float64), np.zeros(8, np.int32)
        ),
        np.zeros((256, 8), dtype=np.int64),
        np.zeros((256, 2), dtype=np.int64),
        np.zeros(4096, dtype=np.int64),
        np.zeros((64, 2), dtype=np.int64),
        np.zeros((64, 3), dtype=np.int64),
        np.zeros(256, dtype=np.int64),
        tops,
        np.array([capacity, min_partition, alpha], dtype=np.float64),
        totals,
    )


def with_attributes(state: State, count: int) -> State:
    """Return the state with room for so many attributes."""
    if count <= len(state.attributes.slots):
        return state
    attributes = grown(state.attributes, ("slots", "seen", "share", "uses"), count)
    old = len(state.fields.tree)
    fields = grown(state.fields, ("tree", "stamp", "tally", "last"), len(attributes.slots) * FIELDS)
    fields.tree[old:] = -1
    return state._replace(attributes=attributes, fields=fields)


def with_forms(state: State, forms: int, widest: int) -> State:
    """Return the state with room for more conjunctions, and to look at one of so many predicates."""
    ids = hash_index.with_room(state.ids, forms)
    state = grown(state._replace(ids=ids), ("first",), len(ids.chain))
    state = grown(grown(state, ("wants",), widest), ("draft",), 2 * widest + 1)
    return grown(state, ("forms", "owner"), int(state.tops[TOP_FORM]) + forms)


def with_nodes(state: State, forms: int, rows: int) -> State:
    """Return the state with room to place some conjunctions, of so many rows in all, and for what was found wanting."""
    tops = state.tops
    some = min(forms, 4096) + 64
    state = grown(state, ("nodes", "about", "bounds"), int(tops[TOP_NODE]) + some)
    index = hash_index.with_room(state.partition_index, some)
    state = grown(state._replace(partition_index=index), ("partitions", "figures"), len(index.chain))
    state = state._replace(
        leaves=blocks.with_room(state.leaves, int(tops[SHORT_OF]) + 2 * min(rows, 1 << 16) + 64),
        directories=blocks.with_room(state.directories, int(tops[SHORT_DIRECTORY]) + 2 * some),
    )
    return grown(state, ("todo",), int(tops[TODO]) + 256)


def with_lists(state: State, codes: int) -> State:
    """Return the state with room for lists with codes below this."""
    return grown(state, ("lists",), codes)


def with_pairs(state: State, count: int) -> State:
    """Return the state with room for an event of so many pairs."""
    return grown(state, ("pairs", "present"), count)
