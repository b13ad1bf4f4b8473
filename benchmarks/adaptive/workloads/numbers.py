"""Workloads over numbers: equal subscriptions, a hot value, nested ranges, thresholds, bands, one attribute that differs, a hot attribute that moves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import NumberedWorkload, Ragged
from benchmarks.workloads.distributions import Choice, zipf
from tocsin.matching.encoding.codes import Op

Draw: TypeAlias = Callable[[Generator, int], Ragged]
Numbers: TypeAlias = NDArray[np.int32]

_EQUAL_EACH: Final = 1_000  # subscriptions that are equal
_FEWEST_DISTINCT: Final = 20
_WIDE: Final = 1_000_000  # values of an amount are below this
_LEVELS: Final = 10_000  # ranges, each around the one before
_MARKETS: Final = 50
_FEW: Final = 6  # attributes that thresholds are on
_SYMBOLS: Final = 500
_BAND: Final = 50
_NAMES: Final = 12  # attributes whose hot half changes
_VALUES: Final = 1_000
_HOT: Final = 0.9  # of events have the hot value of a hot attribute


class DrawnWorkload(NumberedWorkload):
    """A workload whose subscriptions and events are drawn by two functions; the same seed draws the same ones."""

    def __init__(self, subscriptions: Draw, events: Draw, seed: int = 1) -> None:
        self._drawing = subscriptions, events
        super().__init__(None, seed)

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        return self._drawing[0](random, count)

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        return self._drawing[1](random, count)


def equal(count: int) -> DrawnWorkload:
    """Return `count` subscriptions, each equal to about a thousand others: two equalities and a bound."""
    own = np.random.default_rng(11)
    distinct = max(count // _EQUAL_EACH, _FEWEST_DISTINCT)
    attributes = Choice(8).distinct(own, distinct, 3)
    constants = own.integers(1, 21, (distinct, 3), dtype=np.int32)

    def subscriptions(random: Generator, rows: int) -> Ragged:
        chosen = random.integers(0, distinct, rows)
        ops = np.tile(np.array([Op.EQ, Op.EQ, Op.LE], dtype=np.int8), (rows, 1))
        lows = constants[chosen].copy()
        lows[:, 2] = 1
        return Ragged.even(attributes[chosen], ops, lows, constants[chosen])

    return DrawnWorkload(subscriptions, lambda random, rows: _full(random.integers(1, 21, (rows, 8))))


def hot_value() -> DrawnWorkload:
    """Return subscriptions half of which ask for one value, which nine of ten events have, and for two bounds."""

    def subscriptions(random: Generator, rows: int) -> Ragged:
        kinds = np.where(random.random(rows) < 0.5, 0, random.integers(1, 1_000, rows))
        least = random.integers(_WIDE * 9 // 10, _WIDE, rows)
        most = random.integers(1, _WIDE // 10, rows)
        return _rows(
            (Op.EQ, Op.GE, Op.LE), (kinds, kinds), (least, np.full(rows, _WIDE)), (np.ones(rows), most)
        )

    def events(random: Generator, rows: int) -> Ragged:
        kinds = np.where(random.random(rows) < _HOT, 0, random.integers(1, 1_000, rows))
        return _full(np.column_stack([kinds, random.integers(1, _WIDE, (rows, 3))]))

    return DrawnWorkload(subscriptions, events)


def nested() -> DrawnWorkload:
    """Return subscriptions to ten thousand ranges around one middle, and one of fifty values; most events fall far out."""

    def subscriptions(random: Generator, rows: int) -> Ragged:
        reach = (1 + random.integers(0, _LEVELS, rows)) * 10
        market = random.integers(0, _MARKETS, rows)
        return _rows((Op.BETWEEN, Op.EQ), (_WIDE - reach, _WIDE + reach), (market, market))

    def events(random: Generator, rows: int) -> Ragged:
        inner = np.where(random.random(rows) < _HOT, 0.9 + 0.1 * random.random(rows), random.random(rows))
        sides = random.choice((-1, 1), rows)
        place = _WIDE + sides * (inner * _LEVELS * 10).astype(np.int64)
        return _full(np.column_stack([place, random.integers(0, _MARKETS, (rows, 3))]))

    return DrawnWorkload(subscriptions, events)


def thresholds() -> DrawnWorkload:
    """Return subscriptions of one to three one-sided bounds on six attributes, each true of 0.1 to 10 % of the events."""

    def subscriptions(random: Generator, rows: int) -> Ragged:
        attributes = Choice(_FEW).distinct(random, rows, 3)
        share = 10 ** random.uniform(-3, -1, (rows, 3))
        sizes = random.choice((1, 2, 3), rows, p=(0.01, 0.49, 0.5))
        share[sizes == 1] /= 20  # alone it must be rarely true
        kinds = random.integers(0, 4, (rows, 3))
        ops = np.array([Op.LT, Op.LE, Op.GT, Op.GE], dtype=np.int8)[kinds]
        reach = np.maximum(share * _WIDE, 1).astype(np.int32)
        bounds = np.where(kinds < 2, reach, _WIDE - reach).astype(np.int32)
        lows = np.where(ops == Op.LE, 1, bounds).astype(np.int32)
        highs = np.where(ops == Op.GE, _WIDE, bounds).astype(np.int32)
        return Ragged.first(sizes, attributes, ops, lows, highs)

    return DrawnWorkload(subscriptions, lambda random, rows: _full(random.integers(1, _WIDE, (rows, _FEW))))


def bands() -> DrawnWorkload:
    """Return subscriptions like `symbol = :s and price between :p and :p + 0.5`, prices in cents near the symbol's own."""
    symbols = zipf(_SYMBOLS, 0.7)
    usual = np.random.default_rng(12).integers(1_000, 50_000, _SYMBOLS)

    def prices(random: Generator, drawn: Numbers) -> NDArray[np.int64]:
        return (usual[drawn] * random.normal(1.0, 0.04, len(drawn))).astype(np.int64)

    def subscriptions(random: Generator, rows: int) -> Ragged:
        drawn = symbols.draw(random, rows)
        low = prices(random, drawn)
        return _rows((Op.EQ, Op.BETWEEN), (drawn, drawn), (low, low + _BAND))

    def events(random: Generator, rows: int) -> Ragged:
        drawn = symbols.draw(random, rows)
        return _full(np.column_stack([drawn, prices(random, drawn), random.integers(1, _WIDE, (rows, 4))]))

    return DrawnWorkload(subscriptions, events)


