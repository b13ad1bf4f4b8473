"""Ways from neighbour to neighbour."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings

from tests.dissemination.can.drawn import EXAMPLES, Grown, grown, networks
from tocsin.dissemination.can._kernels import spreading
from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.dissemination.can.state import Zones
from tocsin.model.errors import TocsinError
from tocsin.structures.jit import compiled_kernels
from tocsin.views.messages import Messages


def neighbours(zones: Zones, zone: int) -> list[int]:
    found: list[int] = zones.neighbours[zones.starts[zone] : zones.starts[zone + 1]].tolist()
    return found


def nearness(zones: Zones, zone: int, point: tuple[float, float]) -> tuple[Fraction, int, int]:
    """Return what the next zone is chosen by, in exact numbers."""
    distance, missed = Fraction(0), 0
    for x, low, high in zip(point, (zones.low1, zones.low2), (zones.high1, zones.high2), strict=True):
        if x < low[zone]:
            distance += (Fraction(float(low[zone])) - Fraction(x)) ** 2
        elif x > high[zone]:
            distance += (Fraction(x) - Fraction(float(high[zone]))) ** 2
        missed += not low[zone] <= x < high[zone]
    return distance, missed, zone


@settings(max_examples=EXAMPLES)
@given(networks())
def test_ways_lead_from_neighbour_to_neighbour_to_the_owner(network: Grown) -> None:
    can = network.can
    sources = network.random.integers(0, len(can), 60)
    x1, x2 = network.coordinates(60), network.coordinates(60)
    routes = can.route(sources, x1, x2)
    owners = can.locate(x1, x2)
    for r in range(60):
        way = routes.zones[routes.starts[r] : routes.starts[r + 1]].tolist()
        assert (way[0], way[-1]) == (sources[r], owners[r])
        assert len(set(way)) == len(way)
        assert all(there in neighbours(can.zones, here) for here, there in pairwise(way))


@settings(max_examples=EXAMPLES)
@given(networks().filter(lambda network: network.domain == (0.0, 8.0)))
def test_each_step_is_to_the_nearest_neighbour(network: Grown) -> None:
    can = network.can
    sources = network.random.integers(0, len(can), 20)
    # Sums of squares of these are exact.
    x1, x2 = network.random.integers(-20, 80, (2, 20)) / 8
    routes = can.route(sources, x1, x2)
    for r, point in enumerate(zip(x1.tolist(), x2.tolist(), strict=True)):
        way = routes.zones[routes.starts[r] : routes.starts[r + 1]].tolist()
        for here, there in pairwise(way):
            assert there == min(neighbours(can.zones, here), key=lambda z: nearness(can.zones, z, point))
            assert nearness(can.zones, there, point)[:2] < nearness(can.zones, here, point)[:2]


@pytest.mark.parametrize("far", [1e30, 1e200])
def test_a_gain_that_rounding_swallows_is_a_gain(far: float) -> None:
    # 1e30 less 1e-9 is 1e30, and the square of 1e200 is infinite.
    steps = np.cumsum(np.full(40, 1e-9))
    lows, highs = np.repeat([-1.0, 0.0], 40), np.concatenate([steps, steps])
    can = build_can(
        60, Splitting.SUBSCRIPTIONS, lows=lows, highs=highs, rows=steps, domain=(0.0, 1.0), seed=1
    )
    sources, x1 = np.arange(60), np.full(60, -0.5)
    for x2 in (np.full(60, -far), np.full(60, far)):
        with np.errstate(over="ignore"):
            routes = can.route(sources, x1, x2)
        assert routes.zones[routes.starts[1:] - 1].tolist() == can.locate(x1, x2).tolist()
        assert max(np.diff(routes.starts)) > 10


def test_a_missing_neighbour_is_reported() -> None:
    zones = grown(20, Splitting.UNIFORM, "negative", 0, 0, seed=2).can.zones
    alone = zones._replace(starts=np.zeros_like(zones.starts), neighbours=zones.neighbours[:0])
    here = int(Can(zones).locate(np.array([-99.0]), np.array([99.0]))[0])
    with pytest.raises(TocsinError, match=f"route 0, from zone {here} .* no nearer neighbour"):
        Can(alone).route(np.array([here]), np.array([99.0]), np.array([99.0]))


def test_kernels_are_compiled_once() -> None:
    can = grown(9, Splitting.UNIFORM, "negative", 0, 0, seed=3).can
    x = np.arange(6.0)
    x.flags.writeable = False
    can.locate(x, x[::-1])
    can.route(np.zeros(6, dtype=np.int64), x, x)
    can.spread(Messages(np.arange(6), x, x, x - 1, x + 1))
    versions = {name: count for name, count in compiled_kernels().items() if ".can._kernels." in name}
    # A helper that is called with True and with False may have a version for each, unless its callers come from the cache.
    versions.pop(f"{spreading.__name__}.owner")
    assert versions
    assert max(versions.values()) <= 1
