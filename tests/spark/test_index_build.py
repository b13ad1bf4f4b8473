"""An index that Spark's workers build holds what a driver would have put there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.index.reading import found_by
from tests.spark.test_matching import workload
from tocsin import Engine, Subscription
from tocsin.errors import SparkError, TocsinError
from tocsin.index import IndexReader, StatefulSubscription, SubscriptionIndex
from tocsin.language import parse
from tocsin.spark import FromTemplate, build_index, match
from tocsin.spark.subscription_sources import SubscriptionSource, ensure_index, fill_index


@pytest.mark.parametrize("shards", [1, 3])
def test_texts_are_read_and_placed_by_workers(spark: SparkSession, tmp_path: Path, shards: int) -> None:
    subscriptions, events = workload(20)
    rows: list[tuple[str | None, str, int | None]] = [
        (id_, text, None) for id_, text in subscriptions.items()
    ]
    rows += [("brief", "true", 5), ("bad", "a = =", None), ("twice", "a = 1", None), ("twice", "a = 2", None)]
    rows += [(None, "a = 1", None), (None, "a = 1", None), ("huge", f"a = {2**70} or a = 3", None)]
    frame = spark.createDataFrame(rows, "id string, text string, valid_until long").repartition(3)
    errors: list[TocsinError] = []
    number = build_index(frame, tmp_path / "index", shards=shards, on_error=errors.append)
    engine = Engine(matcher="oracle")
    for id_, text in {**subscriptions, "huge": "a = 3"}.items():
        engine.subscribe(text, id=id_)
    wanted = [{*names, "brief"} for names in engine.match(events, stream="stock")]
    reader = IndexReader(tmp_path / "index")
    seen = [{**event, "$stream": "stock"} for event in events]
    assert found_by(reader, number, seen, end=4) == wanted
    assert "brief" not in found_by(reader, number, seen[:1], end=5)[0]
    assert sorted(str(getattr(error, "id", "")) for error in errors) == ["None", "None", "bad", "twice"]
    index = SubscriptionIndex(tmp_path / "index")  # and it can be changed as any other
    assert len(index) == len(subscriptions) + 2
    index.unsubscribe("huge")
    index.subscribe("a = 3", id="three")
    found = found_by(reader, index.publish(), [{"a": 3}])[0]
    assert "three" in found
    assert "huge" not in found


def test_the_rows_of_a_template_are_placed_by_workers(any_spark: SparkSession, tmp_path: Path) -> None:
    rows = any_spark.range(3000).selectExpr("id", "concat('S', id % 50) as s", "if(id = 7, null, id) as p")
    errors: list[TocsinError] = []
    template = FromTemplate("symbol = :s and price > :p", rows, id="id")
    number = build_index(template, tmp_path / "index", shards=4, on_error=errors.append)
    reader = IndexReader(tmp_path / "index")
    sizes = [shard.subscriptions for shard in reader.generation(number).shards]
    assert sum(sizes) == 2999
    assert max(sizes) < 1500
    assert found_by(reader, number, [{"symbol": "S3", "price": 100}]) == [{"3", "53"}]
    assert ["7" in str(error) for error in errors] == [True]


RISE = "from stock a next stock b on b.symbol = a.symbol where b.price > a.price"
BEST = "select min(price) from table stock where risk > 3"


def stateful(index: SubscriptionIndex | Path) -> dict[str, StatefulSubscription]:
    """The sequences and views of the current generation."""
    reader = IndexReader(index if isinstance(index, Path) else index.generations.storage.uri)
    found = reader.stateful(reader.current())
    return {one.id: one for one in found.subscriptions()} if found else {}


def test_sequences_and_views_are_gathered_on_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    rows = [
        ("rise", f"{RISE} publish as rises", None, "ann", "full"),
        ("best", BEST, 5, None, None),
        ("high", "from rises where b.price > 3", None, None, None),
        ("high-2", "from rises where b.price > 5", None, None, None),
        ("other", "from others where b.price > 3", None, None, None),
        ("none", "select min(price) from table none", None, None, None),
        ("bad", "from stock a next", None, None, None),
    ]
    columns = "id string, text string, valid_until long, owner string, witness string"
    frame = spark.createDataFrame(rows, columns).repartition(2)
    errors: list[TocsinError] = []
    declared: dict[str, Any] = {"tables": {"stock": "symbol"}, "ticks": {"stock": "1 second"}}
    for generation in (1, 2):
        number = build_index(frame, tmp_path / "index", shards=2, on_error=errors.append, **declared)
        reader = IndexReader(tmp_path / "index")
        found = reader.stateful(number)
        assert found is not None
        assert number == generation
        assert (found.tables, found.ticks) == ({"stock": ("symbol",)}, {"stock": 1_000_000})
        assert {one.id: one.added for one in found.subscriptions()} == {"rise": 1, "best": 1}
        assert {one.id for run in found.linked_filters for one in run} == {"high", "high-2"}
        event = {"b.price": 4, "$stream": "rises"}
        assert found_by(reader, number, [event, {**event, "$stream": "others"}]) == [{"high"}, {"other"}]
    one = stateful(tmp_path / "index")
    assert (one["rise"].options.owner, one["rise"].options.witness) == ("ann", "full")
    assert one["best"].options.validity.valid_until == 5
    assert sorted(str(getattr(error, "id", "")) for error in errors) == ["bad", "bad", "none", "none"]

    rules = spark.range(200).selectExpr("concat('r', id) as id", "1 + id / 100 as p")
    template = FromTemplate(f"{RISE} and b.price > :p", rows=rules, id="id")
    assert build_index(template, tmp_path / "index", shards=2) == 3
    assert len(stateful(tmp_path / "index")) == len(SubscriptionIndex(tmp_path / "index")) == 200


def test_every_source_may_have_all_kinds(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "subs.jsonl").write_text(
        "".join(
            json.dumps(one) + "\n"
            for one in (
                {"id": "f", "text": "price > 3"},
                {"id": "s", "text": RISE, "witness": "full", "weight": 2},
                {"id": "v", "text": BEST},
            )
        )
    )
    texts = {"f": "price > 3", "s": RISE, "v": BEST}
    rows = [("f", "price > 3", None, 1.0), ("s", RISE, "full", 2.0), ("v", BEST, None, None)]
    sources: dict[str, SubscriptionSource] = {
        "file": tmp_path / "subs.jsonl",
        "mapping": texts,
        "list": [Subscription(id_, parse(text)) for id_, text in texts.items()],
        "frame": spark.createDataFrame(rows, "id string, text string, witness string, weight double"),
    }
    errors: list[TocsinError] = []
    for name, source in sources.items():
        index = SubscriptionIndex(tmp_path / name)
        fill_index(index, source, errors.append, tables={"stock": "symbol"}, ticks={"stock": 5})
        assert set(index) == {"f", "s", "v"}
        index.publish()
        found = stateful(index)
        assert found.keys() == {"s", "v"}
        options = found["s"].options
        assert (options.witness, options.weight) == (("full", 2) if name in ("file", "frame") else (None, 1))
    index = SubscriptionIndex(tmp_path / "template")
    template = FromTemplate(f"{RISE} and b.price > :p", [{"p": 1}, {"p": None}], "{p}")
    fill_index(index, template, errors.append)
    assert list(index) == ["1"]
    assert ["null is not a value" in str(error) for error in errors] == [True]
    built = ensure_index(texts, tables={"stock": "symbol"})
    with pytest.raises(SparkError, match="declared where it is published"):
        ensure_index(built, tables={"stock": "symbol"})


def test_what_was_planned_for_filters_alone_says_so(spark: SparkSession, tmp_path: Path) -> None:
    events = spark.createDataFrame([("e1", 4.0)], "event_id string, price double")
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("price > 3", id="f")
    index.publish()
    frame = match(events, tmp_path / "index")
    index.subscribe(RISE, id="s")
    index.publish()
    assert [row.subscription for row in frame.collect()] == ["f"]  # a batch keeps its generation
    with pytest.raises(SparkError, match="name the column with the end of each event with `time`"):
        match(events, tmp_path / "index")
    with pytest.raises(SparkError, match="plan='join' matches filters alone"):
        match(events, tmp_path / "index", plan="join")


def test_an_index_that_cannot_be_built_raises(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="no column `text`"):
        build_index(spark.createDataFrame([("x",)], "id string"), tmp_path / "a", shards=2)
    with pytest.raises(SparkError, match="from a DataFrame"):
        build_index(FromTemplate("a = :a", [{"a": 1}], id="a"), tmp_path / "b", shards=2)
    with pytest.raises(SparkError, match="name its column"):
        build_index(FromTemplate("a = :a", spark.sql("select 1 as a")), tmp_path / "c", shards=2)
