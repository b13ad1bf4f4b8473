"""Views in the engine, as their users meet them."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin import Engine, Subscription
from tocsin.engine import EventClock, ManualClock, ViewExplanation
from tocsin.formats import Fault
from tocsin.language import parse
from tocsin.model.errors import ApplyError, EventError, SavedError, SubscriptionError, TocsinError
from tocsin.model.subscription import Answer
from tocsin.views.range_family import RangeFamily

KINDS = ["min(y)", "max(y)", "count(*)", "count(y)", "sum(y)", "avg(y)", "distinct y", "distinct s"]


@pytest.fixture
def engine() -> Engine:
    made = Engine()
    made.table("stock", key="symbol")
    return made


BEST = "select min(per) from table stock where risk between 20 and 60"


def test_a_view_returns_its_answer_at_once_and_then_each_change(engine: Engine) -> None:
    done = engine.subscribe(BEST, id="best")
    assert (done.answer, done.notifications[0].new, done.notifications[0].view) == (None, None, True)
    row = {"symbol": "A", "risk": 30, "per": 8}
    (note,) = engine.publish(row, stream="stock", time=5, id="e1")
    assert (note.subscription, note.event_ids, note.old, note.new) == ("best", ("e1",), None, 8)
    assert (note.start, note.end, note.view) == (5, 5, True)
    assert engine.publish(row, stream="stock", time=6) == []
    assert engine.publish({"symbol": "B", "risk": 30, "per": 9}, stream="stock", time=6) == []
    assert [note.new for note in engine.publish({"symbol": "A"}, stream="stock", time=7, delete=True)] == [9]
    assert engine.answer("best") == 9
    assert engine.subscribe("select count(*) from table stock").answer == 1
    stats = engine.stats().views
    assert (stats.subscriptions, stats.families, stats.rows, stats.late) == (2, 2, 1, 0)


def test_filters_and_sequences_see_the_rows_too_but_no_deletion(engine: Engine) -> None:
    engine.subscribe("per > 5", id="filter")
    engine.subscribe("from stock a next stock b on b.symbol = a.symbol", id="sequence")
    engine.subscribe(BEST, id="view")
    first = engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock", time=1)
    again = engine.publish({"symbol": "A", "risk": 30, "per": 7}, stream="stock", time=2)
    gone = engine.publish({"symbol": "A", "_deleted": True, "per": 8}, stream="stock", time=3)
    assert [note.subscription for note in first] == ["filter", "view"]
    assert [note.subscription for note in again] == ["filter", "sequence", "view"]
    assert [(note.subscription, note.new) for note in gone] == [("view", None)]


def test_events_that_a_sequence_publishes_change_the_table_of_that_name() -> None:
    engine = Engine()
    engine.table("jumps", key="name")
    engine.subscribe("select max(rise) from table jumps", id="largest")
    engine.subscribe(
        "from stock a next stock b on b.name = a.name "
        "select a.name as name, b.price - a.price as rise publish as jumps",
        id="jump",
    )
    events = [{"name": "A", "price": price} for price in (1, 3, 4)]
    notes = [note for at, e in enumerate(events) for note in engine.publish(e, stream="stock", time=at)]
    assert [(note.subscription, note.new) for note in notes if note.view] == [("largest", 2), ("largest", 1)]


def test_late_rows_change_nothing_and_are_counted(engine: Engine) -> None:
    engine.subscribe(BEST, id="best")
    engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock", time=5)
    assert engine.publish({"symbol": "A", "risk": 30, "per": 1}, stream="stock", time=4) == []
    assert (engine.answer("best"), engine.stats().views.late) == (8, 1)


def test_a_bad_row_is_refused_and_the_rest_goes_on(engine: Engine) -> None:
    engine.subscribe(BEST, id="best")
    faults: list[Fault] = []
    rows = [
        {"symbol": "A", "risk": 30, "per": 8},
        {"risk": 30, "per": 7},
        {"symbol": "C", "risk": 2**53 + 1, "per": 6},
        {"symbol": "D", "risk": 30, "per": 10**400},
        {"symbol": "E", "risk": 30, "per": 5},
    ]
    notes = list(engine.publish_many(rows, stream="stock", on_error=faults.append))
    assert [(note.old, note.new) for note in notes] == [(None, 8), (8, 5)]
    assert [fault.reason.split(":")[0] for fault in faults] == [
        "attribute `symbol`", "attribute `risk`", "attribute `per`",
    ]  # fmt: skip
    assert engine.stats().refused == 3
    with pytest.raises(EventError, match="no float of 64 bits holds 9007199254740993 exactly"):
        engine.publish({"symbol": "C", "risk": 2**53 + 1, "per": 6}, stream="stock")
    assert len(engine.test("symbol = 'C'", [{"symbol": "C"}], stream="stock").events) == 1


def test_a_row_that_no_float_holds_stands_in_the_way_of_a_new_view(engine: Engine) -> None:
    engine.publish({"symbol": "A", "risk": 2**53 + 1}, stream="stock")
    with pytest.raises(
        SubscriptionError, match="`best`: a row of its table cannot be read: attribute `risk`"
    ):
        engine.subscribe(BEST, id="best")
    assert len(engine) == 0
    assert engine.subscribe("select count(*) from table stock where risk > 1 and symbol = 'A'").answer == 1


def test_views_of_tables_that_nobody_declared_are_refused(engine: Engine) -> None:
    with pytest.raises(SubscriptionError, match="there is no table `stok`; did you mean `stock`"):
        engine.subscribe("select min(a) from table stok", id="x")
    engine.subscribe("a = 1", id="filter")
    with pytest.raises(SubscriptionError, match="it is no view"):
        engine.answer("filter")
    engine.table("stock", key=["symbol"])
    with pytest.raises(TocsinError, match="the table `stock` has the key `symbol` already, not `a`, `b`"):
        engine.table("stock", key=("a", "b"))
    with pytest.raises(TocsinError, match="the key of a table"):
        engine.table("other", key=())


def test_a_template_makes_views_by_the_column(engine: Engine) -> None:
    for symbol, risk, per in [("A", 10, 5), ("B", 20, 3), ("C", 30, 4)]:
        engine.publish({"symbol": symbol, "risk": risk, "per": per}, stream="stock")
    done = engine.subscribe_many(
        "select min(per) from table stock where risk >= :l and risk < :h",
        [{"l": 0, "h": 20}, {"l": 0, "h": 31.5}, {"l": 50, "h": 40}, {"l": 1, "h": None}],
        id="v{row}",
    )
    assert (done.ids, done.answers, [error.row for error in done.errors]) == (
        ("v0", "v1", "v2"), (5, 3, None), [3],
    )  # fmt: skip
    assert engine.stats().views.families == 1
    (note,) = engine.publish({"symbol": "B", "risk": 99, "per": 3}, stream="stock")
    assert (note.subscription, note.old, note.new) == ("v1", 3, 4)
    assert next(engine.subscriptions()).query == parse(
        "select min(per) from table stock where risk >= 0 and risk < 20"
    )
    rows = engine.subscribe_many(
        "select sum(per) from table stock where symbol = :s", {"s": ["A", "C"]}, id="s"
    )
    assert (rows.ids, rows.answers) == (("A", "C"), (5, 4))
    engine.unsubscribe("v1")
    engine.subscribe(BEST, id="A", replace=True)
    assert len(engine.publish({"symbol": "C", "risk": 30, "per": 1}, stream="stock")) == 2


def test_moments_are_ranges_too(engine: Engine) -> None:
    engine.subscribe(
        "select count(*) from table stock where seen >= timestamp '2026-01-02T00:00:00Z'", id="new"
    )
    for day, seen in enumerate(
        ["2026-01-01T00:00:00Z", datetime(2026, 1, 2, tzinfo=UTC), "2026-01-03T00:00:00+01:00", "no time", 7]
    ):
        engine.publish({"symbol": str(day), "seen": seen}, stream="stock")
    assert engine.answer("new") == 2
    starts = [datetime(2026, 1, 1, tzinfo=UTC) + timedelta(hours=hour) for hour in (0, 25)]
    done = engine.subscribe_many("select count(*) from table stock where seen > :from", {"from": starts})
    assert done.answers == (2, 1)


def test_a_view_is_reported_once_it_is_valid() -> None:
    engine = Engine(clock=EventClock())
    engine.table("stock", key="symbol")
    engine.subscribe(BEST, id="best", valid_from=10, valid_until=20)

    def reported(per: float, time: int) -> list[tuple[Answer, Answer]]:
        notes = engine.publish({"symbol": "A", "risk": 30, "per": per}, stream="stock", time=time)
        return [(note.old, note.new) for note in notes]

    assert reported(8, 1) == []
    assert engine.answer("best") == 8
    assert reported(7, 10) == [(None, 7)]
    assert reported(6, 12) == [(7, 6)]
    assert reported(5, 20) == []
    assert "best" not in engine


def test_a_change_that_was_undone_before_its_time_is_none() -> None:
    engine = Engine(clock=ManualClock())
    engine.table("stock", key="symbol")
    engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock", time=0)
    assert engine.subscribe(BEST, id="best", valid_from=10).answer == 8
    assert engine.publish({"symbol": "A", "risk": 30, "per": 9}, stream="stock", time=1) == []
    assert engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock", time=10) == []
    assert len(engine.publish({"symbol": "A", "risk": 30, "per": 7}, stream="stock", time=11)) == 1


def test_the_first_report_after_a_pause_has_the_whole_difference() -> None:
    engine = Engine(clock=ManualClock())
    engine.table("stock", key="symbol")
    engine.subscribe("select symbol from table stock", id="rows", valid_from=10)
    engine.subscribe("select distinct symbol from table stock", id="values", valid_from=10)
    for time, symbol in [(1, "A"), (2, "B")]:
        assert engine.publish({"symbol": symbol}, stream="stock", time=time) == []
    notes = engine.publish({"symbol": "C"}, stream="stock", time=10)
    reported = {note.subscription: (note.old, note.removed, note.added) for note in notes}
    rows = ({"symbol": "A"}, {"symbol": "B"}, {"symbol": "C"})
    assert reported == {"rows": ((), (), rows), "values": ((), (), ("A", "B", "C"))}


def test_the_largest_float_is_below_infinity(engine: Engine) -> None:
    largest = 1.7976931348623157e308
    engine.publish({"symbol": "A", "risk": math.inf, "per": 1}, stream="stock")
    answers = [
        engine.subscribe(f"select count(*) from table stock where risk {compared} {largest}").answer
        for compared in ("<=", "=", "<", ">=", ">")
    ]
    assert answers == [0, 0, 0, 1, 1]
    done = engine.subscribe_many("select count(*) from table stock where risk <= :h", {"h": [largest, 1.0]})
    assert done.answers == (0, 0)


def test_a_condition_that_is_too_large_in_both_forms_is_refused_by_name(engine: Engine) -> None:
    clauses = " and ".join(f"(a{n} = 1 or b{n} = 2)" for n in range(14))
    conjunctions = " or ".join(f"c{n} = 1 and d{n} = 2" for n in range(14))
    for what in ("*", "min(per)"):
        with pytest.raises(SubscriptionError, match="`large`: the disjunctive normal form has more than"):
            engine.subscribe(
                f"select {what} from table stock where {clauses} and ({conjunctions})", id="large"
            )
        other = Engine(view_matcher="opindex")
        other.table("stock", key="symbol")
        other.subscribe(f"select {what} from table stock where {clauses}", id="large")
        assert (
            len(other.publish({"symbol": "A", "per": 1} | {f"a{n}": 1 for n in range(14)}, stream="stock"))
            == 1
        )
    assert (len(engine), engine.stats().views.families) == (0, 0)


def test_an_explanation_of_a_join_finds_its_pairs_by_the_key(engine: Engine) -> None:
    engine.table("order", key="id")
    count = 3000
    engine.upsert(pa.table({"symbol": [str(n) for n in range(count)]}), stream="stock")
    engine.upsert(pa.table({"id": range(count), "of": [str(n) for n in range(count)]}), stream="order")
    engine.subscribe("select count(*) from table stock s join table order o on s.symbol = o.of", id="both")
    why = engine.explain("both", {"id": count, "of": "7"}, stream="order")
    assert isinstance(why, ViewExplanation)
    assert (why.answer, why.new_answer) == (count, count + 1)
    gone = engine.explain("both", {"id": 7, "$delete": True}, stream="order")
    assert isinstance(gone, ViewExplanation)
    assert gone.new_answer == count - 1


def test_apply_returns_the_answers_of_new_views(engine: Engine) -> None:
    engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock")
    done = engine.apply({"best": BEST, "filter": "a = 1"}, owner="me")
    assert [(note.subscription, note.new) for note in done.notifications] == [("best", 8)]
    again = engine.apply([Subscription("best", parse(BEST))], owner="me", dry_run=True)
    assert (again.unchanged, again.removed) == (("best",), ("filter",))
    changed = engine.apply({"best": BEST.replace("60", "29")}, owner="me")
    assert [(note.subscription, note.new) for note in changed.notifications] == [("best", None)]


def test_an_explanation_shows_the_change_that_an_event_would_make(engine: Engine) -> None:
    engine.subscribe(BEST, id="best")
    engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock", time=5)
    why = engine.explain("best", {"symbol": "A", "risk": 70, "per": 8}, stream="stock", time=6)
    assert isinstance(why, ViewExplanation)
    assert (why.matched, why.answer, why.new_answer) == (True, 8, None)
    assert (why.before is not None and why.before.truth, why.reason.truth) == (True, False)
    late = engine.explain("best", {"symbol": "A", "risk": 30, "per": 1}, stream="stock", time=4)
    assert (late.matched, late.outside) == (
        False, ("the event ended at 4, before the stored row: it is late",),
    )  # fmt: skip
    other = engine.explain("best", {"symbol": "A"}, time=6)
    assert other.outside == ("it reads `stock`, the event is of no stream",)
    with pytest.raises(EventError, match="`best` is a view"):
        engine.explain("best")
    assert engine.answer("best") == 8


def test_test_returns_the_notifications_that_a_view_would_have_sent(engine: Engine) -> None:
    engine.publish({"symbol": "Z", "risk": 30, "per": 0}, stream="stock")
    rows = [{"symbol": "A", "risk": 30, "per": 8}, {"per": 1}, {"symbol": "A", "risk": 30, "per": 7}]
    trial = engine.test(BEST, rows, stream="stock")
    assert [(note.old, note.new) for note in trial.notifications] == [(None, 8), (8, 7)]
    assert (len(trial.events), trial.examined, len(trial.faults)) == (2, 3, 1)


def test_tables_are_saved_and_loaded(engine: Engine, tmp_path: Path) -> None:
    engine.publish({"symbol": "A", "risk": 30, "per": 8}, stream="stock", time=5)
    file = tmp_path / "tables"
    engine.save_tables(file)
    other = Engine()
    assert other.load_tables(file) == ("stock",)
    assert other.subscribe(BEST, id="best").answer == 8
    assert other.publish({"symbol": "A", "risk": 30, "per": 1}, stream="stock", time=4) == []
    with pytest.raises(TocsinError, match="the table `stock` has views; load tables first"):
        other.load_tables(file)
    third = Engine()
    third.table("stock", key="name")
    with pytest.raises(TocsinError, match="has the key `symbol` there, and `name` here"):
        third.load_tables(file)
    with pytest.raises(SavedError, match="there is no such file"):
        third.load_tables(tmp_path / "none")


def test_rows_by_the_column_change_answers_by_the_column() -> None:
    random = Random(11)  # noqa: S311
    one, other = Engine(), Engine()
    texts = [f"select {kind} from table r where x between 1 and 3" for kind in KINDS]
    texts += ["select * from table r where s = 'a'", "select sum(y) from table r where z > 1 and x < 3"]
    for made in (one, other):
        made.table("r", key="k")
        for place, text in enumerate(texts):
            made.subscribe(text, id=f"v{place}")
    for end in range(20):
        rows = [
            {"k": random.randrange(6), "x": random.choice([0.5, 1, 2, 3.5, None]), "y": random.choice([1, 2, None]),
             "z": random.randrange(3), "s": random.choice(["a", "b", None]), "end": end}
            for _ in range(random.randrange(1, 9))
        ]  # fmt: skip
        schema = pa.schema(
            [
                ("k", "int64"),
                ("x", "float64"),
                ("y", "int64"),
                ("z", "int32"),
                ("s", "string"),
                ("end", "int64"),
            ]
        )
        found = one.upsert(pa.Table.from_pylist(rows, schema), stream="r", time="end")
        expected = [
            (row, note.subscription, note.old, note.new)
            for row, event in enumerate(rows)
            for note in other.publish(event, stream="r", time=end)
        ]
        reported = zip(
            found.rows.tolist(),
            found.subscriptions.tolist(),
            found.old.tolist(),
            found.new.tolist(),
            strict=True,
        )
        assert sorted(reported, key=lambda it: it[:2]) == sorted(expected, key=lambda it: it[:2])
        assert found.to_arrow().num_rows == len(expected)
    assert one.stats().views.rows == other.stats().views.rows


def test_keys_by_the_column_equal_the_keys_of_events() -> None:
    engine = Engine()
    engine.table("r", key="k")
    days = [datetime(2026, 1, 1), datetime(2026, 1, 2)]  # noqa: DTZ001 - Arrow's that names no zone is of UTC
    for kind in (pa.timestamp("us"), pa.timestamp("ms", "UTC")):
        engine.upsert(pa.table({"k": pa.array(days, kind)}), stream="r")
        assert list(engine.publish_many(pa.table({"k": pa.array(days, kind)}), stream="r")) == []
        assert engine.stats().views.rows == 2
    assert len(engine.upsert(pa.table({"x": pa.array([], pa.int64())}), stream="r").rows) == 0


def test_numbers_by_the_column_are_floats() -> None:
    engine = Engine(clock=EventClock())
    engine.table("r", key="k")
    engine.subscribe("select min(y) from table r where x > 1", id="a", valid_from=5)
    engine.subscribe("select count(y) from table r where x > 1", id="b")
    table = pa.table({"k": [1, 2, 1], "x": [2, 3, 0], "y": [7, None, 7], "t": [1, 2, 6]})
    found = engine.upsert(table, stream="r", time="t")
    assert found.subscriptions.tolist() == ["b", "b"]
    assert (found.rows.tolist(), found.old.tolist(), found.new.tolist()) == ([0, 2], [0, 1], [1, 0])
    assert found.new.dtype == np.float64
    assert engine.upsert(
        pa.table({"k": [3], "x": [2], "y": [4], "t": [7]}), stream="r", time="t"
    ).to_arrow().to_pylist() == [
        {"row": 0, "subscription": "a", "old": None, "new": 4.0},
        {"row": 0, "subscription": "b", "old": 0.0, "new": 1.0},
    ]


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        ({"k": [1, None], "x": [1.0, 2.0]}, "attribute `k`: row 1 has none"),
        ({"x": [1.0]}, "attribute `k`: row 0 has none"),
        (
            {"k": [1, 2], "x": pa.array([0, 10**15], pa.timestamp("s"))},
            "row 1 is no event: a cell cannot be read",
        ),
        (
            {"k": [b"x", b"y"], "x": [1.0, 2.0]},
            "attribute `k`: a row of the table `r` cannot have a value there",
        ),
        ({"k": [1, 2], "x": [1, 2**53 + 1]}, "attribute `x`: row 1: a view reads it"),
        (
            {"k": [1], "x": pa.array([86_400_000], pa.date64())},
            r"only plain columns are taken, without `x` \(date64\[ms\]\): cast it, or publish",
        ),
    ],
)
def test_a_table_with_a_bad_row_is_not_taken_at_all(table: dict[str, Any], reason: str) -> None:
    engine = Engine()
    engine.table("r", key="k")
    engine.subscribe("select min(y) from table r where x > 1")
    with pytest.raises(EventError, match=reason):
        engine.upsert(pa.table(table), stream="r")
    assert engine.stats().views.rows == 0
    with pytest.raises(EventError, match="`s` is no table"):
        engine.upsert(pa.table({"k": [1]}), stream="s")


def test_events_before_a_failing_report_are_published(engine: Engine) -> None:
    engine.subscribe("select count(*) from table stock", id="all")

    def fail(fault: Fault) -> None:
        raise RuntimeError(str(fault))

    notes = engine.publish_stream(
        [{"symbol": "A"}, {"symbol": "B"}, {"x": 1}, {"symbol": "D"}], stream="stock", on_error=fail
    )
    reported = []
    with pytest.raises(RuntimeError, match="attribute `symbol`"):
        reported += [note.new for note in notes]
    assert engine.answer("all") == 2
    assert engine.stats().refused == 1


def test_points_are_loaded_before_subscriptions() -> None:
    family = RangeFamily("min")
    family.add_ranges(np.zeros(1, dtype=np.int64), np.zeros(1), np.ones(1))
    with pytest.raises(TocsinError, match="points are loaded before"):
        family.load_points(np.zeros(1), np.zeros(1))


def test_upsert_takes_dates_and_times_of_every_unit_and_zone() -> None:
    engine = Engine()
    engine.table("t", key="k")
    engine.subscribe("select at from table t where x > 0", id="latest")
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    for place, kind in enumerate((pa.timestamp("ns"), pa.timestamp("s", "Europe/Berlin"), pa.date32())):
        at = noon + timedelta(days=place)
        rows = pa.table(
            {"k": [1], "x": pa.array([1], pa.uint64()), "at": pa.array([at], pa.timestamp("s")).cast(kind)}
        )
        engine.upsert(rows, stream="t")
        assert engine.answer("latest") == ({"at": at if place < 2 else at.replace(hour=0)},)


def test_apply_and_its_dry_run_refuse_a_view_for_a_row_of_its_table() -> None:
    engine = Engine()
    engine.table("t", key="k")
    engine.publish({"k": 1, "x": 2**60 + 1, "y": 1}, stream="t")
    wanted = {"plain": "a = 1", "view": "select min(y) from table t where x > 1"}
    for dry_run in (True, False):
        with pytest.raises(
            ApplyError, match="nothing was applied: 1 subscription is at fault\nsubscription `view`: a row"
        ) as fault:
            engine.apply(wanted, dry_run=dry_run)
        assert [one.id for one in fault.value.errors] == ["view"]
        assert len(engine) == 0
    engine.publish({"k": 1, "x": 2, "y": 1}, stream="t")
    assert engine.apply(wanted, dry_run=True).added == ("plain", "view")
    assert len(engine) == 0
    assert engine.stats().views.subscriptions == 0
    assert engine.apply(wanted).added == ("plain", "view")
    assert engine.answer("view") == 1
