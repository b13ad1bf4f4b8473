from __future__ import annotations

import numpy as np
import pytest

from tests.dissemination.worlds import make_world
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named
from tocsin.model.errors import TocsinError
from tocsin.views.changes import PointChanges


@pytest.mark.parametrize("wrong", [(np.nan, 1.0), (1.0, np.nan), (np.inf, 1.0), (1.0, -np.inf)])
def test_a_row_that_is_no_point_is_refused(wrong: tuple[float, float]) -> None:
    x, y = np.array([[2.0, 3.0], wrong]).T
    with pytest.raises(TocsinError, match=r"row 1: \(.*\) is no point"):
        RangeQueries("sum", x, y, np.array([0.0]), np.array([5.0]))


def test_every_row_has_an_x_and_a_y() -> None:
    with pytest.raises(TocsinError, match="3 x and 2 y"):
        RangeQueries("min", np.arange(3.0), np.arange(2.0), np.array([0.0]), np.array([5.0]))


@pytest.mark.parametrize(("lows", "highs"), [(1, 3), (3, 1)])
def test_every_range_has_two_ends(lows: int, highs: int) -> None:
    with pytest.raises(TocsinError, match=f"{lows} lower and {highs} upper ends"):
        RangeQueries("min", np.arange(2.0), np.arange(2.0), np.zeros(lows), np.ones(highs))


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("wrong", [(1.0, np.nan), (np.nan, 1.0), (np.inf, 1.0), (1.0, -np.inf)])
def test_a_change_to_an_invalid_point_is_refused_before_any_is_made(
    name: str, wrong: tuple[float, float]
) -> None:
    world = make_world(1)
    strategy = strategy_named(name)(world.setting, world.queries)
    x, y = world.queries.x[:2], world.queries.y[:2]
    changes = PointChanges(x, y, np.array([x[0], wrong[0]]), np.array([y[0] - 50, wrong[1]]))
    before = [strategy.answer(number) for number in range(len(world.queries))]
    with pytest.raises(TocsinError, match=r"change 1: its new point \(.*\) is not valid; both are finite"):
        strategy.publish(changes)
    assert [strategy.answer(number) for number in range(len(world.queries))] == before


def test_distinct_values_are_codes() -> None:
    x, ends = np.zeros(2), (np.array([0.0]), np.array([5.0]))
    for wrong in (-1.0, 0.5, 2.0**20, 2.0**31 - 1):
        with pytest.raises(TocsinError, match=r"row 1: .* a whole number from 0 to 1,048,575"):
            RangeQueries("distinct", x, np.array([1.0, wrong]), *ends)


@pytest.mark.parametrize("name", ["S-UN", "CN", "S-CN"])
def test_the_greatest_code_is_reported_like_any_other(name: str) -> None:
    greatest, nothing = 2.0**20 - 1, np.array([np.nan])
    ends = np.array([0.0]), np.array([5.0])
    queries = RangeQueries("distinct", np.array([1.0]), np.array([greatest]), *ends)
    strategy = strategy_named(name)(make_world(1).setting, queries)
    assert strategy.answer(0) == (greatest,)
    strategy.publish(PointChanges(np.array([1.0]), np.array([greatest]), nothing, nothing))
    assert strategy.answer(0) == ()
