"""Small worlds to test strategies: a network, rows, ranges, and changes with their expected effects."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from msgspec import Struct

from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import place_overlay
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.views.changes import PointChanges

NAN = math.nan
Point = tuple[float, float]


class World(Struct, frozen=True):
    """A setting for strategies, the queries, and batches of changes."""

    setting: Setting
    queries: RangeQueries
    batches: list[PointChanges]


def make_world(
    seed: int,
    *,
    kind: str = "min",
    nodes: int = 12,
    subscriptions: int = 60,
    rows: int = 25,
    events: int = 60,
    width: int = 30,
    splitting: Splitting = Splitting.SUBSCRIPTIONS,
) -> World:
    """Return a world of small numbers: many rows are equal, or have the same x or y."""
    random = np.random.default_rng([seed, 77])
    ends = np.sort(random.integers(0, width, (subscriptions, 2)), axis=1).astype(np.float64)
    points = random.integers(0, width, (rows, 2)).astype(np.float64)
    if kind == "distinct":
        points[:, 1] %= 5
    queries = RangeQueries(
        kind, points[:, 0].copy(), points[:, 1].copy(), ends[:, 0].copy(), ends[:, 1].copy()
    )
    overlay = place_overlay(make_topology(4 * nodes, seed=seed), nodes, seed=seed)
    can = build_can(
        nodes,
        splitting,
        lows=queries.lows,
        highs=queries.highs,
        rows=queries.x,
        domain=(0.0, float(width)),
        seed=seed,
    )
    setting = Setting(overlay, can, server=int(random.integers(nodes)), seed=seed)
    changes = _changes(random, [tuple(point) for point in points.tolist()], events, width, kind)
    cuts = sorted({0, events, *random.integers(0, events, 4).tolist()})
    return World(setting, queries, [_columns(changes[a:b]) for a, b in pairwise(cuts)])


def _changes(
    random: np.random.Generator, points: list[Point], events: int, width: int, kind: str
) -> list[tuple[Point, Point]]:
    """Return changes of every kind: rows are added, removed, move, rise, fall, stay, drop below all others and return."""
    made: list[tuple[Point, Point]] = []
    heights = 5 if kind == "distinct" else width

    def drawn() -> Point:
        return float(random.integers(width)), float(random.integers(heights))

    for _ in range(events):
        way = random.random()
        if not points or way < 0.1:
            points.append(drawn())
            made.append(((NAN, NAN), points[-1]))
            continue
        row = int(random.integers(len(points)))
        old = points[row]
        if way < 0.2:
            del points[row]
            made.append((old, (NAN, NAN)))
            continue
        new = drawn()
        if way < 0.75:
            new = (old[0], new[1])
        elif way < 0.85 and kind != "distinct":
            new = (old[0], float(random.choice([-1, width + 1])))
        points[row] = new
        made.append((old, new))
    return made


def _columns(changes: Sequence[tuple[Point, Point]]) -> PointChanges:
    table = np.array([[*old, *new] for old, new in changes], dtype=np.float64).reshape(len(changes), 4).T
    return PointChanges(*(column.copy() for column in table))


class Definition:
    """The answers as they are defined: recomputed from all rows after every change."""

    def __init__(self, queries: RangeQueries) -> None:
        self._queries = queries
        self._points: list[Point] = list(zip(queries.x.tolist(), queries.y.tolist(), strict=True))
        self.answers = self._recomputed()

    def follow(self, changes: PointChanges) -> Iterator[dict[int, tuple[Any, Any]]]:
        """Return, for each change in turn, the answers that it alters: the old one and the new one by subscription."""
        for old_x, old_y, new_x, new_y in zip(
            changes.old_x.tolist(),
            changes.old_y.tolist(),
            changes.new_x.tolist(),
            changes.new_y.tolist(),
            strict=True,
        ):
            if not math.isnan(old_x):
                self._points.remove((old_x, old_y))
            if not math.isnan(new_x):
                self._points.append((new_x, new_y))
            before, self.answers = self.answers, self._recomputed()
            pairs = enumerate(zip(before, self.answers, strict=True))
            yield {number: pair for number, pair in pairs if pair[0] != pair[1]}

    def _recomputed(self) -> list[Any]:
        found = []
        for low, high in zip(self._queries.lows.tolist(), self._queries.highs.tolist(), strict=True):
            heights = [y for x, y in self._points if low <= x <= high]
            found.append(_ANSWERS[self._queries.kind](heights))
        return found


_ANSWERS: dict[str, Any] = {
    "min": lambda heights: min(heights, default=None),
    "max": lambda heights: max(heights, default=None),
    "count": len,
    "sum": lambda heights: math.fsum(heights) if heights else None,
    "avg": lambda heights: math.fsum(heights) / len(heights) if heights else None,
    "distinct": lambda heights: tuple(sorted({int(y) for y in heights})),
}


def changed_answers_of(outcome: Outcome, events: int) -> list[dict[int, tuple[Any, Any]]]:
    """Return the changed answers of each change, by subscription; none may repeat."""
    found: list[dict[int, tuple[Any, Any]]] = [{} for _ in range(events)]
    changes = outcome.answer_changes
    lines = zip(
        changes.rows.tolist(),
        changes.numbers.tolist(),
        changes.old.tolist(),
        changes.new.tolist(),
        strict=True,
    )
    for change, number, old, new in lines:
        assert number not in found[change], f"subscription {number} is notified twice of change {change}"
        found[change][number] = (_plain(old), _plain(new))
    return found


def _plain(value: Any) -> Any:
    return None if isinstance(value, float) and math.isnan(value) else value


def assert_flows(strategy: Strategy, changes: PointChanges, outcome: Outcome) -> None:
    """Assert that nobody sends what has not reached it, and that nobody's answer changes who got nothing."""
    assert_flows_from(
        [_origins(strategy, changes, event) for event in range(len(changes))], strategy, outcome
    )


def assert_flows_from(origins: list[set[int]], strategy: Strategy, outcome: Outcome) -> None:
    """Assert the same of changes that are known at some nodes from the beginning."""
    sent = outcome.traffic
    assert not np.any(sent.sender == sent.receiver)
    assert not np.any(np.diff(sent.event) < 0)
    for event, known in enumerate(origins):
        reached = dict.fromkeys(known, -1)
        lines = np.flatnonzero(sent.event == event)
        for line in lines[np.argsort(sent.step[lines], kind="stable")].tolist():
            sender, receiver, step = int(sent.sender[line]), int(sent.receiver[line]), int(sent.step[line])
            assert reached.get(sender, step) < step, f"node {sender} sends at step {step} what it has not got"
            reached.setdefault(receiver, step)
        changed = outcome.answer_changes.numbers[outcome.answer_changes.rows == event]
        silent = set(strategy.gateways[changed].tolist()) - set(reached)
        assert not silent, f"event {event}: nodes {silent} got nothing, but answers there changed"


def _origins(strategy: Strategy, changes: PointChanges, event: int) -> set[int]:
    if strategy.name.startswith("S-"):
        return {strategy.setting.server}
    x = np.array([changes.old_x[event], changes.new_x[event]])
    x = x[~np.isnan(x)]
    return set(strategy.setting.can.locate(x, x).tolist())
