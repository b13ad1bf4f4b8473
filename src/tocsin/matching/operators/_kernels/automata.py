"""Which held strings a string contains: the automaton of Aho and Corasick (1975), in arrays.

There is a trie for each attribute, all in one forest. Its nodes are numbered breadth first, so that the children of
a node are next to each other, and whatever a node falls back to comes before it. The first nodes, which is where
most of a text is spent, have a row with the next node for every byte; the others look through their children, and
fall back.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.operators.index import Passed, TextBytes
from tocsin.structures.jit import helper, kernel

__all__ = ["Automaton", "Constants", "Forest", "contained", "grow", "link", "merge", "strike"]


class Constants(NamedTuple):
    """Constants in the order of their attributes, and then of their bytes; all are different."""

    attributes: NDArray[np.int64]  # [constants]
    codes: NDArray[np.int64]  # [constants] -1 if it is held no longer
    texts: TextBytes


class Forest(NamedTuple):
    """Nodes. By number; the roots come first."""

    first: NDArray[np.int32]  # [nodes + 1] the first child; those of node s end where those of s + 1 begin
    label: NDArray[np.uint8]  # the byte that leads here
    fallback: NDArray[np.int32]  # the node of the longest proper suffix that is there; a root's is itself
    constant: NDArray[np.int32]  # the constant that ends here, or -1
    ending: NDArray[np.int32]  # of the constants that end here, the node of the longest, or -1
    parent: NDArray[np.int32]


class Automaton(NamedTuple):
    """A forest, ready to be run."""

    forest: Forest
    roots: NDArray[np.int32]  # by attribute: its root, or -1
    classes: NDArray[np.int32]  # [256] the column of a byte; all bytes that no constant has share the first
    rows: NDArray[
        np.int32
    ]  # [nodes with a row, classes] the next node, doubled, and one if a constant ends there
    seen: NDArray[np.int64]  # by constant: the last string that was found to contain it
    counters: NDArray[np.int64]  # strings looked at so far


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

    `stretches` has a row for each node: where the constants that begin with it begin and end, and how long it is.
    Takes time in proportion to the constants' bytes.
    """
    attributes, offsets, data = constants.attributes, constants.texts.offsets, constants.texts.data
    nodes, i = np.int64(0), np.int64(0)
    while i < attributes.shape[0]:
        end = i + 1
        while end < attributes.shape[0] and attributes[end] == attributes[i]:
            end += 1
        roots[attributes[i]] = nodes
        forest.parent[nodes] = -1
        stretches[nodes, 0], stretches[nodes, 1], stretches[nodes, 2] = i, end, 0
        nodes += 1
        i = end
    node = np.int64(0)
    while node < nodes:
        low, high, length = stretches[node, 0], stretches[node, 1], stretches[node, 2]
        forest.constant[node] = -1
        if offsets[low + 1] - offsets[low] == length:
            forest.constant[node] = low
            low += 1
        forest.first[node] = nodes
        while low < high:
            byte = data[offsets[low] + length]
            end = low + 1
            while end < high and data[offsets[end] + length] == byte:
                end += 1
            forest.label[nodes], forest.parent[nodes] = byte, node
            stretches[nodes, 0], stretches[nodes, 1], stretches[nodes, 2] = low, end, length + 1
            nodes += 1
            low = end
        node += 1
    forest.first[nodes] = nodes
    return nodes


@kernel
def link(automaton: Automaton) -> None:
    """Tell each node where it falls back to and what ends there, and fill the rows."""
    forest, rows, classes = automaton.forest, automaton.rows, automaton.classes
    for node in range(forest.label.shape[0]):
        parent = np.int64(forest.parent[node])
        fallback = np.int64(node)
        if parent >= 0:
            fallback = np.int64(forest.fallback[parent])
            if fallback != parent:
                fallback = _next(automaton, fallback, np.int64(forest.label[node]))
        forest.fallback[node] = fallback
        forest.ending[node] = -1 if fallback == node else forest.ending[fallback]
        if forest.constant[node] >= 0:
            forest.ending[node] = node
        if node < rows.shape[0]:
            for column in range(rows.shape[1]):
                rows[node, column] = node if fallback == node else rows[fallback, column]
            for child in range(forest.first[node], forest.first[node + 1]):
                rows[node, classes[forest.label[child]]] = child
    for node in range(rows.shape[0]):
        for column in range(rows.shape[1]):
            following = rows[node, column]
            rows[node, column] = 2 * following + (forest.ending[following] >= 0)


