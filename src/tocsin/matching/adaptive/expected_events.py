"""The statistics of a history as counts, so that paths are chosen by them before the first event."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from tocsin.matching.adaptive import state as arrays
from tocsin.matching.adaptive.state import (
    CODE_BITS,
    HIGHEST,
    OP_BITS,
    ORDER,
    SLOT_MASK,
    VALUES,
    Code,
    GridRow,
    Slot,
    State,
    Top,
    Total,
)
from tocsin.matching.conjunction_store.state import Expressions
from tocsin.matching.encoding.codes import FIELD_BITS, FIELD_MASK, FIELDS, Field, Keys, Op
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.statistics import Statistics
from tocsin.matching.statistics.encoded import (
    KINDS,
    equality_probabilities,
    place_of,
    presence_probability,
    value_keys,
)
from tocsin.structures import hash_index
from tocsin.structures.array_types import Float64s

_LOW_HALF: Final = (1 << CODE_BITS) - 1


class ExpectedEvents(NamedTuple):
    """Statistics, and the vocabulary in which they are asked about encoded predicates."""

    statistics: Statistics
    vocabulary: Vocabulary

    def count_all(self, state: State, events: float) -> None:
        """Count so many weighted events like those of the history, for what the state has."""
        self._count_slots(state, np.arange(state.tops[Top.SLOTS]), events)
        entries = state.predicates.entries
        top = hash_index.top_entry(entries)
        tags = entries.keys[:top, Code.TAG]
        is_equality = (tags >> OP_BITS == Op.EQ) & (state.predicates.uses[:top] > 0)
        self._count_equalities(state, np.flatnonzero(is_equality), events)
        state.totals[Total.EVENTS] += events
        for grid in range(int(state.tops[Top.GRIDS])):
            self.count_grid(state, grid, events)

    def prepare(self, state: State, expressions: Expressions) -> tuple[State, Keys]:
        """Return the state with slots and codes of new equalities, counted as if they had been there all along.

        A path is chosen by such counts. The codes that are returned have one use, until `release` is called with them.
        """
        ops, fields = expressions.tags >> FIELD_BITS, expressions.tags & FIELD_MASK
        text = (fields % FIELDS == Field.STRING) & (ops >= Op.LT) & (ops <= Op.NOT_BETWEEN)
        fields = np.where(text, fields - Field.STRING + ORDER, fields)
        # A list has a slot of its own only if its members are of several kinds.
        members = np.unique(expressions.fields)
        attributes, kinds = np.unique(members // FIELDS, return_counts=True)
        of_lists = attributes[kinds > 1] * FIELDS + Field.ANY
        wanted = np.concatenate([fields[(ops != Op.RESIDUAL) & (ops != Op.IN)], members, of_lists])
        events = float(state.totals[Total.EVENTS])
        state = self._with_slots(state, np.unique(wanted), events)
        is_equality = ops == Op.EQ
        tags = (int(Op.EQ) << OP_BITS) | (state.slots.of[fields[is_equality]].astype(np.int64) - 1)
        tags, keys = _distinct(tags, expressions.lows[is_equality])
        state = arrays.with_codes(state, len(tags) + 1)
        entries = state.predicates.entries
        new = [
            hash_index.insert(entries, tag, key, key)
            for tag, key in zip(tags.tolist(), keys.tolist(), strict=True)
            if hash_index.find(entries, tag, key, key) < 0
        ]
        codes = np.array(new, dtype=np.int64)
        entries.keys[codes, Code.USE] = 0
        state.predicates.uses[codes], state.predicates.linked[codes] = 1, 0
        np.add.at(state.slots.rows[:, Slot.EQUALITIES], entries.keys[codes, Code.TAG] & SLOT_MASK, 1)
        self._count_equalities(state, codes, events)
        return state, codes

    def count_grid(self, state: State, grid: int, events: float) -> None:
        """Count values of so many weighted events between the bounds of a grid."""
        slot, first, count = state.grids.rows[grid, [GridRow.SLOT, GridRow.FIRST, GridRow.COUNT]].tolist()
        keys, counts = self._values(state, slot)
        if not len(keys):
            return
        rows = state.grids.bounds.rows
        bounds, between = rows[first : first + count, 0], rows[first : first + count + 1, 1].view(np.float64)
        places = np.searchsorted(bounds, keys, side="right")
        inside = np.bincount(places, counts, count + 1) * (events / self.statistics.events)
        rows[first : first + count + 1, 1] = (between + inside).view(np.int64)
        total = state.grids.rows[grid, GridRow.TOTAL : GridRow.TOTAL + 1]
        total[:] = (total.view(np.float64) + inside.sum()).view(np.int64)

    def _with_slots(self, state: State, fields: Keys, events: float) -> State:
        """Return the state with slots for these fields; new ones are counted as if they had been there all along."""
        missing = fields[state.slots.of[fields] == 0]
        state = arrays.with_slots(state, len(missing))
        top = int(state.tops[Top.SLOTS])
        new = np.arange(top, top + len(missing))
        state.slots.rows[new] = 0
        state.slots.rows[new, Slot.FIELD] = missing
        state.slots.seen[new] = 0.0
        state.slots.of[missing] = new + 1
        state.tops[Top.SLOTS] += len(missing)
        self._count_slots(state, new, events)
        return state

    def _count_slots(self, state: State, slots: Keys, events: float) -> None:
        """Count so many weighted events with values in slots; cells are counted by their codes."""
        for slot in slots.tolist():
            if state.slots.rows[slot, Slot.FIELD] < 0:
                continue
            state.slots.seen[slot] += events * presence_probability(
                self.statistics, self.vocabulary, self._field(state, slot)
            )
            keys, counts = self._values(state, slot)
            if len(keys) and HIGHEST in state.slots.drawn[slot]:
                upto = np.cumsum(counts)
                state.slots.drawn[slot] = keys[
                    np.searchsorted(upto, (np.arange(VALUES) + 0.5) / VALUES * upto[-1])
                ]

    def _count_equalities(self, state: State, codes: Keys, events: float) -> None:
        """Count so many weighted events towards equalities."""
        if not len(codes):
            return
        keys = state.predicates.entries.keys
        fields = state.slots.rows[keys[codes, Code.TAG] & SLOT_MASK, Slot.FIELD]
        likely = equality_probabilities(self.statistics, self.vocabulary, fields, keys[codes, Code.LOW])
        use = keys[codes, Code.USE]
        hits = (use >> CODE_BITS).astype(np.int32).view(np.float32) + (events * likely).astype(np.float32)
        keys[codes, Code.USE] = (use & _LOW_HALF) | (hits.view(np.int32).astype(np.int64) << CODE_BITS)

    def _values(self, state: State, slot: int) -> tuple[Keys, Float64s]:
        """Return the keys of values that events have in a slot, ascending, and how many events have each."""
        path, kind = place_of(self.vocabulary, self._field(state, slot))
        is_order = state.slots.rows[slot, Slot.FIELD] % FIELDS == ORDER
        if is_order or kind in (Field.NUMBER, Field.TIMESTAMP):
            return value_keys(self.statistics.attribute(path).of(KINDS[kind]))
        return np.empty(0, dtype=np.int64), np.empty(0)

    def _field(self, state: State, slot: int) -> int:
        """Return the field whose values events have in a slot: that of the strings for their order."""
        field = int(state.slots.rows[slot, Slot.FIELD])
        return field - ORDER + Field.STRING if field % FIELDS == ORDER else field


def _distinct(tags: Keys, keys: Keys) -> tuple[Keys, Keys]:
    """Return each pair of a tag and a key once."""
    order = np.lexsort((keys, tags))
    tags, keys = tags[order], keys[order]
    is_first = np.ones(len(order), dtype=np.bool_)
    is_first[1:] = (tags[1:] != tags[:-1]) | (keys[1:] != keys[:-1])
    return tags[is_first], keys[is_first]


def release(state: State, codes: Keys) -> None:
    """Count one use less of codes of equalities, and forget those that no conjunction has come to use."""
    entries = state.predicates.entries
    state.predicates.uses[codes] -= 1
    for code in codes[state.predicates.uses[codes] == 0].tolist():
        state.slots.rows[entries.keys[code, Code.TAG] & SLOT_MASK, Slot.EQUALITIES] -= 1
        hash_index.remove(entries, code)
