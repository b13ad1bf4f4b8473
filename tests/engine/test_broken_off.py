"""Calls that are broken off: tables and views agree afterwards, and nothing is counted twice."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from tocsin import Engine
from tocsin.engine import ManualClock
from tocsin.views.keeping.counts import Count
from tocsin.views.keeping.extremes import Least
from tocsin.views.keeping.totals import Total
from tocsin.views.keeping.values import Distinct
from tocsin.views.keeping.whole_rows import WholeRows


class Interrupting(ManualClock):
    """A clock at which the user interrupts the program, once, after an event has changed its table."""

    armed = False

    def saw(self, end: int) -> None:
        if self.armed:
            self.armed = False
            raise KeyboardInterrupt
        super().saw(end)


@pytest.fixture
def interrupted() -> Engine:
    clock = Interrupting()
    engine = Engine(clock=clock)
    engine.table("r", key="k")
    engine.subscribe("select count(*) from table r", id="count")
    clock.armed = True
    with pytest.raises(KeyboardInterrupt):
        engine.publish({"k": 1, "x": 1}, stream="r", time=1)
    return engine


def test_a_new_view_does_not_hear_again_of_rows_that_it_began_with(interrupted: Engine) -> None:
    assert interrupted.subscribe("select sum(x) from table r", id="sum").answer == 1
    assert interrupted.answer("count") == 1
    notes = interrupted.publish({"k": 2, "x": 10}, stream="r", time=2)
    assert [(note.subscription, note.old, note.new) for note in notes] == [
        ("count", 0, 2), ("sum", 1, 11),
    ]  # fmt: skip


def test_rows_by_the_column_come_after_what_was_left(interrupted: Engine) -> None:
    interrupted.subscribe("select * from table r where x > 0", id="rows")
    found = interrupted.upsert(pa.table({"k": [1, 2], "x": [5, 6]}), stream="r", time="x")
    told = [row for row in found.to_arrow().to_pylist() if row["subscription"] == "count"]
    assert [(row["row"], row["old"], row["new"]) for row in told] == [(1, "0", "2")]
    assert interrupted.answer("count") == 2
    assert interrupted.answer("rows") == ({"k": 1, "x": 5}, {"k": 2, "x": 6})


@pytest.mark.parametrize(
    ("what", "keeper"),
    [("count(*)", Count), ("min(x)", Least), ("sum(x)", Total), ("distinct x", Distinct), ("*", WholeRows)],
)
def test_a_view_that_did_not_come_to_be_is_followed_no_further(
    what: str, keeper: type[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    engine.table("r", key="k")
    engine.publish({"k": 1, "x": 2, "y": 1}, stream="r")
    text = f"select {what} from table r where x > 0 and y = 1"
    engine.subscribe(text, id="there")
    follow = keeper.follow

    def broken_off(self: Any, *step: Any) -> None:
        follow(self, *step)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(keeper, "follow", broken_off)
        with pytest.raises(KeyboardInterrupt):
            engine.subscribe(text, id="refused")
    assert [note.subscription for note in engine.publish({"k": 2, "x": 1, "y": 1}, stream="r")] == ["there"]
    assert (len(engine), engine.stats().views.subscriptions) == (1, 1)
