"""Slots and size words, which are several small integers in one."""

from __future__ import annotations

from typing import Final

from tocsin.matching.k_index import state as arrays
from tocsin.structures.jit import helper

_OCCURRENCE: Final = (1 << arrays.OCCURRENCE_BITS) - 1
_KIND: Final = (1 << arrays.KIND_BITS) - 1
_SIZE: Final = (1 << arrays.SIZE_BITS) - 1
_SIZE_WORD: Final = (1 << arrays.CLASS_SHIFT) - 1
_CLAUSE: Final = (1 << (arrays.CLASS_SHIFT - arrays.CLAUSE_SHIFT)) - 1


@helper
def slot_of(field: int, kind: int, nth: int) -> int:
    """Return the slot of a key."""
    return (((field << arrays.KIND_BITS) | kind) << arrays.OCCURRENCE_BITS) | nth


@helper
def field_of_slot(slot: int) -> int:
    """Return the field of a slot."""
    return slot >> (arrays.OCCURRENCE_BITS + arrays.KIND_BITS)


@helper
def kind_of_slot(slot: int) -> int:
    """Return the kind of a slot."""
    return (slot >> arrays.OCCURRENCE_BITS) & _KIND


@helper
def nth_of_slot(slot: int) -> int:
    """Return the number of a slot among those of its field and kind."""
    return slot & _OCCURRENCE


@helper
def size_word_of(word: int) -> int:
    """Return the size word of a list, without the class of its block."""
    return word & _SIZE_WORD


@helper
def clause_of(size_word: int) -> int:
    """Return the clause that the entries of a list are in."""
    return (size_word >> arrays.CLAUSE_SHIFT) & _CLAUSE


@helper
def place_of_size(size_word: int) -> int:
    """Return the position of a size in arrays by size: even for conjunctions, odd for clausal expressions."""
    return 2 * (size_word & _SIZE) + (size_word & arrays.CLAUSAL != 0)
