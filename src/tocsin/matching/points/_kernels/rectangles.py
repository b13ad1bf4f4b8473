"""From events to rectangles, and from the points there to conjunctions by event."""

from __future__ import annotations

import numpy as np

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.points.state import NO_FIELD, ROOT, ShapeColumn, State, Total, Values
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int32s, Int64s
from tocsin.structures.jit import helper, kernel
from tocsin.structures.point_index.state import Rectangles


@kernel
def rectangles_of(
    state: State,
    events: EncodedEvents,
    values: Values,
    start: int,
    asked: Rectangles,
    which: Int64s,
    pairs: Int64s,
) -> tuple[int, int]:
    """Write the rectangles of events from `start` on, and the event of each.

    Return how many events are done, and how many rectangles there are. An event has a rectangle for each shape of which it
    has all attributes, and there is a tree for the values of the equalities. `pairs` has room for every field, with -1 in it.
    """
    count, shapes = np.int64(0), state.totals[Total.SHAPES]
    for event in range(start, events.offsets.shape[0] - 1):
        if count + shapes > which.shape[0]:
            return np.int64(event), count
        for pair in range(events.offsets[event], events.offsets[event + 1]):
            pairs[events.fields[pair]] = pair
        for shape in range(shapes):
            if state.shapes[shape, ShapeColumn.LIVE] == 0:
                continue
            root = _root(state, shape, events, pairs)
            if root >= 0 and _enclose(state.shapes[shape], values, pairs, asked, count):
                asked.roots[count] = root
                which[count] = event
                count += 1
        for pair in range(events.offsets[event], events.offsets[event + 1]):
            pairs[events.fields[pair]] = -1
    return events.offsets.shape[0] - 1, count


@helper
def _root(state: State, shape: int, events: EncodedEvents, pairs: Int64s) -> int:
    """Return the root of the tree whose equalities an event satisfies, or -1."""
    row = state.shapes[shape]
    first, second = np.int64(0), np.int64(0)
    if row[ShapeColumn.EQUALS] > 0:
        pair = pairs[row[ShapeColumn.FIELDS]]
        if pair < 0:
            return np.int64(-1)
        first = events.keys[pair]
    if row[ShapeColumn.EQUALS] > 1:
        pair = pairs[row[ShapeColumn.FIELDS + 1]]
        if pair < 0:
            return np.int64(-1)
        second = events.keys[pair]
    entry = np.int64(hash_index.find(state.trees, shape, first, second))
    return state.trees.keys[entry, ROOT] if entry >= 0 else np.int64(-1)


@helper
def _enclose(row: Int64s, values: Values, pairs: Int64s, asked: Rectangles, place: int) -> bool:
    """Write the four sides of a rectangle; tell whether the event has all the attributes."""
    asked.outer_l[place], asked.inner_l[place] = -np.inf, np.inf
    asked.inner_r[place], asked.outer_r[place] = -np.inf, np.inf
    for side in range(4):
        field = row[ShapeColumn.SIDES + 2 * side]
        if field == NO_FIELD:
            continue
        pair, is_big = pairs[field], False
        if pair < 0:
            pair, is_big = pairs[field // FIELDS * FIELDS + Field.BIG], True
        if pair < 0:
            return False
        # For a number that no float equals, `at` is the float below, and strictness makes no difference.
        if side == 0:
            is_at = is_big or row[ShapeColumn.SIDES + 1] == 0
            asked.outer_l[place] = values.at[pair] if is_at else values.below[pair]
        elif side == 1:
            is_at = is_big or row[ShapeColumn.SIDES + 3] == 1
            asked.inner_l[place] = values.at[pair] if is_at else values.below[pair]
        elif side == 2:
            is_at = not is_big and row[ShapeColumn.SIDES + 5] == 1
            asked.inner_r[place] = values.at[pair] if is_at else values.above[pair]
        else:
            is_at = not is_big and row[ShapeColumn.SIDES + 7] == 0
            asked.outer_r[place] = values.at[pair] if is_at else values.above[pair]
    return True


@kernel
def join(
    points: Int64s,
    ends: Int64s,
    others: Int64s,
    other_ends: Int64s,
    owner: Int32s,
    keys: Int64s,
    found: Int64s,
) -> None:
    """Write, event by event, the conjunctions that are points and then the inner matcher's, by our numbers.

    Those of event i are `points[ends[i]:ends[i + 1]]`, and the others likewise.
    """
    at = np.int64(0)
    for event in range(ends.shape[0] - 1):
        for i in range(ends[event], ends[event + 1]):
            found[at] = points[i]
            at += 1
        for i in range(other_ends[event], other_ends[event + 1]):
            unsure = np.int64(NEEDS_RESIDUAL) if others[i] >= NEEDS_RESIDUAL else np.int64(0)
            found[at] = keys[owner[others[i] - unsure], 0] + unsure
            at += 1
