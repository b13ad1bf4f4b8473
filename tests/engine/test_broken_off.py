"""Calls that are broken off: tables and views agree afterwards, and nothing is counted twice."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tocsin import Engine
from tocsin.engine import ManualClock
from tocsin.views.aggregates.count import RowCount
from tocsin.views.aggregates.distinct import RowDistinct
from tocsin.views.aggregates.extremes import Least
from tocsin.views.aggregates.rows import WholeRows
from tocsin.views.aggregates.totals import RowSum
from tocsin.views.range_family import RangeFamily
from tocsin.views.row_family import RowFamily


@pytest.fixture
def interrupted(monkeypatch: pytest.MonkeyPatch) -> Engine:
    """An engine whose user interrupts the program after an event has changed its table."""
    engine = Engine(clock=ManualClock())
    engine.table("r", key="k")
    engine.subscribe("select count(*) from table r", id="count")

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(RangeFamily, "change", interrupt)
        with pytest.raises(KeyboardInterrupt):
            engine.publish({"k": 1, "x": 1}, stream="r", time=1)
    return engine


def test_a_new_view_is_not_notified_of_the_rows_in_its_first_answer(interrupted: Engine) -> None:
    assert interrupted.subscribe("select sum(x) from table r", id="sum").answer == 1
    assert interrupted.answer("count") == 1
    notes = interrupted.publish({"k": 2, "x": 10}, stream="r", time=2)
    assert [(note.subscription, note.old, note.new) for note in notes] == [
        ("count", 0, 2), ("sum", 1, 11),
    ]  # fmt: skip


def test_upserted_rows_come_after_interrupted_ones(interrupted: Engine) -> None:
    interrupted.subscribe("select * from table r where x > 0", id="rows")
    found = interrupted.upsert(pa.table({"k": [1, 2], "x": [5, 6]}), stream="r", time="x")
    reported = [row for row in found.to_arrow().to_pylist() if row["subscription"] == "count"]
    assert [(row["row"], row["old"], row["new"]) for row in reported] == [(1, "0", "2")]
    assert interrupted.answer("count") == 2
    assert interrupted.answer("rows") == ({"k": 1, "x": 5}, {"k": 2, "x": 6})


@pytest.mark.parametrize(
    ("what", "aggregate"),
    [
        ("count(*)", RowCount),
        ("min(x)", Least),
        ("sum(x)", RowSum),
        ("distinct x", RowDistinct),
        ("*", WholeRows),
    ],
)
def test_a_view_that_did_not_come_to_be_is_followed_no_further(
    what: str, aggregate: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    engine.table("r", key="k")
    engine.publish({"k": 1, "x": 2, "y": 1}, stream="r")
    text = f"select {what} from table r where x > 0 and y = 1"
    engine.subscribe(text, id="there")
    change_row = aggregate.change_row

    def broken_off(self: Any, *step: Any) -> None:
        change_row(self, *step)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(aggregate, "change_row", broken_off)
        with pytest.raises(KeyboardInterrupt):
            engine.subscribe(text, id="refused")
    assert [note.subscription for note in engine.publish({"k": 2, "x": 1, "y": 1}, stream="r")] == ["there"]
    assert (len(engine), engine.stats().views.subscriptions) == (1, 1)


VIEWS = [
    "select min(x) from table r where x between 0 and 9",
    "select sum(x) from table r where x < 9 and y > 0",
    "select distinct y from table r",
    "select * from table r a join table r b on a.x = b.y",
]


@pytest.mark.parametrize("by_column", [False, True])
@pytest.mark.parametrize("kind", [RangeFamily, RowFamily])
def test_an_interrupted_family_is_rebuilt(
    monkeypatch: pytest.MonkeyPatch, kind: Any, by_column: bool
) -> None:
    engine, whole = Engine(), Engine()
    for made in (engine, whole):
        made.table("r", key="k")
        for place, text in enumerate(VIEWS):
            made.subscribe(text, id=f"v{place}")
        made.subscribe_many(
            "select max(x) from table r where x between :a and :b", {"a": [0, 9], "b": [9, 0]}, id="t{row}"
        )
        made.subscribe_many("select count(*) from table r where x = :a", {"a": [1, "one"]}, id="m{row}")
        made.publish({"k": 1, "x": 1, "y": 1}, stream="r", time=1)

    def change(made: Engine, rows: list[dict[str, int]], time: int) -> None:
        if by_column:
            made.upsert(pa.Table.from_pylist([{**row, "t": time} for row in rows]), stream="r", time="t")
        else:
            for row in rows:
                made.publish({**row, "t": time}, stream="r", time=time)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    first = [{"k": 2, "x": 0, "y": 2}]
    with monkeypatch.context() as patched:
        for name in ("change", "change_batch") if kind is RangeFamily else ("change",):
            patched.setattr(kind, name, interrupt)
        with pytest.raises(KeyboardInterrupt):
            change(engine, first, 2)
    change(whole, first, 2)
    ids = [one.id for one in whole.subscriptions()]
    assert [engine.answer(id_) for id_ in ids] == [whole.answer(id_) for id_ in ids]
    for made in (engine, whole):
        change(made, [{"k": 1, "x": 2, "y": 0}, {"k": 3, "x": 2, "y": 2}], 3)
    assert [engine.answer(id_) for id_ in ids] == [whole.answer(id_) for id_ in ids]
