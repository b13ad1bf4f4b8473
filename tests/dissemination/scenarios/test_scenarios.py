from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tocsin.dissemination.scenarios.quotes import make_trace, read_quotes
from tocsin.dissemination.scenarios.ranges import SHORT, draw_ranges
from tocsin.dissemination.scenarios.scenario import Scenario, prepare
from tocsin.dissemination.scenarios.walks import (
    TablePoints,
    Updates,
    draw_points,
    draw_updates,
    in_batches,
    moves,
    recoded,
)
from tocsin.model.errors import TocsinError


def ignorable(points: TablePoints, updates: Updates) -> list[bool]:
    """Return, by its definition, whether each update is ignorable: no range around x is free of lower others."""
    y, found = points.y.copy(), []
    for row, old, new in zip(updates.rows, updates.old_y, updates.new_y, strict=True):
        assert y[row] == old
        others = (points.x == points.x[row]) & (y <= min(old, new))
        others[row] = False
        found.append(bool(others.any()) or old == new)
        y[row] = new
    assert np.array_equal(y, updates.applied_to(points).y)
    return found


def test_ranges_are_drawn_as_in_table_1() -> None:
    ranges = draw_ranges(20_000)
    assert len(ranges) == 20_000
    assert (ranges.lows >= 0).all()
    assert (ranges.lows <= ranges.highs).all()
    assert (ranges.highs <= 10_000).all()
    middles, lengths = (ranges.lows + ranges.highs) / 2, ranges.highs - ranges.lows
    assert abs(middles.mean() - 5_000) < 50
    assert abs(middles.std() - 1_500) < 50
    assert 1_200 < lengths.mean() < 1_350  # N(1000, 1000) without what is below 0
    short = draw_ranges(5_000, SHORT)
    assert abs((short.highs - short.lows).mean() - 50) < 2
    assert ranges.first(3).to_arrow().column_names == ["id", "low", "high"]


def test_a_narrow_domain_has_ranges_within_as_a_wide_one_has() -> None:
    for upper in (0.05, 1e-9):
        narrow, wide = draw_ranges(100, domain=(0.0, upper)), draw_ranges(100)
        assert ((narrow.lows >= 0) & (narrow.lows <= narrow.highs) & (narrow.highs <= upper)).all()
        assert np.allclose(narrow.lows / upper, wide.lows / 10_000, atol=1e-5)
        assert np.allclose(narrow.highs / upper, wide.highs / 10_000, atol=1e-5)


def test_the_same_seed_draws_the_same() -> None:
    points = draw_points(500)
    one, two = (draw_updates(points, 300, seed=7) for _ in range(2))
    assert np.array_equal(one.rows, two.rows)
    assert np.array_equal(one.new_y, two.new_y)
    assert not np.array_equal(one.rows, draw_updates(points, 300, seed=8).rows)
    assert np.array_equal(draw_ranges(50).lows, draw_ranges(50).lows)
    assert not np.array_equal(draw_points(500, seed=2).x, points.x)


def test_the_share_of_ignorable_updates_is_as_given() -> None:
    points = draw_points(2_000, decimals=-1)  # two rows share an x
    assert not any(ignorable(points, draw_updates(points, 500)))
    assert all(ignorable(points, draw_updates(points, 500, spikes=0, ignorable=1.0)))
    share = np.mean(ignorable(points, draw_updates(points, 2_000, spikes=0, ignorable=0.21)))
    assert 0.17 < share < 0.25
    assert any(ignorable(points, draw_updates(points, 500, ignorable=None)))


def test_a_spike_drops_below_all_others_and_is_restored() -> None:
    points = draw_points(300)
    updates = draw_updates(points, 2_000, spikes=0.1)
    assert 0.07 < updates.is_spike.mean() < 0.13
    y = points.y.copy()
    for place in range(len(updates) - 1):
        row = updates.rows[place]
        if updates.is_spike[place]:
            assert updates.new_y[place] < y.min()
            assert updates.rows[place + 1] == row
            assert updates.new_y[place + 1] == updates.old_y[place]
        y[row] = updates.new_y[place]
    every = draw_updates(points, 100, spikes=0.5).is_spike
    assert every[::2].all()
    assert not every[1::2].any()


def test_updates_come_in_batches_and_as_rows() -> None:
    points = draw_points(50)
    updates = draw_updates(points, 25)
    batches = list(in_batches(updates.changes, 10, begin=5))
    assert [len(batch) for batch in batches] == [10, 10]
    assert np.array_equal(np.concatenate([batch.new_y for batch in batches]), updates.new_y[5:])
    assert updates.to_arrow().column_names == points.to_arrow().column_names == ["symbol", "risk", "per"]
    only = np.zeros(50, dtype=np.bool_)
    only[updates.rows[0]] = True
    assert set(updates.of_rows(only).rows.tolist()) == {updates.rows[0]}


def test_a_made_up_trace_has_many_ties() -> None:
    trace = make_trace(300, 10)
    assert len(trace.x) == 300
    assert len(np.unique(trace.x)) <= 41
    assert 0.8 * 3_000 < len(trace.changes) < 3_000
    assert (trace.changes.old_y != trace.changes.new_y).all()


