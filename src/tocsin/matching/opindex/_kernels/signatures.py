"""Where in a list a predicate lies, and the bits that it sets in the signature there (OpIndex, 4.2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import FIELDS
from tocsin.matching.opindex.state import EQ, LOG_BITS, SIGNED, STRIKE, State
from tocsin.structures.jit import helper, wrapping_helper

_LOG: Final = (1 << LOG_BITS) - 1


@helper
def segment_at(place: int, list_: int) -> int:
    """Return the segment of a list for a place."""
    return (list_ >> LOG_BITS) + (place & ((np.int64(1) << (list_ & _LOG)) - 1))


@helper
def other_place(field: int) -> int:
    """Return the place of predicates on a field: one for all fields of an attribute."""
    return field // FIELDS


@wrapping_helper
def equal_place(field: int, key: int) -> int:
    """Return the place of predicates that ask for a key."""
    mixed = (np.uint64(field) + np.uint64(1)) * np.uint64(0xD6E8FEB86659FD93)
    mixed = (mixed ^ np.uint64(np.int64(key))) * np.uint64(0x9E3779B97F4A7C15)
    mixed ^= mixed >> np.uint64(32)  # of a whole number's key, only the upper bits differ
    return np.int64((mixed * np.uint64(0xD6E8FEB86659FD93)) >> np.uint64(32))


@helper
def place_of(kind: int, field: int, key: int) -> int:
    return equal_place(field, key) if kind in (EQ, STRIKE) else other_place(field)


@wrapping_helper
def equal_bits(field: int, key: int) -> int:
    """Return the bits of a signature that tell that a key is asked for."""
    mixed = (np.uint64(field) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ np.uint64(np.int64(key))) * np.uint64(0xD6E8FEB86659FD93)
    return _three_bits(mixed ^ (mixed >> np.uint64(32)))


@wrapping_helper
def other_bits(field: int) -> int:
    """Return the bits of a signature that tell that a field is asked for."""
    mixed = (np.uint64(field) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    return _three_bits(mixed ^ (mixed >> np.uint64(32)))


@wrapping_helper
def _three_bits(mixed: int) -> int:
    # One bit each, as the paper has it, lets an eighth of all pairs pass where eight predicates share a
    # signature; three bits let a thirtieth pass, and of four predicates one pair in two hundred.
    spread = mixed * np.uint64(0xD6E8FEB86659FD93)
    one = np.uint64(1)
    return (
        (one << (spread >> np.uint64(58)))
        | (one << ((spread >> np.uint64(52)) & np.uint64(63)))
        | (one << ((spread >> np.uint64(46)) & np.uint64(63)))
    )


@helper
def bits_of(state: State, kind: int, field: int, key: int) -> int:
    if state.settings[SIGNED] == 0:
        return ~np.uint64(0)
    return equal_bits(field, key) if kind in (EQ, STRIKE) else other_bits(field)
