"""Which held strings a string contains: the automaton of Aho and Corasick (1975), in arrays.

There is a trie for each attribute, all in one forest. Its nodes are numbered breadth first, so that the children of
a node are next to each other, and whatever a node falls back to comes before it. The first nodes, which is where
most of a text is spent, have a row with the next node for every byte; the others look through their children, and
fall back.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.operators.index import TextBytes
from tocsin.structures.jit import helper, kernel, prefetch

LANES: Final = 16  # strings that are gone through side by side


class Constants(NamedTuple):
    """Constants in the order of their attributes, and then of their bytes; all are different."""

    attributes: NDArray[np.int64]  # [constants]
    codes: NDArray[np.int64]  # [constants] -1 if it is held no longer
    texts: TextBytes


class Forest(NamedTuple):
    """Nodes. By number; the roots come first. What is read of a node together lies together."""

    nodes: NDArray[np.int32]  # [nodes, 4]
    labels: NDArray[np.uint8]  # the byte that leads to a node


# Places in a node
FIRST: Final = 0  # its first child
CHILDREN: Final = 1  # how many it has, and in the last eight bits the first one's label
FALLBACK: Final = 2  # the state of the longest proper suffix that is there; a root's is itself
ENDING: Final = 3  # the longest constant that ends here, or -1


class Automaton(NamedTuple):
    """A forest, ready to be run.

    A *state* is a node: if it has a row, where that begins in `rows`, else its number above the length of `rows`.
    """

    forest: Forest
    roots: NDArray[np.int32]  # by attribute: its root, or -1
    classes: NDArray[np.int32]  # [256] the column of a byte; all bytes that no constant has share column 1
    rows: NDArray[
        np.int32
    ]  # column 0: what ends there; others: the next state, doubled, plus one if any ends there
    ends: NDArray[np.int64]  # [constants, 3]
    counters: NDArray[np.int64]  # [3]


# Places in `ends`
SEEN: Final = (
    0  # the last call that found it, and in the last bits the lanes whose present string contains it
)
CODE: Final = 1  # -1 if it is held no longer
SHORTER: Final = 2  # the longest constant that this one ends with, or -1

# Places in `counters`
COLUMNS: Final = 0  # of a row
CALLS: Final = 1  # how often strings were looked through so far
LONGEST: Final = 2  # most constants that end at one node

# Places in a lane
STATE: Final = 0
PLACE: Final = 1  # of its next byte
NUMBER: Final = 2  # of its string
BIT: Final = 3  # what marks the constants that were found in it
LAST: Final = 4  # the place in `found` of the last of them, or -1

# Places in `found`
FOUND: Final = 0  # the number of a string above 32 bits; below, the constant until the string is at its end, then its code
BEFORE: Final = 1  # what was found before in the same string, or -1


@kernel
def merge(one: Constants, other: Constants, into: Constants) -> int:
    """Write the constants of both that are held into `into`, in order; return how many there are."""
    i, j, count, used = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    while i < one.codes.shape[0] or j < other.codes.shape[0]:
        if j >= other.codes.shape[0] or (i < one.codes.shape[0] and _comes_first(one, i, other, j)):
            count, used = _copy(one, i, into, count, used)
            i += 1
        else:
            count, used = _copy(other, j, into, count, used)
            j += 1
    return count


@helper
def _comes_first(one: Constants, i: int, other: Constants, j: int) -> bool:
    if one.attributes[i] != other.attributes[j]:
        return one.attributes[i] < other.attributes[j]
    a, b = one.texts.offsets[i], other.texts.offsets[j]
    size, other_size = one.texts.offsets[i + 1] - a, other.texts.offsets[j + 1] - b
    for k in range(min(size, other_size)):
        if one.texts.data[a + k] != other.texts.data[b + k]:
            return one.texts.data[a + k] < other.texts.data[b + k]
    return size < other_size


@helper
def _copy(source: Constants, i: int, into: Constants, count: int, used: int) -> tuple[int, int]:
    if source.codes[i] < 0:
        return count, used
    into.attributes[count], into.codes[count] = source.attributes[i], source.codes[i]
    for k in range(source.texts.offsets[i], source.texts.offsets[i + 1]):
        into.texts.data[used] = source.texts.data[k]
        used += 1
    into.texts.offsets[count + 1] = used
    return count + 1, used


@kernel
def grow(
    constants: Constants,
    forest: Forest,
    roots: NDArray[np.int32],
    stretches: NDArray[np.int32],
) -> int:
    """Make the nodes; return how many there are.

    `stretches` has a row for each node: where the constants that begin with it begin and end, how long it is, and its
    parent. Takes time in proportion to the constants' bytes.
    """
    attributes, offsets, data = constants.attributes, constants.texts.offsets, constants.texts.data
    nodes, i = np.int64(0), np.int64(0)
    while i < attributes.shape[0]:
        end = i + 1
        while end < attributes.shape[0] and attributes[end] == attributes[i]:
            end += 1
        roots[attributes[i]] = nodes
        _write_stretch(stretches, nodes, i, end, 0, -1)
        nodes += 1
        i = end
    node = np.int64(0)
    while node < nodes:
        low, high = np.int64(stretches[node, 0]), np.int64(stretches[node, 1])
        length = np.int64(stretches[node, 2])
        forest.nodes[node, ENDING] = -1
        if offsets[low + 1] - offsets[low] == length:
            forest.nodes[node, ENDING] = low
            low += 1
        first = nodes
        while low < high:
            byte = data[offsets[low] + length]
            end = low + 1
            while end < high and data[offsets[end] + length] == byte:
                end += 1
            forest.labels[nodes] = byte
            _write_stretch(stretches, nodes, low, end, length + 1, node)
            nodes += 1
            low = end
        forest.nodes[node, FIRST] = first
        forest.nodes[node, CHILDREN] = ((nodes - first) << 8) | (forest.labels[first] if nodes > first else 0)
        node += 1
    return nodes


@helper
def _write_stretch(
    stretches: NDArray[np.int32], node: int, begin: int, end: int, length: int, parent: int
) -> None:
    stretches[node, 0], stretches[node, 1] = begin, end
    stretches[node, 2], stretches[node, 3] = length, parent


@kernel
def link(automaton: Automaton, codes: NDArray[np.int64], stretches: NDArray[np.int32]) -> None:
    """Tell each node where it falls back to and what ends there, and fill the rows.

    In the second column of `stretches` it counts the constants that end at a node.
    """
    nodes, labels = automaton.forest
    rows, classes, columns = automaton.rows, automaton.classes, automaton.counters[COLUMNS]
    longest = np.int64(0)
    for node in range(labels.shape[0]):
        parent = np.int64(stretches[node, 3])
        fallback = np.int64(node)
        if parent >= 0:
            fallback = np.int64(nodes[parent, FALLBACK])  # while it is being made, a node
            if fallback != parent:
                fallback = _next(automaton, fallback, labels[node])
        nodes[node, FALLBACK] = fallback
        shorter = np.int64(-1) if fallback == node else np.int64(nodes[fallback, ENDING])
        own = np.int64(nodes[node, ENDING])
        if own >= 0:
            automaton.ends[own, SEEN], automaton.ends[own, CODE] = 0, codes[own]
            automaton.ends[own, SHORTER] = shorter
            stretches[node, 1] = 1 if shorter < 0 else stretches[fallback, 1] + 1
            longest = max(longest, np.int64(stretches[node, 1]))
        else:
            nodes[node, ENDING] = shorter
            stretches[node, 1] = 0 if shorter < 0 else stretches[fallback, 1]
        row = node * columns
        if row < rows.shape[0]:
            for column in range(1, columns):
                rows[row + column] = node if fallback == node else rows[fallback * columns + column]
            first = nodes[node, FIRST]
            for child in range(first, first + (nodes[node, CHILDREN] >> 8)):
                rows[row + classes[labels[child]]] = child
    for node in range(rows.shape[0] // columns):
        rows[node * columns] = nodes[node, ENDING]
        for cell in range(node * columns + 1, (node + 1) * columns):
            following = np.int64(rows[cell])
            rows[cell] = 2 * _state(automaton, following) + (nodes[following, ENDING] >= 0)
    automaton.counters[LONGEST] = longest
    for node in range(labels.shape[0]):
        nodes[node, FALLBACK] = _state(automaton, np.int64(nodes[node, FALLBACK]))


@helper
def _state(automaton: Automaton, node: int) -> int:
    size, columns = automaton.rows.shape[0], automaton.counters[COLUMNS]
    return node * columns if node * columns < size else size + node


@helper
def _child(forest: Forest, node: int, byte: int) -> int:
    """Return the child of a node that a byte leads to, or -1. Children are in the order of their bytes."""
    children, first = forest.nodes[node, CHILDREN], np.int64(forest.nodes[node, FIRST])
    if children >> 8 <= 1:  # by far the most
        return first if children == (256 | np.int64(byte)) else np.int64(-1)
    for child in range(first, first + (children >> 8)):
        if forest.labels[child] >= byte:
            return np.int64(child) if forest.labels[child] == byte else np.int64(-1)
    return np.int64(-1)


@helper
def _next(automaton: Automaton, node: int, byte: int) -> int:
    """Return where a byte leads from a node, while rows and fallbacks are plain nodes."""
    rows, columns = automaton.rows, automaton.counters[COLUMNS]
    while node * columns >= rows.shape[0]:
        child = _child(automaton.forest, node, byte)
        if child >= 0:
            return child
        node = np.int64(automaton.forest.nodes[node, FALLBACK])
    return np.int64(rows[node * columns + automaton.classes[byte]])


@kernel
def contained(
    automaton: Automaton,
    attributes: NDArray[np.int64],
    texts: TextBytes,
    lanes: NDArray[np.int64],
    found: NDArray[np.int64],
) -> bool:
    """Write what each string contains, as its number above 32 bits and the code below, once each and in any order.

    Each step waits for memory. So several strings are gone through side by side, each in a row of `lanes`, a step at a
    time, and each step asks for what the next one needs. Costs a step or two for each byte, and two for each constant
    found; -1 is written for one that is held no longer. Returns False if there was no room in `found`: go on with the
    same `lanes`, each of which has a bit of its own. The last of them holds how many lanes are in use, how many strings
    were begun, and how much is written. Whoever begins anew counts another call.
    """
    totals = lanes[lanes.shape[0] - 1]
    while True:
        while totals[0] < lanes.shape[0] - 1 and totals[1] < attributes.shape[0]:
            if totals[2] + automaton.counters[LONGEST] > found.shape[0]:
                return False
            _begin(automaton, attributes, texts, lanes, found)
        if totals[0] == 0:
            return True
        lane = np.int64(0)
        while lane < totals[0]:
            if totals[2] + automaton.counters[LONGEST] > found.shape[0]:
                return False
            if _step(automaton, texts, lanes[lane], totals, found):
                _end(automaton, lanes[lane], found)
                totals[0] -= 1
                bit = lanes[lane, BIT]
                for j in range(lanes.shape[1]):
                    lanes[lane, j] = lanes[totals[0], j]
                lanes[totals[0], BIT] = bit
            else:
                lane += 1


@helper
def _begin(
    automaton: Automaton,
    attributes: NDArray[np.int64],
    texts: TextBytes,
    lanes: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Take the next string into a free lane, unless there is nothing to look for in it."""
    totals = lanes[lanes.shape[0] - 1]
    number = totals[1]
    totals[1] += 1
    root = np.int64(-1)
    if attributes[number] < automaton.roots.shape[0]:
        root = np.int64(automaton.roots[attributes[number]])
    if root < 0:
        return
    lane = lanes[totals[0]]
    lane[STATE], lane[PLACE], lane[NUMBER] = _state(automaton, root), texts.offsets[number], number
    lane[LAST] = -1
    _report(automaton, np.int64(automaton.forest.nodes[root, ENDING]), lane, totals, found)
    totals[0] += 1


