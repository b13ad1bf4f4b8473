"""Matching: an event's candidate coordinates, their buckets, and the conjunctions there (AMKH, 2)."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching._kernels.single_event import (
    NO_ROOM,
    NO_STATE_ROOM,
    NOT_EXACT,
    SingleEvent,
    SingleEventAddress,
    gather_single,
    make_keys,
)
from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh._kernels.classes import is_any_matched, is_matched
from tocsin.matching.amkh._kernels.clauses import class_addend, equality_addend
from tocsin.matching.amkh._kernels.table import bit_of, bucket_key, schema_addend
from tocsin.matching.amkh._kernels.verification import holds
from tocsin.matching.amkh.state import (
    AmkhStateAddress,
    Bucket,
    Cursor,
    Hashed,
    HashedAttribute,
    Index,
    Schema,
    Setting,
    State,
    Top,
    Total,
)
from tocsin.matching.encoding.codes import FIELD_BITS, FIELDS, Field, Op
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures import hash_index
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.jit import helper, kernel, prefetch, wrapping_helper

_MOST_PRODUCTS: Final = 1 << 62
_MOST_SHARE: Final = 1e100
_IS_TEXT: Final = -1  # the key of the test that any string passes


@kernel
def match(
    state: State, index: Index, events: EncodedEvents, start: int, found: Int64s, offsets: Int64s
) -> int:
    """Write the conjunctions that each event from `start` on satisfies; return how many events were done.

    Those of event i are `found[offsets[i]:offsets[i + 1]]`. Fewer events than all are done if there is no room: then
    ROOM or SUMS says how much is wanted.
    """
    scratch = state.scratch
    for event in range(start, events.offsets.shape[0] - 1):
        state.tops[Top.EPOCH] += 1
        state.tops[Top.ROOM] = state.tops[Top.SUMS] = 0
        pairs, signature = _unfold(state, events, event)
        count = offsets[event]
        probed = examined = np.int64(0)
        if _find_clauses(state, index, pairs):
            visits, available = _visits(state, index, pairs)
            scratch.cursor[Cursor.VISIT] = scratch.cursor[Cursor.ROW] = scratch.cursor[Cursor.LEFT] = 0
            scratch.cursor[Cursor.WALK] = scratch.cursor[Cursor.SWEEP] = -1
            scratch.cursor[Cursor.PRODUCTS] = 0
            while True:
                probes = _coordinates(state, index, visits, available)
                if probes == 0:
                    break
                probed += probes
                opened = _open(state, index, probes)
                count, more = _examine(state, index, opened, (pairs, signature), count, found)
                examined += more
                if count < 0:
                    break
        for i in range(pairs):
            state.fields.slot[scratch.field[i]] = 0
        if count < 0 or state.tops[Top.SUMS] > 0:
            return event
        _note(state, pairs, probed, examined, count - offsets[event])
        offsets[event + 1] = count
    return events.offsets.shape[0] - 1


@kernel
def match_event(address: AmkhStateAddress, event: SingleEventAddress, factor: float) -> int:
    """Find the conjunctions of an index that a single event satisfies, and write their ids: see `gather_single`.

    All counts so far then weigh less by `factor`.
    """
    both: Hashed = load(address)
    single: SingleEvent = load(event)
    state = both.state
    if not make_keys(single):
        return np.int64(NOT_EXACT)
    if match(state, both.hashed, single.events, np.int64(0), single.found, single.offsets) == 0:
        return np.int64(NO_ROOM if state.tops[Top.ROOM] > 0 else NO_STATE_ROOM)
    decay(state, factor)
    return gather_single(state.store, single)


@kernel
def decay(state: State, factor: float) -> None:
    """Multiply the weight of all earlier events by `factor`, by giving later ones more."""
    totals = state.totals
    totals[Total.SHARE] /= factor
    if totals[Total.SHARE] > _MOST_SHARE:
        scale = 1.0 / totals[Total.SHARE]
        for field in range(state.fields.seen.shape[0]):
            state.fields.seen[field] *= scale
            state.fields.since[field] *= scale
        totals[Total.EVENTS] *= scale
        totals[Total.SHARE] = 1.0


@helper
def _note(state: State, pairs: int, probed: int, examined: int, matched: int) -> None:
    """Count an event that is done."""
    totals, share = state.totals, state.totals[Total.SHARE]
    for i in range(pairs):
        if i == 0 or state.scratch.field[i] != state.scratch.field[i - 1]:
            state.fields.seen[state.scratch.field[i]] += share
    totals[Total.EVENTS] += share
    totals[Total.SEEN] += 1.0
    totals[Total.PROBED] += probed
    totals[Total.EXAMINED] += examined
    totals[Total.MATCHED] += matched


@helper
def _unfold(state: State, events: EncodedEvents, event: int) -> tuple[int, int]:
    """Write the pairs of an event on which there are predicates; return how many, and a bit for each attribute.

    A value is a pair of its field, and one of its attribute's ANY. A number that no float equals has its place
    among the numbers besides.
    """
    uses, slot = state.fields.uses, state.fields.slot
    count, signature = np.int64(0), np.uint64(0)
    for j in range(events.offsets[event], events.offsets[event + 1]):
        field = np.int64(events.fields[j])
        attribute, kind = field // FIELDS, field % FIELDS
        signature |= bit_of(attribute)
        any_ = attribute * FIELDS + Field.ANY
        if uses[any_] > 0 and slot[any_] == 0:
            count = _add_pair(state, count, any_, (np.int64(0), np.int64(0), np.int64(0)))
        if uses[field] > 0:
            count = _add_pair(state, count, field, (events.keys[j], events.lows[j], events.highs[j]))
        if kind == Field.BIG and uses[field + Field.NUMBER - Field.BIG] > 0:
            number = field + Field.NUMBER - Field.BIG
            count = _add_pair(
                state, count, number, (np.int64(arrays.NO_KEY), events.lows[j], events.highs[j])
            )
    return count, signature


@helper
def _add_pair(state: State, at: int, field: int, value: tuple[int, int, int]) -> int:
    scratch, slot = state.scratch, state.fields.slot
    scratch.field[at] = field
    scratch.key[at], scratch.low[at], scratch.high[at] = value
    if slot[field] == 0:
        slot[field] = at + 1
    return at + 1


@helper
def _find_clauses(state: State, index: Index, pairs: int) -> bool:
    """Write the addends of the matched clauses of each attribute; return False if there is no room.

    An attribute has an addend for each equality that its value satisfies, and one for each class of other clauses
    of which it satisfies any.
    """
    scratch, places = state.scratch, index.attributes
    epoch, sums = state.tops[Top.EPOCH], np.int64(0)
    for i in range(pairs):
        place = max(np.int64(index.row_of_field[scratch.field[i]]), np.int64(0))
        scratch.place[i] = place  # row 0 has no clauses
        prefetch(places, place * arrays.HASHED_COLUMNS)
        prefetch(places, place * arrays.HASHED_COLUMNS + 8)
    for i in range(pairs):
        place = scratch.place[i]
        row = places[place]
        sums += 1 + (row[HashedAttribute.CLASSES] if _asks_classes(state, i) else 0)
        if row[HashedAttribute.EQUALITIES] > 0:
            tag, key = (Op.EQ << FIELD_BITS) | scratch.field[i], scratch.key[i]
            scratch.head[i] = hash_index.bucket_of(index.clauses, tag, key, key)
            prefetch(index.clauses.heads, scratch.head[i])
        if row[HashedAttribute.OTHERS] > 0:
            prefetch(index.bounds.rows, 2 * row[HashedAttribute.BOUNDS])
            prefetch(index.bounds.rows, 2 * row[HashedAttribute.BOUNDS] + 8)
        if row[HashedAttribute.LIST] >= 0:
            prefetch(index.schema_lists.rows, 2 * row[HashedAttribute.LIST])
    if sums > scratch.sums.shape[0]:
        state.tops[Top.SUMS] = sums
        return False
    for i in range(pairs):
        if places[scratch.place[i], HashedAttribute.EQUALITIES] > 0:
            head = max(np.int64(index.clauses.heads[scratch.head[i]]), np.int64(0))
            prefetch(index.clauses.keys, head * index.clauses.keys.shape[1])
    sums = np.int64(0)
    for i in range(pairs):
        begin, place = sums, scratch.place[i]
        row = places[place]
        if row[HashedAttribute.EQUALITIES] > 0:
            tag, key = (Op.EQ << FIELD_BITS) | scratch.field[i], scratch.key[i]
            entry = hash_index.find_in(index.clauses, scratch.head[i], tag, key, key)
            if entry >= 0:
                scratch.sums[sums] = equality_addend(
                    index, place, index.clauses.keys[entry, arrays.Clause.ID]
                )
                sums += 1
        if row[HashedAttribute.OTHERS] > 0 and _asks_classes(state, i):
            sums = _find_classes(state, index, place, i, sums)
        if sums > begin:
            if row[HashedAttribute.MET] != epoch:
                row[HashedAttribute.MET], row[HashedAttribute.ADDENDS], row[HashedAttribute.ADDEND_COUNT] = (
                    epoch,
                    begin,
                    0,
                )
            row[HashedAttribute.ADDEND_COUNT] += sums - begin
    return True


@helper
def _asks_classes(state: State, i: int) -> bool:
    """Tell whether a pair may satisfy clauses other than equalities: of a string's tests, one says that it is there."""
    return state.scratch.field[i] % FIELDS != Field.TEXT or state.scratch.key[i] == _IS_TEXT


