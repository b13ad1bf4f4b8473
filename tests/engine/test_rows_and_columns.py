"""A table that is published by the column has every effect of its rows published one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin import Engine
from tocsin.engine import EventClock, publishing
from tocsin.formats import Fault
from tocsin.formats.arrow_rows import arrow_rows
from tocsin.model import Event, Notification
from tocsin.model.errors import SubscriptionError

QUERIES = [
    "a > b",
    "from s where a + b >= x",
    "c like 'x%' or a is missing",
    "select a * 2 as twice, c from s where not x <= 1",
    "from w where v > 0",
    "from s p where p.a > 0 next s q on q.c = p.c where q.a > p.a",
    "from s p next s q on q.k = p.k where q.x + q.a > p.x within 5 ticks select q.k, p.x as was",
    "from s p where p.c ~ '^x' next s q where q.b != p.b select q.k as k, q.a as v publish as w",
    "select max(a) from table s where b between 0 and 2",
    "select min(c) from table s where b between 0 and 2",
    "select max(c) from table s",
    "select count(*) from table s where c = 'x' or a > b",
    "select * from table s where x > 1",
    "select distinct c from table s where a between 0 and 1",
    "select sum(v) from table w where v > 0",
    "select sum(l.a) from table s l join table s r on l.c = r.c where r.b > 0",
]
NAN = float("nan")
ODD = (None, NAN, 2**53 + 1)
cells: dict[str, tuple[Any, list[Any]]] = {
    "k": (pa.int64(), [1, 1, 2, 3, 4, None]),
    "a": (pa.int64(), [0, 1, 2, -1, None, 2**53 + 1]),
    "b": (pa.int32(), [0, 1, 2, 3, None]),
    "c": (pa.string(), ["x", "xy", "", "z", None]),
    "x": (pa.float64(), [0.5, 2.5, -1.0, 1e300, None, NAN]),
    "o": (pa.binary(), [b"x", b"", None]),
}


@st.composite
def tables(draw: st.DrawFn, begin: int) -> pa.Table:
    """Rows with times that mostly ascend; some have none, and some are no events."""
    count = draw(st.integers(0, 12))
    tame = draw(st.booleans())
    columns: dict[str, Any] = {}
    for name, (kind, palette) in cells.items():
        usual = [cell for cell in palette if cell not in ODD]
        cell = st.sampled_from(usual if tame else [*usual, *palette])
        columns[name] = pa.array(draw(st.lists(cell, min_size=count, max_size=count)), kind)
    steps = draw(st.lists(st.integers(0 if tame else -3, 3), min_size=count, max_size=count))
    times: list[int | None] = [begin + sum(steps[: i + 1]) for i in range(count)]
    if not tame and draw(st.booleans()) and count:
        times[draw(st.integers(0, count - 1))] = None
        # Of two faults of a row, the one that is reported depends on how the row is read.
        columns["x"] = pc.if_else(pc.is_nan(columns["x"]), None, columns["x"])
    columns["t"] = pa.array(times, pa.int64())
    for name in ("c", "k"):
        if draw(st.integers(0, 3)) == 0:
            columns[name] = columns[name].dictionary_encode()
    if draw(st.integers(0, 5)) == 0:
        columns["d"] = pa.array([0] * count, pa.date32())  # a column that views do not take as it is
    table = pa.table(columns)
    cut = draw(st.integers(0, count))
    return pa.concat_tables([table.slice(0, cut), table.slice(cut)])


@st.composite
def scripts(draw: st.DrawFn) -> dict[str, Any]:
    queries = draw(st.lists(st.sampled_from(QUERIES), unique=True, min_size=1, max_size=8))
    times = st.one_of(st.none(), st.integers(0, 30))
    return {
        "queries": [(query, draw(times), draw(times)) for query in queries],
        "key": draw(st.sampled_from(["k", ("k",), ("k", "c")])),
        "out_of_orderness": draw(st.sampled_from([0, 0, 0, 2])),
        "steps": [
            (draw(tables(10 * i)), draw(st.one_of(st.none(), st.integers(0, 3))))
            for i in range(draw(st.integers(1, 3)))
        ],
        "batch_size": draw(st.sampled_from([None, 1, 4])),
        "time": draw(st.sampled_from(["t", "t", "t", None])),
    }


class Gist:
    """What notifications say, with the ids that were made for events replaced by numbers in order of appearance."""

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}

    def name(self, id_: str) -> Any:
        if "(" in id_:  # of a published event: the ids it was made of
            stream, _, inner = id_.rstrip(")").partition("(")
            return stream, *map(self.name, inner.split(","))
        return self.ids.setdefault(id_, len(self.ids))

    def event(self, event: Event) -> Any:
        return self.name(event.id), dict(event.attributes), event.stream, event.start, event.end

    def __call__(self, note: Notification) -> Any:
        events = [self.event(event) for event in note.events]
        witness = [(s.alias, self.name(s.first), self.name(s.last)) for s in note.witness or ()]
        answers = note.old, note.new, note.removed, note.added, note.view
        span = note.start, note.end, note.generation
        return note.subscription, events, note.values, witness, answers, span


def play(script: dict[str, Any], way: str) -> Any:
    late: list[Event] = []
    engine = Engine(clock=EventClock(0), out_of_orderness=script["out_of_orderness"], on_late=late.append)
    engine.table("s", key=script["key"])
    engine.table("w", key="k")
    for number, (query, begin, end) in enumerate(script["queries"]):
        with suppress(SubscriptionError):  # it is valid until before it is valid from
            engine.subscribe(query, id=f"q{number}", valid_from=begin, valid_until=end)
    faults: list[Fault] = []
    gist = Gist()
    told: list[Any] = []
    for table, deleted in script["steps"]:
        batches = table.to_batches()
        sources: list[Any] = {
            "table": [table],
            "rows": [(record for _, record in arrow_rows(batches))],
            "reader": [pa.RecordBatchReader.from_batches(table.schema, batches)],
            "one by one": batches,
        }[way]
        for source in sources:
            notes = engine.publish_many(
                source,
                stream="s",
                time=script["time"],
                batch_size=script["batch_size"],
                on_error=faults.append,
            )
            told += map(gist, notes)
        if deleted is not None:
            end = max((time for time in table.column("t").to_pylist() if time is not None), default=0)
            row = {"k": deleted, "c": "x"}
            told += map(gist, engine.publish(row, stream="s", time=end, delete=True))
    told += map(gist, engine.flush())
    stats = engine.stats()
    counts = stats.published, stats.refused, stats.notifications, stats.expired, stats.subscriptions
    sequences, views = stats.sequences, stats.views
    state = sequences.late, sequences.waiting, views.rows, views.messages, views.late
    answers = [engine.answer(one.id) for one in engine.subscriptions() if type(one.query).__name__ == "View"]
    reasons = sorted(fault.reason for fault in faults)
    return told, reasons, [gist.event(event)[1:] for event in late], counts, state, answers


@given(scripts())
def test_a_table_has_the_effects_of_its_rows(script: dict[str, Any]) -> None:
    assert play(script, "table") == play(script, "rows")


@given(scripts())
@settings(max_examples=30)
def test_a_reader_of_record_batches_has_the_effects_of_its_batches(script: dict[str, Any]) -> None:
    assert play(script, "reader") == play(script, "one by one")


def test_a_reader_is_taken_by_the_column_and_batch_by_batch() -> None:
    taken: list[int] = []

    def batches() -> Iterator[Any]:
        for first in range(0, 50, 10):
            taken.append(first)
            times = pa.array([0] * 9 + [10**15], pa.timestamp("s"))  # the last one is out of range
            yield pa.record_batch({"a": [*range(first, first + 10)], "l": [[1]] * 10, "t": times})

    engine = Engine()
    engine.subscribe("a >= 5", id="x")
    reader = pa.RecordBatchReader.from_batches(next(batches()).schema, batches())
    taken.clear()
    faults: list[Fault] = []
    stream = engine.publish_stream(reader, on_error=faults.append)
    assert [note.events[0].attributes["a"] for note in islice(stream, 5)] == [5, 6, 7, 8, 10]
    assert taken == [0, 10]
    assert len(list(stream)) == 35
    assert [str(fault).split(":")[1] for fault in faults] == ["10", "20", "30", "40", "50"]
    assert engine.stats().opaque_values == 45
    found = engine.match(batches())
    assert [row for row in range(50) if found[row]] == [5, 6, 7, 8, *(i for i in range(10, 50) if i % 10 < 9)]
    assert [fault.line for fault in found.faults] == [10, 20, 30, 40, 50]
    whole = [row for batch in batches() for row in batch.drop_columns(["t"]).to_pylist()]
    bad = {"a": "\ud800"}
    rows = engine.match([row if number % 10 < 9 else bad for number, row in enumerate(whole)])
    assert found.offsets.tolist() == rows.offsets.tolist()
    assert found.ids == rows.ids
    assert found.to_arrow() == rows.to_arrow()


def test_a_row_without_its_key_is_reported_by_its_number_and_the_others_are_published() -> None:
    engine = Engine()
    engine.table("s", key=("k", "l"))
    engine.subscribe("select count(*) from table s", id="rows")
    faults: list[Fault] = []
    table = pa.table({"k": [1, None, 3, 4], "l": ["a", "b", None, "d"]})
    engine.publish_many(table, stream="s", on_error=faults.append)
    assert engine.answer("rows") == 2
    reason = "a row of the table `s` needs it, since it is of its key"
    assert faults == [
        Fault("event", 2, f"attribute `k`: {reason}"),
        Fault("event", 3, f"attribute `l`: {reason}"),
    ]


def test_rows_before_a_failing_report_are_published() -> None:
    def fail(fault: Fault) -> None:
        raise RuntimeError(str(fault))

    engine = Engine()
    engine.table("s", key="k")
    engine.subscribe("select max(a) from table s where b between 0 and 5", id="highest")
    table = pa.table({"k": [1, 2, 3], "a": [7, 2**53 + 1, 9], "b": [1, 1, 1]})
    with pytest.raises(RuntimeError, match=r"event:2: attribute `a`: .*no float") as caught:
        engine.publish_many(table, stream="s", on_error=fail)
    assert [note.new for note in caught.value.notifications] == [7]  # type: ignore[attr-defined]
    assert (engine.answer("highest"), engine.stats().published, engine.stats().refused) == (7, 1, 1)


def test_parts_of_a_table_see_the_rows_of_the_parts_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "_TABLE_BATCH", 2)
    engine = Engine()
    engine.table("s", key="k")
    engine.subscribe("select sum(a) from table s where c = 'x'", id="sum")
    table = pa.table({"k": [1, 2, 1, 3, 2], "a": [1, 2, 3, 4, 5], "c": ["x", "x", "y", "x", "x"]})
    notes = engine.publish_many(table, stream="s")
    assert [(note.old, note.new) for note in notes] == [(None, 1), (1, 3), (3, 2), (2, 6), (6, 9)]
