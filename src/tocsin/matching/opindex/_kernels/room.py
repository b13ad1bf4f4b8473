"""Whether a form can be placed, and if not, what is wanting."""

from __future__ import annotations

import numpy as np

from tocsin.matching.opindex._kernels.entries import members_of
from tocsin.matching.opindex._kernels.predicate_lists import growth, splitting
from tocsin.matching.opindex.state import (
    CLASS,
    COPIES,
    COUNTERS,
    EMITTED,
    FREE,
    KINDS,
    LACKING,
    LARGEST,
    MOST_SEGMENTS,
    NEEDED,
    OPENED,
    SHORT_OF,
    TOP,
    TOP_EXTRA,
    TOP_GATE,
    TOP_PIVOT,
    TOP_SEGMENT,
    Expressions,
    State,
)
from tocsin.structures.blocks import size_of
from tocsin.structures.jit import helper


@helper
def has_draft_room(state: State, forms: Expressions, i: int) -> bool:
    """Tell whether there is room to write down all that a form consists of."""
    begin, end = forms.bounds[forms.offsets[i]], forms.bounds[forms.offsets[i + 1]]
    gates = end - begin + forms.offsets[i + 1] - forms.offsets[i]
    entries = 2 * (end - begin) + 1 + members_of(forms, begin, end)
    for place_ in (NEEDED, LACKING, SHORT_OF, COPIES, OPENED):
        state.tops[place_] = 0
    return (
        entries <= state.draft.shape[0]
        and entries <= state.chosen.shape[0]
        and gates <= state.gate_draft.shape[0]
    )


@helper
def has_room(state: State, copies: int) -> bool:
    """Tell whether there is room to place the form that is drafted.

    NEEDED says how many rows of entries it takes, LACKING how many segments, and SHORT_OF how many counters.
    """
    tops = state.tops
    for copy in range(copies):
        tops[SHORT_OF] += _counter_growth(state, np.int64(state.fields.pivot[state.chosen[copy]]))
    return (
        _has_entry_room(state, copies)
        and tops[TOP_PIVOT] + copies <= state.pivots.shape[0]
        and tops[TOP_GATE] + tops[OPENED] * copies <= state.gates.shape[0]
        and tops[TOP_EXTRA] + copies <= state.extras.shape[0]
        and state.counters.top[0] + tops[SHORT_OF] <= state.counters.rows.shape[0]
    )


@helper
def _counter_growth(state: State, pivot: int) -> int:
    """Return how many rows one more counter takes at a pivot."""
    if pivot < 0 or state.pivots[pivot, COUNTERS] < 0:
        return np.int64(1)
    row = state.pivots[pivot]
    return np.int64(0) if row[FREE] >= 0 or row[TOP] < size_of(row[CLASS]) else size_of(row[CLASS] + 1)


@helper
def _has_entry_room(state: State, copies: int) -> bool:
    """Tell whether there is room for the entries of the form that is drafted.

    NEEDED says how many rows of entries they take, and LACKING how many segments.
    """
    tops = state.tops
    emitted = tops[EMITTED]
    rows = state.entries.rows.shape[0] - state.entries.top[0]
    segments = state.segments.shape[0] - tops[TOP_SEGMENT]
    # If the largest segment were to grow for each of them, and the largest lists to be split, would there be room?
    lists = min(emitted, np.int64(KINDS))
    growing = emitted * (2 * tops[LARGEST] + 2) + lists * (18 * tops[MOST_SEGMENTS] + 4 * emitted)
    if 2 * copies * growing <= rows and copies * lists * (4 * tops[MOST_SEGMENTS] + emitted + 2) <= segments:
        return True
    for copy in range(copies):
        pivot = np.int64(state.fields.pivot[state.chosen[copy]])
        for kind in range(KINDS):
            if pivot >= 0:
                more, further = splitting(state, pivot, kind, emitted)
                tops[NEEDED] += more
                tops[LACKING] += further
            else:
                tops[LACKING] += emitted + 2
        if pivot >= 0:
            last = np.int64(-1)
            for e in range(emitted):
                entry = state.draft[e]
                row, more = growth(state, pivot, entry[0], entry[1], entry[2], emitted)
                tops[NEEDED] += more if row != last or row < 0 else 0
                last = row
    # Several entries may go into one segment, which then grows several times; and those of a new list are split.
    tops[NEEDED] = 2 * tops[NEEDED] + 12 * copies * emitted
    return tops[NEEDED] <= rows and tops[LACKING] <= segments
