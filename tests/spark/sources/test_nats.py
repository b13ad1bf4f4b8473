"""JetStream as a Spark source: nothing lost and nothing twice, over stops, gaps, purges and replays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from tocsin.model.errors import SparkError
from tocsin.spark.data_sources import register
from tocsin.spark.sinks import committed_batches
from tocsin.spark.sources.nats import NatsSource, _StreamReader

from .conftest import Server, Stream

EVERYTHING = ReadAllAvailable()


class Query:
    """A checkpointed query from a stream into an Arrow sink, run until it has read all present messages."""

    def __init__(self, spark: SparkSession, stream: Stream, root: Path) -> None:
        self.spark = spark
        self.stream = stream
        self.checkpoint = root / "checkpoint"
        self.folder = root / "sink"

    def run(self, **options: object) -> None:
        source = self.spark.readStream.format("nats").options(**given(self.stream, **options)).load()
        writer = source.writeStream.format("tocsin-arrow").trigger(availableNow=True)
        writer.option("checkpointLocation", str(self.checkpoint)).start(str(self.folder)).awaitTermination()

    def forget_commit(self, batch: int) -> None:
        """Bring the checkpoint to where a crash in this batch would have left it, the sink included."""
        for path in (self.checkpoint / "commits").glob(f"*{batch}*"):
            path.unlink()
        (self.folder / "commits" / f"{batch:020}.json").unlink()

    def bodies(self) -> list[list[str]]:
        return [
            [p.decode() for p in table["payload"].to_pylist()] for _, table in committed_batches(self.folder)
        ]


def given(stream: Stream, **options: object) -> dict[str, str]:
    named = {"servers": stream.server.url, "stream": stream.name, **options}
    return {name: str(value) for name, value in named.items()}


@pytest.fixture
def query(spark: SparkSession, stream: Stream, tmp_path: Path) -> Query:
    register(spark)
    return Query(spark, stream, tmp_path)


@pytest.fixture
def reader(stream: Stream) -> Iterator[_StreamReader]:
    reader = reader_of(stream)
    yield reader
    reader.stop()


def reader_of(stream: Stream, **options: object) -> _StreamReader:
    return NatsSource(given(stream, **options)).streamReader(None)  # type: ignore[arg-type]


def texts(*numbers: int) -> list[str]:
    return [str(number) for number in numbers]


def test_stopped_and_started_again(stream: Stream, query: Query) -> None:
    stream.publish(*range(3))
    query.run()
    assert query.bodies() == [texts(0, 1, 2)]
    query.run()
    stream.publish(*range(3, 5))
    query.run()
    assert query.bodies() == [texts(0, 1, 2), texts(3, 4)]
    assert stream.consumers() == 0


def test_a_replayed_batch_is_the_same_batch(stream: Stream, query: Query) -> None:
    stream.publish(*range(3))
    query.run()
    stream.publish("later")
    query.forget_commit(0)
    query.run()
    assert query.bodies() == [texts(0, 1, 2), ["later"]]


def test_the_first_batch_of_a_query_that_started_at_the_end_is_replayed_too(stream: Stream) -> None:
    stream.publish("before")
    reader = reader_of(stream, startingSequence="latest")
    start = reader.initialOffset()
    stream.publish(*range(3))
    end = reader.latestOffset(start, EVERYTHING)
    stream.publish("after")
    again = reader.initialOffset()  # Spark keeps no start of a first batch: it asks again
    assert again != start
    assert [(r.first, r.end) for r in reader.partitions(again, end)] == [(2, 5)]  # type: ignore[attr-defined]
    reader.stop()


def test_batches_of_limited_size(stream: Stream, query: Query) -> None:
    stream.publish(*range(10))
    stream.delete(2, 3)
    query.run(maxMessagesPerBatch=4)
    assert query.bodies() == [texts(0, 3), texts(4, 5, 6, 7), texts(8, 9)]


def test_partitions_share_the_work(stream: Stream, query: Query) -> None:
    stream.publish(*range(3000))
    query.run(partitions=3)
    assert query.bodies() == [texts(*range(3000))]
    assert len(list((query.folder / "parts").iterdir())) == 3


def test_a_subject_among_many(stream: Stream, query: Query) -> None:
    for round_ in range(3):
        stream.publish(*range(5), to="noise")
        stream.publish(round_, to="signal.one")
        stream.publish(round_ + 10, to="signal.two")
    query.run(subject=f"{stream.name}.signal.*", maxMessagesPerBatch=2)
    assert query.bodies() == [texts(0, 10), texts(1, 11), texts(2, 12)]
    stream.publish("x", to="noise")
    query.run(subject=f"{stream.name}.signal.*")
    assert len(query.bodies()) == 3


def test_messages_lost_while_the_query_was_down(stream: Stream, query: Query) -> None:
    stream.publish(*range(3))
    query.run()
    stream.publish(*range(3, 9))
    stream.purge(seq=7)
    with pytest.raises(
        PySparkException, match="no longer holds messages 4 to 6, which were still to be read"
    ):
        query.run()
    query.run(failOnDataLoss=False)
    assert query.bodies() == [texts(0, 1, 2), texts(6, 7, 8)]


def test_a_purge_of_messages_already_read_is_no_loss(stream: Stream, query: Query) -> None:
    stream.publish(*range(3))
    query.run()
    stream.purge()
    query.run()
    stream.publish(3)
    query.run()
    assert query.bodies() == [texts(0, 1, 2), texts(3)]


def test_batch_reads_the_present_messages(spark: SparkSession, stream: Stream) -> None:
    register(spark)
    options = given(stream)
    assert spark.read.format("nats").options(**options).load().count() == 0
    stream.publish("x", headers={"kind": "greeting"})
    stream.publish(*range(4))
    read = spark.read.format("nats").options(**options).load()
    assert read.schema.simpleString() == (
        "struct<sequence:bigint,subject:string,time:timestamp,headers:map<string,string>,payload:binary>"
    )
    first, *_, last = read.orderBy("sequence").collect()
    assert (first.sequence, first.subject, bytes(first.payload)) == (1, f"{stream.name}.a", b"x")
    assert (first.headers, last.headers) == ({"kind": "greeting"}, None)
    assert first.time <= last.time
    later = spark.read.format("nats").options(**options, startingSequence="3").load()
    assert sorted(row.sequence for row in later.collect()) == [3, 4, 5]


def test_nothing_new_is_no_batch(stream: Stream, reader: _StreamReader) -> None:
    start = reader.initialOffset()
    assert reader.latestOffset(start, EVERYTHING) == start
    assert reader.partitions(start, start) == []
    stream.publish(1)
    assert reader.latestOffset(start, EVERYTHING) == {"from": 1, "to": 2}
    assert reader.reportLatestOffset() == {"from": 2, "to": 2}
    reader.prepareForTriggerAvailableNow()
    stream.publish(2)
    assert reader.latestOffset(start, EVERYTHING) == {"from": 1, "to": 2}


def test_other_subjects_are_noted_only_now_and_then(stream: Stream, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tocsin.spark.sources.nats._STRIDE", 8)
    reader = reader_of(stream, subject=f"{stream.name}.signal")
    start = reader.initialOffset()
    stream.publish(*range(5))
    assert reader.latestOffset(start, EVERYTHING) == start
    stream.purge()  # what was passed over may leave
    assert reader.latestOffset(start, EVERYTHING) == start
    stream.publish(*range(5))
    assert reader.latestOffset(start, EVERYTHING) == {"from": 6, "to": 11}
    stream.publish(1, to="signal")
    assert reader.latestOffset({"from": 6, "to": 11}, EVERYTHING) == {"from": 11, "to": 12}
    reader.stop()


def test_a_limit_counts_messages_not_numbers(stream: Stream) -> None:
    for _ in range(10):
        stream.publish(*range(30))
        stream.publish(*range(3), to="signal")
    reader = reader_of(stream, subject=f"{stream.name}.signal, {stream.name}.none")
    start = reader.initialOffset()
    seen = []
    while (end := reader.latestOffset(start, ReadMaxRows(10))) != start:
        seen.append(sum(b.num_rows for part in reader.partitions(start, end) for b in reader.read(part)))
        start = end
    assert sum(seen) == 30
    assert max(seen) <= 10
    assert len(seen) <= 4
    reader.stop()


def test_a_recreated_stream_is_noticed(stream: Stream, reader: _StreamReader) -> None:
    stream.publish(*range(5))
    stream.do(lambda js: js.delete_stream(stream.name))
    anew = Stream(stream.server, stream.name)
    anew.publish("new")
    with pytest.raises(
        SparkError, match=r"ends before message 6, where the checkpoint stands: it was recreated"
    ):
        reader.latestOffset({"from": 1, "to": 6}, EVERYTHING)
    lenient = reader_of(stream, failOnDataLoss=False)
    assert lenient.latestOffset({"from": 1, "to": 6}, EVERYTHING) == {"from": 1, "to": 2}
    lenient.stop()


def test_a_server_that_was_away_for_a_while(tmp_path: Path) -> None:
    server = Server(tmp_path / "nats")
    try:
        stream = Stream(server, "back")
        reader = reader_of(stream)
        start = reader.initialOffset()
        stream.publish(1)
        server.stop()
        server.start()
        assert reader.latestOffset(start, EVERYTHING) == {"from": 1, "to": 2}
        server.stop()
        with pytest.raises(SparkError, match=f"stream `back` at {server.url}"):
            reader.latestOffset(start, EVERYTHING)
        reader.stop()
    finally:
        server.stop()


def test_secrets_appear_neither_in_plans_nor_in_progress(spark: SparkSession, tmp_path: Path) -> None:
    register(spark)
    server = Server(tmp_path / "nats", "--user", "ann", "--pass", "s3cret")
    try:
        options = {"servers": server.url, "stream": "any", "user": "ann", "password": "s3cret"}
        source = spark.readStream.format("nats").options(**options).load()
        plan = source._jdf.queryExecution().toString()
        started = source.writeStream.format("noop").trigger(availableNow=True)
        with pytest.raises(PySparkException, match="stream not found") as caught:
            started.option("checkpointLocation", str(tmp_path / "c")).start().awaitTermination()
        logged = "".join(
            p.read_text() for p in (tmp_path / "c").rglob("*") if p.is_file() and p.suffix != ".crc"
        )
        assert "s3cret" not in plan + str(caught.value) + logged
    finally:
        server.stop()


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"stream": ""}, "the option `stream` must name a JetStream stream"),
        ({"sream": "s"}, "there is no option `sream`; did you mean `stream`?"),
        (
            {"startingSequence": "newest"},
            "`startingSequence` is `earliest`, `latest` or a number from 1 on, not `newest`",
        ),
        ({"partitions": "0"}, "`partitions` is a number from 1 on, not `0`"),
        ({"maxMessagesPerBatch": "many"}, "`maxMessagesPerBatch` is a number from 1 on, not `many`"),
        ({"failOnDataLoss": "no"}, "`failOnDataLoss` is true or false, not `no`"),
        ({"servers": "nats://host:port"}, "`servers` are addresses like nats://host:4222"),
        ({"timeout": "soon"}, "`timeout` is in seconds"),
    ],
)
def test_options_are_checked(options: dict[str, str], fault: str) -> None:
    with pytest.raises(SparkError) as caught:
        NatsSource({"stream": "s", **options}).streamReader(None)  # type: ignore[arg-type]
    assert fault in str(caught.value)
