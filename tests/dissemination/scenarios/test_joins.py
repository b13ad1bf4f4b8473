"""Tables to be joined: their changes are a history, and depend on nothing but the seed."""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from tocsin.dissemination.query_kinds.join_rows import JoinSide
from tocsin.dissemination.scenarios.ranges import DOMAIN
from tocsin.dissemination.scenarios.scenario import Scenario, prepare
from tocsin.dissemination.scenarios.walks import draw_changes, draw_rows, in_batches


def test_each_change_begins_where_the_one_before_left_its_row() -> None:
    tables = {table: draw_rows(30, table) for table in JoinSide}
    changes = draw_changes(tables[JoinSide.R], tables[JoinSide.S], 200)
    now = {table: rows.value.copy() for table, rows in tables.items()}
    for place in range(len(changes)):
        table, row = JoinSide(changes.table[place]), changes.id[place]
        assert changes.old_value[place] == now[table][row]
        assert changes.old_key[place] == changes.new_key[place] == tables[table].key[row]
        now[table][row] = changes.new_value[place]
    assert set(changes.table.tolist()) == set(JoinSide)
    assert changes.new_value.min() >= DOMAIN[0]
    assert changes.new_value.max() <= DOMAIN[1]


def test_batches_are_all_changes_in_order() -> None:
    changes = draw_changes(draw_rows(5, JoinSide.R), draw_rows(7, JoinSide.S), 10)
    parts = list(in_batches(changes, 4))
    assert [len(part) for part in parts] == [4, 4, 2]
    assert np.concatenate([part.id for part in parts]).tolist() == changes.id.tolist()


def test_a_scenario_is_drawn_the_same_again() -> None:
    scenario = Scenario(kind="join", nodes=4, physical=40, subscriptions=10, rows=20, events=15)
    one, two = prepare(scenario), prepare(scenario)
    assert one.changes.new_value.tolist() == two.changes.new_value.tolist()
    assert one.queries.z_lows.tolist() == two.queries.z_lows.tolist()
    assert one.queries.rows == 40


def test_ranges_of_both_values_are_as_long_as_is_said_and_zones_are_a_populations() -> None:
    usual = Scenario(kind="join", nodes=4, physical=40, subscriptions=200, rows=20, events=0)
    asked, shorter, longer = (
        prepare(one).queries for one in (usual, replace(usual, short=True), replace(usual, lengthened=2))
    )
    for lows, highs in (("lows", "highs"), ("z_lows", "z_highs")):
        lengths = [np.mean(getattr(one, highs) - getattr(one, lows)) for one in (shorter, asked, longer)]
        assert 2 * lengths[0] < lengths[1] < 0.8 * lengths[2]
    some = prepare(replace(usual, subscriptions=50, population=200))
    assert some.queries.lows.tolist() == asked.lows[:50].tolist()
    assert some.queries.z_highs.tolist() == asked.z_highs[:50].tolist()
    zones = some.setting.can.zones, prepare(usual).setting.can.zones
    assert all(np.array_equal(one, other) for one, other in zip(*zones, strict=True))
