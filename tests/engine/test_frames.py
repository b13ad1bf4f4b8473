"""Tables of other libraries where events are taken: pandas, and whatever has Arrow's C stream or the interchange protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin import Engine
from tocsin.model.errors import TocsinError

TABLE = pa.table(
    {
        "symbol": ["A", "B", None, "D"],
        "price": pa.array([1.5, None, 3.0, 4.0]),
        "n": pa.array([1, 2, 3, 4], pa.int64()),
        "t": pa.array([10, 20, 30, 40], pa.int64()),
    }
)


class Stream:
    """A table of a library that has Arrow's C stream, and iterates over something else, as frames do."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._table.__arrow_c_stream__(requested_schema)

    def __iter__(self) -> Any:
        return iter(self._table.schema.names)


class Interchange:
    """A table of a library that has the interchange protocol alone."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __dataframe__(self, **options: Any) -> object:
        return self._table.__dataframe__(**options)


def as_pandas(table: pa.Table) -> Any:
    frame = table.to_pandas()
    frame.index = range(5, 5 + len(frame))
    return frame


FORMS: list[Callable[[pa.Table], Any]] = [Stream, Interchange, as_pandas]


@pytest.fixture(params=FORMS, ids=["c-stream", "interchange", "pandas"])
def frame(request: pytest.FixtureRequest) -> Any:
    return request.param(TABLE)


@pytest.fixture
def engine() -> Engine:
    engine = Engine()
    engine.table("stock", key="n")
    engine.subscribe("price > 2 or n = 2", id="x")
    engine.subscribe("select max(price) from table stock where n > 0", id="best")
    engine.subscribe("from s a where a.n = 1 next s b on b.n > 1 within 100 ticks", id="pair")
    return engine


def test_a_frame_is_published_as_its_rows(engine: Engine, frame: Any) -> None:
    assert engine.publish_many(frame).to_arrow()["row"].to_pylist() == [1, 2, 3]
    notes = list(engine.publish_stream(frame))
    assert [note.events[0].attributes for note in notes] == [
        {"symbol": "B", "n": 2, "t": 20},
        {"price": 3.0, "n": 3, "t": 30},
        {"symbol": "D", "price": 4.0, "n": 4, "t": 40},
    ]
    assert len(list(engine.publish_stream(iter([frame, {"n": 2}])))) == 4


def test_a_frame_is_matched_tested_and_put_into_a_table(engine: Engine, frame: Any) -> None:
    assert [list(ids) for ids in engine.match(frame)] == [[], ["x"], ["x"], ["x"]]
    assert len(engine.test("price > 2", frame).events) == 2
    assert len(engine.upsert(frame, stream="stock")) > 0
    assert engine.answer("best") == 4.0
    assert len(engine.match_sequences(frame, stream="s", time="t")) == 1


def test_a_frame_with_a_column_of_several_types_is_read_by_the_row(engine: Engine) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"n": [2, "two", None, 2.5], "price": [float("nan"), 3.0, 1.0, 9.0]})
    assert engine.publish_many(frame).to_arrow()["row"].to_pylist() == [0, 1, 3]


def test_a_reader_of_record_batches_is_iterated(engine: Engine) -> None:
    reader = pa.RecordBatchReader.from_batches(TABLE.schema, TABLE.to_batches(max_chunksize=1))
    assert len(engine.publish_many(reader)) == 3


def test_texts_and_categories_as_polars_has_them_are_texts_everywhere() -> None:
    texts = pa.array(["A", None, "a text that is longer than twelve bytes", "B"])
    views = texts.cast(pa.string_view())
    categories = pa.DictionaryArray.from_arrays(pa.array([0, None, 2, 3], pa.uint32()), views)
    nested = pa.StructArray.from_arrays([views], names=["name"])
    plain = {"n": pa.array([1, 2, 3, 4], pa.uint8()), "t": [1, 2, 3, 4]}
    given = pa.table({**plain, "s": views, "c": categories, "d": nested})
    expected = pa.table(
        {**plain, "s": texts, "c": texts, "d": [{"name": text} for text in texts.to_pylist()]}
    )

    def answers(table: pa.Table) -> list[Any]:
        engine = Engine()
        engine.table("r", key="n")
        engine.table("by_text", key="s")
        engine.subscribe("s like 'a text%' or c > 'A' or d.name is missing", id="filter")
        engine.subscribe("from p a next p b on b.c > a.s", id="pair")
        engine.subscribe("select max(s) from table r", id="max")
        engine.subscribe("select distinct d.name from table by_text", id="names")
        streams = ("o", "p", "r", "by_text")
        noted = [engine.publish_many(Stream(table), stream=one, time="t").to_arrow() for one in streams]
        rest = table.slice(2)  # whose rows have a key
        engine.upsert(Stream(rest.drop_columns(["d"])), stream="by_text")
        other = Engine()
        other.subscribe("from p a next p b on b.c > a.s", id="pair")
        sequences = other.match_sequences(Stream(table), stream="p", time="t").to_arrow()
        found = [list(ids) for ids in engine.match(Stream(table))]
        made = list(engine.subscribe_many("s = :s and c = :c", Stream(rest), id="{c}").ids)
        columns = ["row", "subscription", "values"]
        return [
            *(one.select(columns).to_pylist() for one in noted),
            sequences.drop_columns(["values"]).to_pylist(),
            found,
            made,
            engine.answer("max"),
            engine.answer("names"),
            engine.test("s = 'A'", table).fired,
        ]

    assert answers(given) == answers(expected)


def in_parts(table: pa.Table) -> list[Any]:
    """Return a table in the forms in which it comes in parts."""
    batches = table.to_batches(max_chunksize=1)
    frames = [as_pandas(pa.Table.from_batches([batch])) for batch in batches]
    return [pa.RecordBatchReader.from_batches(table.schema, batches), batches, tuple(frames), [Stream(table)]]


@pytest.mark.parametrize("form", range(4), ids=["reader", "batches", "frames", "streams"])
def test_a_table_in_parts_is_taken_wherever_a_table_is(engine: Engine, form: int) -> None:
    assert len(engine.upsert(in_parts(TABLE)[form], stream="stock")) == 3
    assert engine.answer("best") == 4.0
    assert len(engine.match_sequences(in_parts(TABLE)[form], stream="s", time="t")) == 1
    made = engine.subscribe_many("n = :n", in_parts(TABLE)[form], id="row-{n}")
    assert list(made.ids) == ["row-1", "row-2", "row-3", "row-4"]


def test_rows_that_are_no_table_are_refused_with_what_to_do(engine: Engine) -> None:
    pandas = pytest.importorskip("pandas")
    for rows in ([{"n": 1}], {"n": 1}, 3, "n", []):
        with pytest.raises(TocsinError, match=r"a table is expected, .*`pyarrow.Table.from_pylist`"):
            engine.upsert(rows, stream="stock")
    several = [pa.table({"n": [1]}), pa.table({"n": ["x"]})]
    for rows in (several, pandas.DataFrame({"n": [1, "x"]})):
        with pytest.raises(TocsinError, match="a column has values of several types"):
            engine.upsert(rows, stream="stock")
    for rows in (several, [several[0], {"n": 1}]):
        with pytest.raises(TocsinError, match="give one table"):
            engine.subscribe_many("n = :n", rows)


def test_a_frame_with_objects_that_arrow_fails_at_is_read_by_the_row(engine: Engine) -> None:
    pandas = pytest.importorskip("pandas")
    days = pandas.Series([np.datetime64("2020-01-01")], dtype=object)
    (ids,) = engine.match(pandas.DataFrame({"n": [2], "day": days}))
    assert list(ids) == ["x"]


def test_frames_have_the_parameters_of_a_template() -> None:
    rows = {"s": ["A", "B"], "p": [1, 2]}
    table = pa.table(rows)
    for number, given in enumerate((as_pandas(table), Stream(table), Interchange(table), table, rows)):
        engine = Engine()
        made = engine.subscribe_many("symbol = :s and price > :p", given, id=f"{{s}}-{number}")
        assert list(made.ids) == [f"A-{number}", f"B-{number}"]
        assert len(engine.publish({"symbol": "A", "price": 2})) == 1


def test_columns_are_given_back_as_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.table("stock", key="symbol")
    engine.subscribe("price > 1", id="high")
    engine.subscribe("from s a next s b", id="pair")
    engine.subscribe("select max(price) from table stock where price between 0 and 9", id="best")
    rows = pa.table({"symbol": ["A", "B"], "price": [1, 2], "t": [1, 2]})
    results = [
        engine.match(rows),
        engine.match_sequences(rows, stream="s", time="t"),
        engine.publish_many(rows),
        engine.upsert(rows, stream="stock"),
    ]
    for found in results:
        assert found.to_pandas().equals(found.to_arrow().to_pandas())
        assert len(found.to_pandas())
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(from_arrow=lambda table: ("polars", table)))
    assert [found.to_polars()[0] for found in results] == ["polars"] * 4
    monkeypatch.setitem(sys.modules, "polars", None)
    with pytest.raises(TocsinError, match="`to_polars` needs polars: install it, or use `to_arrow`"):
        results[0].to_polars()


def test_a_frame_of_subscriptions_is_refused_with_how_to_make_a_set_of_it() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"id": ["a", "b"], "text": ["n > 1", "n > 2"]})
    engine = Engine()
    for call in (engine.subscribe_all, engine.apply):
        for table in (frame, Stream(pa.Table.from_pandas(frame))):
            with pytest.raises(TocsinError, match=r"a set maps ids .*`dict\(zip\(frame"):
                call(table)
    assert engine.subscribe_all(dict(zip(frame["id"], frame["text"], strict=True))).ids == ("a", "b")


class Lazy:
    """A query of polars, which has no rows."""

    def collect(self) -> list[dict[str, Any]]:
        return []

    def __getitem__(self, _: object) -> Any:
        raise TypeError("not subscriptable")


def test_a_query_without_rows_is_refused_with_what_gives_them() -> None:
    engine = Engine()
    calls: list[Callable[[Any], Any]] = [
        engine.match,
        engine.publish_many,
        lambda lazy: list(engine.publish_stream(lazy)),
        lambda lazy: engine.test("price > 1", lazy),
        lambda lazy: engine.subscribe_many("price > :price", lazy),
    ]
    for call in calls:
        with pytest.raises(
            TocsinError, match=r"a Lazy has no rows until it runs: give what its `collect\(\)`"
        ):
            call(Lazy())


class Distributed(Lazy):
    """A frame of Spark, whose own stream needs workers, and which gives its rows to the driver without them."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        raise AssertionError("no worker has Arrow")

    def toArrow(self) -> pa.Table:  # noqa: N802 - its name in Spark
        return TABLE


