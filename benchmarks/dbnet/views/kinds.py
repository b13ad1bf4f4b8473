"""Every kind of view over the same rows and ranges, and the same messages through every matcher."""

from __future__ import annotations

import time
from typing import Final

import numpy as np

from benchmarks.dbnet.views.session import LEAST, ViewSession, process_updates
from benchmarks.runner.agreement import Agreement, summary
from tocsin.dissemination.scenarios.walks import TablePoints, Updates, codes, in_batches, moves, recoded
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import TocsinError
from tocsin.views.aggregates.registry import RANGE_AGGREGATES, range_aggregate
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.messages import Messages
from tocsin.views.range_index import new_range_index

POINTS: Final = "point index"
_VALUES: Final = 100  # that rows have, where distinct ones are asked for
_CROWDED: Final = 10  # times fewer updates in a batch: each changes every sum and mean around it
_FEW: Final = 50  # messages of the first batch: some matchers take long
_SLOW: Final = 0.2  # seconds of a batch, from which on the next is no larger


def kinds(session: ViewSession) -> None:
    """Record the rates of each kind of view with the updates that change its answers."""
    scale = session.scale
    ranges = session.ranges(scale.compared)
    points, updates = session.updates(scale.rows)
    for kind in RANGE_AGGREGATES:
        held, changes = _variant(kind, points, updates)
        family = session.family(held, ranges, kind=kind)
        session.check(family, held, ranges, next(in_batches(changes, scale.checked)), kind=kind)
        done = process_updates(
            family, in_batches(changes, max(scale.batch // _CROWDED, 1), scale.checked), scale.seconds
        )
        at = scale.compared
        session.record_rates(kind, at, done)
        stats = family.stats()
        session.record("server", kind, at, stats.server_bytes / len(points), "bytes a row")
        session.record("answers", kind, at, stats.answer_bytes / len(ranges), "bytes each")


def by_matcher(session: ViewSession) -> None:
    """Give the same messages to the point index and to registered matchers; all must find the same."""
    scale = session.scale
    ranges = session.ranges(scale.compared)
    points, updates = session.updates(scale.rows)
    server = range_aggregate(LEAST).reformulator()
    server.load(points.x, points.y)
    messages = server.reformulate(updates.changes)
    agreement = Agreement()
    for name in (None, *(one.matcher for one in session.contenders)):
        label = name or POINTS
        session.tell(label, f"{len(ranges):,} subscriptions")
        try:
            index = new_range_index(name, "messages")
            begun = time.perf_counter()
            index.add(ranges.numbers, ranges.lows, ranges.highs)
            adding = time.perf_counter() - begun
        except TocsinError as refusal:
            session.left_out.append(f"matchers: {name}: {refusal}")
            continue
        index.match(messages.take(np.arange(min(_FEW, len(messages)))))
        done, seconds, found, size = 0, 0.0, list[Keys](), _FEW
        while done < len(messages) and seconds < scale.seconds:
            part = _part(messages, done, size)
            begun = time.perf_counter()
            heard = index.match(part)
            took = time.perf_counter() - begun
            seconds, done = seconds + took, done + len(part)
            found.append(summary(heard))
            size = size if took > _SLOW else min(2 * size, scale.batch)
        agreement.check("messages", label, found)
        at = scale.compared
        session.record("time", label, at, seconds / done * 1e6, "us a message", messages=float(done))
        session.record("heard", label, at, sum(int(one[0].sum()) for one in found) / done, "a message")
        session.record("adding", label, at, len(ranges) / max(adding, 1e-9), "subscriptions/s")
        session.record("memory", label, at, index.nbytes / len(ranges), "bytes each")


def _variant(kind: str, points: TablePoints, updates: Updates) -> tuple[tuple[Floats, Floats], PointChanges]:
    """Return the points and the changes for a kind of view: a count changes only where rows move."""
    if kind == "count":
        return (points.x, np.zeros(len(points))), _without_y(moves(points, updates))
    if kind == "distinct":
        return (points.x, codes(points.y, _VALUES)), recoded(updates, _VALUES)
    return (points.x, points.y), updates.changes


def _without_y(changes: PointChanges) -> PointChanges:
    none = np.zeros(len(changes))
    return PointChanges(changes.old_x, none, changes.new_x, none)


def _part(messages: Messages, begin: int, size: int) -> Messages:
    return messages.take(np.arange(begin, min(begin + size, len(messages))))
