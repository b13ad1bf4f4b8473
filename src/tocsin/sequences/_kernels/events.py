"""Processing events one after another: affected instances, the edges they take, new instances and outputs.

An event is first only read: the kernel lists the instances it affects, and the edges that they and the start nodes can
take. If there is no room for the results, the kernel returns before anything is changed, and its caller makes room.

An epoch is all events of one end time. The events of an epoch do not see the instances made in it, which end with it;
they do see those that other events of the epoch have used up, because these are released only when the epoch is over.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.sequences._kernels import instances
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences._kernels.programs import CurrentEvent, run
from tocsin.sequences.running.state import (
    NONE,
    AutomatonStateAddress,
    Death,
    FormProgram,
    InstanceColumn,
    MoveColumn,
    Need,
    OutputColumn,
    PlaceColumn,
    State,
    StateCounter,
)
from tocsin.structures import blocks, hash_index
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.blocks import class_of, size_of
from tocsin.structures.jit import helper, kernel, prefetch

DONE: Final = 0
ROOM: Final = 1  # the event has more results than there is room for
FED: Final = 2  # an output is an event itself, to be processed before the epoch ends
_WIDTH: Final = len(PlaceColumn)


class Times(NamedTuple):
    """The starts and ends of events, and the end of the first event that each was made of."""

    starts: Int64s
    ends: Int64s
    births: Int64s


class Satisfied(NamedTuple):
    """The numbers of the conditions that each event satisfies: those of row i begin at `offsets[i]`."""

    offsets: Int64s
    ids: Int64s


@helper
def _touch(state: State, instance: int, reason: int, number: int) -> None:
    """Mark an instance to be released at the end of the epoch; with a `reason`, it dies at event `number`."""
    rows, counters = state.instances.rows, state.counters
    if rows[instance, InstanceColumn.TOUCHED] > 0:
        return
    state.instances.touched[counters[StateCounter.TOUCHED]] = instance
    counters[StateCounter.TOUCHED] += 1
    rows[instance, InstanceColumn.TOUCHED] = counters[StateCounter.TOUCHED]
    if reason >= 0:
        instances.record_death(state, instance, reason, number)


@helper
def _end_epoch(state: State) -> None:
    """Release the instances that were used up."""
    for i in range(state.counters[StateCounter.TOUCHED]):
        instance = state.instances.touched[i]
        if instance >= 0:
            state.instances.rows[instance, InstanceColumn.TOUCHED] = 0
            instances.release(state, instance)
    state.counters[StateCounter.TOUCHED] = 0


@helper
def _list_move(moves: Int64s, count: int, affected: int, place: int, rebinds: int) -> int:
    """Write a move as number `count`, if there is room, and return the new count."""
    if count < moves.shape[0]:
        moves[count, MoveColumn.AFFECTED] = affected
        moves[count, MoveColumn.PLACE] = place
        moves[count, MoveColumn.REBINDS] = rebinds
    return count + 1


@helper
def _mark_satisfied(state: State, ids: Int64s, begin: int, finish: int) -> int:
    """Link the edges whose static part holds to the node they leave; list those of start nodes as moves."""
    places, count = state.places, np.int64(0)
    stamp = state.counters[StateCounter.STAMP]
    for i in range(begin, finish):  # all cache lines are requested before the first is read
        prefetch(places.rows, (ids[i] >> 1) * _WIDTH)
    for i in range(begin, finish):
        source = np.int64(places.rows[ids[i] >> 1, PlaceColumn.SOURCE])
        if source >= 0:
            prefetch(places.rows, source * _WIDTH)
    for i in range(begin, finish):
        place = ids[i] >> 1
        if ids[i] & 1:
            places.rebound[place] = stamp
            continue
        source = np.int64(places.rows[place, PlaceColumn.SOURCE])
        if source < 0:
            count = _list_move(state.scratch.moves, count, np.int64(NONE), place, np.int64(0))
        elif places.rows[source, PlaceColumn.WAITING] > 0:
            if places.stamp[source] != stamp:
                places.stamp[source] = stamp
                places.rows[source, PlaceColumn.SATISFIED] = NONE
            places.rows[place, PlaceColumn.NEXT_SATISFIED] = places.rows[source, PlaceColumn.SATISFIED]
            places.rows[source, PlaceColumn.SATISFIED] = place
    state.counters[StateCounter.MATCHED] += finish - begin
    return count


@helper
def _list_edges(state: State, affected: int, count: int) -> int:
    """List the edges that an affected instance might take, those whose static part holds, and return the count."""
    places, moves = state.places, state.scratch.moves
    node = state.instances.rows[state.scratch.affected[affected], InstanceColumn.NODE]
    stamp = state.counters[StateCounter.STAMP]
    rebinds = state.forms.rebinds[places.rows[node, PlaceColumn.FORM]]
    if rebinds == 1 or (rebinds == 2 and places.rebound[node] == stamp):
        count = _list_move(moves, count, affected, node, np.int64(1))
    place = np.int64(places.rows[node, PlaceColumn.ALWAYS])
    while place >= 0:
        count = _list_move(moves, count, affected, place, np.int64(0))
        place = np.int64(places.rows[place, PlaceColumn.NEXT_ALWAYS])
    if places.stamp[node] == stamp:
        place = np.int64(places.rows[node, PlaceColumn.SATISFIED])
        while place >= 0:
            count = _list_move(moves, count, affected, place, np.int64(0))
            place = np.int64(places.rows[place, PlaceColumn.NEXT_SATISFIED])
    return count


@helper
def _visit(state: State, event: CurrentEvent, node: int, affected: int, expired: int) -> tuple[int, int]:
    """List the instances at a node that the event affects, and those that have lasted too long."""
    places, forms, rows, scratch = state.places, state.forms, state.instances.rows, state.scratch
    keyed = places.rows[node, PlaceColumn.KEYED] > 0
    form = np.int64(places.rows[node, PlaceColumn.FORM])
    first = np.int64(places.rows[node, PlaceColumn.FIRST])
    instance = instances.find_key(state, event, node) if keyed else first
    # A key of one value is the value itself; one of several is a hash, so the whole guard is verified.
    program = np.int64(FormProgram.GUARD)
    if keyed and forms.key_count[form] == 1:
        program = np.int64(FormProgram.REST)
    examined, before = np.int64(0), affected
    while instance >= 0:
        following = rows[instance, InstanceColumn.KEY_NEXT] if keyed else rows[instance, InstanceColumn.NEXT]
        examined += 1
        if rows[instance, InstanceColumn.END] < event.start:
            duration = instances.duration_of(rows[instance, InstanceColumn.START], event.end)
            if duration > places.longest[node]:
                if expired < scratch.expired.shape[0]:
                    scratch.expired[expired] = instance
                expired += 1
            elif run(
                state, event, rows[instance, InstanceColumn.BASE], forms.programs[form, program],
                np.int64(places.rows[node, PlaceColumn.CONSTANTS]), duration, state.outputs.slots, np.int64(0),
            ):  # fmt: skip
                if affected < scratch.affected.shape[0]:
                    scratch.affected[affected] = instance
                affected += 1
        instance = following
    state.counters[StateCounter.VISITED] += 1
    state.counters[StateCounter.EXAMINED] += examined
    if keyed:
        # The instances not examined, less one for the look-up; without the index, those it would have spared.
        places.spared[node] += np.int64(places.rows[node, PlaceColumn.WAITING]) - examined - 1
    elif forms.key_count[form] > 0:
        places.spared[node] += examined - (affected - before) - 1
    return affected, expired


@helper
def _list_affected(
    state: State, event: CurrentEvent, ids: Int64s, begin: int, finish: int
) -> tuple[int, int]:
    """List the instances that the event affects; return their number, and that of the expired ones.

    The AN-index has found the nodes: those whose filter has no static part, and those of the satisfied filters.
    """
    affected, expired = np.int64(0), np.int64(0)
    filter_ = np.int64(state.graph.stream_filter[event.stream])
    nth = begin
    while True:
        node = np.int64(state.graph.active[filter_])
        while node >= 0:
            affected, expired = _visit(state, event, node, affected, expired)
            node = np.int64(state.places.rows[node, PlaceColumn.NEXT_ACTIVE])
        if nth >= finish:
            return affected, expired
        filter_ = ids[nth]
        nth += 1


@helper
def _list_moves(
    state: State, event: CurrentEvent, ids: Int64s, begin: int, finish: int, affected: int
) -> int:
    """List the edges that start nodes and affected instances might take, and return their number."""
    count = _mark_satisfied(state, ids, begin, finish)
    place = np.int64(state.graph.stream_always[event.stream])
    while place >= 0:
        count = _list_move(state.scratch.moves, count, np.int64(NONE), place, np.int64(0))
        place = np.int64(state.places.rows[place, PlaceColumn.NEXT_ALWAYS])
    for i in range(affected):
        count = _list_edges(state, np.int64(i), count)
    return count


@helper
def _test_moves(state: State, event: CurrentEvent, listed: int) -> int:
    """Keep the listed edges that can be taken, and return their number."""
    places, list_, rows = state.places, state.scratch.moves, state.instances.rows
    moves = np.int64(0)
    for i in range(listed):
        which, place = list_[i, MoveColumn.AFFECTED], list_[i, MoveColumn.PLACE]
        rebinds = list_[i, MoveColumn.REBINDS]
        base, began = np.int64(0), event.start
        if which >= 0:
            instance = state.scratch.affected[which]
            base, began = rows[instance, InstanceColumn.BASE], rows[instance, InstanceColumn.START]
        form = np.int64(places.rows[place, PlaceColumn.FORM])
        program = np.int64(FormProgram.REBIND) if rebinds else np.int64(FormProgram.TEST)
        if run(
            state, event, base, state.forms.programs[form, program],
            np.int64(places.rows[place, PlaceColumn.CONSTANTS]), instances.duration_of(began, event.end),
            state.outputs.slots, np.int64(0),
        ):  # fmt: skip
            moves = _list_move(list_, moves, which, place, rebinds)
    return moves


@helper
def _has_room(state: State, moves: int, gone: int) -> bool:
    """Tell whether there is room for the results of the moves; write to `needs` how much they need."""
    forms, counters, needs = state.forms, state.counters, state.needs
    made, wide, outputs, written = np.int64(0), np.int64(0), np.int64(0), np.int64(0)
    for i in range(moves):
        form = np.int64(state.places.rows[state.scratch.moves[i, MoveColumn.PLACE], PlaceColumn.FORM])
        width = np.int64(forms.width[form])
        if forms.is_end[form]:
            outputs += 1
            written += width
        else:
            made += 1
            wide += size_of(class_of(width)) if width > 0 else np.int64(0)
    needs[Need.TOUCHED] = counters[StateCounter.TOUCHED] + gone
    needs[Need.INSTANCES] = counters[StateCounter.TOP] + made
    needs[Need.SLOTS] = wide
    needs[Need.OUTPUTS] = counters[StateCounter.OUTPUTS] + outputs
    needs[Need.OUTPUT_SLOTS] = counters[StateCounter.OUTPUT_SLOTS] + written
    needs[Need.LINKS] = counters[StateCounter.LINKS] + 2 * moves
    needs[Need.KEYS] = made
    slots = state.arena.slots
    return (
        needs[Need.TOUCHED] <= state.instances.touched.shape[0]
        and needs[Need.INSTANCES] <= state.instances.rows.shape[0]
        and slots.top[0] + wide <= slots.rows.shape[0]
        and needs[Need.OUTPUTS] <= state.outputs.rows.shape[0]
        and needs[Need.OUTPUT_SLOTS] <= state.outputs.slots.shape[0]
        and needs[Need.LINKS] <= state.arena.links.shape[0]
        and hash_index.has_room(state.instances.keys, made)
    )


@helper
def _touch_all(state: State, event: CurrentEvent, affected: int, expired: int, moves: int) -> None:
    """Touch the affected and the expired instances; an affected one that takes no edge dies."""
    scratch = state.scratch
    for i in range(expired):
        _touch(state, scratch.expired[i], np.int64(Death.EXPIRED), event.number)
    move = np.int64(0)  # moves are in the order of the affected instances, after those of start nodes
    for i in range(affected):
        while move < moves and scratch.moves[move, MoveColumn.AFFECTED] < i:
            move += 1
        moves_on = move < moves and scratch.moves[move, MoveColumn.AFFECTED] == i
        reason = np.int64(NONE) if moves_on else np.int64(Death.STOPPED)
        _touch(state, scratch.affected[i], reason, event.number)


@helper
def _is_hopeless(state: State, form: int, base: int) -> bool:
    """Tell whether an instance waits for an equality with a value that it lacks, so that no event can satisfy it."""
    begin = np.int64(state.forms.keys[form])
    for i in range(begin, begin + np.int64(state.forms.key_count[form])):
        kind = state.arena.slots.rows[base + np.int64(state.forms.key_slots[i]), 0]
        if kind == Tag.MISSING or kind == Tag.OPAQUE:  # noqa: PLR1714 - Numba compiles this to less
            return True
    return False


@helper
def _make(state: State, event: CurrentEvent, birth: int, move: int) -> None:
    """Make the result of one move: an instance at the next node, or an output."""
    places, forms, counters, rows = state.places, state.forms, state.counters, state.instances.rows
    outputs, slots, moves = state.outputs, state.arena.slots, state.scratch.moves
    which, place = moves[move, MoveColumn.AFFECTED], moves[move, MoveColumn.PLACE]
    base, began = np.int64(0), event.start
    if which >= 0:
        instance = state.scratch.affected[which]
        base, began = rows[instance, InstanceColumn.BASE], rows[instance, InstanceColumn.START]
        birth = rows[instance, InstanceColumn.BIRTH]
    form = np.int64(places.rows[place, PlaceColumn.FORM])
    width = np.int64(forms.width[form])
    is_end = forms.is_end[form] > 0
    first = counters[StateCounter.OUTPUT_SLOTS]
    if not is_end:
        first = blocks.take(slots, class_of(width)) if width > 0 else np.int64(0)
    program = np.int64(FormProgram.ASSIGN)
    if moves[move, MoveColumn.REBINDS]:
        program = np.int64(FormProgram.REBIND_ASSIGN)
    run(
        state, event, base, forms.programs[form, program],
        np.int64(places.rows[place, PlaceColumn.CONSTANTS]), instances.duration_of(began, event.end),
        outputs.slots if is_end else slots.rows, first,
    )  # fmt: skip
    if is_end:
        row = outputs.rows[counters[StateCounter.OUTPUTS]]
        row[OutputColumn.END], row[OutputColumn.EVENT] = place, event.row
        row[OutputColumn.STARTED], row[OutputColumn.ENDED] = began, event.end
        row[OutputColumn.BIRTH], row[OutputColumn.BASE] = birth, first
        counters[StateCounter.OUTPUTS] += 1
        counters[StateCounter.OUTPUT_SLOTS] += width
        counters[StateCounter.FEEDING] |= np.int64(places.rows[place, PlaceColumn.FEEDS] > 0)
    elif _is_hopeless(state, form, first):
        if width > 0:
            blocks.give(slots, first, class_of(width))
    else:
        fresh = instances.new_instance(state)
        rows[fresh, InstanceColumn.START], rows[fresh, InstanceColumn.END] = began, event.end
        rows[fresh, InstanceColumn.BIRTH], rows[fresh, InstanceColumn.BASE] = birth, first
        instances.place_at(state, fresh, place)
        counters[StateCounter.MADE] += 1


@kernel
def process(
    address: AutomatonStateAddress,
    values: Int64s,
    times: Times,
    streams: Int32s,
    edges: Satisfied,
    filters: Satisfied,
    begin: int,
) -> tuple[int, int]:
    """Process the events from row `begin` on; return why it stops, and the row of the next event.

    `values` are the events' columns, `streams` their streams. `edges` are those whose static part holds (found by the
    FR-index): twice the place that an edge enters, and one more for its rebind edge. `filters` are those that hold.
    """
    state: State = load(address)
    counters, needs, scratch = state.counters, state.needs, state.scratch
    count = times.ends.shape[0]
    for row in range(begin, count):
        end = times.ends[row]
        if end > counters[StateCounter.EPOCH]:
            if counters[StateCounter.FEEDING]:
                return np.int64(FED), np.int64(row)
            _end_epoch(state)
            counters[StateCounter.EPOCH] = end
        stream = np.int64(streams[row])
        if stream < 0:
            continue
        number = counters[StateCounter.NUMBER] + row
        event = CurrentEvent(values, np.int64(row), stream, times.starts[row], end, number)
        counters[StateCounter.STAMP] += 1
        needs[:] = 0
        begin, finish = filters.offsets[row], filters.offsets[row + 1]
        affected, expired = _list_affected(state, event, filters.ids, begin, finish)
        if affected > scratch.affected.shape[0] or expired > scratch.expired.shape[0]:
            needs[Need.AFFECTED], needs[Need.EXPIRED] = affected, expired
            return np.int64(ROOM), np.int64(row)
        listed = _list_moves(state, event, edges.ids, edges.offsets[row], edges.offsets[row + 1], affected)
        if listed > scratch.moves.shape[0]:
            needs[Need.MOVES] = listed
            return np.int64(ROOM), np.int64(row)
        moves = _test_moves(state, event, listed)
        if not _has_room(state, moves, affected + expired):
            return np.int64(ROOM), np.int64(row)
        _touch_all(state, event, affected, expired, moves)
        for move in range(moves):
            _make(state, event, times.births[row], np.int64(move))
    return np.int64(DONE), np.int64(count)


@kernel
def expand(address: AutomatonStateAddress, numbers: Int64s, outputs: Int64s) -> int:
    """Write the subscription and the output of each match; return how many there are, even if not all fit."""
    state: State = load(address)
    holders, rows, count = state.holders, state.outputs.rows, np.int64(0)
    for row in range(state.counters[StateCounter.OUTPUTS]):
        holder = np.int64(state.places.rows[rows[row, OutputColumn.END], PlaceColumn.FIRST])
        while holder >= 0:
            if holders.number[holder] >= 0 and holders.since[holder] < rows[row, OutputColumn.BIRTH]:
                if count < numbers.shape[0]:
                    numbers[count] = holders.number[holder]
                    outputs[count] = row
                count += 1
            holder = np.int64(holders.next[holder])
    return count