@helper
def _child(forest: Forest, node: int, byte: int) -> int:
    """Return the child of a node that a byte leads to, or -1. Children are in the order of their bytes."""
    for child in range(forest.first[node], forest.first[node + 1]):
        if forest.label[child] >= byte:
            return np.int64(child) if forest.label[child] == byte else np.int64(-1)
    return np.int64(-1)


@helper
def _next(automaton: Automaton, node: int, byte: int) -> int:
    """Return where a byte leads from a node, while the rows hold plain nodes."""
    forest, rows = automaton.forest, automaton.rows
    while node >= rows.shape[0]:
        child = _child(forest, node, byte)
        if child >= 0:
            return child
        node = np.int64(forest.fallback[node])
    return np.int64(rows[node, automaton.classes[byte]])


@kernel
def contained(
    automaton: Automaton,
    codes: NDArray[np.int64],
    attributes: NDArray[np.int64],
    texts: TextBytes,
    start: int,
    found: Passed,
) -> int:
    """Write the codes of the constants that each string from `start` on contains, each once.

    Costs a step or so for each byte, and one for each constant found. Returns how many strings were done: fewer
    than all if `found.codes` is full.
    """
    forest, rows, classes = automaton.forest, automaton.rows, automaton.classes
    count = found.offsets[start]
    for i in range(start, attributes.shape[0]):
        node = np.int64(-1)
        if attributes[i] < automaton.roots.shape[0]:
            node = np.int64(automaton.roots[attributes[i]])
        if node >= 0:
            automaton.counters[0] += 1
            count = _report(automaton, codes, node, count, found)
            for k in range(texts.offsets[i], texts.offsets[i + 1]):
                byte = np.int64(texts.data[k])
                child = np.int64(-1)
                while node >= rows.shape[0]:
                    child = _child(forest, node, byte)
                    if child >= 0:
                        break
                    node = np.int64(forest.fallback[node])
                if child >= 0:
                    node = child
                    ends = forest.ending[node] >= 0
                else:
                    following = np.int64(rows[node, classes[byte]])
                    node = following >> 1
                    ends = (following & 1) == 1
                if ends:
                    count = _report(automaton, codes, node, count, found)
                    if count < 0:
                        break
            if count < 0:
                return i
        found.offsets[i + 1] = count
    return attributes.shape[0]


@helper
def _report(automaton: Automaton, codes: NDArray[np.int64], node: int, count: int, found: Passed) -> int:
    """Write the constants that end at a node; return how many are then written, or -1 if there is no room.

    Where one was found before in this string, so were those that end with it.
    """
    forest, stamp = automaton.forest, automaton.counters[0]
    ending = np.int64(forest.ending[node])
    while ending >= 0 and count >= 0:
        constant = forest.constant[ending]
        if automaton.seen[constant] == stamp:
            break
        automaton.seen[constant] = stamp
        if codes[constant] >= 0:
            if count >= found.codes.shape[0]:
                count = np.int64(-1)
            else:
                found.codes[count] = codes[constant]
                count += 1
        fallback = np.int64(forest.fallback[ending])
        ending = np.int64(-1) if fallback == ending else np.int64(forest.ending[fallback])
    return count


@kernel
def strike(
    automaton: Automaton,
    codes: NDArray[np.int64],
    attributes: NDArray[np.int64],
    texts: TextBytes,
    gone: NDArray[np.uint8],
) -> int:
    """Set the codes of these constants to -1 where they are held here, and mark them in `gone`; return how many."""
    forest = automaton.forest
    count = np.int64(0)
    for i in range(attributes.shape[0]):
        if gone[i] or attributes[i] >= automaton.roots.shape[0]:
            continue
        node = np.int64(automaton.roots[attributes[i]])
        k = texts.offsets[i]
        while node >= 0 and k < texts.offsets[i + 1]:
            node = _child(forest, node, np.int64(texts.data[k]))
            k += 1
        if node >= 0 and forest.constant[node] >= 0 and codes[forest.constant[node]] >= 0:
            codes[forest.constant[node]] = -1
            gone[i] = 1
            count += 1
    return count