@helper
def _find_classes(state: State, index: Index, place: int, i: int, sums: int) -> int:
    """Write the addends of the classes of which a value satisfies any clause; return how many there are in all."""
    scratch, row, ranked = state.scratch, index.attributes[place], index.settings[Setting.RANKED] != 0
    refuted = np.int64(-1)
    if row[HashedAttribute.UNEQUALS] > 0:
        tag, key = (Op.NE << FIELD_BITS) | scratch.field[i], scratch.key[i]
        entry = hash_index.find(index.clauses, tag, key, key)
        if entry >= 0:
            refuted = index.clauses.keys[entry, arrays.Clause.CLASS]
    value, at, classes = (
        (scratch.low[i], scratch.high[i]),
        row[HashedAttribute.BOUNDS],
        row[HashedAttribute.CLASSES],
    )
    if not ranked:
        for class_ in range(classes):
            if is_any_matched(index, at + arrays.SHAPES * class_, value, np.int64(refuted == class_)):
                scratch.sums[sums] = class_addend(index, place, class_)
                sums += 1
        return sums
    count, class_ = index.settings[Setting.CLASS_COUNT], np.int64(0)
    for shape in range(arrays.SHAPES):
        for _ in range(count if shape < arrays.LOOSE else 1):
            if is_matched(index, at + class_, shape, value, np.int64(refuted == class_)):
                scratch.sums[sums] = class_addend(index, place, class_)
                sums += 1
            class_ += 1
    return sums


