"""Ranges that subscriptions ask about: around the middle of the domain, as long as a normal distribution says."""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.random import Generator

from tocsin.matching import IdArray
from tocsin.views.changes import Floats

DOMAIN: Final = (0.0, 10_000.0)


class RangeDistribution(Struct, frozen=True):
    """The mean and the deviation of ranges' midpoints and lengths, in a domain of [0, 10000]."""

    midpoint: tuple[float, float]
    length: tuple[float, float]

    def lengthened(self, times: float) -> RangeDistribution:
        """Return the distribution of ranges that are so many times longer."""
        mean, deviation = self.length
        return RangeDistribution(self.midpoint, (mean * times, deviation * times))


TABLE_1: Final = RangeDistribution((5_000.0, 1_500.0), (1_000.0, 1_000.0))
SHORT: Final = RangeDistribution((5_000.0, 10_000.0), (50.0, 10.0))
"""With these the share of ignorable updates is varied (figure 10)."""


class Ranges(Struct, frozen=True):
    """Ranges, both ends included, one for each subscription."""

    lows: Floats
    highs: Floats

    def __len__(self) -> int:
        return len(self.lows)

    @property
    def numbers(self) -> IdArray:
        """Return the subscriptions' numbers, from 0."""
        return np.arange(len(self.lows), dtype=np.int64)

    def first(self, count: int) -> Ranges:
        """Return only the first ones."""
        return Ranges(self.lows[:count], self.highs[:count])

    def to_arrow(self) -> pa.Table:
        """Return rows for a template that has `:low` and `:high`, with the subscriptions' numbers as `id`."""
        names = pa.array(self.numbers).cast(pa.string())
        return pa.table({"id": names, "low": self.lows, "high": self.highs})


def draw_ranges(
    count: int, distribution: RangeDistribution = TABLE_1, domain: tuple[float, float] = DOMAIN, seed: int = 1
) -> Ranges:
    """Return ranges whose ends have two decimals; in a domain narrower than 1, as many as there are.

    A length below 0 and a midpoint outside the domain are drawn again, and what reaches beyond the domain is cut. The
    distribution is scaled where the domain is another than [0, 10000].
    """
    random = np.random.default_rng([seed, 1, count])
    lower, upper = domain
    scale = (upper - lower) / (DOMAIN[1] - DOMAIN[0])
    midpoints = lower + scale * _within(random, distribution.midpoint, DOMAIN, count)
    halves = scale * _within(random, distribution.length, (0.0, np.inf), count) / 2
    lows, highs = (np.clip(ends, lower, upper) for ends in (midpoints - halves, midpoints + halves))
    if upper - lower >= 1:  # in a narrower one, hundredths would be few, or 0 alone
        lows, highs = hundredths(lows), hundredths(highs)
    return Ranges(lows, np.maximum(highs, lows))


def hundredths(values: Floats) -> Floats:
    """Return values with two decimals, each the float nearest to it, so that equal ones are equal."""
    return np.rint(values * 100) / 100


def _within(
    random: Generator, normal: tuple[float, float], bounds: tuple[float, float], count: int
) -> Floats:
    """Return normally distributed numbers; those outside the bounds are drawn again."""
    drawn = random.normal(*normal, count)
    while len(outside := np.flatnonzero((drawn < bounds[0]) | (drawn > bounds[1]))):
        drawn[outside] = random.normal(*normal, len(outside))
    return drawn
