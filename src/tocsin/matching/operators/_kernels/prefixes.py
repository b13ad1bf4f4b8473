"""The constants that a string begins or ends with: hashed prefixes, one look-up for each length of a constant.

A suffix is a prefix of the string read backwards; `backwards` selects that. The bytes of a hit are compared, since two strings
may have one hash.
"""

from __future__ import annotations

from enum import IntEnum
from typing import NamedTuple

import numpy as np

from tocsin.matching.operators.index import PassedTests, TextBytes
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int32s, Int64s, UInt8s
from tocsin.structures.hash_index import HashCounter, HashIndex
from tocsin.structures.jit import helper, kernel, wrapping_helper


class Constant(IntEnum):
    """Columns of a constant's entry."""

    ATTRIBUTE = 0
    HASH = 1
    LENGTH = 2  # -1 if the entry is free
    CODE = 3
    OFFSET = 4  # of its first byte


class Bytes(IntEnum):
    """Positions in the counters of bytes."""

    USED = 0
    IDLE = 1  # of removed constants


class Prefixes(NamedTuple):
    """The constants of all attributes, and their lengths."""

    entries: HashIndex  # Constant; its key is the attribute and the hash
    data: UInt8s  # [bytes] the constants, in the order in which their bytes are read
    lengths: HashIndex  # keys: attribute, length
    constants: Int32s  # by entry of `lengths`: the number of its constants
    longer: Int32s  # by entry of `lengths`: the attribute's next longer one, or -1
    shortest: Int32s  # by attribute: the entry of its shortest length, or -1
    bytes: Int64s  # [Bytes] of `data`


@kernel
def insert(
    state: Prefixes, attributes: Int64s, codes: Int64s, constants: TextBytes, backwards: bool, start: int
) -> int:
    """Insert constants from `start` on; return the number done, fewer than all if there was no room."""
    entries, lengths = state.entries, state.lengths
    for i in range(start, codes.shape[0]):
        length = constants.offsets[i + 1] - constants.offsets[i]
        used = state.bytes[Bytes.USED]
        if (
            not hash_index.has_room(entries, 1)
            or not hash_index.has_room(lengths, 1)
            or used + length > state.data.shape[0]
        ):
            return i
        hashed = np.uint64(0)
        for k in range(length):
            byte = _byte(constants, i, k, backwards)
            state.data[used + k] = byte
            hashed = _extended(hashed, byte)
        entry = hash_index.insert(entries, attributes[i], _key(hashed), 0)
        entries.keys[entry, Constant.LENGTH], entries.keys[entry, Constant.CODE] = length, codes[i]
        entries.keys[entry, Constant.OFFSET] = used
        state.bytes[Bytes.USED] += length
        _count_length(state, attributes[i], length)
    return codes.shape[0]


@kernel
def remove(state: Prefixes, attributes: Int64s, constants: TextBytes, backwards: bool) -> None:
    """Remove constants; each must be present."""
    for i in range(attributes.shape[0]):
        length = constants.offsets[i + 1] - constants.offsets[i]
        hashed = np.uint64(0)
        for k in range(length):
            hashed = _extended(hashed, _byte(constants, i, k, backwards))
        entry = _find(state, attributes[i], hashed, length, constants, i, backwards)
        hash_index.remove(state.entries, entry)
        state.entries.keys[entry, Constant.LENGTH] = -1
        state.bytes[Bytes.IDLE] += length
        _uncount_length(state, attributes[i], length)


@kernel
def pack(state: Prefixes, data: UInt8s) -> None:
    """Copy the bytes of the constants into `data`, without those of removed ones."""
    keys = state.entries.keys
    used = np.int64(0)
    for entry in range(state.entries.counters[HashCounter.TOP]):
        if keys[entry, Constant.LENGTH] < 0:
            continue
        offset = keys[entry, Constant.OFFSET]
        keys[entry, Constant.OFFSET] = used
        for k in range(keys[entry, Constant.LENGTH]):
            data[used] = state.data[offset + k]
            used += 1
    state.bytes[Bytes.USED], state.bytes[Bytes.IDLE] = used, 0


@kernel
def begins_with(
    state: Prefixes, attributes: Int64s, texts: TextBytes, backwards: bool, start: int, found: PassedTests
) -> int:
    """Write the codes of the constants that each string from `start` on begins with.

    Costs a look-up for each length of its attribute's constants. Return the number of strings done, fewer than all if
    `found.codes` is full.
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
                found.codes[count] = entries.keys[entry, Constant.CODE]
                count += 1
            node = np.int64(state.longer[node])
        found.offsets[i + 1] = count
    return attributes.shape[0]


@helper
def _byte(texts: TextBytes, i: int, k: int, backwards: bool) -> int:
    """Return byte `k` of a string in reading order."""
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
    """Return the entry of the constant of this length and hash that string `i` begins with, or -1."""
    entries = state.entries
    key = _key(hashed)
    entry = np.int64(entries.heads[hash_index.bucket_of(entries, attribute, key, 0)])
    while entry >= 0:
        if (
            entries.keys[entry, Constant.HASH] == key
            and entries.keys[entry, Constant.ATTRIBUTE] == attribute
            and entries.keys[entry, Constant.LENGTH] == length
        ):
            offset = entries.keys[entry, Constant.OFFSET]
            same = True
            for k in range(length):
                same &= state.data[offset + k] == _byte(texts, i, k, backwards)
            if same:
                break
        entry = np.int64(entries.chain[entry])
    return entry


@helper
def _count_length(state: Prefixes, attribute: int, length: int) -> None:
    """Count one more constant of a length; a new length is inserted into its attribute's ascending list."""
    lengths = state.lengths
    node = hash_index.find(lengths, attribute, length, 0)
    if node >= 0:
        state.constants[node] += 1
        return
    node = hash_index.insert(lengths, attribute, length, 0)
    state.constants[node] = 1
    before = _before(state, attribute, length)
    if before < 0:
        state.longer[node] = state.shortest[attribute]
        state.shortest[attribute] = node
    else:
        state.longer[node] = state.longer[before]
        state.longer[before] = node


@helper
def _uncount_length(state: Prefixes, attribute: int, length: int) -> None:
    """Count one constant fewer of a length; a length that has none left is unlinked."""
    lengths = state.lengths
    node = hash_index.find(lengths, attribute, length, 0)
    state.constants[node] -= 1
    if state.constants[node] > 0:
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
