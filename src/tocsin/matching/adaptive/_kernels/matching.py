"""Matching: the access paths that an event reaches, and the conjunctions of their clusters that it satisfies."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NO_STATE_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.adaptive._kernels.clusters import (
    HEAD,
    NUMBER,
    REST,
    bounds_in,
    checks_in,
    large_of,
    length_of,
    place_of_check,
    start_of,
    words_in,
)
from tocsin.matching.adaptive._kernels.dense import (
    begin_chunk,
    evaluate_chunk,
    is_dense,
    mend,
    merge_pairs,
    put_off,
    write_columns,
)
from tocsin.matching.adaptive._kernels.events import (
    REACHED,
    TOUCHED,
    forget_event,
    has_reached_all,
    is_counted,
    load_event,
    reach,
)
from tocsin.matching.adaptive._kernels.predicates import float_of, with_float
from tocsin.matching.adaptive._kernels.sections import next_section, share_checked
from tocsin.matching.adaptive._kernels.verification import is_satisfied
from tocsin.matching.adaptive.state import (
    ABSENT,
    BOUNDS,
    CHUNK,
    HOT_BIT,
    LARGE_BIT,
    RESIDUAL_BIT,
    Access,
    AdaptiveStateAddress,
    DenseCount,
    Large,
    Section,
    State,
    Top,
    Total,
    Value,
)
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel, prefetch

_FALSE: Final = 0
_TRUE: Final = 1
_UNKNOWN: Final = 2
_PASSED: Final = 1 << 62  # of a candidate: all its checks hold,
_BEGUN: Final = 1 << 61  # or the first one does
_LINE: Final = 16  # words in a cache line
_DRAWN: Final = 8  # conjunctions that are drawn of an event that is counted
_MOST_VISITS: Final = 1_024  # of a large cluster, beyond which they count for half
_SELDOM: Final = 0.1  # what a conjunction of a large cluster costs, below which that is not reviewed
_SOON: Final = 8  # first checks after which what the next one reads is there
_AHEAD: Final = 4  # lines of a cluster that are asked for


@kernel
def match(address: AdaptiveStateAddress, batch: SingleEventAddress, start: int, is_single: int) -> int:
    """Find the conjunctions that events satisfy: of a single event their ids, see `gather_single`.

    Of several, the matches of event i are `found[offsets[i]:offsets[i + 1]]`; return how many events from `start` on are done. It
    stops where there is no room: `NEEDED` and `NEEDED_PAIRS` are how many matches and pairs there has to be room for; if both are
    0, there is no room for what an event reaches. One kernel does both, since each takes seconds to compile.

    Several threads may match with the same arrays. Only a thread that counts events may write to them; what an event that is not
    counted writes is the thread's own (`tocsin.matching.adaptive.threads` says which arrays).
    """
    state: State = load(address)
    single: SingleEvent = load(batch)
    if is_single and not make_keys(single):
        return np.int64(NOT_EXACT)
    done = _match_all(state, single.events, start, single.found, single.offsets)
    if not is_single:
        return done
    if done == 0:
        return np.int64(NO_ROOM if state.tops[Top.NEEDED] > 0 else NO_STATE_ROOM)
    return gather_single(state.store, single)


@helper
def _match_all(state: State, events: EncodedEvents, start: int, found: Int64s, offsets: Int64s) -> int:
    """Match events, a chunk after another; return how many from `start` on are done."""
    tops, total = state.tops, events.offsets.shape[0] - 1
    tops[Top.NEEDED] = tops[Top.NEEDED_PAIRS] = 0
    first = np.int64(start)
    begin_chunk(state, first, total - first)
    while first < total:
        last = first + CHUNK if first + CHUNK < total else np.int64(total)
        done = _match_chunk(state, events, first, found, offsets)
        if done < last:
            if not is_dense(state):
                return done
            if tops[Top.NEEDED] > 0 or tops[Top.NEEDED_PAIRS] > 0:
                return first
            state.dense.used[DenseCount.IS_ON] = 0  # some value has no column: once more, event by event
            if state.dense.used[DenseCount.IS_SHARED] == 0:
                mend(state)
        else:
            first = last
            begin_chunk(state, first, total - first)
    return total


@helper
def _match_chunk(state: State, events: EncodedEvents, first: int, found: Int64s, offsets: Int64s) -> int:
    """Match a chunk of events; return the number of the first that is not done."""
    total = events.offsets.shape[0] - 1
    last = first + CHUNK if first + CHUNK < total else np.int64(total)
    for event in range(first, last):
        load_event(state, events, event)
        reach(state)
        count = np.int64(-1)
        if has_reached_all(state) and (
            not is_dense(state) or write_columns(state, event, state.room.used[TOUCHED])
        ):
            count = _verify_all(state, event, offsets[event], found)
        forget_event(state)
        if count < 0:
            return np.int64(event)
        if is_counted(state):
            state.totals[Total.EVENTS] += state.totals[Total.WEIGHT]
            state.totals[Total.COUNTED] += 1.0
            _note(state)
        offsets[event + 1] = count
    if is_dense(state):
        pairs = evaluate_chunk(state)
        if pairs < 0 or pairs >> 62:
            state.tops[Top.NEEDED_PAIRS] = -pairs if pairs < 0 else np.int64(0)
            for event in range(CHUNK):
                state.dense.counts[event] = 0
            return first
        if offsets[last] + pairs > found.shape[0]:
            state.tops[Top.NEEDED] = offsets[last] + pairs
            for event in range(CHUNK):
                state.dense.counts[event] = 0
            return first
        merge_pairs(state, first, last, found, offsets)
    return last


@helper
def _verify_all(state: State, event: int, count: int, found: Int64s) -> int:
    """Write the conjunctions that the event at hand satisfies behind the first `count`; return how many by now, or -1.

    Clusters are larger than the caches together: their words are asked for before the first is read.
    """
    reached, access, rows = state.room.reached, state.access.keys, state.words.rows
    weight, most = state.totals[Total.WEIGHT], np.int64(0)
    entries, hot = state.room.used[REACHED], np.int64(HOT_BIT) if is_dense(state) else np.int64(0)
    for i in range(entries):
        place = access[reached[i], Access.PLACE]
        words = words_in(place) if place & hot == 0 else np.int64(0)
        most += words // REST + 1
        for at in range(0, min(words, np.int64(_AHEAD * _LINE)), _LINE):
            prefetch(rows, start_of(place) + at)
    if count + most > found.shape[0]:
        state.tops[Top.NEEDED] = count + most
        return np.int64(-1)
    candidates = np.int64(count)
    for i in range(entries):
        entry = reached[i]
        if is_counted(state):
            access[entry, Access.WORK] = with_float(
                access[entry, Access.WORK], float_of(access[entry, Access.WORK]) + weight
            )
        place = access[entry, Access.PLACE]
        if place & hot:
            put_off(state, entry, event)
        elif place & LARGE_BIT:
            candidates = _gather_large(state, entry, large_of(state, entry), candidates, found)
        else:
            candidates = _gather(state, start_of(place), start_of(place) + words_in(place), candidates, found)
    if is_counted(state):
        state.totals[Total.CHECKS] += candidates - count
        state.totals[Total.VISITS] += entries
    return _verify_candidates(state, count, candidates, found)


@helper
def _gather_large(state: State, entry: int, large: int, count: int, found: Int64s) -> int:
    """Write where the conjunctions of a large cluster are whose first checks hold; return the end of them all."""
    row, start, before = state.large.rows[large], start_of(state.access.keys[entry, Access.PLACE]), count
    section, looked_at, checks = np.int64(-1), np.int64(0), np.int64(0)
    while True:
        section, tested = next_section(state, large, section + 1)
        looked_at += tested
        begin, end = row[Large.DIVIDED], row[Large.COUNT]  # what is behind all sections comes last
        if section >= 0:
            begin = state.large.sections[row[Large.SECTION] + section, Section.BEGIN]
            end = state.large.sections[row[Large.SECTION] + section, Section.END]
        count = _check_first(state, start, row[Large.FIRST] + begin, row[Large.FIRST] + end, count, found)
        checks += end - begin
        if section < 0:
            break
    if is_counted(state):
        checks += looked_at // 2
        state.totals[Total.CHECKS] += checks - (count - before)
        if row[Large.VISITS] >= _MOST_VISITS:
            row[Large.VISITS] >>= 1
            row[Large.CHECKS] >>= 1
        row[Large.VISITS] += 1
        row[Large.CHECKS] += checks
    return count


@helper
def _check_first(state: State, start: int, at: int, end: int, count: int, found: Int64s) -> int:
    """Write which conjunctions' first checks hold, of some next to each other in the cluster that begins at `start`; return their end.

    Most fail, and of those with an equality no more than the mark of its code is read.
    """
    rows, marks, checks = state.words.rows, state.predicates.marks, state.large.checks.rows
    true = np.uint16(2 * state.tops[Top.NUMBER])
    for i in range(at, end):
        word = np.int64(np.int32(checks[i, 0]))
        if word >= 0:
            if marks[word] != true:
                continue
        else:
            if i + _SOON < end:
                _ask_for_check(state, np.int64(np.int32(checks[i + _SOON, 0])))
            if not is_satisfied(state, word):
                continue
        conjunction = start + (checks[i, 0] >> 32)
        prefetch(rows, conjunction)
        found[count] = conjunction | np.int64(_BEGUN)
        count += 1
    return count


@helper
def _compare_bounds(state: State, at: int, end: int) -> int:
    """Tell by the upper halves of bounds whether all checks of a conjunction hold, if they decide."""
    rows, values, truth = state.words.rows, state.slots.values, np.int64(_TRUE)
    while at < end:
        slot = np.int64(rows[at])
        if slot < 0:
            truth = np.int64(_UNKNOWN)
        elif values[slot, Value.CODE] == ABSENT:
            return np.int64(_FALSE)
        else:
            value, low, high = values[slot, Value.LOW] >> 32, np.int64(rows[at + 1]), np.int64(rows[at + 2])
            if values[slot, Value.NEXT] != 0 or low > high or value in (low, high):
                truth = np.int64(_UNKNOWN)
            elif value < low or value > high:
                return np.int64(_FALSE)
        at += BOUNDS
    return truth


@helper
def _gather(state: State, at: int, end: int, count: int, found: Int64s) -> int:
    """Write where the conjunctions of a small cluster are that may hold; return the end of them all."""
    rows = state.words.rows
    while at < end:
        word, head = np.int64(rows[at]), np.int64(rows[at + HEAD])
        if bounds_in(head) > 0:
            truth = _compare_bounds(state, at + REST, at + REST + bounds_in(head))
            if truth == _TRUE:
                found[count] = at | np.int64(_PASSED)
                count += 1
            elif truth == _UNKNOWN:
                _ask_for_checks(state, at, head, np.int64(0))
                found[count] = at
                count += 1
        else:
            _ask_for_check(state, word)
            found[count] = at
            count += 1
        at += length_of(head)
    return count


@helper
def _ask_for_check(state: State, word: int) -> None:
    """Ask for the memory that a check reads."""
    if word >= 0:
        prefetch(state.predicates.marks, word)
    else:
        prefetch(state.predicates.entries.keys, (-1 - word) * state.predicates.entries.keys.shape[1])


@helper
def _ask_for_checks(state: State, at: int, head: int, first: int) -> None:
    for k in range(first, checks_in(head)):
        _ask_for_check(state, np.int64(state.words.rows[place_of_check(head, at, np.int64(k))]))


@helper
def _verify_candidates(state: State, first: int, last: int, found: Int64s) -> int:
    """Replace candidates, from `first` to `last`, by the conjunctions that hold; return their end.

    Each look at a predicate waits for memory, so what the next step looks at is asked for in the step before.
    """
    rows, kept = state.words.rows, np.int64(first)
    for i in range(first, last):
        at = found[i] & (_BEGUN - 1)
        if found[i] < _PASSED:
            if found[i] < _BEGUN and not is_satisfied(state, np.int64(rows[at])):
                continue
            if bounds_in(np.int64(rows[at + HEAD])) == 0:
                _ask_for_checks(state, at, np.int64(rows[at + HEAD]), np.int64(1))
        found[kept] = found[i]
        kept += 1
    last, kept = kept, np.int64(first)
    for i in range(first, last):
        at = found[i] & (_BEGUN - 1)
        head, number = np.int64(rows[at + HEAD]), np.int64(rows[at + NUMBER])
        checks, k = checks_in(head), np.int64(1)
        if found[i] >= _PASSED:
            k = checks
        while k < checks and is_satisfied(state, np.int64(rows[place_of_check(head, at, k)])):
            k += 1
        if k >= checks and number >= 0:
            found[kept] = number + (NEEDS_RESIDUAL if (head >> RESIDUAL_BIT) & 1 else 0)
            kept += 1
    return kept


@helper
def _note(state: State) -> None:
    """Note the clusters that the event at hand was checked against by itself, and draw some of their conjunctions."""
    suspects, tops = state.review.suspects, state.tops
    words, hot = np.int64(0), np.int64(HOT_BIT) if is_dense(state) else np.int64(0)
    for i in range(state.room.used[REACHED]):
        entry = state.room.reached[i]
        if not _is_done_well(state, entry, hot):
            words += words_in(state.access.keys[entry, Access.PLACE])
            if tops[Top.SUSPECTS] < suspects.shape[0]:
                suspects[tops[Top.SUSPECTS]] = entry
                tops[Top.SUSPECTS] += 1
    step = words // _DRAWN + 1
    left = 1 + (tops[Top.DRAWN] * 7) % step  # words before the next one that is drawn
    for i in range(state.room.used[REACHED]):
        place = state.access.keys[state.room.reached[i], Access.PLACE]
        at, end = start_of(place), start_of(place) + words_in(place)
        is_done_well = _is_done_well(state, state.room.reached[i], hot)
        if is_done_well or end - at < left:
            left -= 0 if is_done_well else end - at
            continue
        if place & LARGE_BIT:
            left = _draw_of_large(state, state.room.reached[i], left, step)
            continue
        while at < end:
            number = np.int64(state.words.rows[at + NUMBER])
            length = length_of(np.int64(state.words.rows[at + HEAD]))
            at += length
            left -= length
            if left <= 0 and number >= 0:
                left += step
                _draw(state, number)


@helper
def _draw(state: State, number: int) -> None:
    drawn, tops = state.review.drawn, state.tops
    drawn[tops[Top.DRAWN] % drawn.shape[0]] = number
    tops[Top.DRAWN] += 1


@helper
def _draw_of_large(state: State, entry: int, left: int, step: int) -> int:
    """Draw some conjunctions of a large cluster, as many as if its words were read; return how many are left before the next one."""
    place, row = state.access.keys[entry, Access.PLACE], state.large.rows[large_of(state, entry)]
    count, start = row[Large.COUNT], start_of(place)
    length = max(words_in(place) // count, np.int64(1))
    at = left // length
    while at < count:
        conjunction = start + (state.large.checks.rows[row[Large.FIRST] + at, 0] >> 32)
        number = np.int64(state.words.rows[conjunction + NUMBER])
        if number >= 0:
            _draw(state, number)
        at += step // length + 1
    return (at - count) * length + 1


@helper
def _is_done_well(state: State, entry: int, hot: int) -> bool:
    """Tell whether a cluster is matched for many events at once, or an event is checked against little of it."""
    place = state.access.keys[entry, Access.PLACE]
    return place & hot != 0 or (place & LARGE_BIT != 0 and share_checked(state, entry) < _SELDOM)
