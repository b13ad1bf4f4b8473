"""Broadcasts of changes, batch by batch, to subscriptions that store their minimum row only."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.state import SpreadTrees
from tocsin.dissemination.cn_plus import state
from tocsin.dissemination.cn_plus._kernels.broadcasts import (
    NOT_BEGUN,
    AnswerLines,
    Output,
    Progress,
    RowRequests,
    broadcast_changes,
    count_minima,
)
from tocsin.dissemination.ds_cn import server
from tocsin.dissemination.ds_cn._kernels.rows import DiagonalMessages
from tocsin.dissemination.ds_cn.state import Ended, RowChanges
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.matching import IdArray
from tocsin.structures.growth import grown
from tocsin.views.aggregates.base import missing_point_error
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.messages import Messages

Buffer = TypeVar("Buffer", AnswerLines, RowRequests, DiagonalMessages)


class Broadcast(Struct, frozen=True):
    """The broadcasts of a batch: the zones reached, the rows requested, and the minima changed.

    The next batch overwrites `answers`, `requests` and `messages`.
    """

    changes: IdArray  # of each broadcast
    is_decrease: NDArray[np.bool_]  # by broadcast: it carries a tag
    trees: SpreadTrees  # over the whole quadrant of each broadcast
    is_reached: NDArray[np.bool_]  # by entry of the trees
    answers: AnswerLines
    requests: RowRequests
    messages: DiagonalMessages


class SubscriptionMinima:
    """The minimum row of each subscription, and all rows, stored by the owners on the diagonal."""

    def __init__(self, can: Can, queries: RangeQueries, gateways: IdArray) -> None:
        self._can = can
        self._queries = queries
        x, height = queries.x + 0.0, server.heights_of(queries.kind, queries.y)
        self._rows = server.distribute_rows(can, x, height)
        self.subscriptions = np.argsort(gateways, kind="stable")  # by zone
        self._positions = np.empty(len(gateways), dtype=np.int64)
        self._positions[self.subscriptions] = np.arange(len(gateways))
        lows, highs = queries.lows[self.subscriptions], queries.highs[self.subscriptions]
        self._minima = minimum_rows(gateways[self.subscriptions], len(can), lows, highs, (x, height))
        self._output = Output(
            AnswerLines(*np.empty((2, 1 << 16), dtype=np.int64), *np.empty((2, 1 << 16))),
            RowRequests._make([*np.empty((3, 1 << 12), dtype=np.int64), np.empty(1 << 12)]),
            server.new_messages(1 << 14),
            server.new_rows(len(self._rows.x)),
        )

    @property
    def rows(self) -> int:
        """Return how many rows there are."""
        return int(self._rows.counts.sum())

    def height(self, number: int) -> float:
        """Return the height of a subscription's minimum row, inf if there is none."""
        return float(self._minima.height[self._positions[number]])

    def apply(self, changes: PointChanges) -> Broadcast:
        """Broadcast and apply changes in order.

        Raises `PointError` at a change whose old row is not stored; the changes before it are applied.
        """
        by_row = server.to_row_changes(self._can, self._queries.kind, changes)
        quadrants = self._queries.relaxed(changes).messages
        trees = self._can.spread(quadrants)
        plan = state.BroadcastPlan(by_row, _broadcasts(quadrants, by_row), trees, self._can.zones)
        entries = len(trees.zones)
        above, below = np.empty((2, entries))
        entry = np.zeros(len(self._can), dtype=np.int64)
        reached = state.ReachedZones(np.zeros(entries, dtype=np.bool_), above, below, entry)
        progress = np.array([0, NOT_BEGUN, 0, 0, 0])
        while (
            ended := broadcast_changes(self._rows, self._minima, plan, progress, reached, self._output)
        ) != Ended.DONE:
            if ended == Ended.ABSENT:
                raise missing_point_error(changes, int(quadrants.change[progress[Progress.BROADCASTS]]))
            if ended == Ended.NO_ROOM_FOR_ROWS:
                self._rows = server.with_room(self._rows)
                self._output = self._output._replace(stairs=server.new_rows(len(self._rows.x)))
            else:
                self._grow_output(int(trees.zones[progress[Progress.ENTRY]]), progress)
        out = self._output
        return Broadcast(
            quadrants.change,
            plan.broadcasts.kind == state.BroadcastKind.DECREASE,
            trees,
            reached.is_reached,
            AnswerLines._make(column[: progress[Progress.ANSWERS]] for column in out.answers),
            RowRequests._make(column[: progress[Progress.REQUESTS]] for column in out.requests),
            DiagonalMessages._make(column[: progress[Progress.MESSAGES]] for column in out.messages),
        )

    def _grow_output(self, zone: int, progress: IdArray) -> None:
        """Give room for all output of one zone and one broadcast, and twice as much as there was."""
        out, starts = self._output, self._minima.starts
        answers = int(progress[Progress.ANSWERS] + starts[zone + 1] - starts[zone])
        messages = int(progress[Progress.MESSAGES]) + 2 * len(self._rows.counts) + 1
        self._output = Output(
            _doubled(out.answers, answers),
            _doubled(out.requests, int(progress[Progress.REQUESTS]) + 1),
            _doubled(out.messages, messages),
            out.stairs,
        )


