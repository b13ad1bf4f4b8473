"""The segment of a list that a predicate goes to, and the bits that it sets in the segment's signature (OpIndex, §4.2)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.encoding.codes import FIELDS
from tocsin.matching.opindex.state import EQ, LOG, LOG_BITS, REFUTATION, Setting, State
from tocsin.structures.jit import helper, wrapping_helper


@helper
def is_by_key(kind: int) -> bool:
    """Tell whether lists of a kind have segments by key."""
    return kind in (EQ, REFUTATION)


@helper
def segment_at(hashed: int, list_: int) -> int:
    """Return the segment of a list for a hash."""
    return (list_ >> LOG_BITS) + (hashed & ((np.int64(1) << (list_ & LOG)) - 1))


@helper
def segment_hash(kind: int, field: int, key: int) -> int:
    """Return the hash of a predicate: of its field and key, or its attribute for lists that are not by key."""
    return key_hash(field, key) if is_by_key(kind) else field // FIELDS


@wrapping_helper
def key_hash(field: int, key: int) -> int:
    """Return the hash of predicates that ask for a key."""
    mixed = (np.uint64(field) + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
    mixed = (mixed ^ np.uint64(np.int64(key))) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)  # keys of small whole numbers differ in their upper bits only
    return np.int64((mixed * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(32))


@helper
def signature_bits(state: State, kind: int, field: int, key: int) -> int:
    """Return the bits that a predicate sets in its segment's signature."""
    if state.settings[Setting.SIGNED] == 0:
        return ~np.uint64(0)
    return key_bits(field, key) if is_by_key(kind) else field_bits(field)


@wrapping_helper
def key_bits(field: int, key: int) -> int:
    """Return the signature bits of a field and a key."""
    mixed = (np.uint64(field) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ np.uint64(np.int64(key))) * np.uint64(0xD6E8FEB86659FD93)
    return _three_bits(mixed ^ (mixed >> np.uint64(32)))


@wrapping_helper
def field_bits(field: int) -> int:
    """Return the signature bits of a field."""
    mixed = (np.uint64(field) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return _three_bits(mixed ^ (mixed >> np.uint64(32)))


@wrapping_helper
def _three_bits(mixed: int) -> int:
    """Return a word with up to three bits set, chosen by a hash."""
    # One bit each, as in the paper, lets an eighth of all pairs pass where eight predicates share a signature; three
    # bits let a thirtieth pass, and one pair in two hundred where four predicates share it.
    spread = mixed * np.uint64(0xD6E8FEB86659FD93)
    one = np.uint64(1)
    return (
        (one << (spread >> np.uint64(58)))
        | (one << ((spread >> np.uint64(52)) & np.uint64(63)))
        | (one << ((spread >> np.uint64(46)) & np.uint64(63)))
    )
