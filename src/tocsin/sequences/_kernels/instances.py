"""Instances: created at a node, found by their keys (the AI-index), and released."""

from __future__ import annotations

import numpy as np

from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences._kernels.programs import CurrentEvent
from tocsin.sequences._kernels.values import key_of
from tocsin.sequences.running.state import (
    FOREVER,
    NONE,
    DeathColumn,
    InstanceColumn,
    PlaceColumn,
    State,
    StateCounter,
)
from tocsin.structures import blocks, free_lists, hash_index, linked_lists
from tocsin.structures.blocks import class_of
from tocsin.structures.jit import helper, wrapping_helper

HEAD = 3  # beside a key: its first instance
_SEVERAL = 9  # the kind of a key that is made of several values


@helper
def width_of(state: State, place: int) -> int:
    """Return how many slots an instance at a place has."""
    return np.int64(state.forms.width[state.places.rows[place, PlaceColumn.FORM]])


@wrapping_helper
def duration_of(start: int, end: int) -> int:
    """Return how many ticks there are from a start to an end, both included, or FOREVER if 64 bits overflow."""
    duration = end - start + 1
    return duration if duration > 0 else np.int64(FOREVER)


@wrapping_helper
def _mix(a: int, b: int) -> int:
    mixed = (np.uint64(np.int64(a)) ^ (np.uint64(np.int64(b)) + np.uint64(0x9E3779B97F4A7C15))) * np.uint64(
        0xD6E8FEB86659FD93
    )
    mixed ^= mixed >> np.uint64(29)
    return np.int64(mixed)


@helper
def _key(count: int, kind: int, value: int, key: tuple[int, int]) -> tuple[int, int]:
    """Return the key of the values so far, after one more; without a value there is none."""
    if key[0] == NONE or kind == Tag.MISSING or kind == Tag.OPAQUE:  # noqa: PLR1714 - Numba compiles this to less
        return np.int64(NONE), np.int64(0)
    own = key_of(kind, value)
    return own if count == 1 else (np.int64(_SEVERAL), _mix(_mix(key[1], own[0]), own[1]))


@helper
def find_key(state: State, event: CurrentEvent, node: int) -> int:
    """Return the first instance at a node whose key is that of the event, or NONE."""
    forms = state.forms
    form = np.int64(state.places.rows[node, PlaceColumn.FORM])
    begin, count = np.int64(forms.keys[form]), np.int64(forms.key_count[form])
    key = (np.int64(_SEVERAL), np.int64(0))
    for i in range(begin, begin + count):
        column = np.int64(forms.key_columns[i])
        key = _key(count, event.values[event.row, column, 0], event.values[event.row, column, 1], key)
    if key[0] == NONE:
        return np.int64(NONE)
    entry = hash_index.find(state.instances.keys, np.int64(node), key[0], key[1])
    return state.instances.keys.keys[entry, HEAD] if entry >= 0 else np.int64(NONE)


@helper
def enter_key(state: State, instance: int) -> None:
    """Enter an instance in the index of keys; there must be room."""
    forms, rows, keys = state.forms, state.instances.rows, state.instances.keys
    node = rows[instance, InstanceColumn.NODE]
    form = np.int64(state.places.rows[node, PlaceColumn.FORM])
    begin, count = np.int64(forms.keys[form]), np.int64(forms.key_count[form])
    key = (np.int64(_SEVERAL), np.int64(0))
    slots = state.arena.slots.rows
    for i in range(begin, begin + count):
        at = rows[instance, InstanceColumn.BASE] + np.int64(forms.key_slots[i])
        key = _key(count, slots[at, 0], slots[at, 1], key)
    rows[instance, InstanceColumn.ENTRY] = NONE
    if key[0] == NONE:
        return  # no event can be the next one of this instance
    entry = np.int64(hash_index.find(keys, node, key[0], key[1]))
    if entry < 0:
        entry = np.int64(hash_index.insert(keys, node, key[0], key[1]))
        keys.keys[entry, HEAD] = NONE
    rows[instance, InstanceColumn.ENTRY] = entry
    nexts, previous = rows[:, InstanceColumn.KEY_NEXT], rows[:, InstanceColumn.KEY_PREVIOUS]
    linked_lists.push(nexts, previous, keys.keys[:, HEAD], entry, instance)


