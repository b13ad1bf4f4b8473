"""Notifications in columns: the same, in the same order, as the objects that `publish` returns."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin import Engine, Notification
from tocsin.engine import EventClock
from tocsin.formats.notifications import ParquetNotifications

JUMP = "from stock a next stock b on b.symbol = a.symbol where b.price > a.price"
EVENTS = [{"symbol": "AB"[i % 2], "price": (7 * i) % 5, "t": i + 1} for i in range(40)]


def engine(*, table: bool = False) -> Engine:
    made = Engine(clock=EventClock())
    if table:
        made.table("stock", key="symbol")
        made.subscribe("select max(price) from table stock", id="max")
    made.subscribe(JUMP, id="jump")
    made.subscribe("price > 2", id="high")
    made.subscribe("select price * 2 as double from stock where price = 4", id="double")
    return made


def one_by_one(made: Engine) -> list[Notification]:
    return [note for event in EVENTS for note in made.publish(event, stream="stock", time=event["t"])]


def gist(note: Notification) -> tuple[Any, ...]:
    events = tuple(tuple(event.attributes.items()) for event in note.events)
    return note.subscription, events, note.values, note.start, note.end, note.old, note.new, note.generation


@pytest.mark.parametrize("table", [False, True])
@pytest.mark.parametrize("size", [None, 1, 7])
@pytest.mark.parametrize("source", [list, iter, pa.Table.from_pylist])
def test_all_are_published_at_once_with_the_same_notifications(
    table: bool, size: int | None, source: Any
) -> None:
    wanted = [gist(note) for note in one_by_one(engine(table=table))]
    made = engine(table=table)
    found = made.publish_many(source(EVENTS), stream="stock", time="t", batch_size=size)
    assert made.stats().published == len(EVENTS)
    assert made.stats().notifications == len(found) == len(wanted)
    assert [gist(note) for note in found] == [gist(note) for note in found] == wanted
    assert [gist(found[i]) for i in range(len(found))] == wanted
    assert [gist(note) for note in found[-3:]] == wanted[-3:]
    assert gist(found[-1]) == wanted[-1]
    stream = engine(table=table).publish_stream(source(EVENTS), stream="stock", time="t", batch_size=size)
    assert [gist(note) for note in stream] == wanted


@pytest.mark.parametrize("source", [list, pa.Table.from_pylist])
def test_columns_have_what_the_objects_have(source: Any) -> None:
    found = engine(table=True).publish_many(source(EVENTS), stream="stock", time="t", batch_size=7)
    rows = found.to_arrow().to_pylist()
    assert len(rows) == len(found) > 0
    for row, note in zip(rows, found, strict=True):
        assert EVENTS[row["row"]]["t"] == note.end == row["end"]
        assert (row["subscription"], row["stream"], row["start"]) == (note.subscription, "stock", note.start)
        assert (row["generation"], row["score"]) == (note.generation, None)
        assert row["values"] == (
            None if note.values is None else json.dumps(note.values, separators=(",", ":"))
        )
        assert (row["witness"] is None) == (note.witness is None)
        assert (row["answer"] is None) == (not note.view)
    assert {row["subscription"] for row in rows} == {"max", "jump", "high", "double"}
    answers = [json.loads(row["answer"]) for row in rows if row["answer"]]
    assert answers == [{"old": note.old, "new": note.new} for note in found if note.view]


def test_scores_and_streams_are_columns_too() -> None:
    made = Engine()
    made.subscribe("a > 0", id="x", weight=2.0)
    found = made.publish_many([{"a": 1}, {"a": 2}], top=1)
    assert found.to_arrow()["score"].to_pylist() == [note.score for note in found]
    assert found.to_arrow()["stream"].to_pylist() == [None, None]


def test_no_notifications_are_an_empty_table_of_the_same_columns() -> None:
    none = Engine().publish_many([{"a": 1}])
    some = engine().publish_many(EVENTS, stream="stock")
    assert (len(none), list(none), none.to_list(), none[:]) == (0, [], [], [])
    assert none.to_arrow().schema == some.to_arrow().schema
    with pytest.raises(IndexError):
        none[0]


def test_a_pandas_frame_has_the_same_columns() -> None:
    pytest.importorskip("pandas")
    found = engine().publish_many(EVENTS, stream="stock", time="t")
    assert found.to_pandas()["subscription"].tolist() == [note.subscription for note in found]


def test_notifications_outlive_their_subscriptions() -> None:
    made = engine(table=True)
    found = made.publish_many(EVENTS, stream="stock", time="t")
    wanted = [gist(note) for note in one_by_one(engine(table=True))]
    for name in ("max", "jump", "high", "double"):
        made.unsubscribe(name)
    made.subscribe("price < 0", id="other")
    made.publish_many([{"symbol": "A", "price": 1000}] * 3, stream="stock")
    assert [gist(note) for note in found] == wanted


def test_a_source_that_fails_leaves_the_notifications_with_the_exception() -> None:
    made = Engine()
    made.subscribe("a > 0", id="x")

    def failing() -> Iterable[Mapping[str, object]]:
        yield from ({"a": i} for i in range(1, 6))
        raise OSError("the wire was cut")

    with pytest.raises(OSError, match="the wire was cut") as caught:
        made.publish_many(failing(), batch_size=2)
    assert [note.events[0].attributes["a"] for note in caught.value.notifications] == [1, 2, 3, 4, 5]  # type: ignore[attr-defined]
    assert made.stats().published == 5


@pytest.mark.parametrize("source", [list, iter, pa.Table.from_pylist])
def test_parquet_is_written_by_the_column_as_one_by_one(source: Any, tmp_path: Path) -> None:
    made = engine(table=True)
    found = made.publish_many(source(EVENTS), stream="stock", time="t", batch_size=7)
    objects, columns = tmp_path / "objects.parquet", tmp_path / "columns.parquet"
    with ParquetNotifications(objects) as one, ParquetNotifications(columns) as other:
        other.write_table(found.with_events())
        for note in found:
            one.write(note)
    rows = pq.read_table(columns)
    assert rows == pq.read_table(objects)
    assert {name: rows[name].null_count for name in ("subscription", "event_id", "event", "start")} == {
        "subscription": 0,
        "event_id": 0,
        "event": 0,
        "start": 0,
    }
    assert rows["answer"].null_count < rows["witness"].null_count <= rows.num_rows
    assert rows.num_rows == len(found) > 20
