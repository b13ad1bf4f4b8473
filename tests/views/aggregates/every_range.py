"""A kind's two sides with every range over a small domain as a subscriber, against recomputing every answer."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import Matches
from tocsin.views.aggregates.base import ByRange
from tocsin.views.aggregates.registry import range_aggregate
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import PointChanges
from tocsin.views.messages import Messages

Point = tuple[float, float]
Change = tuple[Point | None, Point | None]
Answer = float | tuple[int, ...] | None
NONE = (math.nan, math.nan)


def point_changes(changes: Sequence[Change]) -> PointChanges:
    rows = np.array([(*(old or NONE), *(new or NONE)) for old, new in changes], dtype=float).reshape(-1, 4)
    return PointChanges(*(np.ascontiguousarray(column) for column in rows.T))


def matched_ranges(messages: Messages, lows: NDArray[np.float64], highs: NDArray[np.float64]) -> Matches:
    """Return the subscriptions of each message, by comparing it with every range."""
    hears = (
        (messages.outer_l[:, None] < lows)
        & (lows <= messages.inner_l[:, None])
        & (messages.inner_r[:, None] <= highs)
        & (highs < messages.outer_r[:, None])
    )
    offsets = np.zeros(len(messages) + 1, dtype=np.int64)
    np.cumsum(hears.sum(axis=1), out=offsets[1:])
    return Matches(offsets, np.nonzero(hears)[1].astype(np.int64))


def total(ys: Sequence[float]) -> float | None:
    return math.fsum(ys) if ys else None


def mean(ys: Sequence[float]) -> float | None:
    return math.fsum(ys) / len(ys) if ys else None


def values(ys: Sequence[float]) -> tuple[int, ...]:
    return tuple(sorted({int(y) for y in ys}))


def least(ys: Sequence[float]) -> float | None:
    return min(ys, default=None)


def greatest(ys: Sequence[float]) -> float | None:
    return max(ys, default=None)


RECOMPUTED: dict[str, Callable[[Sequence[float]], Answer]] = {
    "min": least,
    "max": greatest,
    "count": len,
    "sum": total,
    "avg": mean,
    "distinct": values,
}


class Following:
    """All ranges [a, b] with both ends in the domain, and halfway between its neighbours."""

    def __init__(self, name: str, domain: Sequence[float], points: Sequence[Point]) -> None:
        self.name = name
        self.by_range: ByRange = range_aggregate(name)
        self.compute = RECOMPUTED[name]
        ends = sorted({*domain, *((a + b) / 2 for a, b in pairwise(domain))})
        pairs = [(a, b) for a in ends for b in ends if a <= b]
        self.lows, self.highs = (np.array(column) for column in zip(*pairs, strict=True))
        self.points = list(points)
        self.server, self.answers = self.by_range.reformulator(), self.by_range.answers()
        held = np.array(self.points, dtype=float).reshape(-1, 2)
        self.server.load(held[:, 0], held[:, 1])
        self.places = np.arange(len(pairs))
        self.answers.begin(self.places, self.server.present(self.lows, self.highs))
        self.recomputed = self.recompute()
        assert self.current_answers() == self.recomputed

    def recompute(self) -> list[Answer]:
        ordered = sorted(self.points)
        xs = [x for x, _ in ordered]
        begins = np.searchsorted(xs, self.lows, side="left").tolist()
        ends = np.searchsorted(xs, self.highs, side="right").tolist()
        ys = [y for _, y in ordered]
        memo: dict[tuple[int, int], Answer] = {}
        for key in zip(begins, ends, strict=True):
            if key not in memo:
                memo[key] = self.compute(ys[key[0] : key[1]])
        return [memo[key] for key in zip(begins, ends, strict=True)]

    def current_answers(self) -> list[Answer]:
        return [self.answers.answer(place) for place in self.places.tolist()]

    def make(self, changes: Sequence[Change]) -> tuple[Matches, AnswerChanges]:
        """Make changes in one call, and return the notified subscriptions and their changed answers."""
        messages = self.server.reformulate(point_changes(changes))
        found = matched_ranges(messages, self.lows, self.highs)
        of_pair = np.repeat(messages.change, np.diff(found.offsets))
        reached = set(zip(of_pair.tolist(), found.ids.tolist(), strict=True))
        assert len(reached) == len(found.ids), "two messages of one change reach a subscription"
        return found, self.answers.apply(messages, found)

    def follow(self, changes: Sequence[Change]) -> None:
        """Make changes in one call; each changed answer must be reported once, right, and by one message."""
        found, changed = self.make(changes)
        expected: list[tuple[int, int, Answer, Answer]] = []
        for i, (old, new) in enumerate(changes):
            if old is not None:
                self.points.remove(old)
            if new is not None:
                self.points.append(new)
            before, self.recomputed = self.recomputed, self.recompute()
            expected += [
                (i, place, a, b)
                for place, (a, b) in enumerate(zip(before, self.recomputed, strict=True))
                if a != b
            ]
        assert sorted(self.rows_of(changed.rows, changed.numbers, changed.old, changed.new)) == expected
        assert changed.rows.tolist() == sorted(changed.rows.tolist())
        if self.name in {"min", "max", "count", "distinct"}:
            assert len(found.ids) == len(expected), "a subscription is reached whose answer does not change"
        if changed.removed is not None and changed.added is not None:
            both = zip(
                changed.removed.tolist(), changed.added.tolist(), changed.old, changed.new, strict=True
            )
            for removed, added, a, b in both:
                assert ({removed} - {-1}, {added} - {-1}) == (set(a) - set(b), set(b) - set(a))

    def rows_of(self, *columns: NDArray[np.generic]) -> list[tuple[int, int, Answer, Answer]]:
        return [
            (change, place, *(None if one != one else one for one in (old, new)))  # noqa: PLR0124 - NaN
            for change, place, old, new in zip(*(column.tolist() for column in columns), strict=True)
        ]

    def check(self) -> None:
        """Compare the present answers, and the first answers of new subscriptions, with recomputed ones."""
        assert self.current_answers() == self.recomputed
        other = self.by_range.answers()
        other.begin(self.places, self.server.present(self.lows, self.highs))
        assert [other.answer(place) for place in self.places.tolist()] == self.recomputed
