from __future__ import annotations

import os

import numpy as np
import pytest

from tests.dissemination.worlds import Definition, assert_flows, changed_answers_of, make_world
from tocsin.dissemination.can.construction import Splitting
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named
from tocsin.dissemination.traffic import Traffic, TrafficLedger
from tocsin.model.errors import TocsinError
from tocsin.views.aggregates.base import PointError
from tocsin.views.changes import PointChanges

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
SEEDS = range(60 if LONG else 4)
KINDS = ("min", "max", "count", "sum", "avg", "distinct")
CARRIED = [(name, kind) for name in STRATEGIES for kind in KINDS if kind in strategy_named(name).kinds]


@pytest.mark.parametrize(("name", "kind"), CARRIED)
def test_every_changed_answer_is_reported_and_no_other(name: str, kind: str) -> None:
    for seed in SEEDS:
        splitting = list(Splitting)[seed % 3]
        world = make_world(seed, kind=kind, nodes=(1, 2, 12, 25)[seed % 4], splitting=splitting)
        strategy = strategy_named(name)(world.setting, world.queries)
        definition = Definition(world.queries)
        for batch in world.batches:
            expected = list(definition.follow(batch))
            outcome = strategy.publish(batch)
            assert changed_answers_of(outcome, len(batch)) == expected, f"seed {seed}"
            assert_flows(strategy, batch, outcome)
            answers = [strategy.answer(number) for number in range(len(world.queries))]
            assert answers == definition.answers, f"seed {seed}"


@pytest.mark.parametrize("name", STRATEGIES)
def test_nothing_published_costs_nothing(name: str) -> None:
    world = make_world(1)
    strategy = strategy_named(name)(world.setting, world.queries)
    outcome = strategy.publish(world.batches[0].__class__(*np.empty((4, 0))))
    assert len(outcome.traffic) == len(outcome.answer_changes) == 0


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_batch_costs_as_much_as_its_events_one_by_one(name: str) -> None:
    world = make_world(3, nodes=20)
    at_once, one_by_one = (strategy_named(name)(world.setting, world.queries) for _ in range(2))
    accounts = TrafficLedger(world.setting.overlay), TrafficLedger(world.setting.overlay)
    for batch in world.batches:
        accounts[0].add(at_once.publish(batch).traffic, len(batch))
        for place in range(len(batch)):
            columns = (getattr(batch, field)[place : place + 1] for field in batch.__struct_fields__)
            accounts[1].add(one_by_one.publish(type(batch)(*columns)).traffic, 1)
    for ours, theirs in zip(accounts[0].costs, accounts[1].costs, strict=True):
        assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize(("name", "kind"), CARRIED)
def test_a_long_batch_is_carried_in_parts_as_if_it_was_whole(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(4, kind=kind, nodes=20, events=90)
    whole, in_parts = (strategy_named(name)(world.setting, world.queries) for _ in range(2))
    expected = [whole.publish(batch) for batch in world.batches]
    monkeypatch.setattr("tocsin.dissemination.strategies.strategy._PART", 4)
    assert max(len(batch) for batch in world.batches) > 8
    found = [in_parts.publish(batch) for batch in world.batches]
    for batch, one, other in zip(world.batches, expected, found, strict=True):
        assert changed_answers_of(other, len(batch)) == changed_answers_of(one, len(batch))
        assert other.answer_changes.rows.tolist() == one.answer_changes.rows.tolist()
        assert other.outgoing == one.outgoing
        assert lines_of(other.traffic) == lines_of(one.traffic)


def lines_of(sent: Traffic) -> list[tuple[int, ...]]:
    return sorted(zip(*(getattr(sent, name).tolist() for name in sent.__struct_fields__), strict=True))


def test_content_based_traffic_does_not_depend_on_the_number_of_subscriptions() -> None:
    world = make_world(5, nodes=20, subscriptions=40)
    lows, highs = (np.repeat(ends, 10) for ends in (world.queries.lows, world.queries.highs))
    more = type(world.queries)("min", world.queries.x, world.queries.y, lows, highs)
    for name in ("CN", "S-CN", "DS-CN"):
        few, many = (strategy_named(name)(world.setting, queries) for queries in (world.queries, more))
        for batch in world.batches:
            one, other = few.publish(batch), many.publish(batch)
            assert one.traffic.size.tolist() == other.traffic.size.tolist()
            assert 10 * len(one.answer_changes) == len(other.answer_changes)


def test_a_setting_has_a_zone_for_each_node_and_a_server_among_them() -> None:
    setting, other = make_world(1, nodes=2).setting, make_world(1, nodes=3).setting
    with pytest.raises(TocsinError, match="3 zones and 2 overlay nodes"):
        Setting(setting.overlay, other.can)
    for server in (-1, 2):
        with pytest.raises(
            TocsinError, match=f"node {server} cannot be the server; the overlay has the nodes 0 to 1"
        ):
            Setting(setting.overlay, setting.can, server)


def test_a_strategy_says_which_kinds_it_carries() -> None:
    world = make_world(1, kind="sum")
    with pytest.raises(TocsinError, match="`DS-CN` does not carry `sum`; it carries max, min"):
        strategy_named("ds-cn")(world.setting, world.queries)


def test_an_unknown_strategy_is_refused_with_the_known_ones() -> None:
    with pytest.raises(TocsinError, match="no strategy `broadcast`; there are: S-UN"):
        strategy_named("broadcast")


@pytest.mark.parametrize("name", STRATEGIES)
@pytest.mark.parametrize("at_once", [1, 2, 100])
def test_a_missing_row_is_named_by_the_position_of_its_change(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(6, nodes=20, width=90)
    strategy = strategy_named(name)(world.setting, world.queries)
    monkeypatch.setattr("tocsin.dissemination.strategies.strategy._PART", at_once)
    nothing, x = np.full(3, np.nan), np.array([70.0, 80.0, np.nan])
    old = np.array([np.nan, np.nan, float(np.median(world.queries.lows))])
    with pytest.raises(PointError, match="change 2: its old point"):
        strategy.publish(PointChanges(old, np.where(old > 0, 777.0, nothing), x, x))
