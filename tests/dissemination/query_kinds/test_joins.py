"""Joins through the strategies that carry them, compared with a join of all rows after every change."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from tests.dissemination.worlds import assert_flows_from, changed_answers_of
from tocsin.dissemination.byte_model import ByteModel
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import place_overlay
from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinRows, JoinSide
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Strategy
from tocsin.model.errors import TocsinError
from tocsin.views.aggregates.base import PointError

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
WIDTH, KEYS, HEIGHT = 20, 4, 6
ABSENT = (math.nan, math.nan)

Row = tuple[float, float]  # key, value
Change = tuple[JoinSide, int, Row, Row]


def columns(changes: list[Change]) -> JoinChanges:
    """Return changes as columns."""
    numbers = np.array([[*old, *new] for *_, old, new in changes], dtype=np.float64).reshape(-1, 4).T
    tables = np.array([table for table, *_ in changes], dtype=np.int8)
    ids = np.array([id for _, id, *_ in changes], dtype=np.int64)
    return JoinChanges(tables, ids, *(column.copy() for column in numbers))


def rows_of(rows: dict[int, Row]) -> JoinRows:
    table = np.array(list(rows.values()), dtype=np.float64).reshape(-1, 2)
    return JoinRows(np.array(list(rows), dtype=np.int64), table[:, 0].copy(), table[:, 1].copy())


def draw_row(random: np.random.Generator, table: JoinSide) -> Row:
    return float(random.integers(KEYS)), float(random.integers(WIDTH if table is JoinSide.R else HEIGHT))


def draw_changes(
    random: np.random.Generator, tables: dict[JoinSide, dict[int, Row]], events: int
) -> Iterator[Change]:
    """Make changes of every sort: rows come, go, change their key, their value, both or nothing."""
    for _ in range(events):
        table = JoinSide(int(random.integers(2)))
        rows, way, new = tables[table], random.random(), draw_row(random, table)
        if not rows or way < 0.15:
            id = int(random.integers(50))
            if id not in rows:
                rows[id] = new
                yield table, id, ABSENT, new
            continue
        id = int(random.choice(list(rows)))
        old = rows[id]
        if way < 0.3:
            del rows[id]
            yield table, id, old, ABSENT
            continue
        rows[id] = (old[0], new[1]) if way < 0.7 else (new[0], old[1]) if way < 0.85 else new
        yield table, id, old, rows[id]


class Definition:
    """The answers as they are defined, by nested loops."""

    def __init__(self, queries: JoinQueries) -> None:
        self._ranges = list(
            zip(
                *(ends.tolist() for ends in (queries.lows, queries.highs, queries.z_lows, queries.z_highs)),
                strict=True,
            )
        )
        self._tables = {
            table: {
                id: (key, value)
                for id, key, value in zip(
                    rows.id.tolist(), rows.key.tolist(), rows.value.tolist(), strict=True
                )
            }
            for table, rows in ((JoinSide.R, queries.r), (JoinSide.S, queries.s))
        }
        self.answers = self._paired()

    def follow(self, changes: list[Change]) -> Iterator[dict[int, tuple[Any, Any]]]:
        """Return, for each change in turn, the answers that it alters."""
        for table, id, _, new in changes:
            self._tables[table].pop(id, None)
            if new != ABSENT:
                self._tables[table][id] = new
            before, self.answers = self.answers, self._paired()
            both = enumerate(zip(before, self.answers, strict=True))
            yield {number: pair for number, pair in both if pair[0] != pair[1]}

    def _paired(self) -> list[tuple[tuple[int, int], ...]]:
        pairs = [
            (r, s, x, z)
            for r, (r_key, x) in self._tables[JoinSide.R].items()
            for s, (s_key, z) in self._tables[JoinSide.S].items()
            if r_key == s_key
        ]
        return [
            tuple(sorted((r, s) for r, s, x, z in pairs if low <= x <= high and z_low <= z <= z_high))
            for low, high, z_low, z_high in self._ranges
        ]


def make_world(seed: int, nodes: int) -> tuple[Setting, JoinQueries, list[Change]]:
    random = np.random.default_rng([seed, 99])
    tables = {table: {id: draw_row(random, table) for id in range(10)} for table in JoinSide}
    ends = np.sort(random.integers(0, WIDTH, (30, 2)), axis=1).astype(np.float64)
    heights = np.sort(random.integers(0, HEIGHT, (30, 2)), axis=1).astype(np.float64)
    heights[::3] = [-np.inf, np.inf]
    queries = JoinQueries(
        rows_of(tables[JoinSide.R]),
        rows_of(tables[JoinSide.S]),
        ends[:, 0].copy(),
        ends[:, 1].copy(),
        z_lows=heights[:, 0].copy(),
        z_highs=heights[:, 1].copy(),
    )
    can = build_can(
        nodes,
        list(Splitting)[seed % 3],
        lows=queries.lows,
        highs=queries.highs,
        rows=queries.r.value,
        domain=(0.0, float(WIDTH)),
        seed=seed,
    )
    overlay = place_overlay(make_topology(3 * nodes, seed=seed), nodes, seed=seed)
    setting = Setting(overlay, can, server=int(random.integers(nodes)))
    return setting, queries, list(draw_changes(random, tables, 60))


def origins(strategy: Strategy, changes: JoinChanges) -> list[set[int]]:
    """Return where changes are known from the beginning."""
    if strategy.name.startswith("S-"):
        return [{strategy.setting.server} for _ in range(len(changes))]
    found: list[set[int]] = [set() for _ in range(len(changes))]
    messages = strategy.queries.relaxed(changes).messages
    roots = strategy.setting.can.locate(messages.inner_l, messages.inner_r)
    for change, root in zip(messages.change.tolist(), roots.tolist(), strict=True):
        found[change].add(root)
    return found


@pytest.mark.parametrize("name", ["S-UN", "CN", "S-CN"])
@pytest.mark.parametrize("at_once", [7, 256])
def test_every_change_of_a_subscriptions_pairs_is_reported_once(
    name: str, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tocsin.dissemination.query_kinds.join_pairs._BATCH", at_once)
    for seed in range(60 if LONG else 4):
        setting, queries, changes = make_world(seed, nodes=(1, 3, 12, 25)[seed % 4])
        strategy = strategy_named(name)(setting, queries)
        definition = Definition(queries)
        assert [strategy.answer(number) for number in range(len(queries))] == definition.answers
        for batch in (changes[:1], changes[1:25], [], changes[25:]):
            expected = list(definition.follow(batch))
            outcome = strategy.publish(columns(batch))
            assert changed_answers_of(outcome, len(batch)) == expected, f"seed {seed}"
            assert_flows_from(origins(strategy, columns(batch)), strategy, outcome)
            assert [strategy.answer(number) for number in range(len(queries))] == definition.answers


def test_the_size_of_a_unicast_counts_its_changed_pairs() -> None:
    setting, queries, changes = make_world(2, nodes=12)
    setting = replace(setting, byte_model=ByteModel(field=4, header=3))
    outcome = strategy_named("S-UN")(setting, queries).publish(columns(changes))
    sent, altered = outcome.traffic, outcome.answer_changes
    gateways = setting.can.locate(queries.lows, queries.highs)
    expected: dict[tuple[int, int], int] = {}
    for change, place, old, new in zip(altered.rows, altered.numbers, altered.old, altered.new, strict=True):
        line = int(change), int(gateways[place])
        expected[line] = expected.get(line, 0) + 3 + 4 * (1 + 3 * len(set(old) ^ set(new)))
    lines = zip(sent.event.tolist(), sent.receiver.tolist(), sent.size.tolist(), strict=True)
    assert {(event, node): size for event, node, size in lines} == {
        line: size for line, size in expected.items() if line[1] != setting.server
    }


@pytest.mark.parametrize(("name", "fields"), [("CN", 4), ("S-CN", 6)])
def test_a_row_and_a_pair_are_as_long_wherever_they_go(name: str, fields: int) -> None:
    setting, queries, changes = make_world(2, nodes=12)
    sizes = ByteModel(field=4, header=3)
    sent = strategy_named(name)(replace(setting, byte_model=sizes), queries).publish(columns(changes)).traffic
    assert len(sent)
    assert (sent.messages == 1).all()
    assert (sent.size == sizes.of(fields)).all()


def test_rows_have_three_fields_and_pairs_two_where_they_are_kept() -> None:
    setting, queries, _ = make_world(2, nodes=12)
    setting, rows = replace(setting, byte_model=ByteModel(field=10)), len(queries.r) + len(queries.s)
    pairs = sum(len(one) for one in Definition(queries).answers)
    x = queries.r.value
    within = (x >= queries.lows[:, None]) & (x <= queries.highs[:, None])
    near = int(within.sum()) + len(queries) * len(queries.s)
    expected = {
        "S-UN": (3 * rows + 3 * len(queries) + 2 * pairs, 0, 0),
        "CN": (0, 0, 3 * near + 2 * pairs),
        "S-CN": (3 * rows, 0, 2 * pairs),
    }
    for name, fields in expected.items():
        held = strategy_named(name)(setting, queries).stored_state
        assert (held.server, held.network, held.subscribers) == tuple(10 * one for one in fields), name


def small() -> JoinQueries:
    """Return R with rows 1 and 2, S with rows 7 and 8; only 1 and 7 have the same key."""
    r = JoinRows(np.array([1, 2]), np.array([5.0, 6.0]), np.array([10.0, 20.0]))
    s = JoinRows(np.array([7, 8]), np.array([5.0, 9.0]), np.array([0.5, 0.6]))
    return JoinQueries(r, s, np.array([0.0]), np.array([30.0]))


def reformulated(change: Change) -> list[tuple[float, ...]]:
    """Return the messages of a change: the corner, the ids, z and the sign."""
    messages = small().new_server().reformulate(columns([change]))
    assert np.isinf(messages.outer_l).all()
    assert np.isinf(messages.outer_r).all()
    payload = messages.payload
    parts = (messages.inner_l, messages.inner_r, payload["r"], payload["s"], payload["z"], payload["sign"])
    return list(zip(*(part.tolist() for part in parts), strict=True))


def test_a_message_is_a_pair_that_comes_or_goes() -> None:
    assert reformulated((JoinSide.R, 3, ABSENT, (9.0, 15.0))) == [(15.0, 15.0, 3, 8, 0.6, 1)]
    assert reformulated((JoinSide.S, 7, (5.0, 0.5), ABSENT)) == [(10.0, 10.0, 1, 7, 0.5, -1)]
    assert reformulated((JoinSide.S, 7, (5.0, 0.5), (6.0, 0.7))) == [
        (10.0, 10.0, 1, 7, 0.5, -1),
        (20.0, 20.0, 2, 7, 0.7, 1),
    ]
    assert reformulated((JoinSide.R, 1, (5.0, 10.0), (5.0, 11.0))) == [
        (10.0, 10.0, 1, 7, 0.5, -1),
        (11.0, 11.0, 1, 7, 0.5, 1),
    ]


def test_a_change_that_affects_no_pair_makes_no_message() -> None:
    assert reformulated((JoinSide.R, 2, (6.0, 20.0), ABSENT)) == []
    assert reformulated((JoinSide.R, 1, (5.0, 10.0), (5.0, 10.0))) == []
    assert reformulated((JoinSide.S, 9, ABSENT, (1.0, 1.0))) == []


def test_replicas_share_the_rows_they_began_with_but_not_their_changes() -> None:
    queries = small()
    first, other = queries.new_replica(0.0, 15.0), queries.new_replica(0.0, 15.0)
    gone: Change = (JoinSide.S, 7, (5.0, 0.5), ABSENT)
    assert len(first.reformulate(columns([gone]))) == 1
    assert len(other.reformulate(columns([gone]))) == 1
    assert queries.new_server().nbytes > 0


def test_a_missing_or_duplicate_row_is_named_with_its_change() -> None:
    server = small().new_server()
    fine: Change = (JoinSide.R, 3, ABSENT, (9.0, 15.0))
    with pytest.raises(
        PointError, match=r"change 1, table S: row 7 is not stored with key 5\.0 and value 0\.1"
    ):
        server.reformulate(columns([fine, (JoinSide.S, 7, (5.0, 0.1), ABSENT)]))
    for again in (fine, (JoinSide.R, 3, ABSENT, (5.0, 15.0))):
        with pytest.raises(PointError, match=r"change 0, table R: row 3 is stored already, with key 9\.0"):
            server.reformulate(columns([again]))
    with pytest.raises(PointError, match="change 0, table R: row 4 is not stored"):
        server.reformulate(columns([(JoinSide.R, 4, (9.0, 15.0), (9.0, 15.0))]))
    for _ in range(2):
        server.reformulate(
            columns([(JoinSide.R, 1, (5.0, 10.0), ABSENT), (JoinSide.R, 1, ABSENT, (5.0, 10.0))])
        )


def test_a_change_with_half_a_row_is_refused_before_any_is_made() -> None:
    server = small().new_server()
    fine: Change = (JoinSide.R, 3, ABSENT, (9.0, 15.0))
    with pytest.raises(TocsinError, match=r"change 1: .* both finite, or both NaN"):
        server.reformulate(columns([fine, (JoinSide.R, 4, ABSENT, (9.0, math.nan))]))
    assert len(server.reformulate(columns([fine]))) == 1
    with pytest.raises(TocsinError, match=r"change 1: .* both finite, or both NaN"):
        small().check(columns([fine, (JoinSide.R, 4, ABSENT, (9.0, math.nan))]))


def test_invalid_queries_are_refused() -> None:
    r = JoinRows(np.array([1, 1]), np.array([5.0, 6.0]), np.array([10.0, 20.0]))
    s = JoinRows(np.array([7]), np.array([5.0]), np.array([np.nan]))
    one, two, none = np.array([1.0]), np.array([2.0]), r.take(np.array([], dtype=np.int64))
    with pytest.raises(TocsinError, match="table R has several rows of id 1"):
        JoinQueries(r, none, one, two)
    with pytest.raises(TocsinError, match=r"table S, row 0: .* finite"):
        JoinQueries(none, s, one, two)
    with pytest.raises(TocsinError, match=r"subscription 0: \[2\.0, 1\.0\] is no range;"):
        JoinQueries(none, none, two, one)
    with pytest.raises(TocsinError, match=r"subscription 0: \[2\.0, 1\.0\] is no range of z"):
        JoinQueries(none, none, one, two, z_lows=two, z_highs=one)
    with pytest.raises(TocsinError, match="ends of ranges of z for 1 subscriptions"):
        JoinQueries(none, none, one, two, z_lows=np.array([1.0, 1.0]))


def test_points_are_no_rows_of_a_join() -> None:
    with pytest.raises(TocsinError, match="a join has two tables"):
        small().new_server().load(np.empty(0), np.empty(0))
