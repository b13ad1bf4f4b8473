"""The constants that a string contains: the automaton of Aho and Corasick (1975), in arrays.

Each attribute has a trie, and all tries are one forest. Nodes are numbered breadth first, so that the children of a node are
neighbours, and a node falls back only to nodes before it. The first nodes, where most of a text is spent, have a row with the
next node for every byte; the others search their children and fall back.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.operators.index import TextBytes
from tocsin.structures.array_types import Int32s, Int64s, UInt8s
from tocsin.structures.jit import helper, kernel, prefetch

LANES: Final = 16  # strings that are read side by side


class Constants(NamedTuple):
    """Constants in the order of their attributes, and then of their bytes; all are different."""

    attributes: Int64s  # [constants]
    codes: Int64s  # [constants] -1 once it is removed
    texts: TextBytes


class Forest(NamedTuple):
    """Nodes by number, the roots first. A node's columns are read together, so they are next to each other."""

    nodes: Int32s  # [nodes, Node]
    labels: UInt8s  # [nodes] the byte that leads to a node


class Automaton(NamedTuple):
    """A forest, ready to be run.

    A *state* is a node: if it has a row, the row's begin in `rows`, else its number plus the length of `rows`.
    """

    forest: Forest
    roots: Int32s  # by attribute: its root, or -1
    classes: Int32s  # [256] the column of a byte; all bytes that no constant has share column 1
    # Column 0: the constant that ends there; others: the next state, doubled, plus 1 if one ends there
    rows: Int32s
    ends: Int64s  # [constants, End]
    counters: Int64s  # [Counter]


class Node(IntEnum):
    """Columns of a node."""

    FIRST = 0  # its first child
    CHILDREN = 1  # their number, and in the last eight bits the first one's label
    FALLBACK = 2  # the state of the longest proper suffix in the forest; a root falls back to itself
    ENDING = 3  # the longest constant that ends here, or -1


class End(IntEnum):
    """Columns of the constant that ends at a node."""

    SEEN = 0  # the last call that found it, and in the last bits the lanes whose present string contains it
    CODE = 1  # -1 once it is removed
    SHORTER = 2  # the longest constant that is a suffix of this one, or -1


class Counter(IntEnum):
    """Positions in an automaton's counters."""

    COLUMNS = 0  # of a row
    CALLS = 1  # of `find_contained` so far
    LONGEST = 2  # most constants that end at one node


class Stretch(IntEnum):
    """Columns of a node while the forest is built: the constants that begin with its bytes, and its place in the trie."""

    BEGIN = 0
    END = 1  # in `link`: the number of constants that end at the node
    LENGTH = 2
    PARENT = 3


class Lane(IntEnum):
    """Columns of a lane, which reads one string."""

    STATE = 0
    PLACE = 1  # of its next byte
    NUMBER = 2  # of its string
    BIT = 3  # marks the constants that were found in its string
    LAST = 4  # the last of them in `found`, or -1


class Total(IntEnum):
    """Columns of the last lane, which counts."""

    LANES = 0  # in use
    BEGUN = 1  # strings
    WRITTEN = 2  # hits


class Hit(IntEnum):
    """Columns of `found`."""

    # A string's number above 32 bits; below, the constant until the string has ended, then its code
    FOUND = 0
    BEFORE = 1  # the hit before in the same string, or -1


@kernel
def merge(one: Constants, other: Constants, into: Constants) -> int:
    """Merge the constants of both, without the removed ones, into `into`; return their number."""
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
    """Tell whether constant `i` of `one` sorts before constant `j` of `other`: by attribute, then by bytes."""
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
    """Append a constant to `into` unless it is removed; return the new number of constants and of bytes."""
    if source.codes[i] < 0:
        return count, used
    into.attributes[count], into.codes[count] = source.attributes[i], source.codes[i]
    for k in range(source.texts.offsets[i], source.texts.offsets[i + 1]):
        into.texts.data[used] = source.texts.data[k]
        used += 1
    into.texts.offsets[count + 1] = used
    return count + 1, used


