from __future__ import annotations

import math
import os
from collections.abc import Iterable

import numpy as np
import pytest

from tests.dissemination.worlds import make_world
from tests.views.aggregates.every_range import Change, Point, point_changes
from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.dissemination.ds_cn.server import DistributedServer, Walked, heights_of, reformulate
from tocsin.views.aggregates.base import PointError
from tocsin.views.aggregates.extremes import Extremes
from tocsin.views.changes import PointChanges
from tocsin.views.messages import Messages

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
TABLE: list[Point] = [(10, 10), (20, 3), (30, 8), (40, 12), (50, 5), (70, 6), (70, 11), (100, 2)]
INF = math.inf


def lines(messages: Messages) -> list[tuple[float, ...]]:
    columns = (messages.change, messages.payload["value"])
    ends = (messages.inner_l, messages.inner_r, messages.outer_l, messages.outer_r)
    return [tuple(line) for line in np.column_stack([*columns, *ends]).tolist()]


def same(one: Messages, other: Messages) -> bool:
    return bool(np.array_equal(np.array(lines(one)), np.array(lines(other)), equal_nan=True))


def split_at(*cuts: float) -> Can:
    """Return zones that take turns along the diagonal at the cuts, and so have no neighbour but the next."""
    can = build_can(
        len(cuts) + 1,
        Splitting.DATABASE,
        lows=np.empty(0),
        highs=np.empty(0),
        rows=np.array(cuts),
        domain=(0.0, 120.0),
        seed=1,
    )
    diagonal = np.arange(len(cuts) + 1)
    return Can(can.zones._replace(diagonal=diagonal, diagonal_from=np.array([-INF, *cuts])))


def walked_from(can: Can, points: Iterable[Point], *changes: Change) -> Walked:
    x, y = np.array(list(points), dtype=float).reshape(-1, 2).T
    return DistributedServer(can, "min", x, y).walk(point_changes(changes))


@pytest.mark.parametrize("kind", ["min", "max"])
def test_messages_equal_those_of_one_server_with_all_rows(kind: str) -> None:
    for seed in range(300 if LONG else 12):
        splitting = list(Splitting)[seed % 3]
        world = make_world(
            seed,
            kind=kind,
            nodes=(1, 3, 20, 40)[seed % 4],
            rows=(25, 60)[seed % 2],
            events=150,
            splitting=splitting,
        )
        server = Extremes()
        server.load(world.queries.x, heights_of(kind, world.queries.y))
        diagonal = DistributedServer(world.setting.can, kind, world.queries.x, world.queries.y)
        for batch in world.batches:
            heights = (heights_of(kind, y) for y in (batch.old_y, batch.new_y))
            expected = server.reformulate(
                PointChanges(batch.old_x, next(heights), batch.new_x, next(heights))
            )
            assert same(reformulate(diagonal.walk(batch)), expected), f"seed {seed}"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (((40, 12), (40, 4)), [(4, 40, 40, 20, 100)]),
        (((50, 5), (50, 9)), [(9, 50, 50, 30, 70), (8, 30, 50, 20, 70), (6, 50, 70, 20, 100)]),
        (((70, 11), (70, 7)), []),
        (((30, 8), (30, 12)), [(12, 30, 30, 20, 50)]),
        (((20, 3), (20, 5)), [(5, 20, 20, -INF, 100)]),
        ((None, (60, 3)), [(3, 60, 60, 20, 100)]),
        (
            ((100, 2), (100, 20)),
            [
                (20, 100, 100, 70, INF),
                (6, 70, 100, 50, INF),
                (5, 50, 100, 20, INF),
                (3, 20, 100, -INF, INF),
            ],
        ),
        (
            ((50, 5), (80, 7)),
            [
                (math.nan, 50, 50, 40, 70),
                (12, 40, 50, 30, 70),
                (8, 30, 50, 20, 70),
                (6, 50, 70, 20, 80),
                (7, 80, 80, 70, 100),
                (6, 50, 80, 20, 100),
            ],
        ),
    ],
)
def test_messages_of_the_example(change: Change, expected: list[tuple[float, ...]]) -> None:
    for cuts in ((), (45,), (25, 45, 75), (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)):
        found = np.array(lines(reformulate(walked_from(split_at(*cuts), TABLE, change)))).reshape(-1, 6)[
            :, 1:
        ]
        wanted = np.array(expected, dtype=float).reshape(-1, 5)
        assert sorted(map(str, found.tolist())) == sorted(map(str, wanted.tolist()))


def sent(walked: Walked) -> list[tuple[int, ...]]:
    """Return sender, receiver, fields and step of each message."""
    found = walked.messages
    return list(
        zip(
            found.sender.tolist(),
            found.receiver.tolist(),
            found.fields.tolist(),
            found.step.tolist(),
            strict=True,
        )
    )


