"""The A2B-tree: points (x, y) by x, with the least y of everything below each entry (database/network interface, §3).

The upper tier is a B-tree over the distinct x; an entry of its leaves leads to the lower tier, a B-tree over the y of
that x, with a count for each. We differ: a y that is alone with its x is kept in the upper tier itself, as the
least y of its entry, so that a table whose x are all different has no lower tier.

Every operation is O(log n). `seek` writes a path to an x, from which `follow` and `precede` find the nearest points beyond
it with a y of at most some bound. Points may be equal; no x and no y is NaN.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.structures import b_trees
from tocsin.structures.array_types import Float64s, Int64s
from tocsin.structures.b_trees import NodeHead, Nodes, PathStep
from tocsin.structures.jit import helper, kernel

_LONE: Final = -1  # the link of an x with one y
_UPPER: Final = 32  # measured: see decision 0026
_LOWER: Final = 8  # few rows of a table have the same x


class _Counter(IntEnum):
    ROOT = 0  # of the upper tier
    POINTS = 1


class A2BTree(NamedTuple):
    """Two tiers, and paths as scratch memory: every function writes a path before it reads it."""

    upper: Nodes  # by x
    lower: Nodes  # by y; a leaf's links count equal points
    counters: Int64s  # [_Counter]
    here: Int64s  # [LEVELS, 2] to an x
    below: Int64s  # [LEVELS, 2] to a y of that x
    away: Int64s  # [LEVELS, 2] to a second x
    left: Int64s  # [LEVELS, 2] on the way to lesser x
    right: Int64s  # [LEVELS, 2] on the way to greater x


def new_a2b_tree(x_fan_out: int = _UPPER, y_fan_out: int = _LOWER) -> A2BTree:
    """Return a tree without points; a node has up to `fan_out` entries, at least four."""
    upper = b_trees.new_nodes(x_fan_out, lows=True)
    root = b_trees.new_root(upper)
    paths = (b_trees.new_path() for _ in range(5))
    return A2BTree(
        upper, b_trees.new_nodes(y_fan_out, lows=False), np.array([root, 0], dtype=np.int64), *paths
    )


def with_room(tree: A2BTree, distinct: int = 0) -> A2BTree:
    """Return the tree with room for one more point anywhere, after `distinct` new x in ascending order."""
    fan_out = tree.upper.keys.shape[1]
    filled = fan_out - max(fan_out // 8, 1)  # entries that stay in a node when its last one needs room
    nodes, level = 0, distinct
    while level > 1:
        level = -(-level // filled)
        nodes += level
    return tree._replace(upper=b_trees.with_room(tree.upper, nodes), lower=b_trees.with_room(tree.lower))


@helper
def has_room(tree: A2BTree) -> bool:
    """Tell whether one more point fits."""
    return b_trees.has_room(tree.upper) and b_trees.has_room(tree.lower)


@helper
def seek(tree: A2BTree, x: float, path: Int64s) -> bool:
    """Write the path to the last x that is no greater, and tell whether it is equal."""
    return b_trees.seek(tree.upper, tree.counters[_Counter.ROOT], x, path)


@helper
def start_left(tree: A2BTree, path: Int64s, exact: bool) -> None:
    """Let `left` begin at the x that was sought: `precede` then finds lesser ones."""
    b_trees.copy_path(path, _top(tree), tree.left)
    if not exact:
        tree.left[0, PathStep.POSITION] += 1


@helper
def start_right(tree: A2BTree, path: Int64s) -> None:
    """Let `right` begin at the x that was sought: `follow` then finds greater ones."""
    b_trees.copy_path(path, _top(tree), tree.right)


@helper
def follow(tree: A2BTree, bound: float) -> bool:
    """Move `right` on to the next x that has a y of at most `bound`; tell whether there is one."""
    return b_trees.advance(tree.upper, _top(tree), tree.right, bound, 1)


@helper
def precede(tree: A2BTree, bound: float) -> bool:
    """Move `left` back to the nearest x that has a y of at most `bound`; tell whether there is one."""
    return b_trees.advance(tree.upper, _top(tree), tree.left, bound, -1)


@helper
def _top(tree: A2BTree) -> int:
    return np.int64(tree.upper.heads[tree.counters[_Counter.ROOT], NodeHead.LEVEL])


@helper
def x_at(tree: A2BTree, path: Int64s) -> float:
    """Return the x that a path leads to."""
    return tree.upper.keys[path[0, PathStep.NODE], path[0, PathStep.POSITION]]


@helper
def least_at(tree: A2BTree, path: Int64s) -> float:
    """Return the least y of the x that a path leads to."""
    return tree.upper.lows[path[0, PathStep.NODE], path[0, PathStep.POSITION]]


@helper
def holds(tree: A2BTree, path: Int64s, y: float) -> bool:
    """Tell whether the x that a path leads to has this y."""
    tier = np.int64(tree.upper.links[path[0, PathStep.NODE], path[0, PathStep.POSITION]])
    if tier == _LONE or least_at(tree, path) == y:
        return least_at(tree, path) == y
    return b_trees.seek(tree.lower, tier, y, tree.below)


@helper
def least_without(tree: A2BTree, path: Int64s, y: float) -> float:
    """Return the least y of the x that a path leads to, without one point of this y; infinite if none is left."""
    least = least_at(tree, path)
    if least < y:
        return least
    tier = np.int64(tree.upper.links[path[0, PathStep.NODE], path[0, PathStep.POSITION]])
    if tier == _LONE:
        return np.inf
    leaf = _first_leaf(tree.lower, tier)
    if tree.lower.links[leaf, 0] > 1:
        return least
    # A first leaf with one entry is the whole tier, and then that entry stands for several points.
    return tree.lower.keys[leaf, 1]


@helper
def least_strictly_between(tree: A2BTree, low: Int64s, high: Int64s, exact: bool) -> float:
    """Return the least y of all x between two paths; `exact` tells whether the higher x was found."""
    last = high[0, PathStep.POSITION] - 1 if exact else high[0, PathStep.POSITION]
    return b_trees.least_between(tree.upper, low, low[0, PathStep.POSITION] + 1, high, last)


@helper
def add(tree: A2BTree, x: float, y: float) -> None:
    """Add a point; `has_room` must hold."""
    upper, lower, counters, here, below = tree.upper, tree.lower, tree.counters, tree.here, tree.below
    counters[_Counter.POINTS] += 1
    is_new = not seek(tree, x, here)
    leaf, position, tier = here[0, PathStep.NODE], here[0, PathStep.POSITION], np.int64(_LONE)
    if not is_new:
        tier = np.int64(upper.links[leaf, position])
        if tier == _LONE:
            tier = np.int64(b_trees.new_node(lower, 0))
            b_trees.put(lower, tier, 0, upper.lows[leaf, position], 0.0, 1)
            lower.heads[tier, NodeHead.COUNT] = 1
            upper.links[leaf, position] = tier
        is_repeated = b_trees.seek(lower, tier, y, below)
        _set_least(tree, min(upper.lows[leaf, position], y))
        if is_repeated:
            lower.links[below[0, PathStep.NODE], below[0, PathStep.POSITION]] += 1
            return
    # One call for both tiers: `insert` is inlined into every kernel that adds, and is large.
    root = b_trees.insert(
        upper if is_new else lower,
        counters[_Counter.ROOT] if is_new else tier,
        here if is_new else below,
        x if is_new else y,
        y,
        np.int64(_LONE) if is_new else np.int64(1),
    )
    if is_new:
        counters[_Counter.ROOT] = root
    else:
        upper.links[leaf, position] = root


@helper
def take(tree: A2BTree, x: float, y: float) -> bool:
    """Remove one point and tell whether it was there; equal points stay."""
    upper, lower, counters, here, below = tree.upper, tree.lower, tree.counters, tree.here, tree.below
    if not seek(tree, x, here) or not holds(tree, here, y):
        return False
    counters[_Counter.POINTS] -= 1
    leaf, position = here[0, PathStep.NODE], here[0, PathStep.POSITION]
    tier = np.int64(upper.links[leaf, position])
    is_lone, is_last = tier == _LONE, True
    if not is_lone:
        b_trees.seek(lower, tier, y, below)
        lower.links[below[0, PathStep.NODE], below[0, PathStep.POSITION]] -= 1
        is_last = lower.links[below[0, PathStep.NODE], below[0, PathStep.POSITION]] == 0
    if is_last:
        root = b_trees.delete(
            upper if is_lone else lower,
            counters[_Counter.ROOT] if is_lone else tier,
            here if is_lone else below,
        )
        if is_lone:
            counters[_Counter.ROOT] = root
            return True
        tier = root
    first = _first_leaf(lower, tier)
    if lower.heads[first, NodeHead.COUNT] == 1 and lower.links[first, 0] == 1:
        b_trees.free_node(lower, tier)
        tier = np.int64(_LONE)
    upper.links[leaf, position] = tier
    _set_least(tree, lower.keys[first, 0])
    return True


@helper
def replace(tree: A2BTree, y: float) -> bool:
    """Set the y of the x that `here` leads to, if it has only one; tell whether it has."""
    if tree.upper.links[tree.here[0, PathStep.NODE], tree.here[0, PathStep.POSITION]] != _LONE:
        return False
    _set_least(tree, y)
    return True


@helper
def _set_least(tree: A2BTree, y: float) -> None:
    """Set the least y of the x that `here` leads to."""
    upper, here = tree.upper, tree.here
    if upper.lows[here[0, PathStep.NODE], here[0, PathStep.POSITION]] != y:
        upper.lows[here[0, PathStep.NODE], here[0, PathStep.POSITION]] = y
        b_trees.settle(upper, _top(tree), here)


@helper
def _first_leaf(nodes: Nodes, root: int) -> int:
    node = np.int64(root)
    while nodes.heads[node, NodeHead.LEVEL] > 0:
        node = np.int64(nodes.links[node, 0])
    return node


@kernel
def add_points(tree: A2BTree, x: Float64s, y: Float64s, start: int) -> int:
    """Add points from `start` on and return the number done, fewer if there was no room; ascending x pack densest."""
    for i in range(start, x.shape[0]):
        if not has_room(tree):
            return i
        add(tree, x[i], y[i])
    return x.shape[0]


@kernel
def least_in_ranges(tree: A2BTree, lows: Float64s, highs: Float64s, least: Float64s) -> None:
    """Write the least y within each range, both ends included, low <= high; infinite if it has no point."""
    for i in range(lows.shape[0]):
        exact = seek(tree, lows[i], tree.left)
        seek(tree, highs[i], tree.right)
        first = tree.left[0, PathStep.POSITION] if exact else tree.left[0, PathStep.POSITION] + 1
        least[i] = b_trees.least_between(
            tree.upper, tree.left, first, tree.right, tree.right[0, PathStep.POSITION]
        )