def one_differs(count: int) -> DrawnWorkload:
    """Return subscriptions that are alike, two equalities and a bound, but for one attribute with its own value."""
    own = max(count // 10, 10)

    def subscriptions(random: Generator, rows: int) -> Ragged:
        same = np.ones(rows)
        values = random.integers(0, own, rows)
        return _rows(
            (Op.EQ, Op.EQ, Op.LE, Op.EQ), (same, same), (same, same), (same, same * 700), (values, values)
        )

    def events(random: Generator, rows: int) -> Ragged:
        common = random.integers(1, 3, (rows, 2))
        others = random.integers(1, 1_001, rows), random.integers(0, own, rows)
        return _full(np.column_stack([common, *others]))

    return DrawnWorkload(subscriptions, events)


def hot_half(first: int) -> DrawnWorkload:
    """Return subscriptions of two equalities and a bound, and events in which six attributes, from `first` on, are hot.

    One equality is on the first six attributes, the other on the last six. Half of the constants are the value 0, which
    nine of ten events have on a hot attribute, and none on another: each subscription has an equality that is rarely true.
    """
    half = _NAMES // 2
    is_hot = (np.arange(_NAMES) >= first) & (np.arange(_NAMES) < first + half)

    def subscriptions(random: Generator, rows: int) -> Ragged:
        attributes = Choice(half).distinct(random, rows, 2)
        attributes = np.column_stack([attributes, random.integers(half, _NAMES, rows)]).astype(np.int32)
        values = _half_zero(random, (rows, 3), 0.5)
        ops = np.tile(np.array([Op.EQ, Op.LE, Op.EQ], dtype=np.int8), (rows, 1))
        values[:, 1] = random.integers(0, _VALUES // 4, rows)
        return Ragged.even(attributes, ops, values, values)

    def events(random: Generator, rows: int) -> Ragged:
        hot, others = _half_zero(random, (rows, _NAMES), _HOT), random.integers(1, _VALUES, (rows, _NAMES))
        return _full(np.where(is_hot, hot, others))

    return DrawnWorkload(subscriptions, events)


def _half_zero(random: Generator, shape: tuple[int, int], share: float) -> Numbers:
    """Return values of which this share is 0."""
    others = random.integers(1, _VALUES, shape)
    return np.where(random.random(shape) < share, 0, others).astype(np.int32)


def _rows(ops: tuple[Op, ...], *bounds: tuple[NDArray[np.generic], NDArray[np.generic]]) -> Ragged:
    """Return rows of these operators on `a0` and those that follow, with the lows and highs of each."""
    count, width = len(bounds[0][0]), len(ops)
    attributes = np.tile(np.arange(width, dtype=np.int32), (count, 1))
    lows, highs = (np.column_stack(side).astype(np.int32) for side in zip(*bounds, strict=True))
    return Ragged.even(attributes, np.tile(np.array(ops, dtype=np.int8), (count, 1)), lows, highs)


def _full(values: NDArray[np.generic]) -> Ragged:
    """Return events that have all attributes."""
    attributes = np.tile(np.arange(values.shape[1], dtype=np.int32), (len(values), 1))
    return Ragged.even(attributes, values.astype(np.int32))
