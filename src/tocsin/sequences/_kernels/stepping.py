"""One event after another: which instances it concerns, which edges they take, and what comes of it.

An event is first only looked at: the instances it is the next event of, and the edges that they and the start nodes
can take, are listed. Then there is room for all that follows, or the kernel returns, with nothing changed, to ask for
it. What is made in an epoch cannot be seen by its other events, for it ends with it; what is used up in it can, until
the epoch is over.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.sequences._kernels.instances import duration_of, find_key, new_instance, place_at, release
from tocsin.sequences._kernels.programs import run
from tocsin.sequences.running.state import (
    ALWAYS,
    ASSIGN,
    BASE,
    BIRTH,
    CONSTANTS,
    END,
    EPOCH,
    EXPIRED,
    FEEDING,
    FEEDS,
    FIRST,
    FORM,
    GUARD,
    KEY_NEXT,
    KEYED,
    LINKS,
    LOOKED,
    MADE,
    MATCHED,
    NEED_AFFECTED,
    NEED_EXPIRED,
    NEED_INSTANCES,
    NEED_KEYS,
    NEED_LINKS,
    NEED_MOVES,
    NEED_OUTPUT_SLOTS,
    NEED_OUTPUTS,
    NEED_SLOTS,
    NEED_TOUCHED,
    NEXT,
    NEXT_ACTIVE,
    NEXT_ALWAYS,
    NEXT_SATISFIED,
    NODE,
    NONE,
    NUMBER,
    OUTPUT_ROWS,
    OUTPUTS,
    PLACE,
    REBIND,
    REBIND_ASSIGN,
    REST,
    SATISFIED,
    SOURCE,
    STAMP,
    START,
    STOPPED,
    TEST,
    TOP,
    TOUCHED,
    TOUCHED_COUNT,
    VISITED,
    WAITING,
    State,
)
from tocsin.structures import blocks, hash_index
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, kernel, prefetch

DONE: Final = 0
ROOM: Final = 1  # there is more to be made than there is room for
FED: Final = 2  # what came out is an event itself, to be taken before the epoch ends
_MISSING: Final = 0


class Times(NamedTuple):
    """When arrivals started and ended, and when the first event ended that each came of."""

    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    births: NDArray[np.int64]


class Held(NamedTuple):
    """The numbers of the conditions that each arrival satisfies: those of i are from `offsets[i]` on."""

    offsets: NDArray[np.int64]
    ids: NDArray[np.int64]


class At(NamedTuple):
    """The event at hand."""

    arrival: int
    stream: int
    start: int
    end: int
    number: int


@helper
def _touch(state: State, instance: int, reason: int, number: int, when: int) -> None:
    """Let an instance go when the epoch ends; a reason tells that nothing comes of it."""
    rows, counters = state.instances.rows, state.counters
    if rows[instance, TOUCHED] > 0:
        return
    state.instances.touched[counters[TOUCHED_COUNT]] = instance
    counters[TOUCHED_COUNT] += 1
    rows[instance, TOUCHED] = counters[TOUCHED_COUNT]
    if reason >= 0:
        node = rows[instance, NODE]
        state.places.deaths[node, reason] += 1
        last = state.places.last_death
        last[node, 0], last[node, 1] = reason, number
        last[node, 2], last[node, 3] = when, rows[instance, START]


@kernel
def end_epoch(state: State) -> None:
    """Release the instances that were used up."""
    for i in range(state.counters[TOUCHED_COUNT]):
        instance = state.instances.touched[i]
        if instance >= 0:
            state.instances.rows[instance, TOUCHED] = 0
            release(state, instance)
    state.counters[TOUCHED_COUNT] = 0


@helper
def _mark(state: State, ids: NDArray[np.int64], begin: int, finish: int, moves: int) -> int:
    """Note the edges whose static part holds, with the node they leave; those of start nodes are listed at once."""
    places, list_ = state.places, state.scratch.moves
    stamp = state.counters[STAMP]
    for i in range(begin, finish):  # all are asked for before the first is looked at
        prefetch(places.rows, (ids[i] >> 1) * PLACE)
    for i in range(begin, finish):
        source = np.int64(places.rows[ids[i] >> 1, SOURCE])
        if source >= 0:
            prefetch(places.rows, source * PLACE)
    for i in range(begin, finish):
        place = ids[i] >> 1
        if ids[i] & 1:
            places.rebound[place] = stamp
            continue
        source = np.int64(places.rows[place, SOURCE])
        if source < 0:
            if moves < list_.shape[0]:
                list_[moves, 0], list_[moves, 1], list_[moves, 2] = NONE, place, 0
            moves += 1
        elif places.rows[source, WAITING] > 0:
            if places.stamp[source] != stamp:
                places.stamp[source] = stamp
                places.rows[source, SATISFIED] = NONE
            places.rows[place, NEXT_SATISFIED] = places.rows[source, SATISFIED]
            places.rows[source, SATISFIED] = place
    state.counters[MATCHED] += finish - begin
    return moves


@helper
def _ways(state: State, affected: int, instance: int, moves: int) -> int:
    """List the edges that an instance might take: those of which the static part holds."""
    places, list_ = state.places, state.scratch.moves
    node = state.instances.rows[instance, NODE]
    stamp = state.counters[STAMP]
    rebinds = state.forms.rebinds[places.rows[node, FORM]]
    if rebinds == 1 or (rebinds == 2 and places.rebound[node] == stamp):
        if moves < list_.shape[0]:
            list_[moves, 0], list_[moves, 1], list_[moves, 2] = affected, node, 1
        moves += 1
    place = np.int64(places.rows[node, ALWAYS])
    while place >= 0:
        if moves < list_.shape[0]:
            list_[moves, 0], list_[moves, 1], list_[moves, 2] = affected, place, 0
        moves += 1
        place = np.int64(places.rows[place, NEXT_ALWAYS])
    if places.stamp[node] == stamp:
        place = np.int64(places.rows[node, SATISFIED])
        while place >= 0:
            if moves < list_.shape[0]:
                list_[moves, 0], list_[moves, 1], list_[moves, 2] = affected, place, 0
            moves += 1
            place = np.int64(places.rows[place, NEXT_SATISFIED])
    return moves


@helper
def _look_at(
    state: State, values: NDArray[np.int64], at: At, node: int, affected: int, expired: int
) -> tuple[int, int]:
    """List the instances at a node that the event is the next one of, and those that have lasted too long."""
    places, forms, rows, scratch = state.places, state.forms, state.instances.rows, state.scratch
    keyed = places.rows[node, KEYED] > 0
    form = np.int64(places.rows[node, FORM])
    instance = find_key(state, values, at.arrival, node) if keyed else np.int64(places.rows[node, FIRST])
    program = REST if keyed and forms.key_count[form] == 1 else GUARD
    looked, before = np.int64(0), affected
    while instance >= 0:
        following = rows[instance, KEY_NEXT] if keyed else rows[instance, NEXT]
        looked += 1
        if rows[instance, END] < at.start:
            duration = duration_of(rows[instance, START], at.end)
            if duration > places.longest[node]:
                if expired < scratch.expired.shape[0]:
                    scratch.expired[expired] = instance
                expired += 1
            elif run(
                state, values, at.arrival, rows[instance, BASE], forms.programs[form, program],
                np.int64(places.rows[node, CONSTANTS]), duration, at.number, state.outputs.slots, np.int64(0),
            ):  # fmt: skip
                if affected < scratch.affected.shape[0]:
                    scratch.affected[affected] = instance
                affected += 1
        instance = following
    state.counters[VISITED] += 1
    state.counters[LOOKED] += looked
    if keyed:
        # What was not looked at, less the look-up; without the index, what would not have been.
        places.spared[node] += np.int64(places.rows[node, WAITING]) - looked - 1
    elif forms.key_count[form] > 0:
        places.spared[node] += looked - (affected - before) - 1
    return affected, expired


@helper
def _affected(
    state: State,
    values: NDArray[np.int64],
    at: At,
    ids: NDArray[np.int64],
    begin: int,
    finish: int,
) -> tuple[int, int]:
    """List the instances that the event is the next one of, and return how many they are, and how many expired.

    They are at the nodes whose filter has no static part, and at those of the filters that hold.
    """
    affected, expired = np.int64(0), np.int64(0)
    filter_ = np.int64(state.graph.stream_filter[at.stream])
    nth = begin
    while True:
        node = np.int64(state.graph.active[filter_])
        while node >= 0:
            affected, expired = _look_at(state, values, at, node, affected, expired)
            node = np.int64(state.places.rows[node, NEXT_ACTIVE])
        if nth >= finish:
            return affected, expired
        filter_ = ids[nth]
        nth += 1


@helper
def _listed(state: State, at: At, ids: NDArray[np.int64], begin: int, finish: int, affected: int) -> int:
    """List the edges that start nodes and affected instances might take, and return how many they are."""
    places, list_ = state.places, state.scratch.moves
    listed = _mark(state, ids, begin, finish, np.int64(0))
    place = np.int64(state.graph.stream_always[at.stream])
    while place >= 0:
        if listed < list_.shape[0]:
            list_[listed, 0], list_[listed, 1], list_[listed, 2] = NONE, place, 0
        listed += 1
        place = np.int64(places.rows[place, NEXT_ALWAYS])
    for i in range(affected):
        listed = _ways(state, i, state.scratch.affected[i], listed)
    return listed


@helper
def _taken(state: State, values: NDArray[np.int64], at: At, listed: int) -> int:
    """Keep those of the listed edges that can be taken, and return how many they are."""
    places, list_, rows = state.places, state.scratch.moves, state.instances.rows
    moves = np.int64(0)
    for i in range(listed):
        which, place, again = list_[i, 0], list_[i, 1], list_[i, 2]
        base, began = np.int64(0), at.start
        if which >= 0:
            instance = state.scratch.affected[which]
            base, began = rows[instance, BASE], rows[instance, START]
        form = np.int64(places.rows[place, FORM])
        if run(
            state, values, at.arrival, base, state.forms.programs[form, REBIND if again else TEST],
            np.int64(places.rows[place, CONSTANTS]), duration_of(began, at.end), at.number, state.outputs.slots, np.int64(0),
        ):  # fmt: skip
            list_[moves, 0], list_[moves, 1], list_[moves, 2] = which, place, again
            moves += 1
    return moves


@helper
def _has_room(state: State, moves: int, gone: int) -> bool:
    """Tell whether there is room for what becomes of so many moves; how much is needed stays written."""
    forms, counters, needs = state.forms, state.counters, state.needs
    made, wide, told, written = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(moves):
        form = np.int64(state.places.rows[state.scratch.moves[i, 1], FORM])
        width = np.int64(forms.width[form])
        if forms.is_end[form]:
            told += 1
            written += width
        else:
            made += 1
            wide += size_of(class_of(width)) if width > 0 else np.int64(0)
    needs[NEED_TOUCHED] = counters[TOUCHED_COUNT] + gone
    needs[NEED_INSTANCES] = counters[TOP] + made
    needs[NEED_SLOTS] = wide
    needs[NEED_OUTPUTS] = counters[OUTPUTS] + told
    needs[NEED_OUTPUT_SLOTS] = counters[OUTPUT_ROWS] + written
    needs[NEED_LINKS] = counters[LINKS] + 2 * moves
    needs[NEED_KEYS] = made
    slots = state.arena.slots
    return (
        needs[NEED_TOUCHED] <= state.instances.touched.shape[0]
        and needs[NEED_INSTANCES] <= state.instances.rows.shape[0]
        and slots.top[0] + wide <= slots.rows.shape[0]
        and needs[NEED_OUTPUTS] <= state.outputs.rows.shape[0]
        and needs[NEED_OUTPUT_SLOTS] <= state.outputs.slots.shape[0]
        and needs[NEED_LINKS] <= state.arena.links.shape[0]
        and hash_index.has_room(state.instances.keys, made)
    )


@helper
def _let_go(state: State, at: At, affected: int, expired: int, moves: int) -> None:
    """Let the affected and the expired instances go; those that take no edge die."""
    scratch = state.scratch
    for i in range(expired):
        _touch(state, scratch.expired[i], EXPIRED, at.number, at.end)
    taken = np.int64(0)
    for i in range(affected):
        while taken < moves and scratch.moves[taken, 0] < i:
            taken += 1
        stays = taken < moves and scratch.moves[taken, 0] == i
        _touch(state, scratch.affected[i], NONE if stays else STOPPED, at.number, at.end)


@helper
def _is_hopeless(state: State, form: int, base: int) -> bool:
    """Tell whether an instance waits for a value that it has none of, so that no event can be its next."""
    begin = np.int64(state.forms.keys[form])
    for i in range(begin, begin + np.int64(state.forms.key_count[form])):
        if state.arena.slots.rows[base + np.int64(state.forms.key_slots[i]), 0] == _MISSING:
            return True
    return False


@helper
def _make(state: State, values: NDArray[np.int64], at: At, birth: int, move: int) -> None:
    """Make what becomes of one move: an instance at the next node, or an output."""
    places, forms, counters, rows = state.places, state.forms, state.counters, state.instances.rows
    outputs, slots = state.outputs, state.arena.slots
    which, place, again = (
        state.scratch.moves[move, 0], state.scratch.moves[move, 1], state.scratch.moves[move, 2],
    )  # fmt: skip
    base, began = np.int64(0), at.start
    if which >= 0:
        instance = state.scratch.affected[which]
        base, began, birth = rows[instance, BASE], rows[instance, START], rows[instance, BIRTH]
    form = np.int64(places.rows[place, FORM])
    width = np.int64(forms.width[form])
    is_end = forms.is_end[form] > 0
    first = counters[OUTPUT_ROWS]
    if not is_end:
        first = blocks.take(slots, class_of(width)) if width > 0 else np.int64(0)
    run(
        state, values, at.arrival, base, forms.programs[form, REBIND_ASSIGN if again else ASSIGN],
        np.int64(places.rows[place, CONSTANTS]), duration_of(began, at.end), at.number,
        outputs.slots if is_end else slots.rows, first,
    )  # fmt: skip
    if is_end:
        row = counters[OUTPUTS]
        outputs.rows[row, 0], outputs.rows[row, 1], outputs.rows[row, 2] = place, at.arrival, began
        outputs.rows[row, 3], outputs.rows[row, 4], outputs.rows[row, 5] = birth, first, at.end
        counters[OUTPUTS] += 1
        counters[OUTPUT_ROWS] += width
        counters[FEEDING] |= np.int64(places.rows[place, FEEDS] > 0)
    elif _is_hopeless(state, form, first):
        if width > 0:
            blocks.give(slots, first, class_of(width))
    else:
        fresh = new_instance(state)
        rows[fresh, START], rows[fresh, END], rows[fresh, BIRTH] = began, at.end, birth
        rows[fresh, BASE] = first
        place_at(state, fresh, place)
        counters[MADE] += 1


@kernel
def step(
    state: State,
    values: NDArray[np.int64],
    times: Times,
    streams: NDArray[np.int32],
    edges: Held,
    filters: Held,
    begin: int,
) -> tuple[int, int]:
    """Take the arrivals from `begin` on; return why it ends, and which arrival is to be taken next.

    `values` are the arrivals' columns, `streams` their streams. `edges` are those whose static part holds: twice the
    place that an edge enters, and one more for its rebind edge. `filters` are those that hold.
    """
    counters, needs, scratch = state.counters, state.needs, state.scratch
    count = times.ends.shape[0]
    for arrival in range(begin, count):
        end = times.ends[arrival]
        if end > counters[EPOCH]:
            if counters[FEEDING]:
                return np.int64(FED), np.int64(arrival)
            end_epoch(state)
            counters[EPOCH] = end
        stream = np.int64(streams[arrival])
        if stream < 0:
            continue
        at = At(np.int64(arrival), stream, times.starts[arrival], end, counters[NUMBER] + arrival)
        counters[STAMP] += 1
        needs[:] = 0
        affected, expired = _affected(
            state, values, at, filters.ids, filters.offsets[arrival], filters.offsets[arrival + 1]
        )
        if affected > scratch.affected.shape[0] or expired > scratch.expired.shape[0]:
            needs[NEED_AFFECTED], needs[NEED_EXPIRED] = affected, expired
            return np.int64(ROOM), np.int64(arrival)
        listed = _listed(state, at, edges.ids, edges.offsets[arrival], edges.offsets[arrival + 1], affected)
        if listed > scratch.moves.shape[0]:
            needs[NEED_MOVES] = listed
            return np.int64(ROOM), np.int64(arrival)
        moves = _taken(state, values, at, listed)
        if not _has_room(state, moves, affected + expired):
            return np.int64(ROOM), np.int64(arrival)
        _let_go(state, at, affected, expired, moves)
        for move in range(moves):
            _make(state, values, at, times.births[arrival], np.int64(move))
    return np.int64(DONE), np.int64(count)
