"""Access predicates: which one a conjunction is kept under, and its way into and out of a cluster (2.2, 3)."""

from __future__ import annotations

import numpy as np

from tocsin.matching.conjunction_store._kernels.numbers import add_number, free_number, has_room
from tocsin.matching.conjunction_store.state import Expressions, StoreCounter
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, Op
from tocsin.matching.le_subscribe import state as arrays
from tocsin.matching.le_subscribe._kernels.predicates import release_slot, selectivity
from tocsin.matching.le_subscribe._kernels.probability import expected, key_slot
from tocsin.matching.le_subscribe.state import ClusterStateAddress, ClusterTotal, ConjunctionColumn, State
from tocsin.structures import chunked_lists, hash_index, marks
from tocsin.structures.addresses import load
from tocsin.structures.array_types import Int64s
from tocsin.structures.chunked_lists import Chunk, ListRow
from tocsin.structures.jit import helper, kernel


@kernel
def place(address: ClusterStateAddress, ids: Int64s, offsets: Int64s, slots: Int64s, start: int) -> int:
    """Enter conjunctions from `start` on under the best access predicate there is.

    Returns how many were done: fewer than all if there was no room.
    """
    state: State = load(address)
    for i in range(start, ids.shape[0]):
        size = offsets[i + 1] - offsets[i]
        if not fits(state, size):
            return i
        number, size = enter(state, ids[i], slots[offsets[i] : offsets[i + 1]])
        a, b, table, probability = choose(state, size)
        entry = attach(state, number, size, a, b, table)
        if state.access.status[entry] == arrays.SUSPECT:
            state.totals[ClusterTotal.PENDING] += probability
        elif probability * state.access.members[entry] > state.totals[ClusterTotal.TOLERANCE]:
            suspect(state, entry, probability * state.access.members[entry])
    return ids.shape[0]


@helper
def enter(state: State, id_: int, slots: Int64s) -> tuple[int, int]:
    """Give a conjunction a number under its subscription's id, and write its slots into `scratch`, each once.

    Returns the number, and how many slots it has.
    """
    number = add_number(state.store, id_)
    size = np.int64(0)
    for j in range(slots.shape[0]):
        slot = slots[j] if slots[j] >= 0 else -1 - slots[j]
        known = False
        for k in range(size):
            known |= state.scratch[k] == slot
        if known:
            state.predicates.uses[slot] -= 1
        else:
            state.scratch[size] = slot
            size += 1
    state.store.counters[StoreCounter.PREDICATES] += size
    return number, size


@helper
def fits(state: State, size: int) -> bool:
    """Tell whether there is room for one more conjunction of so many slots."""
    return (
        chunked_lists.has_room(state.clusters, size + arrays.SLOTS)
        and has_room(state.store)
        and state.access.entries.counters[1] + 1 < state.access.members.shape[0]
        and 4 * size + 32 <= state.scratch.shape[0]
    )


@helper
def choose(state: State, size: int) -> tuple[int, int, int, float]:
    """Return the access predicate for the conjunction whose `size` slots are in `scratch`, as (key, key, table, probability).

    It is the one that the fewest events satisfy, among the conjunction's equalities alone and those of the
    tables whose schema it covers; of equals, the one with most attributes, then the table that came first. The
    slots' selectivities are left in `scratch` behind them, from `size` on, in units of 2**-60.
    """
    scratch, fields, keys = state.scratch, state.fields, state.predicates.entries.keys
    best = 1.0
    chosen = np.int64(-1)
    state.totals[ClusterTotal.STAMP] += 1.0  # a stamp of our own
    stamp = np.int64(state.totals[ClusterTotal.STAMP])
    equalities = np.int64(0)
    for j in range(size):
        tag = keys[scratch[j], 0]
        scratch[size + j] = np.int64(1) << 60
        if tag >> FIELD_BITS != Op.EQ:
            continue
        equalities += 1
        probability = selectivity(state, scratch[j])
        scratch[size + j] = np.int64(probability * (1 << 60))
        fields.stamp[tag & FIELD_MASK] = stamp
        fields.slot[tag & FIELD_MASK] = scratch[j]
        fields.low[tag & FIELD_MASK] = scratch[size + j]
        if probability < best or chosen < 0:
            best, chosen = probability, scratch[j]
    if chosen < 0:
        return np.int64(-1), np.int64(-1), np.int64(-1), 1.0
    a, b, table = (chosen << 32) | arrays.NO_SLOT, np.int64(-1), np.int64(-1)
    if equalities < 2:
        return a, b, table, best
    tables = state.tables
    for t in range(tables.used[0]):
        width = np.int64(tables.width[t])
        if width <= 0 or width > equalities:
            continue
        probability, least = 1.0, 1.0
        for w in range(width):
            field = tables.fields[t, w]
            if fields.stamp[field] != stamp:
                least = 2.0
                break
            chance = fields.low[field] * (1.0 / (1 << 60))
            probability *= chance
            least = min(least, chance)
        if least > 1.0:
            continue  # the conjunction lacks an attribute of the schema
        probability = min(probability * tables.correlation[t], least)
        if probability < best or (probability == best and table >= 0 and width > tables.width[table]):
            best, table = probability, t
    if table >= 0:
        a, b = table_key(state, table)
    return a, b, table, best


