"""Which held strings a string begins or ends with: hashed prefixes, one look-up for each length there is.

A suffix is a prefix of the string read backwards; `backwards` says so. The bytes of a hit are compared, so that
two strings with one hash are told apart.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.operators.index import Passed, TextBytes
from tocsin.structures import hash_index
from tocsin.structures.hash_index import HashIndex
from tocsin.structures.jit import helper, kernel, wrapping_helper

# Beside a constant's key
LENGTH: Final = 2  # -1 if the entry is free
CODE: Final = 3
OFFSET: Final = 4


class Prefixes(NamedTuple):
    """The constants of all attributes, and which lengths there are."""

    entries: (
        HashIndex  # keys: attribute, hash of a constant; beside them its length, code and place in `data`
    )
    data: NDArray[np.uint8]  # [bytes] the constants, in the order in which their bytes are read
    lengths: HashIndex  # keys: attribute, length
    held: NDArray[np.int32]  # by entry of `lengths`: how many constants have it
    longer: NDArray[np.int32]  # by entry of `lengths`: the next longer one of its attribute, or -1
    shortest: NDArray[np.int32]  # by attribute: the entry of its shortest length, or -1
    counters: NDArray[np.int64]  # bytes of `data` that are used, and how many of them nobody needs any more


@kernel
def enter(
    state: Prefixes,
    attributes: NDArray[np.int64],
    codes: NDArray[np.int64],
    constants: TextBytes,
    backwards: bool,
    start: int,
) -> int:
    """Enter constants from `start` on; return how many were done: fewer than all if there was no room."""
    entries, lengths = state.entries, state.lengths
    for i in range(start, codes.shape[0]):
        length = constants.offsets[i + 1] - constants.offsets[i]
        used = state.counters[0]
        if (
            entries.counters[1] + 1 >= entries.chain.shape[0]
            or lengths.counters[1] + 1 >= state.held.shape[0]
            or used + length > state.data.shape[0]
        ):
            return i
        hashed = np.uint64(0)
        for k in range(length):
            byte = _byte(constants, i, k, backwards)
            state.data[used + k] = byte
            hashed = _extended(hashed, byte)
        entry = hash_index.insert(entries, attributes[i], _key(hashed), 0)
        entries.keys[entry, LENGTH], entries.keys[entry, CODE] = length, codes[i]
        entries.keys[entry, OFFSET] = used
        state.counters[0] += length
        _count_length(state, attributes[i], length)
    return codes.shape[0]


@kernel
def leave(state: Prefixes, attributes: NDArray[np.int64], constants: TextBytes, backwards: bool) -> None:
    """Take out constants that are held."""
    for i in range(attributes.shape[0]):
        length = constants.offsets[i + 1] - constants.offsets[i]
        hashed = np.uint64(0)
        for k in range(length):
            hashed = _extended(hashed, _byte(constants, i, k, backwards))
        entry = _find(state, attributes[i], hashed, length, constants, i, backwards)
        hash_index.remove(state.entries, entry)
        state.entries.keys[entry, LENGTH] = -1
        state.counters[1] += length
        _uncount_length(state, attributes[i], length)


@kernel
def pack(state: Prefixes, data: NDArray[np.uint8]) -> None:
    """Copy the bytes of the constants into `data`, without those that nobody needs."""
    keys = state.entries.keys
    used = np.int64(0)
    for entry in range(state.entries.counters[1]):
        if keys[entry, LENGTH] < 0:
            continue
        offset = keys[entry, OFFSET]
        keys[entry, OFFSET] = used
        for k in range(keys[entry, LENGTH]):
            data[used] = state.data[offset + k]
            used += 1
    state.counters[0], state.counters[1] = used, 0


@kernel
def begins_with(
    state: Prefixes,
    attributes: NDArray[np.int64],
    texts: TextBytes,
    backwards: bool,
    start: int,
    found: Passed,
) -> int:
    """Write the codes of the constants that each string from `start` on begins with.

    Costs a look-up for each length that its attribute's constants have. Returns how many strings were done: fewer
    than all if `found.codes` is full.
    """
    entries, lengths = state.entries, state.lengths
    count = found.offsets[start]
    for i in range(start, attributes.shape[0]):
        attribute = attributes[i]
        size = texts.offsets[i + 1] - texts.offsets[i]
        node = np.int64(state.shortest[attribute]) if attribute < state.shortest.shape[0] else np.int64(-1)
        hashed, reached = np.uint64(0), np.int64(0)
        while node >= 0 and lengths.keys[node, 1] <= size:
            length = lengths.keys[node, 1]
            while reached < length:
                hashed = _extended(hashed, _byte(texts, i, reached, backwards))
                reached += 1
            entry = _find(state, attribute, hashed, length, texts, i, backwards)
            if entry >= 0:
                if count >= found.codes.shape[0]:
                    return i
                found.codes[count] = entries.keys[entry, CODE]
                count += 1
            node = np.int64(state.longer[node])
        found.offsets[i + 1] = count
    return attributes.shape[0]


@helper
def _byte(texts: TextBytes, i: int, k: int, backwards: bool) -> int:
    """Return the byte that is read as number `k` of a string."""
    return texts.data[texts.offsets[i + 1] - 1 - k] if backwards else texts.data[texts.offsets[i] + k]


@wrapping_helper
def _extended(hashed: int, byte: int) -> int:
    """Return the hash of a string with one more byte."""
    mixed = (hashed ^ np.uint64(byte)) + np.uint64(0x9E3779B97F4A7C15)
    mixed = mixed * np.uint64(0xD6E8FEB86659FD93)
    return mixed ^ (mixed >> np.uint64(32))


@helper
def _key(hashed: int) -> int:
    return np.int64(hashed & np.uint64(0x7FFFFFFFFFFFFFFF))


@helper
def _find(
    state: Prefixes, attribute: int, hashed: int, length: int, texts: TextBytes, i: int, backwards: bool
) -> int:
    """Return the entry of the constant that string `i` begins with, of this length and with this hash, or -1."""
    entries = state.entries
    key = _key(hashed)
    entry = np.int64(entries.heads[hash_index.bucket_of(entries, attribute, key, 0)])
    while entry >= 0:
        if (
            entries.keys[entry, 1] == key
            and entries.keys[entry, 0] == attribute
            and entries.keys[entry, LENGTH] == length
        ):
            offset = entries.keys[entry, OFFSET]
            same = True
            for k in range(length):
                same &= state.data[offset + k] == _byte(texts, i, k, backwards)
            if same:
                break
        entry = np.int64(entries.chain[entry])
    return entry


@helper
def _count_length(state: Prefixes, attribute: int, length: int) -> None:
    """Count one more constant of a length; a new length goes into its place among its attribute's."""
    lengths = state.lengths
    node = hash_index.find(lengths, attribute, length, 0)
    if node >= 0:
        state.held[node] += 1
        return
    node = hash_index.insert(lengths, attribute, length, 0)
    state.held[node] = 1
    before = _before(state, attribute, length)
    if before < 0:
        state.longer[node] = state.shortest[attribute]
        state.shortest[attribute] = node
    else:
        state.longer[node] = state.longer[before]
        state.longer[before] = node


@helper
def _uncount_length(state: Prefixes, attribute: int, length: int) -> None:
    lengths = state.lengths
    node = hash_index.find(lengths, attribute, length, 0)
    state.held[node] -= 1
    if state.held[node] > 0:
        return
    before = _before(state, attribute, length)
    if before < 0:
        state.shortest[attribute] = state.longer[node]
    else:
        state.longer[before] = state.longer[node]
    hash_index.remove(lengths, node)


@helper
def _before(state: Prefixes, attribute: int, length: int) -> int:
    """Return the entry of an attribute's longest length below `length`, or -1."""
    before, node = np.int64(-1), np.int64(state.shortest[attribute])
    while node >= 0 and state.lengths.keys[node, 1] < length:
        before = node
        node = np.int64(state.longer[node])
    return before
