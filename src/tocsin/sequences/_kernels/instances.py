"""Instances: made at a node, found by their keys, and taken away."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tocsin.sequences._kernels.values import key_kind, key_value
from tocsin.sequences.running.state import (
    BASE,
    ENTRY,
    FILTER,
    FIRST,
    FOREVER,
    FORM,
    FREE,
    KEY_NEXT,
    KEY_PREVIOUS,
    KEYED,
    LIVE,
    NEXT,
    NEXT_ACTIVE,
    NODE,
    NONE,
    PREVIOUS,
    PREVIOUS_ACTIVE,
    TOP,
    TOUCHED,
    WAITING,
    State,
)
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, wrapping_helper

HEAD = 3  # beside a key: its first instance
_MISSING = 0
_SEVERAL = 9  # the kind of a key that is made of several values


@helper
def width_of(state: State, place: int) -> int:
    """Return how many slots an instance at a place has."""
    return np.int64(state.forms.width[state.places.rows[place, FORM]])


@wrapping_helper
def duration_of(start: int, end: int) -> int:
    """Return how many ticks there are from the start of the first to the end of the last, or the most there can be."""
    duration = end - start + 1
    return duration if duration > 0 else np.int64(FOREVER)


@wrapping_helper
def _mixed(a: int, b: int) -> int:
    mixed = (np.uint64(np.int64(a)) ^ (np.uint64(np.int64(b)) + np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xD6E8FEB86659FD93
    )
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed)


@helper
def _key(count: int, kind: int, value: int, key: tuple[int, int]) -> tuple[int, int]:
    """Return the key of the values so far, after one more; without a value there is none."""
    if key[0] == NONE or kind == _MISSING:
        return np.int64(NONE), np.int64(0)
    if count == 1:
        return key_kind(kind, value), key_value(kind, value)
    return np.int64(_SEVERAL), _mixed(_mixed(key[1], key_kind(kind, value)), key_value(kind, value))


@helper
def find_key(state: State, values: NDArray[np.int64], arrival: int, node: int) -> int:
    """Return the first instance at a node whose key is that of an event, or NONE."""
    forms = state.forms
    form = np.int64(state.places.rows[node, FORM])
    begin, count = np.int64(forms.keys[form]), np.int64(forms.key_count[form])
    key = (np.int64(_SEVERAL), np.int64(0))
    for i in range(begin, begin + count):
        column = np.int64(forms.key_columns[i])
        key = _key(count, values[arrival, column, 0], values[arrival, column, 1], key)
    if key[0] == NONE:
        return np.int64(NONE)
    entry = hash_index.find(state.instances.keys, np.int64(node), key[0], key[1])
    return state.instances.keys.keys[entry, HEAD] if entry >= 0 else np.int64(NONE)


@helper
def enter_key(state: State, instance: int) -> None:
    """Make an instance to be found by its key; there must be room."""
    forms, rows, keys = state.forms, state.instances.rows, state.instances.keys
    node = rows[instance, NODE]
    form = np.int64(state.places.rows[node, FORM])
    begin, count = np.int64(forms.keys[form]), np.int64(forms.key_count[form])
    key = (np.int64(_SEVERAL), np.int64(0))
    slots = state.arena.slots.rows
    for i in range(begin, begin + count):
        at = rows[instance, BASE] + np.int64(forms.key_slots[i])
        key = _key(count, slots[at, 0], slots[at, 1], key)
    rows[instance, ENTRY] = NONE
    if key[0] == NONE:
        return  # no event ever has it for its next
    entry = np.int64(hash_index.find(keys, node, key[0], key[1]))
    if entry < 0:
        entry = np.int64(hash_index.insert(keys, node, key[0], key[1]))
        keys.keys[entry, HEAD] = NONE
    head = keys.keys[entry, HEAD]
    rows[instance, ENTRY] = entry
    rows[instance, KEY_NEXT] = head
    rows[instance, KEY_PREVIOUS] = NONE
    if head >= 0:
        rows[head, KEY_PREVIOUS] = instance
    keys.keys[entry, HEAD] = instance


@helper
def leave_key(state: State, instance: int) -> None:
    """Make an instance no longer to be found by its key."""
    rows, keys = state.instances.rows, state.instances.keys
    entry = rows[instance, ENTRY]
    if entry < 0:
        return
    following, before = rows[instance, KEY_NEXT], rows[instance, KEY_PREVIOUS]
    if following >= 0:
        rows[following, KEY_PREVIOUS] = before
    if before >= 0:
        rows[before, KEY_NEXT] = following
    else:
        keys.keys[entry, HEAD] = following
        if following < 0:
            hash_index.remove(keys, entry)
    rows[instance, ENTRY] = NONE


@helper
def new_instance(state: State) -> int:
    """Return an instance that nobody uses; there must be room for it."""
    counters, rows = state.counters, state.instances.rows
    instance = counters[FREE]
    if instance >= 0:
        counters[FREE] = rows[instance, NEXT]
    else:
        instance = counters[TOP]
        counters[TOP] += 1
    counters[LIVE] += 1
    return instance


@helper
def place_at(state: State, instance: int, node: int) -> None:
    """Enter an instance, whose slots are written, at its node."""
    places, rows = state.places, state.instances.rows
    rows[instance, NODE] = node
    rows[instance, TOUCHED] = 0
    head = np.int64(places.rows[node, FIRST])
    rows[instance, NEXT], rows[instance, PREVIOUS] = head, NONE
    if head >= 0:
        rows[head, PREVIOUS] = instance
    places.rows[node, FIRST] = instance
    places.rows[node, WAITING] += 1
    if places.rows[node, WAITING] == 1:
        filter_ = np.int64(places.rows[node, FILTER])
        following = np.int64(state.graph.active[filter_])
        places.rows[node, NEXT_ACTIVE], places.rows[node, PREVIOUS_ACTIVE] = following, NONE
        if following >= 0:
            places.rows[following, PREVIOUS_ACTIVE] = node
        state.graph.active[filter_] = node
    rows[instance, ENTRY] = NONE
    if state.forms.key_count[places.rows[node, FORM]] > 0:
        places.upkeep[node] += 1
        if places.rows[node, KEYED]:
            enter_key(state, instance)


@helper
def release(state: State, instance: int) -> None:
    """Take an instance away from its node, and give back its memory."""
    places, rows, counters = state.places, state.instances.rows, state.counters
    node = rows[instance, NODE]
    leave_key(state, instance)
    following, before = rows[instance, NEXT], rows[instance, PREVIOUS]
    if following >= 0:
        rows[following, PREVIOUS] = before
    if before >= 0:
        rows[before, NEXT] = following
    else:
        places.rows[node, FIRST] = following
    places.rows[node, WAITING] -= 1
    if places.rows[node, WAITING] == 0:
        ahead, behind = np.int64(places.rows[node, NEXT_ACTIVE]), np.int64(places.rows[node, PREVIOUS_ACTIVE])
        if ahead >= 0:
            places.rows[ahead, PREVIOUS_ACTIVE] = behind
        if behind >= 0:
            places.rows[behind, NEXT_ACTIVE] = ahead
        else:
            state.graph.active[places.rows[node, FILTER]] = ahead
    width = width_of(state, node)
    if width > 0:
        blocks.give(state.arena.slots, rows[instance, BASE], class_of(width))
    if rows[instance, TOUCHED] > 0:
        state.instances.touched[rows[instance, TOUCHED] - 1] = NONE
    rows[instance, NODE] = NONE
    rows[instance, NEXT] = counters[FREE]
    counters[FREE] = instance
    counters[LIVE] -= 1