@helper
def _step(
    automaton: Automaton,
    texts: TextBytes,
    lane: NDArray[np.int64],
    totals: NDArray[np.int64],
    found: NDArray[np.int64],
) -> bool:
    """Go on by one node with a string; return whether it is at its end.

    Unsigned indexes spare the processor a look at their sign.
    """
    rows, classes, nodes = automaton.rows, automaton.classes, automaton.forest.nodes
    place, size = np.uint64(lane[PLACE]), np.uint64(rows.shape[0])
    if lane[PLACE] == texts.offsets[lane[NUMBER] + 1]:
        return True
    byte = texts.data[place]
    state, ending = np.uint64(lane[STATE]), np.int64(-1)
    if state < size:
        following = np.uint64(rows[state + np.uint64(classes[byte])])
        state = following >> np.uint64(1)
        place += np.uint64(1)
        if following & np.uint64(1):
            ending = np.int64(rows[state] if state < size else nodes[state - size, ENDING])
    else:
        node = np.int64(state - size)
        child = _child(automaton.forest, node, byte)
        if child >= 0:
            state = size + np.uint64(child)
            place += np.uint64(1)
            ending = np.int64(nodes[child, ENDING])
        else:
            state = np.uint64(nodes[node, FALLBACK])
    lane[STATE], lane[PLACE] = np.int64(state), np.int64(place)
    if state < size:
        prefetch(rows, state + np.uint64(classes[texts.data[place]]))
    else:
        prefetch(nodes, np.uint64(4) * (state - size))
    if ending >= 0:
        _report(automaton, ending, lane, totals, found)
    return False