@helper
def table_key(state: State, table: int) -> tuple[int, int]:
    """Return the key, within a table, of the slots in `fields.slot` for its schema."""
    tables, fields = state.tables, state.fields
    width = abs(np.int64(tables.width[table]))
    a = (np.int64(fields.slot[tables.fields[table, 0]]) << 32) | np.int64(
        fields.slot[tables.fields[table, 1]]
    )
    b = np.int64(-1)
    if width > 2:
        b = (np.int64(fields.slot[tables.fields[table, 2]]) << 32) | arrays.NO_SLOT
    if width > 3:
        b = (b & ~np.int64(arrays.NO_SLOT)) | np.int64(fields.slot[tables.fields[table, 3]])
    return a, b


@helper
def hint_of(first: int, second: int) -> int:
    """Return the last 16 bits of two slots in one word."""
    return np.int32(np.uint32((first & 0xFFFF) | ((second & 0xFFFF) << 16)).view(np.int32))


@helper
def attach(state: State, number: int, size: int, a: int, b: int, table: int) -> int:
    """Put a conjunction, whose slots and selectivities are in `scratch`, into the cluster of an access predicate.

    The slots of the access predicate are left out of the columns: an event that reaches the cluster has satisfied them.
    The others are ordered so that the predicate that fails most often is checked first. The caller has made room.
    Returns the access predicate.
    """
    access, clusters, scratch = state.access, state.clusters, state.scratch
    entry = _entry_for(state, a, b, table)
    kept = _order(state, size, entry)
    width = kept + arrays.SLOTS if kept > 0 else np.int64(1)
    cluster = access.entries.keys[entry, arrays.CLUSTER]
    while cluster >= 0 and clusters.rows[cluster, ListRow.WIDTH] != width:
        cluster = np.int64(state.clusters.rows[cluster, ListRow.NEXT])
    if cluster < 0:
        cluster = chunked_lists.new_list(clusters, width)
        state.clusters.rows[cluster, ListRow.TAG] = entry
        state.clusters.rows[cluster, ListRow.NEXT] = access.entries.keys[entry, arrays.CLUSTER]
        access.entries.keys[entry, arrays.CLUSTER] = cluster
    chunk, position = chunked_lists.append(clusters, cluster)
    word = clusters.chunks[chunk, Chunk.OFFSET] + position
    clusters.words[word] = number
    if kept > 0:
        word += clusters.chunks[chunk, Chunk.CAPACITY]
        clusters.words[word] = hint_of(scratch[0], scratch[min(kept - 1, 1)])
    for j in range(kept):
        word += clusters.chunks[chunk, Chunk.CAPACITY]
        clusters.words[word] = scratch[j]
    state.store.rows[number, ConjunctionColumn.CHUNK] = chunk
    state.store.rows[number, ConjunctionColumn.PLACE] = position
    access.members[entry] += 1
    if table >= 0:
        state.tables.members[table] += 1
    return entry


@helper
def suspect(state: State, entry: int, margin: float) -> None:
    """Queue an access predicate whose benefit margin is beyond tolerance, unless it is queued already.

    A settled one becomes suspect again when its margin has grown by half.
    """
    access, totals = state.access, state.totals
    count = np.int64(totals[ClusterTotal.SUSPECTS])
    if entry == arrays.FALLBACK or access.status[entry] == arrays.SUSPECT or count >= state.suspects.shape[0]:
        return
    if access.status[entry] == arrays.SETTLED and margin < 1.5 * access.settled[entry]:
        return
    totals[ClusterTotal.PENDING] += margin - access.settled[entry]
    access.status[entry] = arrays.SUSPECT
    state.suspects[count] = entry
    totals[ClusterTotal.SUSPECTS] += 1.0


