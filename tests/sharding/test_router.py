"""Which events travel where: no more than some subscription can see, and the same by the column as one by one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sequences.strategies import sequences, streams
from tocsin import parse
from tocsin.index import StatefulSubscriptions
from tocsin.index.stateful import StatefulRun
from tocsin.language import Template
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.streams import StreamColumn
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model import Event, Subscription
from tocsin.model.options import SubscriptionOptions
from tocsin.sharding import CLOCK, Role, Routed, ShardPlan, ShardRouter, merge_latest, stateful_subscriptions
from tocsin.sharding.router import FIRST_GROUP, unread_key
from tocsin.structures.packed_strings import PackedStrings
from tocsin.subscriptions.queries import StoredTemplate
from tocsin.subscriptions.runs import Run


def routed(texts: dict[str, str], events: list[Event], shards: int = 4, **options: dict[str, str]) -> Routed:
    subscriptions = [Subscription(id_, parse(text)) for id_, text in texts.items()]
    plan = ShardPlan.of(stateful_subscriptions(subscriptions, **options), shards)  # type: ignore[arg-type]
    return ShardRouter(plan).route(TimedBatch(events))


def event(number: int, stream: str | None = "s", **attributes: object) -> Event:
    return Event(f"e{number}", attributes, stream, number, number)  # type: ignore[arg-type]


def test_an_event_that_no_subscription_can_see_does_not_travel() -> None:
    texts = {
        "keyed": "from s a next s b on b.k = a.k",
        "home": "from t a where a.x > 5 next t b on b.y = 'Y'",
    }
    events = [
        event(1, k="A"),
        event(2),  # without the key
        event(3, "t", x=6),
        event(4, "t", x=5),
        event(5, "t", x=1, y="Y"),
        event(6, "u", x=9),
        event(7, None, x=9),
    ]
    found = routed(texts, events)
    assert sorted(found.rows.tolist()) == [0, 2, 4]
    groups = {
        row: role >> FIRST_GROUP for row, role in zip(found.rows.tolist(), found.roles.tolist(), strict=True)
    }
    assert groups == {0: 1, 2: 0, 4: 0}
    assert found.latest == {1: 5, CLOCK: 7, unread_key("u"): 6}


def test_events_with_one_value_of_the_key_are_together_and_others_are_spread() -> None:
    events = [event(number, k=k) for number, k in enumerate([1, 1.0, True, "1", *range(2, 40)])]
    found = routed({"q": "from s a next s b on b.k = a.k"}, events)
    shard_of = dict(zip(found.rows.tolist(), found.shards.tolist(), strict=True))
    assert shard_of[0] == shard_of[1]
    assert set(shard_of.values()) == {0, 1, 2, 3}
    assert len(found.rows) == len(events)


def test_keys_that_are_constants_leave_other_values_at_home() -> None:
    texts = {f"q{k}": f"from s a where a.k = {k} next s b on b.k = {k}" for k in range(20)}
    found = routed(texts, [event(1, k=3), event(2, k=19.0), event(3, k=20), event(4, k="3")])
    assert sorted(found.rows.tolist()) == [0, 1]


def test_one_shard_reports_a_late_event() -> None:
    texts = {f"q{i}": "from s a next s b on b.x > a.x" for i in range(9)} | {
        "k": "from s a next s b on b.x = a.x"
    }
    found = routed(texts, [event(1, x=1)])
    assert len(found.rows) == 4
    assert [bool(role & Role.REPORTS_LATE) for role in found.roles.tolist()].count(True) == 1


def test_rows_of_tables_go_everywhere_and_those_without_a_key_nowhere() -> None:
    events = [event(1, k=1), event(2, x=1), event(3, k=1, _deleted=True)]
    found = routed({"q": "from s a next s b on b.x = 1"}, events, tables={"s": "k"})
    columns = found.rows.tolist(), found.shards.tolist(), found.roles.tolist()
    tables = [(row, shard) for row, shard, role in zip(*columns, strict=True) if role & Role.TABLE]
    assert sorted(tables) == [(row, shard) for row in (0, 2) for shard in range(4)]
    assert found.refused == {1: "attribute `k`: a row of the table `s` needs it, since it is of its key"}
    assert found.latest[CLOCK] == 1  # a deletion moves no time
    views = [Subscription("v", parse("select count(*) from table s"))]
    plan = ShardPlan.of(stateful_subscriptions(views, tables={"s": "k"}), 4, changes=False)
    assert len(ShardRouter(plan).route(TimedBatch(events[:1])).rows) == 1


def test_latest_ends_are_merged() -> None:
    assert merge_latest([{1: 5, CLOCK: 7}, {}, {1: 4, CLOCK: 9, 60: 1}]) == {1: 5, CLOCK: 9, 60: 1}


def template_subscriptions(rows: int) -> StatefulSubscriptions:
    template = Template("from s a where a.k = :k next s b on b.x = :x where b.y = 1")
    bound = template.bind_many({"k": [f"k{i}" for i in range(rows)], "x": list(range(rows))})
    ids = PackedStrings([f"q{i}" for i in range(rows)])
    run = Run(ids, (SubscriptionOptions(),), StoredTemplate(template, bound), ())
    return StatefulSubscriptions(
        "", (StatefulRun(run, np.arange(rows), np.zeros(rows, np.int64)),), (), {}, {}
    )


def test_many_conditions_are_looked_up_by_their_equalities() -> None:
    events = [event(i, k=f"k{i * 700}", x=-1) for i in range(4)] + [
        event(9, x=2999.0),
        event(10, k="k", x=3000),
    ]
    few, many = (ShardRouter(ShardPlan.of(template_subscriptions(rows), 5)) for rows in (400, 3_000))
    assert sorted(many.route(TimedBatch(events)).rows.tolist()) == [0, 1, 2, 3, 4]
    assert sorted(few.route(TimedBatch(events)).rows.tolist()) == [0]


PATHS = ("g", "x", "y", "w")


def rows_of(events: list[Event]) -> TimedRows:
    """Return events as a table's rows; attributes of several kinds cannot be a column, and become texts."""
    columns = {
        path: pa.array([None if path not in one.attributes else str(one.attributes[path]) for one in events])
        for path in PATHS
    }
    columns["g"] = pa.array([one.attributes.get("g") for one in events], pa.int64())
    columns["x"] = pa.array([one.attributes.get("x") for one in events], pa.float64())
    names = sorted({str(one.stream) for one in events})
    streams_ = StreamColumn(names, np.array([names.index(str(one.stream)) for one in events]))
    table = ArrowEvents.by_column(pa.table(columns))
    assert table is not None
    starts, ends = (np.array([getattr(one, name) for one in events]) for name in ("start", "end"))
    return TimedRows(table.with_stream(streams_), starts, ends, names=lambda row, _: events[row].id)


@settings(max_examples=settings().max_examples // 4)
@given(st.lists(sequences(), min_size=1, max_size=5), streams(), st.integers(1, 4))
def test_rows_of_a_table_travel_as_events_do(given_queries, events, shards) -> None:  # type: ignore[no-untyped-def]
    subscriptions = [Subscription(f"q{i}", query) for i, query in enumerate(given_queries)]
    plan = ShardPlan.of(stateful_subscriptions(subscriptions, tables={"t": "g"}), shards)
    router, rows = ShardRouter(plan), rows_of(events)
    one_by_one = TimedBatch([rows.event(row) for row in range(len(rows))])
    by_column, expected = router.route(rows), router.route(one_by_one)
    for name in ("rows", "shards", "roles"):
        assert getattr(by_column, name).tolist() == getattr(expected, name).tolist()
    assert by_column[3:] == expected[3:]
