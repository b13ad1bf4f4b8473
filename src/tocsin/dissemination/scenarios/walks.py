"""Tables and their changes: points that walk, now and then with a spike (5, "Workload"), and two tables of a join whose values walk."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, TypeVar

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinRows, JoinSide
from tocsin.dissemination.scenarios.ranges import DOMAIN, hundredths
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError
from tocsin.views.changes import Floats, PointChanges

_PER_KEY: Final = 2  # rows of each table that have the same key, on average

TABLE: Final = "stock"
Changes = TypeVar("Changes", PointChanges, JoinChanges)

KEY: Final = "symbol"
X: Final = "risk"
Y: Final = "per"
SPIKES: Final = 0.005

_LEAST: Final = 1.0  # the floor of all walks, so that there is always room for a spike
_STEP: Final = 0.05  # of the value, at the most,
_LEAST_STEP: Final = 1.0  # and at least this much
_DRAWN: Final = 1 << 14  # candidates at a time
_FAR: Final = 100.0  # how far a row moves from where it began, at the most
_IN_VAIN: Final = 10_000_000  # candidates in a row, after which there is none to be expected


class DrawError(TocsinError):
    """There is no update of the sort that is wanted."""


class TablePoints(Struct, frozen=True):
    """The points of a table's rows, by the rows' numbers."""

    x: Floats
    y: Floats

    def __len__(self) -> int:
        return len(self.x)

    def to_arrow(self) -> pa.Table:
        """Return the rows as events of the table's stream."""
        return _rows(np.arange(len(self), dtype=np.int64), self.x, self.y)


class Updates(Struct, frozen=True):
    """Updates of the aggregated attribute, one after another."""

    rows: IdArray  # which row
    x: Floats
    old_y: Floats
    new_y: Floats
    is_spike: NDArray[np.bool_]  # it drops below all others; the next one restores it

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, begin: int, end: int) -> Updates:
        """Return the updates from `begin` to `end`."""
        part = slice(begin, end)
        return Updates(self.rows[part], self.x[part], self.old_y[part], self.new_y[part], self.is_spike[part])

    def of_rows(self, is_meant: NDArray[np.bool_]) -> Updates:
        """Return only the updates of some rows, given as a mask over rows; the other rows stay as they are."""
        kept = is_meant[self.rows]
        return Updates(self.rows[kept], self.x[kept], self.old_y[kept], self.new_y[kept], self.is_spike[kept])

    @property
    def changes(self) -> PointChanges:
        """Return them as changes of points."""
        return PointChanges(self.x, self.old_y, self.x, self.new_y)

    def applied_to(self, points: TablePoints) -> TablePoints:
        """Return the points after all updates."""
        y = points.y.copy()
        y[self.rows] = self.new_y  # of several updates of a row, the last one counts
        return TablePoints(points.x, y)

    def to_arrow(self) -> pa.Table:
        """Return the updated rows as events of the table's stream."""
        return _rows(self.rows, self.x, self.new_y)


def in_batches(changes: Changes, size: int, begin: int = 0) -> Iterator[Changes]:
    """Return changes from `begin` on, `size` at a time."""
    for first in range(begin, len(changes), size):
        yield changes.part(first, first + size)


def draw_points(rows: int, *, decimals: int = 2, seed: int = 1) -> TablePoints:
    """Return points uniform in the domain; with fewer decimals of x, more of them share one."""
    random = np.random.default_rng([seed, 2, rows])
    x = np.round(random.uniform(*DOMAIN, rows), decimals)
    return TablePoints(x, hundredths(random.uniform(_LEAST, DOMAIN[1], rows)))


def draw_updates(
    points: TablePoints, count: int, *, spikes: float = SPIKES, ignorable: float | None = 0.0, seed: int = 1
) -> Updates:
    """Return updates of points, of which a share is ignorable: none by default; None draws any update.

    A row is drawn, and its y makes a step of up to a twentieth of it. An update is ignorable if another row with its x
    has a y that is no greater than the update's lower one; then, or if it is meant to be and is not, both are drawn
    again. `spikes` of the updates drop a row's y below all others', and the update after each restores it; they are
    never ignorable. Raise `DrawError` if no update of the wanted sort is found.
    """
    random = np.random.default_rng([seed, 3, len(points), count])
    walk = _Walk(points, random)
    spiking = random.random(count) < spikes / max(1.0 - spikes, spikes)
    unwanted = None if ignorable is None else (random.random(count) < ignorable)
    position = 0
    while position < count:
        if spiking[position]:
            walk.spike()
            position += 2
        else:
            walk.step(None if unwanted is None else bool(unwanted[position]))
            position += 1
    return walk.updates(points.x, count)