def test_a_frame_of_spark_is_read_without_its_workers() -> None:
    engine = Engine()
    engine.subscribe("price > 2", id="high")
    assert [bool(row) for row in engine.match(Distributed())] == [False, False, True, True]
    assert len(engine.publish_many(Distributed())) == 2


class Series:
    """A column of polars: it has a stream that is none of rows."""

    def __init__(self, values: list[Any]) -> None:
        self._values = pa.chunked_array([values])

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._values.__arrow_c_stream__(requested_schema)

    def to_numpy(self) -> Any:
        return self._values.to_numpy()


def test_a_column_of_polars_gives_parameters_and_is_no_table() -> None:
    engine = Engine()
    made = engine.subscribe_many(
        "s = :s and n > :n", {"s": Series(["A", "B"]), "n": Series([1, None])}, id="{s}"
    )
    assert (list(made.ids), [error.row for error in made.errors]) == (["A"], [1])
    for call in (engine.match, engine.publish_many):
        with pytest.raises(TocsinError, match="a Series cannot be read as a table of Arrow: "):
            call(Series([1, 2]))


def test_columns_of_one_name_are_refused_in_pandas_as_in_arrow() -> None:
    import pandas as pd  # noqa: PLC0415 - only here

    table = pa.Table.from_arrays([pa.array([1]), pa.array([200])], names=["price", "price"])
    for frame in (table, table.to_pandas(), pd.DataFrame([[1, 2]], columns=["price", "price"])):
        with pytest.raises(TocsinError, match="two columns are called `price`"):
            Engine().match(frame)
    with pytest.raises(TocsinError, match="two columns are called `5`"):
        Engine().match(pd.DataFrame([[1, 2]], columns=[5, "5"]))