@helper
def _visits(state: State, index: Index, pairs: int) -> tuple[int, int]:
    """Write the attributes with matched clauses that are the rarest of some schema; return how many.

    Also returned is a signature of all attributes with matched clauses.
    """
    scratch, epoch = state.scratch, state.tops[Top.EPOCH]
    count, available = np.int64(0), np.uint64(0)
    if index.attributes[0, HashedAttribute.LIST] >= 0:  # the schema without attributes
        scratch.visits[count] = 0
        count += 1
    for i in range(pairs):
        place = scratch.place[i]
        if (
            index.attributes[place, HashedAttribute.MET] != epoch
            or state.fields.slot[scratch.field[i]] != i + 1
        ):
            continue
        available |= bit_of(place)
        if index.attributes[place, HashedAttribute.LIST] >= 0:
            scratch.visits[count] = place
            count += 1
    return count, available


@helper
def _coordinates(state: State, index: Index, visits: int, available: int) -> int:
    """Write the next coordinates that the event may have, as many as there is room for; return how many.

    Where a schema has fewer buckets than the event has coordinates for it, its buckets are written instead; where
    schemas that share buckets have more coordinates than there are buckets at all, all buckets.
    """
    scratch, cursor = state.scratch, state.scratch.cursor
    probes = np.int64(0)
    while probes < arrays.PROBES:
        if cursor[Cursor.LEFT] > 0:
            cursor[Cursor.LEFT] -= 1
            if cursor[Cursor.AT_SCHEMA] >= arrays.SINGLE:
                place = scratch.visits[cursor[Cursor.VISIT]]
                addend = scratch.sums[index.attributes[place, HashedAttribute.ADDENDS] + cursor[Cursor.LEFT]]
                scratch.probe[probes] = _sum(
                    schema_addend(index, cursor[Cursor.AT_SCHEMA] - arrays.SINGLE), addend
                )
            else:
                scratch.probe[probes] = _product(state, index)
            scratch.entry[probes] = -1
            probes += 1
        elif cursor[Cursor.WALK] >= 0:
            scratch.entry[probes] = cursor[Cursor.WALK]
            scratch.probe[probes] = np.uint64(index.buckets.keys[cursor[Cursor.WALK], 0])
            probes += 1
            cursor[Cursor.WALK] = index.buckets.keys[cursor[Cursor.WALK], Bucket.NEXT]
        elif cursor[Cursor.SWEEP] == index.buckets.counters[1]:
            state.totals[Total.LOOKED_AT] += cursor[Cursor.ROW]
            # Nothing is left to be asked for
            cursor[Cursor.SWEEP], cursor[Cursor.VISIT] = (-1, visits)
        elif cursor[Cursor.SWEEP] >= 0:
            if index.buckets.keys[cursor[Cursor.SWEEP], Bucket.SIZE] >> arrays.SIZE_BITS > 0:
                scratch.entry[probes] = cursor[Cursor.SWEEP]
                scratch.probe[probes] = np.uint64(index.buckets.keys[cursor[Cursor.SWEEP], 0])
                probes += 1
            cursor[Cursor.SWEEP] += 1
        elif cursor[Cursor.VISIT] == visits:
            break
        else:
            row = index.attributes[scratch.visits[cursor[Cursor.VISIT]]]
            if cursor[Cursor.ROW] == row[HashedAttribute.LIST_COUNT]:
                state.totals[Total.LOOKED_AT] += row[HashedAttribute.LIST_COUNT]
                cursor[Cursor.VISIT] += 1
                cursor[Cursor.ROW] = 0
                continue
            at = row[HashedAttribute.LIST] + cursor[Cursor.ROW]
            cursor[Cursor.ROW] += 1
            schema = index.schema_lists.rows[at, 1]
            if schema >= arrays.SINGLE:
                cursor[Cursor.LEFT], cursor[Cursor.AT_SCHEMA] = (row[HashedAttribute.ADDEND_COUNT], schema)
            elif np.uint64(index.schema_lists.rows[at, 0]) & ~available == np.uint64(0):
                _begin_schema(state, index, schema)
    return probes