@kernel
def grow(constants: Constants, forest: Forest, roots: Int32s, stretches: Int32s) -> int:
    """Write the nodes and their stretches; return the number of nodes. Linear in the constants' bytes."""
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
        low, high = np.int64(stretches[node, Stretch.BEGIN]), np.int64(stretches[node, Stretch.END])
        length = np.int64(stretches[node, Stretch.LENGTH])
        forest.nodes[node, Node.ENDING] = -1
        if offsets[low + 1] - offsets[low] == length:
            forest.nodes[node, Node.ENDING] = low
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
        forest.nodes[node, Node.FIRST] = first
        forest.nodes[node, Node.CHILDREN] = ((nodes - first) << 8) | (
            forest.labels[first] if nodes > first else 0
        )
        node += 1
    return nodes


@helper
def _write_stretch(stretches: Int32s, node: int, begin: int, end: int, length: int, parent: int) -> None:
    stretches[node, Stretch.BEGIN], stretches[node, Stretch.END] = begin, end
    stretches[node, Stretch.LENGTH], stretches[node, Stretch.PARENT] = length, parent


@kernel
def link(automaton: Automaton, codes: Int64s, stretches: Int32s) -> None:
    """Write each node's fallback and the constants that end there, and fill the rows."""
    nodes, labels = automaton.forest.nodes, automaton.forest.labels
    rows, classes, columns = automaton.rows, automaton.classes, automaton.counters[Counter.COLUMNS]
    longest = np.int64(0)
    for node in range(labels.shape[0]):
        parent = np.int64(stretches[node, Stretch.PARENT])
        fallback = np.int64(node)
        if parent >= 0:
            fallback = np.int64(nodes[parent, Node.FALLBACK])  # a node, not yet a state
            if fallback != parent:
                fallback = _next(automaton, fallback, labels[node])
        nodes[node, Node.FALLBACK] = fallback
        shorter = np.int64(-1) if fallback == node else np.int64(nodes[fallback, Node.ENDING])
        own = np.int64(nodes[node, Node.ENDING])
        if own >= 0:
            automaton.ends[own, End.SEEN], automaton.ends[own, End.CODE] = 0, codes[own]
            automaton.ends[own, End.SHORTER] = shorter
            stretches[node, Stretch.END] = 1 if shorter < 0 else stretches[fallback, Stretch.END] + 1
            longest = max(longest, np.int64(stretches[node, Stretch.END]))
        else:
            nodes[node, Node.ENDING] = shorter
            stretches[node, Stretch.END] = 0 if shorter < 0 else stretches[fallback, Stretch.END]
        row = node * columns
        if row < rows.shape[0]:
            for column in range(1, columns):
                rows[row + column] = node if fallback == node else rows[fallback * columns + column]
            first = nodes[node, Node.FIRST]
            for child in range(first, first + (nodes[node, Node.CHILDREN] >> 8)):
                rows[row + classes[labels[child]]] = child
    for node in range(rows.shape[0] // columns):
        rows[node * columns] = nodes[node, Node.ENDING]
        for cell in range(node * columns + 1, (node + 1) * columns):
            following = np.int64(rows[cell])
            rows[cell] = 2 * _state(automaton, following) + (nodes[following, Node.ENDING] >= 0)
    automaton.counters[Counter.LONGEST] = longest
    for node in range(labels.shape[0]):
        nodes[node, Node.FALLBACK] = _state(automaton, np.int64(nodes[node, Node.FALLBACK]))


@helper
def _state(automaton: Automaton, node: int) -> int:
    size, columns = automaton.rows.shape[0], automaton.counters[Counter.COLUMNS]
    return node * columns if node * columns < size else size + node


@helper
def _child(forest: Forest, node: int, byte: int) -> int:
    """Return the child that a byte leads to, or -1. Children are in the order of their bytes."""
    children, first = forest.nodes[node, Node.CHILDREN], np.int64(forest.nodes[node, Node.FIRST])
    if children >> 8 <= 1:  # as most nodes
        return first if children == (256 | np.int64(byte)) else np.int64(-1)
    for child in range(first, first + (children >> 8)):
        if forest.labels[child] >= byte:
            return np.int64(child) if forest.labels[child] == byte else np.int64(-1)
    return np.int64(-1)


@helper
def _next(automaton: Automaton, node: int, byte: int) -> int:
    """Return the node that a byte leads to, while rows and fallbacks still hold nodes instead of states."""
    rows, columns = automaton.rows, automaton.counters[Counter.COLUMNS]
    while node * columns >= rows.shape[0]:
        child = _child(automaton.forest, node, byte)
        if child >= 0:
            return child
        node = np.int64(automaton.forest.nodes[node, Node.FALLBACK])
    return np.int64(rows[node * columns + automaton.classes[byte]])


@kernel
def find_contained(
    automaton: Automaton, attributes: Int64s, texts: TextBytes, lanes: Int64s, found: Int64s
) -> bool:
    """Write the constants in each string once, in any order: the string's number above 32 bits, the code below.

    Every step waits for memory. So LANES strings are read side by side, one step of each at a time, and each step
    prefetches for the next. Costs one or two steps for each byte and two for each constant found; -1 is written for a
    removed constant. Return False if `found` is full: the caller grows it and calls again with the same `lanes`, whose
    last row holds the totals. A new batch of strings counts another call.
    """
    totals = lanes[lanes.shape[0] - 1]
    while True:
        while totals[Total.LANES] < lanes.shape[0] - 1 and totals[Total.BEGUN] < attributes.shape[0]:
            if totals[Total.WRITTEN] + automaton.counters[Counter.LONGEST] > found.shape[0]:
                return False
            _begin(automaton, attributes, texts, lanes, found)
        if totals[Total.LANES] == 0:
            return True
        lane = np.int64(0)
        while lane < totals[Total.LANES]:
            if totals[Total.WRITTEN] + automaton.counters[Counter.LONGEST] > found.shape[0]:
                return False
            if _step(automaton, texts, lanes[lane], totals, found):
                _end(automaton, lanes[lane], found)
                totals[Total.LANES] -= 1
                bit = lanes[lane, Lane.BIT]
                for j in range(lanes.shape[1]):
                    lanes[lane, j] = lanes[totals[Total.LANES], j]
                lanes[totals[Total.LANES], Lane.BIT] = bit
            else:
                lane += 1


@helper
def _begin(automaton: Automaton, attributes: Int64s, texts: TextBytes, lanes: Int64s, found: Int64s) -> None:
    """Start the next string in a free lane, unless its attribute has no constants."""
    totals = lanes[lanes.shape[0] - 1]
    number = totals[Total.BEGUN]
    totals[Total.BEGUN] += 1
    root = np.int64(-1)
    if attributes[number] < automaton.roots.shape[0]:
        root = np.int64(automaton.roots[attributes[number]])
    if root < 0:
        return
    lane = lanes[totals[Total.LANES]]
    lane[Lane.STATE], lane[Lane.PLACE] = _state(automaton, root), texts.offsets[number]
    lane[Lane.NUMBER] = number
    lane[Lane.LAST] = -1
    _report(automaton, np.int64(automaton.forest.nodes[root, Node.ENDING]), lane, totals, found)
    totals[Total.LANES] += 1


@helper
def _step(automaton: Automaton, texts: TextBytes, lane: Int64s, totals: Int64s, found: Int64s) -> bool:
    """Advance a string by one node; return whether it has ended.

    Unsigned indexes save the check for negative ones.
    """
    rows, classes, nodes = automaton.rows, automaton.classes, automaton.forest.nodes
    place, size = np.uint64(lane[Lane.PLACE]), np.uint64(rows.shape[0])
    if lane[Lane.PLACE] == texts.offsets[lane[Lane.NUMBER] + 1]:
        return True
    byte = texts.data[place]
    state, ending = np.uint64(lane[Lane.STATE]), np.int64(-1)
    if state < size:
        following = np.uint64(rows[state + np.uint64(classes[byte])])
        state = following >> np.uint64(1)
        place += np.uint64(1)
        if following & np.uint64(1):
            ending = np.int64(rows[state] if state < size else nodes[state - size, Node.ENDING])
    else:
        node = np.int64(state - size)
        child = _child(automaton.forest, node, byte)
        if child >= 0:
            state = size + np.uint64(child)
            place += np.uint64(1)
            ending = np.int64(nodes[child, Node.ENDING])
        else:
            state = np.uint64(nodes[node, Node.FALLBACK])
    lane[Lane.STATE], lane[Lane.PLACE] = np.int64(state), np.int64(place)
    if state < size:
        prefetch(rows, state + np.uint64(classes[texts.data[place]]))
    else:
        prefetch(nodes, np.uint64(4) * (state - size))
    if ending >= 0:
        _report(automaton, ending, lane, totals, found)
    return False


@helper
def _report(automaton: Automaton, ending: int, lane: Int64s, totals: Int64s, found: Int64s) -> None:
    """Write the constant `ending` and its suffixes.

    It stops at a constant that was found in this string before, since its suffixes were found with it.
    """
    ends, call = automaton.ends, automaton.counters[Counter.CALLS]
    while ending >= 0:
        seen = ends[ending, End.SEEN]
        if seen >> LANES != call:  # marks of an earlier call, which may have been interrupted
            seen = call << LANES
        if seen & lane[Lane.BIT]:
            return
        ends[ending, End.SEEN] = seen | lane[Lane.BIT]
        found[totals[Total.WRITTEN], Hit.FOUND] = (lane[Lane.NUMBER] << 32) | ending
        found[totals[Total.WRITTEN], Hit.BEFORE] = lane[Lane.LAST]
        lane[Lane.LAST] = totals[Total.WRITTEN]
        totals[Total.WRITTEN] += 1
        ending = ends[ending, End.SHORTER]


@helper
def _end(automaton: Automaton, lane: Int64s, found: Int64s) -> None:
    """Replace the constants found in a string by their codes, and clear their marks of this lane."""
    ends, place = automaton.ends, lane[Lane.LAST]
    while place >= 0:
        ending = found[place, Hit.FOUND] & 0xFFFFFFFF
        ends[ending, End.SEEN] ^= lane[Lane.BIT]
        code = ends[ending, End.CODE]
        found[place, Hit.FOUND] = (lane[Lane.NUMBER] << 32) | code if code >= 0 else -1
        place = found[place, Hit.BEFORE]


@kernel
def remove_constants(
    automaton: Automaton, constants: Constants, attributes: Int64s, texts: TextBytes, gone: UInt8s
) -> int:
    """Mark these constants as removed in this automaton and in `gone`; return how many were in it."""
    count = np.int64(0)
    for i in range(attributes.shape[0]):
        if gone[i] or attributes[i] >= automaton.roots.shape[0]:
            continue
        node = np.int64(automaton.roots[attributes[i]])
        k = texts.offsets[i]
        while node >= 0 and k < texts.offsets[i + 1]:
            node = _child(automaton.forest, node, texts.data[k])
            k += 1
        found = np.int64(-1) if node < 0 else np.int64(automaton.forest.nodes[node, Node.ENDING])
        if found < 0 or constants.codes[found] < 0:
            continue
        length = constants.texts.offsets[found + 1] - constants.texts.offsets[found]
        if length == texts.offsets[i + 1] - texts.offsets[i]:  # else only a suffix of it is a constant
            constants.codes[found] = -1
            automaton.ends[found, End.CODE] = -1
            gone[i] = 1
            count += 1
    return count