def _doubled(buffer: Buffer, needed: int) -> Buffer:
    """Return a buffer with room for twice as many lines as needed, unless it has room for these."""
    return buffer if len(buffer[0]) >= needed else grown(buffer, buffer._fields, 2 * needed)


def _broadcasts(quadrants: Messages, changes: RowChanges) -> state.Broadcasts:
    """Return the broadcast over each quadrant."""
    change, x = quadrants.change, quadrants.inner_l + 0.0
    old, new = changes.old_height[change], changes.new_height[change]
    was, will = x == changes.old_x[change], x == changes.new_x[change]
    is_loss = was & ~(will & (new <= old))
    gained = np.where(was & (new < old), state.BroadcastKind.DECREASE, state.BroadcastKind.ARRIVAL)
    kind = np.where(is_loss, state.BroadcastKind.LOSS, gained)
    return state.Broadcasts(change, x, np.where(is_loss, old, new), kind.astype(np.int64))


def minimum_rows(
    zones: IdArray, number: int, lows: Floats, highs: Floats, rows: tuple[Floats, Floats]
) -> state.MinimumRows:
    """Return the minimum rows, among rows (x, height), of subscriptions sorted by zone; there are `number` zones."""
    starts = np.searchsorted(zones, np.arange(number + 1))
    x, height = lowest_in_ranges(*rows, lows, highs)
    counts = np.zeros((number, state.BUCKETS), dtype=np.int32)
    minima = state.MinimumRows(starts.astype(np.int64), lows, highs, x, height, counts, np.empty(number))
    count_minima(minima)
    return minima


def lowest_in_ranges(x: Floats, height: Floats, lows: Floats, highs: Floats) -> tuple[Floats, Floats]:
    """Return x and height of the lowest row within each range, the first of equal ones; NaN and inf if there is none."""
    order = np.lexsort((height, x))
    x, height = x[order], height[order]
    begin, end = np.searchsorted(x, lows), np.searchsorted(x, highs, side="right")
    # A sparse table: lowest[k][i] is the lowest of the 2**k rows from i on; two of these cover any range.
    lowest = [np.arange(len(x))]
    while (width := 1 << len(lowest)) <= len(x):
        one = lowest[-1][: len(x) - width + 1]
        other = lowest[-1][width // 2 : width // 2 + len(one)]
        lowest.append(np.where(height[one] <= height[other], one, other))
    found_x, found = np.full(len(lows), np.nan), np.full(len(lows), np.inf)
    sizes = np.frexp(np.maximum(end - begin, 0))[1] - 1
    for size, among in enumerate(lowest):
        these = np.flatnonzero(sizes == size)
        one, other = among[begin[these]], among[end[these] - (1 << size)]
        least = np.where(height[one] <= height[other], one, other)
        found_x[these], found[these] = x[least], height[least]
    return found_x, found