@helper
def _begin_schema(state: State, index: Index, schema: int) -> None:
    """Set out on the coordinates of a schema, if the event has matched clauses of all its attributes."""
    row, cursor, epoch = index.schemas.keys[schema], state.scratch.cursor, state.tops[Top.EPOCH]
    products = np.int64(1)
    for k in range(row[Schema.SIZE]):
        place = index.attributes[index.schema_attributes.rows[row[Schema.PLACES] + k, 0]]
        if place[HashedAttribute.MET] != epoch:
            return
        state.scratch.digits[k] = 0
        if products < _MOST_PRODUCTS // place[HashedAttribute.ADDEND_COUNT]:
            products *= place[HashedAttribute.ADDEND_COUNT]
        else:
            products = np.int64(_MOST_PRODUCTS)
    if row[Schema.SHARED] == 0:
        if products > row[Schema.BUCKETS]:
            cursor[Cursor.WALK] = row[Schema.BUCKET]
            return
    else:
        cursor[Cursor.PRODUCTS] += products
        if cursor[Cursor.PRODUCTS] > max(index.buckets.counters[1], np.int64(arrays.PROBES)):
            cursor[Cursor.SWEEP] = 0
            return
    cursor[Cursor.LEFT], cursor[Cursor.AT_SCHEMA] = products, schema