def test_what_is_published_as_one_event_and_is_not_has_a_hint() -> None:
    frame = TABLE.to_pandas()
    with pytest.raises(TocsinError, match="not DataFrame; `publish_many` takes several"):
        Engine().publish(frame)
    with pytest.raises(TocsinError, match="not list; `publish_many` takes several"):
        Engine().publish([{"price": 1}])  # type: ignore[arg-type]
    with pytest.raises(TocsinError, match=r"not Series; its `to_dict\(\)` is one"):
        Engine().publish(frame.iloc[0])
    assert Engine().publish(frame.iloc[0].to_dict()) == []


def test_an_index_of_pandas_with_a_name_is_an_attribute() -> None:
    table = pa.table({"at": pa.array([1, 2], pa.timestamp("s")), "symbol": ["A", "B"], "price": [1.5, 3.0]})
    frame = table.to_pandas()
    engine = Engine()
    engine.subscribe("symbol = 'B' and price > 2 and at is present", id="all")
    for indexed in (
        frame.set_index("at"),
        frame.set_index(["at", "symbol"]),
        frame.set_index("at", drop=False),
    ):
        assert [bool(row) for row in engine.match(indexed)] == [False, True]
        (note,) = engine.publish_many(indexed, time="at", stream=f"by {indexed.index.names}")
        assert note.end == 2_000_000
    assert list(frame.columns) == ["at", "symbol", "price"]  # the frame of the caller is as it was
    assert list(engine.subscribe_many("symbol = :symbol", frame.set_index("symbol"), id="{symbol}").ids) == [
        "A",
        "B",
    ]
