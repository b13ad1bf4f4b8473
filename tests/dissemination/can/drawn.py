"""Random networks with what zones make difficult: equal points, sides where points are, narrow and wide domains."""

from __future__ import annotations

import os
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st
from numpy.random import Generator

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.views.changes import Floats

EXAMPLES = 500 if os.environ.get("TOCSIN_TEST_PROFILE") == "long" else 25

DOMAINS = {
    "few values": (0.0, 8.0),
    "negative": (-100.0, 100.0),
    "narrow": (1.0, 1.0 + 2.0**-30),
    "wide": (-1e30, 1e30),
}


class Grown(NamedTuple):
    """A network, and the arguments it was built with."""

    can: Can
    lows: Floats
    highs: Floats
    domain: tuple[float, float]
    random: Generator

    def coordinates(self, count: int) -> Floats:
        """Return numbers at and beside the sides of zones, of subscriptions, and beyond the domain."""
        low, high = self.domain
        zones = self.can.zones
        known = np.concatenate([zones.low1, zones.low2, self.lows, self.highs, [low, high]])
        known = self.random.choice(known[np.isfinite(known)], count)
        beside = np.nextafter(known, self.random.choice([-np.inf, np.inf], count))
        anywhere = self.random.uniform(low - (high - low) / 4, high + (high - low) / 4, count)
        return np.choose(self.random.integers(0, 3, count), [known, beside, anywhere])


@st.composite
def networks(draw: st.DrawFn) -> Grown:
    """Draw a network of 1 to 40 zones."""
    nodes = draw(st.integers(1, 40))
    splitting = draw(st.sampled_from(Splitting))
    domain = draw(st.sampled_from(sorted(DOMAINS)))
    subscriptions, rows = draw(st.sampled_from([0, 1, 30, 200])), draw(st.sampled_from([0, 1, 30]))
    seed = draw(st.integers(0, 2**32))
    return grown(nodes, splitting, domain, subscriptions, rows, seed)


def grown(nodes: int, splitting: Splitting, domain: str, subscriptions: int, rows: int, seed: int) -> Grown:
    """Return a network; where there are few values, many subscriptions and rows are equal."""
    random = np.random.default_rng(seed)
    low, high = DOMAINS[domain]
    ends = np.sort(random.uniform(low, high, (2, subscriptions)), axis=0)
    xs = random.uniform(low, high, rows)
    if domain == "few values":
        ends, xs = np.floor(ends), np.floor(xs)
    can = build_can(nodes, splitting, lows=ends[0], highs=ends[1], rows=xs, domain=(low, high), seed=seed)
    return Grown(can, ends[0], ends[1], (low, high), random)
