"""Dividing large clusters: conjunctions that ask for similar values of two slots come next to each other, in sections.

An event then looks at the sections' bounds first, and at the conjunctions of those only that its values lie in. Of the conjunctions
whose bounds are of the same two slots, slabs have similar first bounds, and the sections of a slab similar second ones.
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np
from msgspec import Struct

from tocsin.matching.adaptive._kernels.sections import LAID_OUT, lay_out
from tocsin.matching.adaptive.state import (
    HIGHEST,
    HOT_BIT,
    LARGE_BIT,
    LOWEST,
    Access,
    DenseCount,
    Large,
    Section,
    State,
    Top,
    Total,
)
from tocsin.structures.array_types import Float64s, Int64s

_LOW_HALF: Final = 0xFFFFFFFF
MOST_AT_ONCE: Final = 3 << 13  # conjunctions: 10 ms,
FEW_AT_ONCE: Final = 1 << 13  # or where events come one by one
_MOST_PARTS: Final = 6  # that were divided one after the other, before all are divided together, and one more for each that is as large as can be
_MOST_KINDS: Final = 64  # of pairs of slots that have sections of their own
_KNOWN: Final = 8  # values of events, to judge by
_QUARTER: Final = 256  # conjunctions that take as long to divide as all that is done for a cluster besides
_BEHIND: Final = (
    16  # a cluster is divided further when what is behind its sections is one of so many parts of it
)
_VISITS: Final = 16  # events that the estimate is worth


class Sizes(Struct, frozen=True):
    """When clusters are divided, and into what."""

    checks: int = 64  # that are not in sections yet, and are put into some
    saved: float = 1.0  # checks of an event that are worth it, if few conjunctions are divided for them
    section: int = 16  # conjunctions of a section
    few: int = 32  # conjunctions with bounds of the same slots, below which they are not divided
    share: float = 0.5  # of the conjunctions is checked still: where it is more, dividing does not pay


class _Bounds(NamedTuple):
    """What conjunctions ask of a slot, -1 if there is none."""

    slots: Int64s
    lows: Int64s
    highs: Int64s

    def at(self, rows: Int64s) -> _Bounds:
        return _Bounds(*(column[rows] for column in self))

    @property
    def coordinates(self) -> Int64s:
        """Return the lower ends of intervals, or the upper ones of those that have no lower end."""
        return np.where(self.lows > LOWEST, self.lows, self.highs)

    @property
    def sides(self) -> Int64s:
        """Return 1 for an interval that has a lower end, and 2 more for one that has an upper end."""
        return (self.lows > LOWEST) + 2 * (self.highs < HIGHEST - 1)


def worth_dividing(state: State, sizes: Sizes) -> list[tuple[int, int, int]]:
    """Return the large clusters, among those noted and hot ones, that it may pay to divide, those that save most first.

    Each is its access path, how many conjunctions it has, and how many of them are behind its sections.
    """
    entries = state.review.suspects[: state.tops[Top.SUSPECTS]]
    if state.dense.used[DenseCount.HOT]:
        entries = np.concatenate([entries, state.dense.hot[state.dense.hot > 0] - 1])
    entries = np.unique(entries[state.access.keys[entries, Access.PLACE] & LARGE_BIT > 0])
    works = state.access.keys[entries, Access.WORK]
    rows = state.large.rows[works & _LOW_HALF]
    counts, behind = rows[:, Large.COUNT], rows[:, Large.COUNT] - rows[:, Large.DIVIDED]
    hits = (works >> 32).astype(np.int32).view(np.float32)
    sure = np.maximum(hits - 2.0 * np.sqrt(hits * float(state.totals[Total.WEIGHT])), 0.0)
    saved = behind * sure / max(float(state.totals[Total.EVENTS]), 1.0) / (1.0 + behind / _QUARTER)
    saved[(behind < sizes.checks) | (_BEHIND * behind < counts)] = -1.0
    order = np.argsort(-saved)
    order = order[saved[order] >= sizes.saved]
    return list(zip(entries[order].tolist(), counts[order].tolist(), behind[order].tolist(), strict=True))


def divide(state: State, entry: int, sizes: Sizes, most: int) -> tuple[State | None, int]:
    """Return the state with up to `most` conjunctions of a large cluster in sections, those behind the ones that are, and how many were looked at.

    There is no state if that does not pay.
    """
    row = state.large.rows[int(state.access.keys[entry, Access.WORK]) & _LOW_HALF]
    begin = int(row[Large.DIVIDED])
    if row[Large.PARTS] > _MOST_PARTS + begin // most:
        begin = 0
    laid_out = np.empty((most, LAID_OUT), dtype=np.int64)
    count = lay_out(state, entry, begin, laid_out)
    laid_out = laid_out[:count]
    order, sections = _sections(laid_out, sizes)
    share = _expected_share(state.slots.drawn, sections, count)
    if share > sizes.share:
        return None, count
    first = int(row[Large.FIRST]) + begin
    state.large.checks.rows[first : first + count, 0] = laid_out[order, 0]
    if begin == 0:
        row[[Large.SECTIONS, Large.PARTS]] = 0
    sections[:, [Section.BEGIN, Section.END]] += begin
    # Whether it is worth to evaluate the cluster for many events at once is another question now.
    state.access.keys[entry, Access.PLACE] &= ~HOT_BIT
    row[Large.DIVIDED] = begin + count
    row[Large.PARTS] += 1
    row[Large.VISITS] = _VISITS
    row[Large.CHECKS] = int(_VISITS * share * row[Large.DIVIDED])
    return _with_sections(state, row, sections), count


def _sections(laid_out: Int64s, sizes: Sizes) -> tuple[Int64s, Int64s]:
    """Return the order of conjunctions in sections, and the sections; where these begin and end is by their places in the order."""
    first, second = _Bounds(*laid_out.T[1:4]), _Bounds(*laid_out.T[4:7])
    first, second = _arranged(first, second)
    kinds = _kinds(first, second, sizes.few)
    orders, sections = [], np.empty((0, len(Section)), dtype=np.int64)
    done, group, last = 0, 0, None
    for kind in range(int(kinds.max(initial=-1)) + 1):
        rows = np.flatnonzero(kinds == kind)
        order, made = _of_one_kind(first.at(rows), second.at(rows), sizes.section)
        made[:, [Section.BEGIN, Section.END]] += done
        about = int(first.slots[rows[0]]), int(first.sides[rows[0]])
        if about == last:
            _widen(sections[group], made[0])
        else:
            group, last = len(sections), about
            sections = np.concatenate([sections, _around(made[0])])
        made[:, Section.NEXT] += len(sections)
        sections = np.concatenate([sections, made])
        sections[group, Section.NEXT] = len(sections)
        orders.append(rows[order])
        done += len(rows)
    others = np.flatnonzero(kinds < 0)
    if len(others):
        rest = np.array([[-1, LOWEST, HIGHEST, LOWEST, HIGHEST, done, done + len(others), len(sections) + 1]])
        sections = np.concatenate([sections, rest])
        orders.append(others)
    return np.concatenate(orders), sections


def _around(section: Int64s) -> Int64s:
    """Return a section around another one, that asks of the first slot only."""
    around = section.copy()
    around[Section.SLOTS] = int(section[Section.SLOTS]) & _LOW_HALF | (-1 << 32)
    around[[Section.SECOND_LOW, Section.SECOND_HIGH, Section.BEGIN, Section.END]] = 0
    return around[None]


def _widen(around: Int64s, section: Int64s) -> None:
    """Have a section be around another one, too."""
    around[Section.LOW] = min(around[Section.LOW], section[Section.LOW])
    around[Section.HIGH] = max(around[Section.HIGH], section[Section.HIGH])


def _arranged(first: _Bounds, second: _Bounds) -> tuple[_Bounds, _Bounds]:
    """Return bounds with the lower slot first, so that pairs of slots are alike."""
    is_swapped = (second.slots >= 0) & (second.slots < first.slots)
    pairs = [
        (np.where(is_swapped, b, a), np.where(is_swapped, a, b)) for a, b in zip(first, second, strict=True)
    ]
    return _Bounds(*(a for a, _ in pairs)), _Bounds(*(b for _, b in pairs))


def _kinds(first: _Bounds, second: _Bounds, few: int) -> Int64s:
    """Return a number for each pair of slots and sides that many conjunctions have; -1 for conjunctions without one."""
    pairs = (((first.slots << 2) | first.sides) << 32) ^ np.where(
        second.slots >= 0, ((second.slots << 2) | second.sides) + 1, 0
    )
    pairs[first.slots < 0] = -1
    found, which, counts = np.unique(pairs, return_inverse=True, return_counts=True)
    is_kept = (counts >= few) & (found >= 0)
    if is_kept.sum() > _MOST_KINDS:
        is_kept &= counts >= np.sort(counts[is_kept])[-_MOST_KINDS]
    numbers = np.where(is_kept, np.cumsum(is_kept) - 1, -1)
    return np.asarray(numbers[which.reshape(-1)])


def _of_one_kind(first: _Bounds, second: _Bounds, size: int) -> tuple[Int64s, Int64s]:
    """Return the order of conjunctions with bounds of the same slots, and their sections."""
    count = len(first.slots)
    across = second.coordinates if second.slots[0] >= 0 else first.highs
    by_first = np.argsort(first.coordinates, kind="stable")
    slabs = max(round((count / size) ** 0.5), 1)
    slab = np.empty(count, dtype=np.int64)
    slab[by_first] = np.arange(count) * slabs // count
    order = np.lexsort((across, slab))
    starts = np.searchsorted(slab[order], np.arange(slabs + 1))
    leaves = np.concatenate(
        [np.arange(a, b, size) for a, b in zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)]
    )
    leaves_before = np.searchsorted(leaves, starts)  # of each slab
    boxes = _boxes(first.at(order), second.at(order), leaves)
    slab_boxes = _boxes(first.at(order), second.at(order), starts[:-1])
    total = 1 + slabs + len(leaves)
    made = np.zeros((total, len(Section)), dtype=np.int64)
    at_slab = 1 + np.arange(slabs) + leaves_before[:-1]
    at_leaf = 2 + np.arange(len(leaves)) + np.searchsorted(leaves_before[1:], np.arange(len(leaves)), "right")
    made[0, : Section.BEGIN] = _boxes(first, second, np.zeros(1, dtype=np.int64))[0]
    made[at_slab, : Section.BEGIN], made[at_leaf, : Section.BEGIN] = slab_boxes, boxes
    made[at_leaf, Section.BEGIN], made[at_leaf, Section.END] = leaves, np.append(leaves[1:], count)
    made[0, Section.NEXT] = total
    made[at_slab, Section.NEXT] = np.append(at_slab[1:], total)
    made[at_leaf, Section.NEXT] = at_leaf + 1
    return order, made


def _boxes(first: _Bounds, second: _Bounds, starts: Int64s) -> Int64s:
    """Return the slots and bounds of conjunctions from each start to the next."""
    slots = first.slots[0] | (second.slots[0] << 32)
    columns = [
        np.minimum.reduceat(first.lows, starts),
        np.maximum.reduceat(first.highs, starts),
        np.minimum.reduceat(second.lows, starts),
        np.maximum.reduceat(second.highs, starts),
    ]
    return np.stack([np.full(len(starts), slots), *columns], axis=1)


def _expected_share(drawn: Int64s, sections: Int64s, count: int) -> float:
    """Return the share of the conjunctions that an event is checked against, by values that events had."""
    leaves = sections[sections[:, Section.END] > sections[:, Section.BEGIN]]
    chances = np.ones(len(leaves))
    is_bound = leaves[:, Section.SLOTS] != -1
    slots = leaves[:, Section.SLOTS]
    chances[is_bound] *= _inside(
        drawn, (slots & _LOW_HALF)[is_bound], leaves[is_bound, Section.LOW], leaves[is_bound, Section.HIGH]
    )
    is_bound &= slots >= 0
    chances[is_bound] *= _inside(
        drawn,
        (slots >> 32)[is_bound],
        leaves[is_bound, Section.SECOND_LOW],
        leaves[is_bound, Section.SECOND_HIGH],
    )
    sizes = leaves[:, Section.END] - leaves[:, Section.BEGIN]
    return float((chances * sizes).sum() + 0.5 * len(sections) ** 0.5) / count


def _inside(drawn: Int64s, slots: Int64s, lows: Int64s, highs: Int64s) -> Float64s:
    """Return the share of slots' values in intervals; a guess where few have come."""
    values = drawn[slots]
    known = (values < HIGHEST).sum(axis=1)
    inside = ((values >= lows[:, None]) & (values <= highs[:, None])).sum(axis=1)
    return np.asarray(np.where(known < _KNOWN, 1.0, inside / np.maximum(known, 1)))


def _with_sections(state: State, row: Int64s, more: Int64s) -> State:
    """Return the state with further sections of a large cluster, behind those that it has; what none has any more makes room."""
    large = state.large
    before, top = int(row[Large.SECTIONS]), int(large.top[0])
    count = before + len(more)
    if top + count > len(large.sections):
        live = np.flatnonzero(large.rows[:, Large.SECTIONS] > 0)
        kept = large.rows[live, Large.SECTIONS]
        taken = np.repeat(large.rows[live, Large.SECTION] - (np.cumsum(kept) - kept), kept)
        sections = np.zeros((2 * (len(taken) + count), len(Section)), dtype=np.int64)
        sections[: len(taken)] = large.sections[taken + np.arange(len(taken))]
        large.rows[live, Large.SECTION] = np.cumsum(kept) - kept
        large, top = large._replace(sections=sections), len(taken)
    first = int(row[Large.SECTION])
    large.sections[top : top + before] = large.sections[first : first + before]
    more[:, Section.NEXT] += before
    large.sections[top + before : top + count] = more
    large.top[0] = top + count
    row[Large.SECTION], row[Large.SECTIONS] = top, count
    return state._replace(large=large)