@helper
def _report(
    automaton: Automaton,
    ending: int,
    lane: NDArray[np.int64],
    totals: NDArray[np.int64],
    found: NDArray[np.int64],
) -> None:
    """Write the constant `ending` and all that it ends with.

    Where one was found in this string, so were those that it ends with.
    """
    ends, call = automaton.ends, automaton.counters[CALLS]
    while ending >= 0:
        seen = ends[ending, SEEN]
        if seen >> LANES != call:  # what a call leaves behind that was cut short means nothing
            seen = call << LANES
        if seen & lane[BIT]:
            return
        ends[ending, SEEN] = seen | lane[BIT]
        found[totals[2], FOUND] = (lane[NUMBER] << 32) | ending
        found[totals[2], BEFORE] = lane[LAST]
        lane[LAST] = totals[2]
        totals[2] += 1
        ending = ends[ending, SHORTER]


@helper
def _end(automaton: Automaton, lane: NDArray[np.int64], found: NDArray[np.int64]) -> None:
    """Write the codes of the constants that were found in a string, and make its lane's bit free for the next."""
    ends, place = automaton.ends, lane[LAST]
    while place >= 0:
        ending = found[place, FOUND] & 0xFFFFFFFF
        ends[ending, SEEN] ^= lane[BIT]
        code = ends[ending, CODE]
        found[place, FOUND] = (lane[NUMBER] << 32) | code if code >= 0 else -1
        place = found[place, BEFORE]


@kernel
def strike(
    automaton: Automaton,
    constants: Constants,
    attributes: NDArray[np.int64],
    texts: TextBytes,
    gone: NDArray[np.uint8],
) -> int:
    """Give up these constants where they are held here, and mark them in `gone`; return how many were given up."""
    count = np.int64(0)
    for i in range(attributes.shape[0]):
        if gone[i] or attributes[i] >= automaton.roots.shape[0]:
            continue
        node = np.int64(automaton.roots[attributes[i]])
        k = texts.offsets[i]
        while node >= 0 and k < texts.offsets[i + 1]:
            node = _child(automaton.forest, node, texts.data[k])
            k += 1
        found = np.int64(-1) if node < 0 else np.int64(automaton.forest.nodes[node, ENDING])
        if found < 0 or constants.codes[found] < 0:
            continue
        length = constants.texts.offsets[found + 1] - constants.texts.offsets[found]
        if length == texts.offsets[i + 1] - texts.offsets[i]:  # else it is one that the constant ends with
            constants.codes[found] = -1
            automaton.ends[found, CODE] = -1
            gone[i] = 1
            count += 1
    return count
