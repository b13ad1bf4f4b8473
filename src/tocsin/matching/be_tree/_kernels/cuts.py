"""Where the interval of a node is cut in two."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.be_tree._kernels.intervals import middle
from tocsin.matching.be_tree.state import HIGHEST, LOWEST, PARTITION, TREE, UP, State
from tocsin.structures.jit import helper

_DEEP: Final = 32  # levels of a partition's tree in which cuts follow the members alone
_WIDE: Final = 1 << 58  # half of a width that cannot be doubled any more


@helper
def cut_of(state: State, node: int, field: int, least: int, greatest: int) -> int:
    """Return the last key of the left half of a node whose members have bounds between two keys.

    The cut is in the middle of these. Where there is but one, two cuts leave it alone in an interval, which is then
    atomic. But members that come in order are always cut at the same end: far down, the cut follows the keys.
    """
    if _is_deep(state, node):
        return _steady_cut(state, node, least, greatest)
    if least < greatest:
        return middle(field, least, greatest)
    return least if state.bounds[node, 1] > least else least - 1


@helper
def _is_deep(state: State, node: int) -> bool:
    top = np.int64(state.partitions[state.about[node, PARTITION], TREE])
    for _ in range(_DEEP):
        if node == top:
            return False
        node = np.int64(state.about[node, UP])
    return node != top


@helper
def _steady_cut(state: State, node: int, least: int, greatest: int) -> int:
    """Return a cut after any number of which an interval is narrow, wherever members are in it.

    An interval without an end gives off one at least twice as wide as the one before it, or one that reaches to its
    members. One with two ends is cut at its roundest key, or around a single value if the cuts before did narrow it.
    """
    low, high = state.bounds[node, 0], state.bounds[node, 1]
    between = (least >> 1) + (greatest >> 1) + (least & greatest & 1)
    above = np.int64(state.about[node, UP])
    if high == HIGHEST:
        half = (low >> 1) - (state.bounds[above, 0] >> 1)
        if half >= _WIDE or low >= HIGHEST - 16 * half - 4:
            return _roundest(low, high)
        step = 4 * half + 2
        return max((low + step) | (_filled(step) >> 1), between)
    if low == LOWEST:
        half = (state.bounds[above, 1] >> 1) - (high >> 1)
        if half >= _WIDE or high <= LOWEST + 16 * half + 4:
            return _roundest(low, high)
        step = 4 * half + 2
        return min(((high - step) & ~(_filled(step) >> 1)) - 1, between - (least == greatest))
    if least == greatest and (_is_narrowed(state, node) or (least == high and _is_narrowed(state, above))):
        return least if high > least else least - 1
    return _roundest(low, high)


@helper
def _is_narrowed(state: State, node: int) -> bool:
    """Tell whether an interval is at most a quarter of what it was three cuts before."""
    before = node
    for _ in range(3):
        before = np.int64(state.about[before, UP])
    width = (state.bounds[before, 1] >> 1) - (state.bounds[before, 0] >> 1)
    return width >> 2 >= (state.bounds[node, 1] >> 1) - (state.bounds[node, 0] >> 1)


@helper
def _roundest(low: int, high: int) -> int:
    """Return the key before that with the most zeros at its end, of those above `low` and up to `high`."""
    differing = low ^ high
    if differing < 0:
        return np.int64(-1)
    return (high & ~(_filled(differing) >> 1)) - 1


@helper
def _filled(bits: int) -> int:
    """Return a positive number with all bits set below its highest."""
    for shift in (1, 2, 4, 8, 16, 32):
        bits |= bits >> shift
    return bits
