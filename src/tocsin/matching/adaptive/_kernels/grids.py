"""Cells of a slot's values: an interval belongs to the smallest cell that has all of it."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.adaptive._kernels.predicates import new_slot
from tocsin.matching.adaptive.state import CELL, LEVELS, OP_BITS, GridRow, Slot, State
from tocsin.structures.jit import helper

_SAMPLED: Final = 16  # cells of an interval that are looked at


@helper
def position(state: State, grid: int, value: int) -> int:
    """Return how many bounds of a grid are at or below a value."""
    first = state.grids.rows[grid, GridRow.FIRST]
    low, high = first, first + state.grids.rows[grid, GridRow.COUNT]
    bounds = state.grids.bounds.rows
    while low < high:
        middle = (low + high) >> 1
        if bounds[middle, 0] <= value:
            low = middle + 1
        else:
            high = middle
    return low - first


@helper
def cell_of(state: State, grid: int, low: int, high: int) -> tuple[int, int]:
    """Return the level and the number of the smallest cell that has an interval; level -1 if none has."""
    first, last = position(state, grid, low), position(state, grid, high)
    if first == last:
        return np.int64(0), first
    for level in range(1, LEVELS):
        if 1 << level > state.grids.rows[grid, GridRow.COUNT]:
            break
        cell = first >> (level - 1)
        if last < (cell << (level - 1)) + (1 << level):
            return np.int64(level), cell
    return np.int64(-1), np.int64(0)


@helper
def share_inside(state: State, grid: int, low: int, high: int) -> float:
    """Return the share of a slot's values that is expected in an interval, by the counts between bounds."""
    first, last = position(state, grid, low), position(state, grid, high)
    bounds, row = state.grids.bounds.rows, state.grids.rows[grid]
    step = 1 + (last - first) // _SAMPLED
    inside, sampled = 0.0, 0.0
    for i in range(first, last + 1, step):
        # What lies beside an end that is in the middle of a cell is not known: half of it is taken to be inside.
        weight = 0.5 if i in (first, last) and first < last else 1.0
        inside += weight * (np.int64(bounds[row[GridRow.FIRST] + i, 1]).view(np.float64) + 1.0)
        sampled += 1.0
    total = np.int64(row[GridRow.TOTAL]).view(np.float64) + row[GridRow.COUNT] + 1.0
    return min(inside * (last - first + 1) / (sampled * total), 1.0)


@helper
def count_value(state: State, grid: int, at: int, weight: float) -> None:
    """Count an event's value between two bounds."""
    row, bounds = state.grids.rows[grid], state.grids.bounds.rows
    place = row[GridRow.FIRST] + at
    bounds[place, 1] = np.float64(np.int64(bounds[place, 1]).view(np.float64) + weight).view(np.int64)
    row[GridRow.TOTAL] = np.float64(np.int64(row[GridRow.TOTAL]).view(np.float64) + weight).view(np.int64)


@helper
def level_slot(state: State, grid: int, level: int) -> int:
    """Return the slot of a grid's level, which gets one if it has none; there must be room."""
    slot = np.int64(state.grids.levels[grid, level]) - 1
    if slot < 0:
        slot = new_slot(state, -1 - state.grids.rows[grid, GridRow.SLOT])
        state.grids.levels[grid, level] = slot + 1
    return slot


@helper
def cell_tag(slot: int) -> int:
    """Return the tag of the cells of a level."""
    return (np.int64(CELL) << OP_BITS) | slot


@helper
def grid_of(state: State, slot: int) -> int:
    """Return the grid of a slot, or -1."""
    return state.slots.rows[slot, Slot.GRID] - 1