@helper
def _entry_for(state: State, a: int, b: int, table: int) -> int:
    """Return the access predicate with this key, a new one if there is none."""
    access = state.access
    entry = hash_index.find(access.entries, a, b, 0)
    if entry < 0:
        entry = hash_index.insert(access.entries, a, b, 0)
        access.entries.keys[entry, arrays.CLUSTER] = -1
        access.members[entry] = 0
        access.table[entry] = table
        access.hits[entry] = expected(state, entry) * state.totals[ClusterTotal.EVENTS]
        access.status[entry] = arrays.CALM
        access.settled[entry] = 0.0
        if b == -1 and (a & arrays.NO_SLOT) == arrays.NO_SLOT:
            state.predicates.access[a >> 32] = entry
    return entry


@helper
def _order(state: State, size: int, entry: int) -> int:
    """Leave only the slots in `scratch` that are to be checked, in the order of checking; return how many."""
    scratch = state.scratch
    a, b = state.access.entries.keys[entry, 0], state.access.entries.keys[entry, 1]
    kept = np.int64(0)
    for j in range(size):
        slot, weight = scratch[j], scratch[size + j]
        if entry != arrays.FALLBACK:
            inside = False
            for w in range(arrays.WIDEST):
                if key_slot(a, b, w) == slot:
                    inside = True
            if inside:
                continue
        rest = state.predicates.marks.rest[slot]
        if rest == arrays.EVALUATE:
            weight += np.int64(1) << 60
        elif rest == arrays.RESIDUAL:
            weight += np.int64(1) << 61
        k = kept
        while k > 0 and scratch[size + k - 1] > weight:
            scratch[k] = scratch[k - 1]
            scratch[size + k] = scratch[size + k - 1]
            k -= 1
        scratch[k] = slot
        scratch[size + k] = weight
        kept += 1
    return kept


@helper
def place_of(state: State, number: int) -> tuple[int, int]:
    """Return the chunk that a conjunction is in, and its word in the first column."""
    chunk = np.int64(state.store.rows[number, ConjunctionColumn.CHUNK])
    return chunk, state.clusters.chunks[chunk, Chunk.OFFSET] + state.store.rows[
        number, ConjunctionColumn.PLACE
    ]


@kernel
def slots_of(state: State, number: int) -> int:
    """Write all slots of a conjunction into `scratch`, its access predicate's first; return how many."""
    clusters, scratch = state.clusters, state.scratch
    chunk, word = place_of(state, number)
    cluster = np.int64(clusters.chunks[chunk, Chunk.OWNER])
    entry = np.int64(state.clusters.rows[cluster, ListRow.TAG])
    size = np.int64(0)
    if entry != arrays.FALLBACK:
        a, b = state.access.entries.keys[entry, 0], state.access.entries.keys[entry, 1]
        for w in range(arrays.WIDEST):
            slot = key_slot(a, b, w)
            if slot >= 0:
                scratch[size] = slot
                size += 1
    word += clusters.chunks[chunk, Chunk.CAPACITY]
    for _ in range(arrays.SLOTS, clusters.rows[cluster, ListRow.WIDTH]):
        word += clusters.chunks[chunk, Chunk.CAPACITY]
        scratch[size] = clusters.words[word]
        size += 1
    return size


@kernel
def recall_slots(state: State, numbers: Int64s, begin: int, into: Expressions) -> int:
    """Write conjunctions from `begin` on, as many as there is room for; return where it stopped.

    Clusters do not keep the order in which predicates were given: they come by field, operator and constant, and
    residual ones last.
    """
    keys, count = state.predicates.entries.keys, np.int64(0)
    into.offsets[0] = into.bounds[0] = 0
    for i in range(begin, numbers.shape[0]):
        size = slots_of(state, numbers[i])
        if i - begin == into.numbers.shape[0] or count + size > into.tags.shape[0]:
            return i
        into.numbers[i - begin] = numbers[i]
        first = count
        for j in range(size):
            row, at = keys[state.scratch[j]], count
            while at > first and _comes_before(row[0], row[1], into.tags[at - 1], into.lows[at - 1]):
                into.tags[at], into.lows[at] = into.tags[at - 1], into.lows[at - 1]
                into.highs[at] = into.highs[at - 1]
                at -= 1
            into.tags[at], into.lows[at], into.highs[at] = row[0], row[1], row[2]
            count += 1
            into.bounds[count] = count
        into.offsets[i - begin + 1] = count
    return numbers.shape[0]


