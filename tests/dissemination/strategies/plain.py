"""The messages of CN+ and DS-CN for a change, computed by decision 0034 with lists, row by row."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import pairwise

import numpy as np

from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.traffic import MessageRole
from tocsin.views.aggregates.extremes import Extremes
from tocsin.views.changes import PointChanges
from tocsin.views.messages import Messages

INF = math.inf
Row = tuple[float, float]  # x, height
Line = tuple[MessageRole, int, int, int, int]  # sender, receiver, fields, step


class Plain:
    """All rows as a list, and whose they are."""

    def __init__(self, setting: Setting, queries: RangeQueries) -> None:
        self.can, self.sign = setting.can, 1.0 if queries.kind == "min" else -1.0
        self.owners = setting.can.zones.diagonal.tolist()
        self.rows = [self.row(x, y) for x, y in zip(queries.x.tolist(), queries.y.tolist(), strict=True)]

    def row(self, x: float, y: float) -> Row:
        return x + 0.0, self.sign * y + 0.0

    def follow(self, changes: PointChanges) -> Iterator[list[Line]]:
        """Return the messages of each change in turn."""
        columns = (changes.old_x, changes.old_y, changes.new_x, changes.new_y)
        for old_x, old_y, new_x, new_y in zip(*(column.tolist() for column in columns), strict=True):
            old = None if math.isnan(old_x) else self.row(old_x, old_y)
            new = None if math.isnan(new_x) else self.row(new_x, new_y)
            yield sorted(line for line in self.change(old, new) if line[1] != line[2])

    def change(self, old: Row | None, new: Row | None) -> list[Line]:
        raise NotImplementedError

    def place(self, x: float) -> int:
        return int(np.flatnonzero(self.can.zones.diagonal_from <= x)[-1])

    def lowest(self) -> dict[float, float]:
        """Return the least height at each x, by x."""
        found: dict[float, float] = {}
        for x, height in self.rows:
            found[x] = min(found.get(x, INF), height)
        return dict(sorted(found.items()))

    def outwards(self, x: float, direction: int, place: int) -> list[Row]:
        """Return an owner's rows on one side of x, the nearest first, of several at one x the lowest."""
        rows = [row for row in self.lowest().items() if self.place(row[0]) == place]
        return [row for row in rows[::direction] if (row[0] - x) * direction > 0]

    def route(self, source: int, x1: float, x2: float) -> list[int]:
        zones: list[int] = self.can.route(np.array([source]), np.array([x1]), np.array([x2])).zones.tolist()
        return zones

    def spread(self, messages: Messages) -> list[tuple[int, int, int]]:
        """Return zone, parent and depth of all that a message meets."""
        met = self.can.spread(messages)
        return list(zip(met.zones.tolist(), met.parents.tolist(), met.depths.tolist(), strict=True))


class PlainDistributed(Plain):
    """DS-CN; what the messages of a change are is taken from a server with all rows."""

    def __init__(self, setting: Setting, queries: RangeQueries) -> None:
        super().__init__(setting, queries)
        self._server = Extremes()
        self._server.load(*(np.array(self.rows).reshape(-1, 2)[:, i] for i in (0, 1)))

    def change(self, old: Row | None, new: Row | None) -> list[Line]:
        if old:
            self.rows.remove(old)
        home = self.place((old or new or (0.0, 0.0))[0])
        lines = []
        if old:
            lines += self._walks(old, new, home, is_new=False)
        if new and not (old and old[0] == new[0]):
            lines += self._walks(new, old, home, is_new=True)
        if new:
            self.rows.append(new)
        step = max((at + (a != b) for role, a, b, _, at in lines if role == MessageRole.REPLY), default=0)
        absent = (math.nan, math.nan)
        columns = (np.array([number]) for number in (*(old or absent), *(new or absent)))
        messages = self._server.reformulate(PointChanges(*columns))
        for number in range(len(messages)):
            one = messages.take(np.array([number]))
            way = self.route(self.owners[home], float(one.inner_l[0]), float(one.inner_r[0]))
            lines += [(MessageRole.ROUTE, a, b, 5, step + i) for i, (a, b) in enumerate(pairwise(way))]
            begun = step + len(way) - 1
            met = self.spread(one)
            lines += [
                (MessageRole.SPREAD, parent, zone, 5, begun + depth - 1)
                for zone, parent, depth in met
                if depth
            ]
        return lines

    def _walks(self, row: Row, other: Row | None, home: int, *, is_new: bool) -> list[Line]:
        """Return the requests from one x on, and the replies to the home."""
        x, here = row[0], self.place(row[0])
        limit = min(row[1], other[1]) if other else row[1]
        peak = self.lowest().get(x, INF)
        own, lines = int(peak < INF), []
        if peak > limit and row != other:
            begin = peak
            if other and other[0] == x:
                begin = min(peak, other[1])
            elif is_new:
                begin = min(peak, math.nextafter(row[1], INF))
            for direction in (-1, 1):
                stop, final = direction * INF, 0 if direction < 0 else len(self.owners) - 1
                if other and (other[0] - x) * direction > 0:
                    stop, final = other[0], self.place(other[0])
                lowest = begin
                for hop, place in enumerate(range(here, final + direction, direction)):
                    found, is_end = 0, place == final
                    for near, height in self.outwards(x, direction, place):
                        if (stop - near) * direction <= 0:
                            break
                        if height < lowest or height <= limit:
                            found, lowest = found + 1, min(height, lowest)
                        if height <= limit:
                            is_end = True
                            break
                    if place == here:
                        own += found
                    elif found or place == final:
                        lines.append(self._reply(place, home, found, hop))
                    if is_end:
                        break
                    lines.append(
                        (MessageRole.ASK, self.owners[place], self.owners[place + direction], 3, hop)
                    )
        return [*lines, self._reply(here, home, own, 0)]

    def _reply(self, place: int, home: int, rows: int, step: int) -> Line:
        return MessageRole.REPLY, self.owners[place], self.owners[home], max(3 * rows, 1), step


