"""The answers of a scenario's subscriptions as they are defined: recomputed from the rows, of ranges and of joins alike."""

from __future__ import annotations

import math
from typing import Any, Protocol

from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.scenarios.joins import PreparedJoin
from tocsin.dissemination.scenarios.pair_recomputation import PairRecomputation
from tocsin.dissemination.scenarios.recomputation import AlteredAnswer, Found, Recomputation
from tocsin.dissemination.scenarios.scenario import Prepared
from tocsin.dissemination.strategies.strategy import Strategy
from tocsin.matching import IdArray
from tocsin.views.changes import PointChanges


class Definition(Protocol):
    """All rows, as they are after some changes, and what each subscription asks of them."""

    def change_all(self, changes: Changes) -> None:
        """Make all changes at once."""

    def follow(self, changes: Changes, numbers: IdArray) -> list[AlteredAnswer]:
        """Make changes one after another, and return which of some subscriptions' answers they alter."""

    def answer(self, number: int) -> Found:
        """Return a subscription's answer."""


def definition_of(prepared: Prepared | PreparedJoin) -> Definition:
    """Return the answers of a scenario before its changes."""
    if isinstance(prepared, PreparedJoin):
        return PairRecomputation(prepared.queries)
    return _Ranges(prepared.queries)


def known(strategy: Strategy, number: int) -> Found:
    """Return what a strategy's subscription has as its answer, as the definition gives it: null is NaN."""
    answer: Any = strategy.answer(number)
    return math.nan if answer is None else answer


class _Ranges:
    """Points, and the ranges that ask about them."""

    def __init__(self, queries: RangeQueries) -> None:
        self._lows, self._highs = queries.lows, queries.highs
        self._now = Recomputation(queries.kind, queries.x, queries.y)

    def change_all(self, changes: PointChanges) -> None:
        self._now.change_all(changes)

    def follow(self, changes: PointChanges, numbers: IdArray) -> list[AlteredAnswer]:
        return self._now.follow(changes, self._lows[numbers], self._highs[numbers], numbers)

    def answer(self, number: int) -> Found:
        return self._now.answer(float(self._lows[number]), float(self._highs[number]))