def test_a_walk_goes_from_owner_to_owner_until_a_row_is_low_enough() -> None:
    # Owners: 0 has 10 and 20, 1 has 30 and 40, 2 has 50 to 70, 3 has 100.
    walked = walked_from(split_at(25, 45, 75), TABLE, ((40, 12), (40, 4)))
    assert sent(walked) == [(1, 0, 3, 0), (0, 1, 3, 1), (1, 2, 3, 0), (2, 3, 3, 1), (3, 1, 3, 2)]
    assert walked.coordinators.position.tolist() == [1]
    assert walked.coordinators.step.tolist() == [3]
    # Of the rows passed, none was below 4: the two ends alone come back.
    assert walked.returned.x.tolist() == [20, 100]


def test_every_row_that_may_be_exposed_comes_back() -> None:
    walked = walked_from(split_at(25, 45, 75), TABLE, ((50, 5), (50, 9)))
    assert sent(walked) == [
        (2, 1, 3, 0),
        (1, 2, 3, 1),
        (1, 0, 3, 1),
        (0, 2, 3, 2),
        (2, 3, 3, 0),
        (3, 2, 3, 1),
    ]
    assert walked.returned.x.tolist() == [30, 20, 70, 100]


def test_a_walk_that_comes_to_the_end_says_so() -> None:
    walked = walked_from(split_at(25, 45, 75), TABLE, ((100, 2), (100, 1)))
    assert sent(walked) == [(3, 2, 3, 0), (2, 1, 3, 1), (1, 0, 3, 2), (0, 3, 1, 3)]
    assert walked.coordinators.step.tolist() == [4]


def test_an_ignorable_change_ends_at_the_owner() -> None:
    walked = walked_from(
        split_at(25, 45, 75), TABLE, ((70, 11), (70, 7)), ((70, 6), (70, 6)), (None, (70, 6))
    )
    assert sent(walked) == []
    assert not walked.coordinators.is_relevant.any()


def test_a_row_that_moves_is_reported_by_its_old_owner() -> None:
    walked = walked_from(split_at(25, 45, 75), TABLE, ((30, 8), (100, 9)))
    assert walked.coordinators.position.tolist() == [1]
    assert {receiver for _, receiver, *_ in sent(walked)[-1:]} == {1}
    # There is a lower row at the new x: nothing to walk for, which the old owner has to hear.
    assert (3, 1, 3, 0) in sent(walked)


def test_rows_come_from_visited_owners_and_are_charged() -> None:
    for seed in range(60 if LONG else 4):
        world = make_world(seed, nodes=30, rows=60, events=100, splitting=list(Splitting)[seed % 3])
        can = world.setting.can
        diagonal = DistributedServer(can, "min", world.queries.x, world.queries.y)
        for batch in world.batches:
            walked = diagonal.walk(batch)
            found, tuples = walked.messages, walked.returned
            for change in np.flatnonzero(walked.coordinators.is_relevant).tolist():
                of = found.cause == change
                knows = {walked.changes.old_position[change], walked.changes.new_position[change]}
                asked = knows | set(found.receiver[of & ~found.is_reply])
                held_by = can.diagonal_positions(tuples.x[tuples.change == change])
                assert set(held_by) <= asked
                for owner in asked - {-1, walked.coordinators.position[change]}:
                    fields = found.fields[of & found.is_reply & (found.sender == owner)]
                    assert fields[fields > 1].sum() == 3 * np.count_nonzero(held_by == owner)
                last = found.step[of].max(initial=-1)
                assert last < max(walked.coordinators.step[change], 1)


def test_changes_before_the_change_of_a_missing_row_are_applied() -> None:
    x, y = np.array(TABLE, dtype=float).T
    rows = DistributedServer(split_at(45), "min", x, y)
    with pytest.raises(PointError, match=r"change 1: its old point \(41\.0, 12\.0\) is not stored"):
        rows.walk(point_changes([((40, 12), None), ((41, 12), None), ((50, 5), None)]))
    assert len(rows) == len(TABLE) - 1


def test_rows_that_keep_coming_get_room() -> None:
    rows = DistributedServer(split_at(45, 75), "min", np.empty(0), np.empty(0))
    rows.walk(point_changes([(None, (50, y % 7)) for y in range(100)]))
    assert rows.rows.counts.tolist() == [0, 100, 0]
    assert rows.rows.lowest.tolist() == [INF, 0, INF]
    rows.walk(point_changes([((50, 0), None)] * 15))
    assert rows.rows.lowest.tolist() == [INF, 1, INF]