class PlainCutoff(Plain):
    """CN+: the first of equal minima is the one at the least x; of requested rows, x's own, then one on the left."""

    def __init__(self, setting: Setting, queries: RangeQueries) -> None:
        super().__init__(setting, queries)
        self._ranges = list(zip(queries.lows.tolist(), queries.highs.tolist(), strict=True))
        self._kept = [
            min(((height, x) for x, height in self.rows if low <= x <= high), default=(INF, math.nan))
            for low, high in self._ranges
        ]
        gateways = self.can.locate(queries.lows, queries.highs)
        self._at = [np.flatnonzero(gateways == zone).tolist() for zone in range(len(self.can))]

    def change(self, old: Row | None, new: Row | None) -> list[Line]:
        if old:
            self.rows.remove(old)
        if new:
            self.rows.append(new)
        if old and new and old[0] == new[0] and new[1] < old[1]:
            return self._fall(*new)
        lines = []
        if old:
            lines += self._go(*old, new)
        if new and not (old and old[0] == new[0]):
            lines += self._come(*new)
        return lines

    def _quadrant(self, x: float) -> list[tuple[int, int, int]]:
        at, infinite = np.array([x]), np.array([INF])
        return self.spread(Messages(np.array([0]), at, at, -infinite, infinite))

    def _fall(self, x: float, height: float) -> list[Line]:
        lines: list[Line] = []
        tags: dict[int, tuple[float, float]] = {-1: (-INF, INF)}
        for zone, parent, depth in self._quadrant(x):
            above, below = tags.get(parent, (INF, -INF))
            if not (self.can.zones.high1[zone] > above and self.can.zones.low2[zone] < below):
                continue
            if depth:
                lines.append((MessageRole.SPREAD, parent, zone, 5, depth - 1))
            for number in self._at[zone]:
                low, high = self._ranges[number]
                least, at = self._kept[number]
                if not above < low <= x <= high < below:
                    continue
                if height < least:
                    self._kept[number] = (height, x)
                else:
                    above = max(above, at) if at < x else above if at > x else INF
                    below = min(below, at) if at > x else below
            tags[zone] = (above, below)
        return lines

    def _come(self, x: float, height: float) -> list[Line]:
        for number, (low, high) in enumerate(self._ranges):
            if low <= x <= high and height < self._kept[number][0]:
                self._kept[number] = (height, x)
        return [
            (MessageRole.SPREAD, parent, zone, 3, depth - 1)
            for zone, parent, depth in self._quadrant(x)
            if depth
        ]

    def _go(self, x: float, height: float, new: Row | None) -> list[Line]:
        lines: list[Line] = []
        for zone, parent, depth in self._quadrant(x):
            if depth:
                lines.append((MessageRole.SPREAD, parent, zone, 3, depth - 1))
            lost = [number for number in self._at[zone] if self._kept[number] == (height, x)]
            if lost and new != (x, height):
                lines += self._ask(x, new, zone, depth, lost)
        return lines

    def _ask(self, x: float, new: Row | None, zone: int, step: int, lost: list[int]) -> list[Line]:
        """Return a zone's queries on its way, and the replies; the subscriptions take what these bring."""
        way = self.route(zone, x, x)
        lines = [(MessageRole.ASK, a, b, 4, step + i) for i, (a, b) in enumerate(pairwise(way))]
        here, step, peak = self.place(x), step + len(way) - 1, self.lowest().get(x, INF)
        brought = [(peak, 0, x)] if peak < INF else []
        own, is_last = int(peak < INF and new != (x, peak)), False
        ends = (
            min(self._ranges[number][0] for number in lost),
            max(self._ranges[number][1] for number in lost),
        )
        for direction, end in zip((-1, 1), ends, strict=True):
            lowest, final = peak, self.place(end)
            is_last |= final == here
            for hop, place in enumerate(range(here, final + direction, direction)):
                found = 0
                for near, height in self.outwards(x, direction, place):
                    if (end - near) * direction >= 0 and height < lowest:
                        found, lowest = found + 1, height
                        brought.append((height, 1 if direction < 0 else 2, near))
                if place == here:
                    own += found
                elif found or place == final:
                    lines.append((MessageRole.REPLY, self.owners[place], zone, max(3 * found, 1), step + hop))
                if place != final:
                    lines.append(
                        (MessageRole.ASK, self.owners[place], self.owners[place + direction], 4, step + hop)
                    )
        if own or is_last:
            lines.append((MessageRole.REPLY, self.owners[here], zone, max(3 * own, 1), step))
        for number in lost:
            low, high = self._ranges[number]
            within = ((height, side, at) for height, side, at in brought if low <= at <= high)
            least = min(within, default=(INF, 0, math.nan))
            self._kept[number] = (least[0], least[2])
        return lines