@wrapping_helper
def _sum(one: int, other: int) -> int:
    return one + other


@wrapping_helper
def _product(state: State, index: Index) -> int:
    """Return the coordinate at hand of the schema at hand, and go on to the next."""
    digits, schema = state.scratch.digits, state.scratch.cursor[Cursor.AT_SCHEMA]
    first = index.schemas.keys[schema, Schema.PLACES]
    coordinate, carry = schema_addend(index, schema), np.int64(1)
    for k in range(index.schemas.keys[schema, Schema.SIZE]):
        place = index.attributes[index.schema_attributes.rows[first + k, 0]]
        coordinate += state.scratch.sums[place[HashedAttribute.ADDENDS] + digits[k]]
        digits[k] += carry
        carry = np.int64(digits[k] == place[HashedAttribute.ADDEND_COUNT])
        digits[k] *= 1 - carry
    return coordinate


@helper
def _open(state: State, index: Index, probes: int) -> int:
    """Find the buckets of coordinates, a step at a time for all of them, so that cache misses overlap.

    Returns how many there are. One that the event came to before is left out.
    """
    scratch, buckets = state.scratch, index.buckets
    keys, epoch, columns = buckets.keys, state.tops[Top.EPOCH], buckets.keys.shape[1]
    for i in range(probes):
        if scratch.entry[i] < 0:
            key = bucket_key(index, scratch.probe[i])
            prefetch(buckets.heads, hash_index.bucket_of(buckets, key, 0, 0))
    for i in range(probes):
        if scratch.entry[i] < 0:
            key = bucket_key(index, scratch.probe[i])
            head = np.int64(buckets.heads[hash_index.bucket_of(buckets, key, 0, 0)])
            prefetch(keys, max(head, np.int64(0)) * columns)
        else:
            prefetch(keys, scratch.entry[i] * columns)
    opened = np.int64(0)
    for i in range(probes):
        entry = scratch.entry[i]
        if entry < 0:
            entry = hash_index.find(buckets, bucket_key(index, scratch.probe[i]), 0, 0)
        if entry >= 0 and keys[entry, Bucket.STAMP] != epoch:
            keys[entry, Bucket.STAMP] = epoch
            scratch.entry[opened] = entry
            opened += 1
            prefetch(index.members.rows, 2 * keys[entry, Bucket.MEMBERS])
    return opened


@helper
def _examine(
    state: State, index: Index, opened: int, event: tuple[int, int], count: int, found: Int64s
) -> tuple[int, int]:
    """Write the conjunctions in buckets that the event satisfies; return the new count, and how many are there.

    The count is negative if there was no room: ROOM says how much is wanted.
    """
    scratch, rows, records = state.scratch, index.members.rows, state.records.rows
    pairs, signature = event
    at_bucket, position, examined = np.int64(0), np.int64(0), np.int64(0)
    while at_bucket < opened:
        candidates = np.int64(0)
        while at_bucket < opened and candidates < arrays.CANDIDATES:
            bucket = index.buckets.keys[scratch.entry[at_bucket]]
            size = bucket[Bucket.SIZE] >> arrays.SIZE_BITS
            while position < size and candidates < arrays.CANDIDATES:
                at = bucket[Bucket.MEMBERS] + position
                position += 1
                scratch.candidate[candidates] = rows[at, 1] >> 32
                if np.uint64(rows[at, 0]) & ~signature == np.uint64(0):
                    prefetch(records, 2 * scratch.candidate[candidates])
                    candidates += 1
            if position == size:
                examined += size
                position = np.int64(0)
                at_bucket += 1
        if count + candidates > found.shape[0]:
            state.tops[Top.ROOM] = count + candidates
            return np.int64(-1), examined
        for i in range(candidates):
            at = scratch.candidate[i]
            if holds(state, at, pairs):
                found[count] = records[at, 0]  # the number, with NEEDS_RESIDUAL where it applies
                count += 1
    return count, examined