@helper
def leave_key(state: State, instance: int) -> None:
    """Remove an instance from the index of keys."""
    rows, keys = state.instances.rows, state.instances.keys
    entry = rows[instance, InstanceColumn.ENTRY]
    if entry < 0:
        return
    nexts, previous = rows[:, InstanceColumn.KEY_NEXT], rows[:, InstanceColumn.KEY_PREVIOUS]
    linked_lists.unlink(nexts, previous, keys.keys[:, HEAD], entry, instance)
    if keys.keys[entry, HEAD] < 0:
        hash_index.remove(keys, entry)
    rows[instance, InstanceColumn.ENTRY] = NONE


@helper
def new_instance(state: State) -> int:
    """Return a free instance; there must be room for it."""
    counters = state.counters
    counters[StateCounter.LIVE] += 1
    links = state.instances.rows[:, InstanceColumn.NEXT]
    return free_lists.take(links, counters, np.int64(StateCounter.FREE), np.int64(StateCounter.TOP))


@helper
def record_death(state: State, instance: int, reason: int, event: int) -> None:
    """Count the death of an instance at its node; `event` is the number of the event at which it died, or NONE."""
    node = state.instances.rows[instance, InstanceColumn.NODE]
    state.places.deaths[node, reason] += 1
    state.places.last_death[node, DeathColumn.REASON] = reason
    state.places.last_death[node, DeathColumn.EVENT] = event


@helper
def place_at(state: State, instance: int, node: int) -> None:
    """Enter an instance, whose slots are written, at its node."""
    places, rows = state.places, state.instances.rows
    rows[instance, InstanceColumn.NODE] = node
    rows[instance, InstanceColumn.TOUCHED] = 0
    nexts, previous = rows[:, InstanceColumn.NEXT], rows[:, InstanceColumn.PREVIOUS]
    linked_lists.push(nexts, previous, places.rows[:, PlaceColumn.FIRST], node, instance)
    places.rows[node, PlaceColumn.WAITING] += 1
    if places.rows[node, PlaceColumn.WAITING] == 1:
        ahead, behind = places.rows[:, PlaceColumn.NEXT_ACTIVE], places.rows[:, PlaceColumn.PREVIOUS_ACTIVE]
        filter_ = np.int64(places.rows[node, PlaceColumn.FILTER])
        linked_lists.push(ahead, behind, state.graph.active, filter_, node)
    rows[instance, InstanceColumn.ENTRY] = NONE
    if state.forms.key_count[places.rows[node, PlaceColumn.FORM]] > 0:
        places.upkeep[node] += 1
        if places.rows[node, PlaceColumn.KEYED]:
            enter_key(state, instance)


@helper
def release(state: State, instance: int) -> None:
    """Remove an instance from its node, and free its memory."""
    places, rows, counters = state.places, state.instances.rows, state.counters
    node = rows[instance, InstanceColumn.NODE]
    leave_key(state, instance)
    nexts, previous = rows[:, InstanceColumn.NEXT], rows[:, InstanceColumn.PREVIOUS]
    linked_lists.unlink(nexts, previous, places.rows[:, PlaceColumn.FIRST], node, instance)
    places.rows[node, PlaceColumn.WAITING] -= 1
    if places.rows[node, PlaceColumn.WAITING] == 0:
        ahead, behind = places.rows[:, PlaceColumn.NEXT_ACTIVE], places.rows[:, PlaceColumn.PREVIOUS_ACTIVE]
        filter_ = np.int64(places.rows[node, PlaceColumn.FILTER])
        linked_lists.unlink(ahead, behind, state.graph.active, filter_, node)
    width = width_of(state, node)
    if width > 0:
        blocks.give(state.arena.slots, rows[instance, InstanceColumn.BASE], class_of(width))
    if rows[instance, InstanceColumn.TOUCHED] > 0:
        state.instances.touched[rows[instance, InstanceColumn.TOUCHED] - 1] = NONE
    rows[instance, InstanceColumn.NODE] = NONE
    free_lists.give(nexts, counters, np.int64(StateCounter.FREE), instance)
    counters[StateCounter.LIVE] -= 1