class _Walk:
    """The rows' present values, and the updates that led to them."""

    def __init__(self, points: TablePoints, random: Generator) -> None:
        self._random = random
        self._y = array("d", points.y.tobytes())
        self._seen = np.frombuffer(self._y)  # the same memory: numbers one by one are quicker from an `array`
        order = np.argsort(points.x, kind="stable")
        begins = np.flatnonzero(np.r_[True, np.diff(points.x[order]) != 0])
        ends = np.r_[begins[1:], len(order)]
        group = np.empty(len(order), dtype=np.int64)
        group[order] = np.repeat(np.arange(len(begins)), ends - begins)
        self._members = array("q", order.astype(np.int64).tobytes())  # the rows of each x, one after another
        self._begins = array("q", begins[group].tobytes())  # by row
        self._ends = array("q", ends[group].tobytes())
        self._candidates = self._draw()
        self._rows, self._old, self._new = array("q"), array("d"), array("d")
        self._spikes = array("b")

    def step(self, is_meant_ignorable: bool | None) -> None:
        """Move a row by a step: an ignorable one, another one, or any."""
        y, begins, ends = self._y, self._begins, self._ends
        for tried, (row, way) in enumerate(self._candidates):
            old = y[row]
            new = round(min(max(old + way * max(_LEAST_STEP, _STEP * old), _LEAST), DOMAIN[1]), 2)
            if new != old:
                is_alone = ends[row] - begins[row] == 1
                if is_meant_ignorable in (None, not is_alone and self._is_ignorable(row, min(old, new))):
                    self._update(row, new, 0)
                    return
            if tried == _IN_VAIN:
                wanted = "ignorable" if is_meant_ignorable else "not ignorable"
                raise DrawError(
                    f"of {tried:,} updates none is {wanted}; draw x with {'fewer' if is_meant_ignorable else 'more'} decimals"
                )

    def spike(self) -> None:
        """Drop a row below all others and restore it."""
        row, way = next(self._candidates)
        before, least = self._y[row], float(self._seen.min())
        # In whole hundredths below the least, which is at least 1.
        self._update(row, int((way + 1) / 2 * (round(least * 100) - 1)) / 100, 1)
        self._update(row, before, 0)

    def updates(self, x: Floats, count: int) -> Updates:
        """Return the first updates; a last one that restores a spike may be too many."""
        rows = np.array(self._rows[:count], dtype=np.int64)
        old, new = np.array(self._old[:count]), np.array(self._new[:count])
        return Updates(rows, x[rows], old, new, np.array(self._spikes[:count], dtype=np.bool_))

    def _update(self, row: int, new: float, is_spike: int) -> None:
        self._rows.append(row)
        self._old.append(self._y[row])
        self._new.append(new)
        self._spikes.append(is_spike)
        self._y[row] = new

    def _is_ignorable(self, row: int, least: float) -> bool:
        """Return whether another row has the same x and a y that is no greater."""
        members, y = self._members, self._y
        positions = range(self._begins[row], self._ends[row])
        return any(members[position] != row and y[members[position]] <= least for position in positions)

    def _draw(self) -> Iterator[tuple[int, float]]:
        """Return rows, and ways from -1 to 1, without end."""
        while True:
            rows = self._random.integers(0, len(self._y), _DRAWN).tolist()
            yield from zip(rows, self._random.uniform(-1, 1, _DRAWN).tolist(), strict=True)


def _rows(numbers: IdArray, x: Floats, y: Floats) -> pa.Table:
    return pa.table({KEY: pa.array(numbers).cast(pa.string()), X: x, Y: y})


def mirrored(y: Floats) -> Floats:
    """Return values mirrored in the domain, so that the least becomes the greatest."""
    return hundredths(DOMAIN[1] - y)


def moves(points: TablePoints, updates: Updates, seed: int = 1) -> PointChanges:
    """Return moves of the updated rows in x; their y stay as they were at first."""
    random = np.random.default_rng([seed, 5, len(updates)])
    rows = updates.rows
    away = random.uniform(-_FAR, _FAR, len(rows))
    x = hundredths(np.clip(points.x[rows] + away, *DOMAIN))
    order = np.argsort(rows, kind="stable")
    again = np.flatnonzero(np.diff(rows[order]) == 0)
    before = points.x[rows]
    before[order[again + 1]] = x[order[again]]
    y = points.y[rows]
    return PointChanges(before, y, x, y)


def codes(y: Floats, values: int) -> Floats:
    """Return y as codes of `values` distinct values."""
    return np.floor(y) % values


def recoded(updates: Updates, values: int) -> PointChanges:
    """Return updates of values that are few, as codes."""
    return PointChanges(updates.x, codes(updates.old_y, values), updates.x, codes(updates.new_y, values))


def draw_rows(rows: int, table: JoinSide, seed: int = 1) -> JoinRows:
    """Return rows with values uniform in the domain, and keys of which each table has some twice and some not at all."""
    random = np.random.default_rng([seed, 7, table, rows])
    key = random.integers(0, max(rows // _PER_KEY, 1), rows).astype(np.float64)
    return JoinRows(np.arange(rows, dtype=np.int64), key, hundredths(random.uniform(*DOMAIN, rows)))


def draw_changes(r: JoinRows, s: JoinRows, count: int, seed: int = 1) -> JoinChanges:
    """Return changes of values, half of them R's and half S's: a random row's goes up or down a little."""
    random = np.random.default_rng([seed, 8, len(r), len(s), count])
    table = random.integers(0, 2, count).astype(np.int8)
    rows = np.where(table == JoinSide.R, random.integers(0, len(r), count), random.integers(0, len(s), count))
    ways = random.uniform(-_FAR, _FAR, count).tolist()
    now = (r.value.copy(), s.value.copy())
    old, new = np.empty(count), np.empty(count)
    for place_, (which, row, way) in enumerate(zip(table.tolist(), rows.tolist(), ways, strict=True)):
        old[place_] = now[which][row]
        now[which][row] = new[place_] = round(min(max(old[place_] + way, DOMAIN[0]), DOMAIN[1]), 2)
    key: Floats = np.where(table == JoinSide.R, r.key[rows % len(r)], s.key[rows % len(s)])
    return JoinChanges(table, rows, key, old, key, new)