@helper
def _comes_before(tag: int, low: int, other_tag: int, other_low: int) -> bool:
    op, other_op = tag >> FIELD_BITS, other_tag >> FIELD_BITS
    if (op == Op.RESIDUAL) != (other_op == Op.RESIDUAL):
        return other_op == Op.RESIDUAL
    if (tag & FIELD_MASK) != (other_tag & FIELD_MASK):
        return (tag & FIELD_MASK) < (other_tag & FIELD_MASK)
    return op < other_op or (op == other_op and low < other_low)


@helper
def detach(state: State, number: int) -> None:
    """Take a conjunction out of its cluster; the last one of the cluster moves into its place. Constant time."""
    clusters, access = state.clusters, state.access
    chunk, position = (
        np.int64(state.store.rows[number, ConjunctionColumn.CHUNK]),
        np.int64(state.store.rows[number, ConjunctionColumn.PLACE]),
    )
    cluster = np.int64(clusters.chunks[chunk, Chunk.OWNER])
    entry = np.int64(state.clusters.rows[cluster, ListRow.TAG])
    last_chunk = np.int64(clusters.rows[cluster, ListRow.HEAD])
    moved = np.int64(
        clusters.words[clusters.chunks[last_chunk, Chunk.OFFSET] + clusters.rows[cluster, ListRow.FILL] - 1]
    )
    chunked_lists.swap_remove(clusters, chunk, position)
    state.store.rows[moved, ConjunctionColumn.CHUNK] = chunk
    state.store.rows[moved, ConjunctionColumn.PLACE] = position
    access.members[entry] -= 1
    if access.table[entry] >= 0:
        state.tables.members[access.table[entry]] -= 1
    if clusters.rows[cluster, ListRow.TOTAL] == 0:
        _drop_cluster(state, entry, cluster)
    if access.members[entry] == 0 and entry != arrays.FALLBACK:
        a, b = access.entries.keys[entry, 0], access.entries.keys[entry, 1]
        if b == -1 and (a & arrays.NO_SLOT) == arrays.NO_SLOT:
            state.predicates.access[a >> 32] = -1
        access.status[entry] = arrays.CALM
        hash_index.remove(access.entries, entry)


@helper
def _drop_cluster(state: State, entry: int, cluster: int) -> None:
    """Unlink an empty cluster from the chain of its access predicate, and free it."""
    following = state.clusters.rows[cluster, ListRow.NEXT]
    if state.access.entries.keys[entry, arrays.CLUSTER] == cluster:
        state.access.entries.keys[entry, arrays.CLUSTER] = following
    else:
        before = state.access.entries.keys[entry, arrays.CLUSTER]
        while state.clusters.rows[before, ListRow.NEXT] != cluster:
            before = np.int64(state.clusters.rows[before, ListRow.NEXT])
        state.clusters.rows[before, ListRow.NEXT] = following
    chunked_lists.drop_list(state.clusters, cluster)


@helper
def leave(state: State, number: int, size: int, gone: Int64s, count: int) -> int:
    """Free a detached conjunction whose slots are in `scratch`; return how many rows of `gone` are then filled."""
    keys = state.predicates.entries.keys
    for j in range(size):
        slot = state.scratch[j]
        tag, key = keys[slot, 0], keys[slot, 1]
        if release_slot(state, slot):
            gone[count, 0], gone[count, 1], gone[count, 2] = slot, tag, key
            count += 1
    free_number(state.store, number)
    state.store.counters[StoreCounter.PREDICATES] -= size
    return count


@kernel
def take_out(state: State, numbers: Int64s, start: int, gone: Int64s) -> tuple[int, int]:
    """Remove conjunctions from `start` on, and write the slots that no other uses, with tag and key, to `gone`.

    Returns how many conjunctions were done, fewer than all if `gone` was too short, and how many slots were written.
    """
    marks.clear(state.predicates.marks)
    count = np.int64(0)
    for i in range(start, numbers.shape[0]):
        size = slots_of(state, numbers[i])
        if count + size > gone.shape[0]:
            return np.int64(i), count
        detach(state, numbers[i])
        count = leave(state, numbers[i], size, gone, count)
    return numbers.shape[0], count
