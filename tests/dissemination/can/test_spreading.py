"""Over rectangles: every zone that meets one, once, from a neighbour that was reached before."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings

from tests.dissemination.can.drawn import EXAMPLES, Grown, grown, networks
from tocsin.dissemination.can.construction import Splitting
from tocsin.dissemination.can.state import NO_PARENT, SpreadTrees, Zones
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

COUNT = 30


def drawn_messages(network: Grown) -> Messages:
    """Return messages of all sorts: with one inner end or two, with infinite and with empty outer ends."""
    random = network.random
    ends = np.sort(np.stack([network.coordinates(COUNT) for _ in range(4)]), axis=0)
    outer_l, inner_l, inner_r, outer_r = ends
    inner_r = np.where(random.random(COUNT) < 0.5, inner_l, inner_r)
    outer_l = np.where(random.random(COUNT) < 0.3, -np.inf, outer_l)
    outer_r = np.where(random.random(COUNT) < 0.3, np.inf, outer_r)
    return Messages(np.arange(COUNT), inner_l, inner_r, outer_l, outer_r)


def between(*known: Floats | float) -> Floats:
    """Return numbers that stand for all: the known ones, one between each two that follow, and beyond."""
    values = np.unique(np.concatenate([np.atleast_1d(one) for one in known]))
    values = values[np.isfinite(values)]
    beyond = np.maximum(np.abs(values).max(), 1.0)
    return np.concatenate([values, values[1:] / 2 + values[:-1] / 2, [-2 * beyond, 2 * beyond]])


def met(zones: Zones, messages: Messages, r: int) -> set[int]:
    """Return the zones that have a point within a rectangle, judged point by point."""
    outer_l, inner_l = messages.outer_l[r], messages.inner_l[r]
    inner_r, outer_r = messages.inner_r[r], messages.outer_r[r]
    x1 = between(zones.low1, outer_l, inner_l)
    x2 = between(zones.low2, inner_r, outer_r)
    x1, x2 = x1[(outer_l < x1) & (x1 <= inner_l)], x2[(inner_r <= x2) & (x2 < outer_r)]
    in1 = ((zones.low1[:, None] <= x1) & (x1 < zones.high1[:, None])).any(axis=1)
    in2 = ((zones.low2[:, None] <= x2) & (x2 < zones.high2[:, None])).any(axis=1)
    return set(np.flatnonzero(in1 & in2).tolist())


def reached(spread: SpreadTrees, r: int) -> list[tuple[int, int, int]]:
    part = slice(spread.starts[r], spread.starts[r + 1])
    return list(
        zip(
            spread.zones[part].tolist(),
            spread.parents[part].tolist(),
            spread.depths[part].tolist(),
            strict=True,
        )
    )


@settings(max_examples=2 * EXAMPLES)
@given(networks())
def test_each_zone_that_meets_a_rectangle_is_reached_once(network: Grown) -> None:
    zones, messages = network.can.zones, drawn_messages(network)
    spread = network.can.spread(messages)
    corners = network.can.locate(messages.inner_l, messages.inner_r).tolist()
    for r in range(COUNT):
        wanted, depths = met(zones, messages, r), dict[int, int]()
        for zone, parent, depth in reached(spread, r):
            assert zone not in depths
            if not depths:
                assert (zone, parent, depth) == (corners[r], NO_PARENT, 0)
            else:
                assert depth == depths[parent] + 1
                assert parent in zones.neighbours[zones.starts[zone] : zones.starts[zone + 1]]
            depths[zone] = depth
        # Beside a side that is one float away a zone may be reached in which no float is left between.
        assert wanted <= set(depths)
        assert all(_is_a_hair(zones, messages, r, zone) for zone in set(depths) - wanted)


def _is_a_hair(zones: Zones, messages: Messages, r: int, zone: int) -> bool:
    """Tell whether no float is between a rectangle's open left side and the end of a zone."""
    return bool(np.nextafter(messages.outer_l[r], np.inf) == zones.high1[zone])


@settings(max_examples=EXAMPLES)
@given(networks())
def test_the_zone_of_every_range_in_a_rectangle_is_reached(network: Grown) -> None:
    messages = drawn_messages(network)
    spread = network.can.spread(messages)
    x1, x2 = network.coordinates(200), network.coordinates(200)
    owners = network.can.locate(x1, x2)
    for r in range(COUNT):
        within = (messages.outer_l[r] < x1) & (x1 <= messages.inner_l[r])
        within &= (messages.inner_r[r] <= x2) & (x2 < messages.outer_r[r])
        assert set(owners[within].tolist()) <= {zone for zone, _, _ in reached(spread, r)}


def test_a_quadrant_spreads_from_its_place_on_the_diagonal() -> None:
    can = grown(50, Splitting.SUBSCRIPTIONS, "negative", 500, 0, seed=1).can
    x = np.array([-150.0, -20.0, 0.0, 33.0, 250.0])
    infinite = np.full(5, np.inf)
    spread = can.spread(Messages(np.arange(5), x, x, -infinite, infinite))
    for r in range(5):
        assert spread.zones[spread.starts[r]] == can.zones.diagonal[can.diagonal_positions(x[r : r + 1])[0]]
        wanted = (can.zones.low1 <= x[r]) & (can.zones.high2 > x[r])
        assert sorted(zone for zone, _, _ in reached(spread, r)) == np.flatnonzero(wanted).tolist()


def test_an_empty_rectangle_meets_no_zone() -> None:
    can = grown(20, Splitting.UNIFORM, "negative", 0, 0, seed=2).can
    five = np.full(2, 5.0)
    left = Messages(np.arange(2), five, five, np.array([5.0, 4.0]), np.array([6.0, 5.0]))
    assert can.spread(left).starts.tolist() == [0, 0, 0]


def test_a_network_of_one_zone_keeps_all_to_itself() -> None:
    can = grown(1, Splitting.UNIFORM, "negative", 0, 0, seed=3).can
    point = np.array([5.0])
    spread = can.spread(Messages(np.array([0]), point, point, point - 1, point + 1))
    assert reached(spread, 0) == [(0, NO_PARENT, 0)]
    assert can.route(np.array([0]), point, point).zones.tolist() == [0]
    assert can.zones.diagonal.tolist() == [0]
