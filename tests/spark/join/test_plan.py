"""`match(…, plan="join")`: the same notifications as the usual plan's, of whatever subscriptions and events."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession, functions
from pyspark.sql import types as t

from tocsin.errors import SparkError
from tocsin.index import SubscriptionIndex
from tocsin.spark import FromTemplate, match

SCHEMA = t.StructType(
    [
        t.StructField("event_id", t.StringType()),
        t.StructField("at", t.LongType()),
        t.StructField("a", t.IntegerType()),
        t.StructField("b", t.LongType()),
        t.StructField("c", t.DoubleType()),
        t.StructField("f", t.FloatType()),
        t.StructField("d", t.DecimalType(12, 2)),
        t.StructField("word", t.StringType()),
        t.StructField("other word", t.StringType()),
        t.StructField("flag", t.BooleanType()),
        t.StructField("moment", t.TimestampType()),
        t.StructField("local", t.TimestampNTZType()),
        t.StructField("day", t.DateType()),
        t.StructField("tags", t.ArrayType(t.StringType())),
        t.StructField("raw", t.BinaryType()),
        t.StructField(
            "inner",
            t.StructType([t.StructField("x", t.IntegerType()), t.StructField("Y.z", t.StringType())]),
        ),
    ]
)
WORDS = ("", "x", "y", "ünx", "xy", "abcdefghij", "2026-01-02T00:00:00Z", "🂡")
BIG = 2**53
NUMBERS = (0, 1, 2, 3, 2.5, -1, 0.1)
LONGS = (0, 1, 2, 3, BIG, BIG + 1, BIG + 2, -BIG - 1, 2**63 - 1, -(2**63), 2**62 + 512)
BOUNDS = (0, 1, 2.5, BIG, BIG + 1, BIG + 2, -BIG - 2, float(2**63), -float(2**63), 1e300, 2**62)
MOMENTS = tuple(datetime(2026, 1, day, 12, 30, 15, 123456, UTC) for day in (1, 2, 3))


def quoted(word: str) -> str:
    return "'" + word.replace("'", "''") + "'"


def predicate(chance: random.Random) -> str:
    number, word = chance.choice(NUMBERS), quoted(chance.choice(WORDS))
    name = chance.choice(["a", "c", "f", "d", "inner.x", "nowhere"])
    text = chance.choice(["word", '"other word"', '"inner.Y.z"'])
    sign = chance.choice(["=", "=", "!=", "<", "<=", ">", ">="])
    day = chance.randint(1, 3)
    moment = f"timestamp '2026-01-0{day}T12:30:15.123456Z'"
    return chance.choice(
        [
            f"{name} {sign} {number}",
            f"{name} {sign} {number}",
            f"{name} = {chance.randint(0, 3)}",
            f"b {sign} {chance.choice(BOUNDS)!r}",
            f"{name} between {number} and 2",
            f"{name} not between {number} and 2",
            f"{name} in ({number}, 2, 'x')",
            f"{name} not in ({number}, 2)",
            f"{name} not in ('x', 'y')",
            f"{name} in (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)",
            f"b in ({BIG}, 1)",
            f"b not in ({BIG}, 1)",
            f"{text} {sign} {word}",
            f"{text} = {word}",
            f"{text} in ({word}, 'y', 1)",
            f"{text} not in ({word}, 'y')",
            f"{text} not between 'a' and {quoted('x')}",
            f"{text} {chance.choice(['', 'not '])}starts with {quoted(chance.choice('xyü'))}",
            f"{text} {chance.choice(['', 'not '])}ends with {quoted(chance.choice('xyü'))}",
            f"{text} {chance.choice(['', 'not '])}contains {quoted(chance.choice('xyü'))}",
            f"{text} like 'x_'",
            f"{text} ~ '^x'",
            f"flag {chance.choice(['=', '!=', '<', '>='])} {chance.choice(['true', 'false', '1'])}",
            f"{chance.choice(['moment', 'local', 'word'])} {sign} {moment}",
            f"day {sign} timestamp '2026-01-0{day}T00:00:00Z'",
            f"{chance.choice(['a', 'word', 'moment', 'flag', 'tags', 'raw', 'nowhere', 'b'])} is missing",
            f"{chance.choice(['a', 'word', 'moment', 'flag', 'tags', 'nowhere', 'd'])} is present",
            f"c < {name} + 1",
        ]
    )


def condition(chance: random.Random) -> str:
    def part() -> str:
        return " and ".join(predicate(chance) for _ in range(chance.randint(1, 3)))

    return " or ".join(f"({part()})" for _ in range(chance.choice([1, 1, 1, 2, 3])))


def subscriptions_of(seed: int, count: int = 150) -> dict[str, str]:
    chance = random.Random(seed)  # noqa: S311 - a workload
    found = {f"s{number}": condition(chance) for number in range(count)}
    found["of stocks"] = f"select a, b from stock where {condition(chance)}"
    found["of bonds"] = f"from bond where {condition(chance)}"
    found["all"] = "true"
    return found


def cell(chance: random.Random, *values: Any) -> Any:
    return None if chance.random() < 0.25 else chance.choice(values)


def rows_of(seed: int, count: int = 200) -> list[tuple[Any, ...]]:
    chance = random.Random(seed)  # noqa: S311 - a workload
    rows = []
    for number in range(count):
        moment = cell(chance, *MOMENTS)
        local = cell(chance, *MOMENTS)
        rows.append(
            (
                f"e{number}" if chance.random() < 0.98 else None,
                number if chance.random() < 0.98 else None,
                cell(chance, 0, 1, 2, 3),
                cell(chance, *LONGS),
                cell(
                    chance,
                    0.0,
                    -0.0,
                    1.0,
                    2.5,
                    0.1,
                    float("inf"),
                    *([float("nan")] if chance.random() < 0.1 else []),
                ),
                cell(chance, 0.0, 1.0, 2.5, 0.1),
                cell(chance, Decimal("1.00"), Decimal("2.50"), Decimal("-1"), Decimal("0.10")),
                cell(chance, *WORDS),
                cell(chance, *WORDS),
                cell(chance, True, False),
                moment,
                None if local is None else local.replace(tzinfo=None),
                cell(chance, date(2026, 1, 1), date(2026, 1, 2)),
                cell(chance, [], ["x"]),
                cell(chance, b"x"),
                cell(chance, (1, "x"), (None, "y"), (2, None)),
            )
        )
    return rows


def frame_of(spark: SparkSession, seed: int) -> DataFrame:
    return spark.createDataFrame(rows_of(seed), SCHEMA)


def counted(notes: DataFrame) -> Counter[tuple[Any, ...]]:
    """Count the rows of notifications."""
    return Counter(tuple(row) for row in notes.drop("generation").collect())


def assert_same(events: DataFrame, subscriptions: Any, **asked: Any) -> Counter[tuple[Any, ...]]:
    usual = match(events, subscriptions, **asked)
    joined = match(events, subscriptions, plan="join", **asked)
    assert joined.columns == usual.columns
    assert [one.dataType for one in joined.schema] == [one.dataType for one in usual.schema]
    expected, found = counted(usual), counted(joined)
    assert found == expected
    return found


@pytest.mark.parametrize("seed", range(2))
def test_the_join_has_the_notifications_of_the_usual_plan(spark: SparkSession, seed: int) -> None:
    subscriptions = subscriptions_of(seed)
    found = assert_same(
        frame_of(spark, seed), subscriptions, time="at", stream="stock", keep=["a", "other word"]
    )
    assert len(found) > 1000


def test_values_faults_and_an_index_of_several_shards_are_the_same(
    any_spark: SparkSession, tmp_path: Path
) -> None:
    index = SubscriptionIndex(tmp_path / "index", shards=2)
    for name, text in subscriptions_of(7, 40).items():
        index.subscribe(text, id=name)
    index.subscribe("select a, c + 1 as more from stock where a >= 0", id="selecting")
    index.subscribe("a >= 0", id="early", valid_until=50)
    index.subscribe("a >= 0", id="late", valid_from=50, valid_until=60)
    found = assert_same(frame_of(any_spark, 7), index, time="at", stream="stock", values=True, faults=True)
    assert any(row[-1] is not None for row in found)
    assert {row[0] for row in found} >= {None, "selecting", "early", "late"}


def test_structs_streams_of_their_own_and_times_of_every_type_are_the_same(spark: SparkSession) -> None:
    events = frame_of(spark, 3)
    subscriptions = subscriptions_of(3, 30)
    inside = events.select(
        "event_id",
        functions.when(functions.col("at") % 3 == 0, "stock")
        .when(functions.col("at") % 3 == 1, "bond")
        .alias("s"),
        "moment",
        "local",
        "day",
        functions.when(functions.col("at") % 7 != 0, functions.struct(*events.columns)).alias("event"),
    )
    for time in ("moment", "local", "day"):
        assert_same(inside, subscriptions, time=time, struct="event", stream_column="s")


def test_rows_with_the_same_id_each_have_notifications(spark: SparkSession) -> None:
    events = spark.createDataFrame([("e", 1, 2), ("e", 1, 2)], "event_id string, a int, b int")
    notes = match(events, {"x": "a = 1 or b = 2", "y": "a in (1, 1.0, 2)"}, plan="join")
    assert sorted(row["subscription"] for row in notes.collect()) == ["x", "x", "y", "y"]


def test_texts_that_are_no_utf8_make_no_event(spark: SparkSession) -> None:
    events = spark.sql(
        "select 'bad' as event_id, cast(x'ff' as string) as word, array('x') as tags union all "
        "select 'worse', 'x', array(cast(x'ff' as string)) union all select 'good', 'x', array('x')"
    )
    assert counted(match(events, {"x": "word is present"}, plan="join").select("event_id")) == Counter(
        [("good",), ("worse",)]  # what stands in an array is not looked at
    )
    assert_same(events.withColumn("at", functions.lit(1)), {"x": "word is present"}, time="at")


def test_a_plan_that_sql_decides_has_no_python_in_it(
    spark: SparkSession, capsys: pytest.CaptureFixture[str]
) -> None:
    subscriptions = {
        "x": "a = 1 and b > 2",
        "y": "word starts with 'x' or flag = true",
        "z": "day is missing",
    }
    match(frame_of(spark, 1), subscriptions, plan="join").explain()
    assert "MapInArrow" not in capsys.readouterr().out
    match(frame_of(spark, 1), {**subscriptions, "p": "word ~ 'x+'"}, plan="join").explain()
    assert "MapInArrow" in capsys.readouterr().out


def test_a_stream_is_joined_without_state(any_spark: SparkSession, tmp_path: Path) -> None:
    subscriptions, events = subscriptions_of(5, 40), frame_of(any_spark, 5)
    for part in range(2):
        chosen = events.where(functions.coalesce(functions.col("at"), functions.lit(0)) % 2 == part)
        chosen.coalesce(1).write.mode("append").parquet(str(tmp_path / "events"))
    stream = (
        any_spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "events"))
    )
    notes = match(stream, subscriptions, time="at", stream="stock", plan="join")
    query = (
        notes.writeStream.format("parquet")
        .option("path", str(tmp_path / "notes"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert not (tmp_path / "checkpoint" / "state").exists()
    expected = counted(match(events, subscriptions, time="at", stream="stock"))
    assert counted(any_spark.read.parquet(str(tmp_path / "notes"))) == expected


def test_a_template_and_its_rows_are_joined(spark: SparkSession) -> None:
    rows = spark.createDataFrame([(n, n % 4, n % 3) for n in range(12)], "id int, a int, c int")
    asked = FromTemplate("a = :a and c >= :c", rows, "t{row}")
    events = frame_of(spark, 2).withColumn("at", functions.coalesce("at", functions.lit(0)))
    assert_same(events, asked, time="at")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ({"plan": "merge"}, "there is no plan `merge`; there are: index, join"),
        ({"plan": "join", "payload": "word"}, "reads columns or a struct, and `word` is JSON"),
    ],
)
def test_unsupported_joins_are_refused(spark: SparkSession, asked: Mapping[str, Any], message: str) -> None:
    with pytest.raises(SparkError, match=message):
        match(frame_of(spark, 1), {"x": "a = 1"}, **asked)


def test_columns_that_the_join_does_not_read_are_named(spark: SparkSession) -> None:
    events = frame_of(spark, 1)
    with pytest.raises(SparkError, match="a column `_deleted`"):
        match(events.withColumn("_deleted", functions.lit(True)), {"x": "a = 1"}, plan="join")
    with pytest.raises(SparkError, match=r"`wide` is decimal\(38,2\): cast it"):
        match(
            events.withColumn("wide", functions.lit(1).cast("decimal(38,2)")), {"x": "wide = 1"}, plan="join"
        )
    twice = events.select("event_id", functions.lit(1).alias("inner.x"), "inner")
    with pytest.raises(SparkError, match=r"two columns of the events are `inner\.x`"):
        match(twice, {"x": "inner.x = 1"}, plan="join")


def test_decimals_differ_from_whole_numbers_to_their_last_digit(spark: SparkSession) -> None:
    last = Decimal("0.00000000000000000001")
    values = [last, -last, 1 + last, Decimal(0), Decimal(BIG + 1), None]
    events = spark.createDataFrame(
        [(f"e{place}", 1, value) for place, value in enumerate(values)],
        "event_id string, at int, d decimal(38, 20)",
    )
    asked = {"above": "d > 0", "below": "d < 0", "zero": "d = 0", "one": "d = 1", "big": f"d > {BIG}"}
    found = assert_same(events, asked, time="at")
    assert {(row[0], row[1]) for row in found} >= {("above", "e0"), ("below", "e1"), ("zero", "e3")}


def test_fields_that_differ_only_by_case_are_distinguished(spark: SparkSession) -> None:
    events = spark.sql(
        "select 'e' as event_id, 1 as at, named_struct('x', 1, 'X', 2) as inner,"
        " array(named_struct('y', 'a', 'Y', 'b')) as tags"
    )
    assert (
        len(assert_same(events, {"x": "inner.x = 1", "X": "inner.X = 2", "no": "inner.X = 1"}, time="at"))
        == 2
    )
    assert len(assert_same(events, {"x": "x = 1", "X": "X = 2"}, time="at", struct="inner")) == 2


@pytest.mark.parametrize("is_inside", [False, True])
def test_a_thousand_columns_are_planned(spark: SparkSession, *, is_inside: bool) -> None:
    columns = [functions.lit(float(place)).alias(f"a{place}") for place in range(1000)]
    if is_inside:
        columns = [functions.struct(*columns).alias("s")]
    events = spark.range(1).select(functions.lit("e").alias("event_id"), *columns)
    notes = match(events, {"x": f"{'s.' if is_inside else ''}a999 = 999"}, plan="join")
    assert notes.count() == 1


def test_nothing_may_be_left_to_the_join_or_to_anyone(spark: SparkSession) -> None:
    events = spark.createDataFrame([("e", 1, "xx")], "event_id string, a int, word string")
    assert counted(match(events, {"x": "word ~ 'x+'"}, plan="join").select("event_id")) == Counter([("e",)])
    assert match(events, {"x": "nowhere = 1"}, plan="join").collect() == []
    assert match(events, {"x": "a = 1"}, plan="join", faults=True).count() == 1
