"""An index that Spark's workers build holds what a driver would have put there."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.index.reading import found_by
from tests.spark.test_matching import workload
from tocsin import Engine
from tocsin.errors import SparkError, TocsinError
from tocsin.index import IndexReader, SubscriptionIndex
from tocsin.spark import FromTemplate, build_index


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


def test_an_index_that_cannot_be_built_raises(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(SparkError, match="no column `text`"):
        build_index(spark.createDataFrame([("x",)], "id string"), tmp_path / "a", shards=2)
    with pytest.raises(SparkError, match="from a DataFrame"):
        build_index(FromTemplate("a = :a", [{"a": 1}], id="a"), tmp_path / "b", shards=2)
    with pytest.raises(SparkError, match="name its column"):
        build_index(FromTemplate("a = :a", spark.sql("select 1 as a")), tmp_path / "c", shards=2)
