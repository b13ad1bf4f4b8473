"""Zones are a partition of the plane; who borders on whom, and who lies on the diagonal."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from tests.dissemination.can.drawn import EXAMPLES, Grown, grown, networks
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.model.errors import TocsinError

NONE = np.empty(0)


@settings(max_examples=EXAMPLES)
@given(networks())
def test_every_point_is_in_exactly_one_zone(network: Grown) -> None:
    zones = network.can.zones
    x1, x2 = network.coordinates(60), network.coordinates(60)
    in1 = (zones.low1[:, None] <= x1) & (x1 < zones.high1[:, None])
    in2 = (zones.low2[:, None] <= x2) & (x2 < zones.high2[:, None])
    held = in1 & in2
    assert held.sum(axis=0).tolist() == [1] * 60
    assert network.can.locate(x1, x2).tolist() == held.argmax(axis=0).tolist()


@settings(max_examples=EXAMPLES)
@given(networks())
def test_neighbours_share_a_border_of_some_length(network: Grown) -> None:
    zones = network.can.zones
    bounds = np.stack([zones.low1, zones.high1, zones.low2, zones.high2], axis=1).tolist()
    for zone, (low1, high1, low2, high2) in enumerate(bounds):
        beside = [
            other
            for other, (from1, to1, from2, to2) in enumerate(bounds)
            if ((to1 == low1 or high1 == from1) and max(low2, from2) < min(high2, to2))
            or ((to2 == low2 or high2 == from2) and max(low1, from1) < min(high1, to1))
        ]
        assert zones.neighbours[zones.starts[zone] : zones.starts[zone + 1]].tolist() == beside


@settings(max_examples=EXAMPLES)
@given(networks())
def test_the_diagonal_goes_through_its_zones_in_order(network: Grown) -> None:
    zones, can = network.can.zones, network.can
    assert zones.diagonal_from[0] == -np.inf
    assert (np.diff(zones.diagonal_from) > 0).all()
    x = np.concatenate([network.coordinates(60), zones.diagonal_from[1:]])
    assert zones.diagonal[can.diagonal_positions(x)].tolist() == can.locate(x, x).tolist()
    assert (
        can.locate(zones.diagonal_from[1:], zones.diagonal_from[1:]).tolist() == zones.diagonal[1:].tolist()
    )


def carried(network: Grown) -> NDArray[np.intp]:
    return np.bincount(network.can.locate(network.lows, network.highs), minlength=len(network.can))


def test_subscriptions_are_divided_evenly() -> None:
    evenly = carried(grown(64, Splitting.SUBSCRIPTIONS, "negative", 6_400, 0, seed=1))
    assert evenly.sum() == 6_400
    assert (evenly == 100).all()
    assert carried(grown(64, Splitting.UNIFORM, "negative", 6_400, 0, seed=1)).max() > 200


def test_rows_are_divided_among_more_of_the_diagonal() -> None:
    by_load = grown(64, Splitting.SUBSCRIPTIONS, "negative", 640, 640, seed=2)
    by_rows = grown(64, Splitting.DATABASE, "negative", 640, 640, seed=2)
    assert len(by_rows.can.zones.diagonal) > 2 * len(by_load.can.zones.diagonal)


def test_rows_alone_are_divided_evenly() -> None:
    rows = np.arange(320.0)
    can = build_can(32, Splitting.DATABASE, lows=NONE, highs=NONE, rows=rows, domain=(0.0, 320.0), seed=3)
    held = np.bincount(can.diagonal_positions(rows))
    assert held.tolist() == [10] * 32


def test_rows_count_by_their_share_however_many_subscriptions_there_are() -> None:
    lows, rows = np.linspace(0, 1, 100), np.arange(20.0, 30.0)
    # First the subscriptions are halved; then all rows are more than what half of these has left.
    can = build_can(3, Splitting.DATABASE, lows=lows, highs=lows + 1, rows=rows, domain=(0.0, 50.0), seed=3)
    assert np.bincount(np.unique(can.diagonal_positions(rows), return_inverse=True)[1]).tolist() == [5, 5]


def test_zones_without_ranges_are_not_split() -> None:
    zones = grown(200, Splitting.UNIFORM, "negative", 0, 0, seed=4).can.zones
    # Half of a square beside the diagonal has no ranges, and is as large as the splits around it left it.
    unused = zones.low1 >= zones.high2
    assert 0 < unused.sum() < 50


def test_nodes_get_zones_in_an_order_that_the_seed_decides() -> None:
    one, again, other = (
        grown(30, Splitting.SUBSCRIPTIONS, "negative", 300, 0, seed=s).can for s in (5, 5, 6)
    )
    assert all(np.array_equal(a, b) for a, b in zip(one.zones, again.zones, strict=True))
    assert not np.array_equal(one.zones.low1, other.zones.low1)


@pytest.mark.parametrize("splitting", list(Splitting))
def test_equal_subscriptions_leave_space_to_split(splitting: Splitting) -> None:
    same = np.full(100, 3.0)
    can = build_can(20, splitting, lows=same, highs=same + 1, rows=same, domain=(0.0, 10.0), seed=7)
    assert len(can) == 20
    assert len(np.unique(can.locate(same, same + 1))) == 1


@pytest.mark.parametrize("seed", range(3))
def test_a_domain_is_divided_until_no_two_of_its_ranges_share_a_zone(seed: int) -> None:
    numbers = 1 + np.arange(6) * np.spacing(1.0)
    here, there = np.triu_indices(5)  # from each of five numbers to itself and to those after it
    lows, highs = numbers[here], numbers[there]
    most = len(lows) + 4  # with a zone below the diagonal beside all numbers but one, which nothing divides
    given = {"lows": NONE, "highs": NONE, "rows": NONE, "domain": (1.0, float(numbers[5])), "seed": seed}
    can = build_can(most, Splitting.UNIFORM, **given)  # type: ignore[arg-type]
    assert len(np.unique(can.locate(lows, highs))) == len(lows)
    assert np.count_nonzero(can.zones.low1 >= can.zones.high2) == 4
    with pytest.raises(TocsinError, match=f"too few numbers for {most + 1} zones, it is divided into {most}"):
        build_can(most + 1, Splitting.UNIFORM, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"nodes": 0}, "0 nodes"),
        ({"domain": (3.0, 3.0)}, "from 3.0 to 3.0 cannot be divided"),
        ({"domain": (0.0, np.inf)}, "two finite numbers"),
        ({"domain": (1.0, float(np.nextafter(1.0, 2.0)))}, "too few numbers for 9 zones"),
        ({"domain": (0.0, float(np.nextafter(0.0, 1.0)))}, "too few numbers for 9 zones"),
        (
            {"lows": np.array([1.0, 2.0]), "highs": np.array([1.0, 1.0])},
            "subscription 1 has the range from 2.0 to 1.0",
        ),
        ({"rows": np.array([1.0, np.nan])}, "row 1 has the x nan"),
    ],
)
def test_invalid_divisions_are_refused(changed: dict[str, object], message: str) -> None:
    given = {"nodes": 9, "splitting": Splitting.UNIFORM, "lows": NONE, "highs": NONE, "rows": NONE}
    with pytest.raises(TocsinError, match=message):
        build_can(**{**given, "domain": (0.0, 9.0), "seed": 1, **changed})  # type: ignore[arg-type]


def test_points_that_no_zone_holds_are_refused() -> None:
    can = grown(5, Splitting.UNIFORM, "negative", 0, 0, seed=8).can
    with pytest.raises(TocsinError, match=r"point 1 is \(2\.0, inf\)"):
        can.locate(np.array([1.0, 2.0]), np.array([1.0, np.inf]))