def test_quotes_come_go_move_and_change(tmp_path: Path) -> None:
    quotes = [
        {"time": "1", "symbol": "A", "dividend_yield": 1.0, "pe": 10.0},
        {"time": "1", "symbol": "B", "dividend_yield": 2.0, "pe": None},
        {"time": "2", "symbol": "A", "dividend_yield": 1.0, "pe": 11.0},
        {"time": "2", "symbol": "B", "dividend_yield": 2.0, "pe": 20.0},
        {"time": "3", "symbol": "A", "dividend_yield": 1.0, "pe": 11.0},
        {"time": "4", "symbol": "B", "dividend_yield": None, "pe": 20.0},
        {"time": "5", "symbol": "A", "dividend_yield": 3.0, "pe": 11.0},
    ]
    path = tmp_path / "stock_quotes.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, quotes)).encode()))
    trace = read_quotes(path)
    assert (trace.x.tolist(), trace.y.tolist()) == ([1.0], [10.0])
    assert 2 < trace.domain[1] < 3
    changes = trace.changes
    columns = (changes.old_x, changes.old_y, changes.new_x, changes.new_y)
    changed = [tuple(None if np.isnan(n) else n for n in row) for row in zip(*columns, strict=True)]
    assert changed == [(1, 10, 1, 11), (None, None, 2, 20), (2, 20, None, None), (1, 11, 3, 11)]


def test_an_invalid_file_of_quotes_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TocsinError, match=r"there is no file .*quotes\.jsonl"):
        read_quotes(tmp_path / "quotes.jsonl")
    for other in (
        '{"time": "1"}',
        '{"time": "1", "symbol": {"name": "A"}, "dividend_yield": 1.0, "pe": 2.0}',
    ):
        (tmp_path / "other.jsonl").write_text(other + "\n")
        with pytest.raises(TocsinError, match="holds no quotes: JSON lines with time, symbol"):
            read_quotes(tmp_path / "other.jsonl")


@pytest.mark.parametrize(
    "content", [b"{}\n", gzip.compress(b"{}\n" * 99)[:-9]], ids=["never packed", "cut off"]
)
def test_a_file_of_quotes_that_cannot_be_decompressed_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "quotes.jsonl.gz"
    path.write_bytes(content)
    with pytest.raises(TocsinError, match="holds no quotes"):
        read_quotes(path)


def test_quotes_without_a_symbol_are_passed_over_and_without_an_x_refused(tmp_path: Path) -> None:
    path = tmp_path / "quotes.jsonl"
    nobody = '{"time": 1, "symbol": null, "dividend_yield": 2.0, "pe": 3.0}\n'
    path.write_text(nobody + nobody.replace("null", '"A"'))
    assert len(read_quotes(path).x) == 1
    for wrong in (nobody, nobody.replace("null", '"A"').replace("2.0", "null")):
        path.write_text(wrong)
        with pytest.raises(TocsinError, match="hardly any quote with a dividend_yield above 0"):
            read_quotes(path)


def test_rows_move_and_values_are_few() -> None:
    points = draw_points(40)
    updates = draw_updates(points, 200)
    found = moves(points, updates)
    x = points.x.copy()
    for place, row in enumerate(updates.rows):
        assert found.old_x[place] == x[row]
        assert found.old_y[place] == found.new_y[place] == points.y[row]
        x[row] = found.new_x[place]
    assert (x != points.x).any()
    few = recoded(updates, 5)
    assert set(few.old_y.tolist()) | set(few.new_y.tolist()) == set(range(5))
    assert np.array_equal(few.old_x, few.new_x)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"kind": "median"}, "no kind `median`; there are: min"),
        ({"population": 1, "subscriptions": 2}, "population is 1; give at least as many"),
        ({"rows": 0}, "rows is 0; give at least 1"),
        ({"header": -1}, "header is -1; give at least 0"),
        ({"ignorable": float("nan")}, "ignorable is nan; it is a share"),
    ],
)
def test_a_scenario_that_cannot_be_is_refused_before_anything_is_drawn(
    given: dict[str, Any], message: str
) -> None:
    with pytest.raises(TocsinError, match=message):
        Scenario(**given).check()


def test_a_seed_gives_one_scenario() -> None:
    scenario = Scenario(nodes=4, physical=9, subscriptions=20, rows=15, events=30)
    one, again = prepare(scenario), prepare(scenario)
    assert one.setting.server == again.setting.server
    for ours, theirs in zip(one.setting.can.zones, again.setting.can.zones, strict=True):
        assert np.array_equal(ours, theirs)
    assert np.array_equal(one.changes.new_y, again.changes.new_y)
    assert np.array_equal(one.queries.lows, again.queries.lows)


def test_fewer_of_a_population_have_the_same_zones() -> None:
    small = {"nodes": 20, "physical": 60, "population": 500, "rows": 20, "events": 5}
    few, many = (prepare(Scenario(subscriptions=count, **small)) for count in (100, 500))  # type: ignore[arg-type]
    assert few.setting.can.zones.low1.tolist() == many.setting.can.zones.low1.tolist()
    assert few.queries.lows.tolist() == many.queries.lows[:100].tolist()
