"""Choosing tables and grids: which further access paths would save more checks than they cost."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive import state as arrays
from tocsin.matching.adaptive._kernels.adaptation import draw, intervals_of
from tocsin.matching.adaptive.expected_events import ExpectedEvents
from tocsin.matching.adaptive.state import MOST_BOUNDS, WIDEST, GridRow, Slot, State, Top, Total
from tocsin.matching.conjunction_store.state import StoreCounter
from tocsin.matching.le_subscribe.tables import Costs, choose_schemas, new_sample, schema_key
from tocsin.structures import blocks
from tocsin.structures.array_types import Float64s, Int32s, Int64s
from tocsin.structures.growth import grown

COSTS: Final = Costs(table=8.0, attribute=1.0, misses=0.0, create=1.5)
"""In checks of a conjunction, which take about six nanoseconds. Cache misses are not counted: on W0, 23 tables took less time than 9."""

_GRID: Final = 24.0  # checks: to find the cells of a value
_CELL: Final = 2.7  # how much wider than an interval its cell is, on average
_LEAST_VALUES: Final = 8  # of events, to judge by
_LEAST_SAVED: Final = 0.25  # of the events that would reach a conjunction without the grid,
_LEAST_SAVED_OF_FEW: Final = 0.4  # or where that is judged by a few values
MOST_TABLES: Final = 256
_AT_ONCE: Final = 32
_LEAST_BOUNDS: Final = 8


def plan(
    state: State,
    numbers: Int32s,
    scale: float,
    placed: float,
    scratch: Int64s,
    *,
    expected: ExpectedEvents | None = None,
) -> tuple[State, int]:
    """Return the state with the tables and grids that pay off for a sample of conjunctions, and how many are new.

    Each stands for `scale` conjunctions; if that is negative, for so many checks of an event. `placed` is the share of all that
    are in clusters. A new grid counts the values of `expected` as those of the events so far.
    """
    state.tables.width[state.tables.members == 0] = 0  # what earlier plans made, and nothing is in any more
    sample = new_sample(max(len(numbers), 1))
    demand = np.zeros(int(state.tops[Top.SLOTS]) + 1)
    state = arrays.with_slots(state, arrays.LEVELS * len(numbers))
    draw(state, numbers, scale, placed, sample, demand, scratch)
    made = 0
    for slot, constants in _wanted(state, demand, numbers, scratch).items():
        state = _with_grid(state, slot, constants)
        if expected is not None:
            expected.count_grid(state, int(state.tops[Top.GRIDS]) - 1, float(state.totals[Total.EVENTS]))
        made += 1
    if made:
        draw(state, numbers, scale, placed, sample, demand, scratch)
    room = MOST_TABLES - int(np.count_nonzero(state.tables.width))
    if not sample.count[0] or room <= 0:
        return state, made
    distinct = np.maximum(state.slots.rows[:, Slot.EQUALITIES], 1).astype(np.int32)
    stands_for = float(sample.weight[: sample.count[0]].sum()) or 1.0
    held = int(state.store.counters[StoreCounter.LIVE])
    figures = COSTS.figures(np.inf, max(held / stands_for, 1.0))
    known = _known(state)
    for schema in choose_schemas(known, sample, WIDEST, figures, distinct, most=min(room, _AT_ONCE)):
        state = arrays.with_table(state, schema, 1.0)
        made += 1
    return state, made


def _wanted(state: State, demand: Float64s, numbers: Int32s, scratch: Int64s) -> dict[int, Int64s]:
    """Return the slots whose grids would save more than they cost, each with the ends of intervals there, ascending."""
    found: dict[int, Int64s] = {}
    for slot in np.flatnonzero(demand > COSTS.create * _GRID).tolist():
        if state.slots.rows[slot, Slot.GRID]:
            continue
        lows, highs = np.empty((2, 4 * len(numbers)), dtype=np.int64)
        count = intervals_of(state, numbers, slot, lows, highs, scratch)
        lows, highs = lows[:count], highs[:count]
        ends = np.sort(np.concatenate([lows[lows > arrays.LOWEST], highs[highs < arrays.HIGHEST - 1] + 1]))
        if not len(ends):
            continue
        values = state.slots.drawn[slot]
        values, least = np.sort(values[values < arrays.HIGHEST]), _LEAST_SAVED_OF_FEW
        if (
            len(values) < _LEAST_VALUES
        ):  # before there are events, they are taken to be like the ends of intervals
            values, least = ends, _LEAST_SAVED
        shares = (np.searchsorted(values, highs, "right") - np.searchsorted(values, lows)) / len(values)
        saved = 1.0 - np.minimum(_CELL * shares, 1.0).mean()
        if saved > least and demand[slot] * saved > COSTS.create * _GRID:
            found[slot] = np.unique(ends)
    return found


def _with_grid(state: State, slot: int, constants: Int64s) -> State:
    """Return the state with a grid of a slot, whose cells have about equally many of these constants."""
    count = MOST_BOUNDS
    while count > max(len(constants), _LEAST_BOUNDS):
        count //= 2
    chosen = np.full(count, arrays.HIGHEST, dtype=np.int64)
    if len(constants) >= count:
        chosen[:] = constants[(np.arange(count) * len(constants)) // count]
    else:
        chosen[: len(constants)] = constants
    grids = state.grids
    grids = grids._replace(bounds=blocks.with_room(grids.bounds, 2 * count + 2))
    number = int(state.tops[Top.GRIDS])
    grids = grown(grids, ("rows", "levels"), number + 1)
    first = int(grids.bounds.top[0])
    grids.bounds.top[0] += count + 1
    grids.bounds.rows[first : first + count, 0] = chosen
    grids.bounds.rows[first : first + count + 1, 1] = 0
    grids.rows[number] = 0
    grids.rows[number, [GridRow.SLOT, GridRow.FIRST, GridRow.COUNT]] = slot, first, count
    grids.levels[number] = 0
    state.tops[Top.GRIDS] += 1
    state.slots.rows[slot, Slot.GRID] = number + 1
    return state._replace(grids=grids)


def _known(state: State) -> Int64s:
    """Return the schemas of all tables, as `choose_tables` reads them."""
    tables = state.tables
    schemas = [
        tuple(sorted(tables.slots[row, : tables.width[row]].tolist()))
        for row in np.flatnonzero(tables.width).tolist()
    ]
    return np.array([schema_key(schema) for schema in schemas], dtype=np.int64).reshape(-1, 2)
