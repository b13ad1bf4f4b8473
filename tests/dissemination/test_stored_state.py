"""The stored state that strategies report, compared with a count."""

from __future__ import annotations

import re
from collections import defaultdict

import numpy as np
import pytest
from msgspec.structs import replace

from tests.dissemination.test_strategies import CARRIED
from tests.dissemination.worlds import World, make_world
from tocsin.dissemination.byte_model import ByteModel
from tocsin.dissemination.query_kinds.join_rows import JoinChanges, JoinRows
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import StoredState, Strategy

FIELD = 10
ROW = 3 * FIELD  # its id, x and y


@pytest.mark.parametrize(("name", "kind"), CARRIED)
@pytest.mark.parametrize("seed", [1, 2])
def test_stored_state_is_counted_at_present(name: str, kind: str, seed: int) -> None:
    world = make_world(seed, kind=kind, nodes=15)
    setting = replace(world.setting, byte_model=ByteModel(field=FIELD))
    strategy = strategy_named(name)(setting, world.queries)
    rows = world.queries.x.tolist()
    assert expected(strategy, rows) == pytest.approx(bytes_by_role(strategy.stored_state))
    for batch in world.batches:
        strategy.publish(batch)
        for old, new in zip(batch.old_x.tolist(), batch.new_x.tolist(), strict=True):
            if not np.isnan(old):
                rows.remove(old)
            if not np.isnan(new):
                rows.append(new)
    assert len(rows) != world.queries.rows  # or else the first rows would do
    assert expected(strategy, rows) == pytest.approx(bytes_by_role(strategy.stored_state))


def bytes_by_role(stored: StoredState) -> tuple[int, int, int]:
    return stored.server, stored.network, stored.subscribers


def expected(strategy: Strategy, rows: list[float]) -> tuple[int, int, int]:
    """Return the bytes at the server, in the network and at subscribers."""
    asked = strategy.queries
    answers = [strategy.answer(number) for number in range(len(asked))]
    each = FIELD * sum(len(answer) if isinstance(answer, tuple) else 1 for answer in answers)
    ranges = list(zip(asked.lows.tolist(), asked.highs.tolist(), strict=True))
    if strategy.name == "CN":
        own = sum(low <= x <= high for x in rows for low, high in ranges)
        assert shared_in(strategy.stored_state.words) == ROW * shared(strategy, ranges, rows)
        return 0, 0, ROW * own + each
    return {
        "S-UN": (ROW * len(rows) + 3 * FIELD * len(ranges) + each, 0, 0),
        "S-MN": (ROW * len(rows) + 3 * FIELD * len(ranges) + each, 0, 0),
        "CN+": (0, ROW * len(rows), 2 * FIELD * len(ranges)),
        "S-CN": (ROW * len(rows), 0, each),
        "DS-CN": (0, ROW * len(rows), each),
    }[strategy.name]


def shared(strategy: Strategy, ranges: list[tuple[float, float]], rows: list[float]) -> int:
    """Return the number of rows at gateways: each stores the rows of the range that covers its subscriptions."""
    of_gateway = defaultdict(list)
    for gateway, ends in zip(strategy.gateways.tolist(), ranges, strict=True):
        of_gateway[gateway].append(ends)
    widest = [(min(low for low, _ in own), max(high for _, high in own)) for own in of_gateway.values()]
    return sum(low <= x <= high for x in rows for low, high in widest)


def shared_in(words: str) -> int:
    [number] = re.findall(r"\(([\d,]+) bytes", words)
    return int(number.replace(",", ""))


@pytest.fixture(scope="module")
def world() -> World:
    return make_world(1, nodes=4)


def test_of_a_join_both_tables_are_kept(world: World) -> None:
    numbers, keys = np.arange(3), np.array([1.0, 1.0, 2.0])
    r, s = JoinRows(numbers, keys, np.array([5.0, 15.0, 25.0])), JoinRows(numbers, keys, keys)
    setting = replace(world.setting, byte_model=ByteModel(field=FIELD))
    queries = JoinQueries(r, s, np.array([0.0, 10.0]), np.array([10.0, 30.0]))
    served, content = (strategy_named(name)(setting, queries) for name in ("S-CN", "CN"))
    # Pairs are of two fields: those of key 1 are four, of which each range has two; of key 2 there is one.
    assert bytes_by_role(served.stored_state) == (ROW * 6, 0, FIELD * 2 * (2 + 3))
    assert bytes_by_role(content.stored_state) == (0, 0, ROW * (1 + 2 + 2 * 3) + FIELD * 2 * (2 + 3))
    nan = np.nan
    gone = JoinChanges(
        table=np.array([0, 1, 0], dtype=np.int8),
        id=np.array([0, 2, 7]),
        old_key=np.array([1.0, 2.0, nan]),
        old_value=np.array([5.0, 2.0, nan]),
        new_key=np.array([nan, nan, 1.0]),
        new_value=np.array([nan, nan, 29.0]),
    )
    served.publish(gone)
    content.publish(gone)
    assert bytes_by_role(served.stored_state) == (ROW * 5, 0, FIELD * 2 * 4)
    assert bytes_by_role(content.stored_state) == (0, 0, ROW * (0 + 3 + 2 * 2) + FIELD * 2 * 4)
