"""A worker's matches of record batches, without a session, equal the engine's matches of the same rows."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.arrow_tables import tables
from tests.strategies import conditions, predicates
from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.errors import SparkError
from tocsin.formats import Fault
from tocsin.index import SubscriptionIndex
from tocsin.model import Condition, Filter
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.match_worker import MatchJob, find_dead_letters, match_batches, route_batches

asked = st.lists(st.one_of(predicates(), conditions(max_leaves=3)), min_size=1, max_size=6)
streams = st.sampled_from([None, "s", "t"])
TIME = 100


def matched(job: MatchJob, batch: Any, *, shards: int) -> tuple[set[tuple[str, int]], dict[int, str]]:
    """The pairs of subscription and event that a worker finds, and its dead letters."""
    if shards == 1:
        found = list(match_batches(job, [batch]))
    else:
        found = [
            one for sent in route_batches(job, [batch]) for one in match_batches(job, [sent], is_routed=True)
        ]
    rows = [row for one in found for row in one.to_pylist()]
    notes = [(row["subscription"], row["event_id"]) for row in rows if row["reason"] is None]
    assert len(notes) == len(set(notes))
    assert all(row["time"] == TIME and row["generation"] == job.generation for row in rows)
    letters = {row["event_id"]: row["reason"] for row in rows if row["reason"] is not None}
    alone = [row for one in find_dead_letters(job, [batch]) for row in one.to_pylist()]
    assert {row["event_id"]: row["reason"] for row in alone} == letters
    return set(notes), letters


def subscribed(folder: str, asked: list[Condition], shards: int) -> tuple[Engine, int]:
    index, engine = SubscriptionIndex(folder, shards=shards), Engine(matcher="oracle", clock=EventClock(0))
    wanted: dict[str, Any] = {f"q{number}": Filter(condition) for number, condition in enumerate(asked)}
    wanted["of-s"] = Filter(asked[0], "s")
    index.apply(wanted)
    index.subscribe(Filter(asked[0]), id="over", valid_from=TIME + 1)
    index.subscribe(Filter(asked[0]), id="on", valid_from=TIME, valid_until=TIME + 1)
    for name, query in wanted.items():
        engine.subscribe(query, id=name)
    engine.subscribe(Filter(asked[0]), id="over", valid_from=TIME + 1)
    engine.subscribe(Filter(asked[0]), id="on", valid_from=TIME, valid_until=TIME + 1)
    return engine, index.publish()


def expected(
    engine: Engine, rows: list[Mapping[str, Any] | Fault], stream: str | None
) -> tuple[set[tuple[str, int]], set[int]]:
    """Return the engine's notifications and faulty rows, if it reads rows one by one."""
    notes: set[tuple[str, int]] = set()
    faults = set()
    for place, row in enumerate(rows):
        errors: list[Fault] = []
        for note in engine.publish_many(iter([row]), stream=stream, on_error=errors.append):
            notes.add((note.subscription, place))
        if errors:
            faults.add(place)
    return notes, faults


def _sendable(table: Any) -> Any:
    """The table without a type that Arrow does not take rows of, and that Spark never sends."""
    views = [
        name for name, kind in zip(table.schema.names, table.schema.types, strict=True) if "view" in str(kind)
    ]
    return table.drop_columns(views)


@settings(max_examples=40)
@given(table=tables(), asked=asked, stream=streams, shards=st.sampled_from([1, 3]), nested=st.booleans())
def test_columns_and_structs_give_the_engines_notifications(
    table: Any, asked: list[Condition], stream: str | None, shards: int, nested: bool
) -> None:
    whole = pa.Table.from_batches([table]) if isinstance(table, pa.RecordBatch) else table
    batches = _sendable(whole).combine_chunks().to_batches()
    if not batches or not batches[0].num_columns:
        return
    (batch,) = batches
    columns = {"event_id": np.arange(batch.num_rows), "time": np.full(batch.num_rows, TIME)}
    if nested:
        inner = pa.StructArray.from_arrays(batch.columns, fields=list(batch.schema))
        sent = pa.RecordBatch.from_arrays(
            [*map(pa.array, columns.values()), inner], names=[*columns, "event"]
        )
        layout = EventLayout("event_id", "time", struct="event", stream=stream)
    else:
        sent = pa.RecordBatch.from_arrays(
            [*map(pa.array, columns.values()), *batch.columns], names=[*columns, *batch.schema.names]
        )
        layout = EventLayout("event_id", "time", columns=tuple(batch.schema.names), stream=stream)
    with TemporaryDirectory() as folder:
        engine, generation = subscribed(f"{folder}/index", asked, shards)
        job = MatchJob(f"{folder}/index", generation, True, layout, faults=True, time_type=pa.int64())
        notes, letters = matched(job, sent, shards=shards)
        found = engine.match(batch, stream=stream)
        named = {
            (name, place) for place, names in enumerate(found) for name in names if name not in ("on", "over")
        }
    assert {note for note in notes if note[0] not in ("on", "over")} == named
    assert {("on", place) for _, place in filter(lambda note: note[0] == "q0", notes)} <= notes
    assert not any(name == "over" for name, _ in notes)
    assert set(letters) == {fault.line - 1 for fault in found.faults}


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.sampled_from([0.5, 2.0, 2**60, "a", "x", "2013-01-01T00:00:00Z"]),
)
names = st.sampled_from(["a", "b", "c", "a.b", "$stream", "$delete", "_deleted", "specversion", "é"])
records = st.one_of(
    st.dictionaries(
        names, st.one_of(values, st.dictionaries(names, values, max_size=2), st.just([1])), max_size=4
    ),
    st.just({"specversion": "1.0", "id": "1", "source": "x", "type": "t", "data": {"a": 1}}),
)
payloads = st.one_of(
    records.map(json.dumps), st.sampled_from(["", "{", "[1]", "null", '{"a": 1e999}', '"x"', "[]"])
)


@settings(max_examples=40)
@given(
    payloads=st.lists(payloads, min_size=1, max_size=5),
    asked=asked,
    stream=streams,
    shards=st.sampled_from([1, 3]),
    kind=st.sampled_from([pa.string(), pa.binary()]),
)
def test_payloads_give_the_engines_notifications(
    payloads: list[str], asked: list[Condition], stream: str | None, shards: int, kind: Any
) -> None:
    count = len(payloads)
    sent = pa.RecordBatch.from_arrays(
        [
            pa.array(range(count)),
            pa.array([TIME] * count),
            pa.array([p.encode() for p in payloads]).cast(kind),
        ],
        names=["event_id", "time", "body"],
    )
    rows: list[Any] = []
    for payload in payloads:
        try:
            rows.append(msgspec.json.decode(payload))
        except msgspec.MsgspecError:
            rows.append(Fault("event", 0, "not JSON"))
    with TemporaryDirectory() as folder:
        engine, generation = subscribed(f"{folder}/index", asked, shards)
        layout = EventLayout("event_id", "time", payload="body", stream=stream)
        job = MatchJob(f"{folder}/index", generation, True, layout, faults=True, time_type=pa.int64())
        notes, letters = matched(job, sent, shards=shards)
        wanted, faults = expected(engine, rows, stream)
    timed = ("on", "over")  # the engine gives these records the time of the clock
    assert {note for note in notes if note[0] not in timed} == {
        note for note in wanted if note[0] not in timed
    }
    assert set(letters) == faults


def test_each_row_may_be_of_its_own_stream_and_time(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("select a, a * 2 as twice from s where a > 0", id="s")
    index.subscribe("a > 0", id="any", valid_until=20)
    generation = index.publish()
    batch = pa.RecordBatch.from_pydict(
        {
            "id": ["e1", "e2", None, "e4", "e5"],
            "of": ["s", "t", "s", None, "s"],
            "at": [10, 20, 10, 19, None],
            "a": [1, 2, 3, 4, 5],
        }
    )
    layout = EventLayout("id", "at", columns=("a",), stream_column="of")
    job = MatchJob(str(tmp_path / "index"), generation, True, layout, ("of",), True, True, pa.int64())
    (rows,) = [pa.Table.from_batches(list(match_batches(job, [batch]))).to_pylist()]
    notes = [(row["subscription"], row["event_id"], row["time"], row["values"], row["of"]) for row in rows]
    assert sorted(notes, key=str) == sorted(
        [
            ("s", "e1", 10, '{"a":1,"twice":2}', "s"),
            ("any", "e1", 10, None, "s"),
            ("any", "e4", 19, None, None),
            (None, None, 10, None, "s"),
            (None, "e5", 0, None, "s"),
        ],
        key=str,
    )
    assert [row["reason"] for row in rows if row["reason"]] == [
        "it has no event id",
        "the record has no `at`, which should hold its time",
    ]


def test_a_time_inside_the_payload_decides(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("true", id="x", valid_until="2026-01-01T00:00:00Z")
    generation = index.publish()
    bodies = [
        '{"meta": {"at": "2025-12-31T23:59:59Z"}}',
        '{"meta": {"at": "2026-01-01T00:00:00Z"}}',
        '{"a": 1}',
        '{"meta": {"at": "soon"}}',
    ]
    batch = pa.RecordBatch.from_pydict({"id": range(4), "now": [0] * 4, "body": bodies})
    layout = EventLayout("id", "now", is_clock=True, time_inside="meta.at", payload="body")
    job = MatchJob(str(tmp_path / "index"), generation, True, layout, faults=True, time_type=pa.int64())
    rows = [row for one in match_batches(job, [batch]) for row in one.to_pylist()]
    assert [(row["subscription"], row["event_id"]) for row in rows] == [("x", 0), (None, 2), (None, 3)]
    assert rows[0]["time"] == 1_767_225_599_000_000
    assert "no `meta.at`" in rows[1]["reason"]
    assert "`meta.at`" in rows[2]["reason"]


def test_another_index_in_the_same_folder_is_reported(tmp_path: Path) -> None:
    batch = pa.RecordBatch.from_pydict({"id": [1], "at": [0], "a": [1]})
    job = MatchJob(
        str(tmp_path / "index"), 1, True, EventLayout("id", "at", columns=("a",)), time_type=pa.int64()
    )
    for shards in (1, 3):
        index = SubscriptionIndex(tmp_path / "index", shards=shards)
        index.subscribe("a = 1", id=f"of {shards}")
        index.publish()
        plan, other = (match_batches, route_batches) if shards == 1 else (route_batches, match_batches)
        assert sum(one.num_rows for one in plan(job, [batch])) == 1
        with pytest.raises(SparkError, match="restart the stream"):
            list(other(job, [batch]))
        shutil.rmtree(tmp_path / "index")


def test_one_row_that_cannot_be_read_spoils_no_other(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")
    generation = index.publish()
    half = pa.array([b'{"a": "\xff"}', b'{"a": 1}', b"{oops", b'{"a": 1}'])
    streams = pa.array([b"s", b"\xff", b"s", None])
    for text in (pa.string(), pa.large_string()):
        batch = pa.RecordBatch.from_pydict(
            {
                "id": [1, 2, None, 4],
                "of": pa.Array.from_buffers(text, 4, streams.cast(_bytes_of(text)).buffers()),
                "at": pa.array([0, 0, 0, 2], pa.int32()).cast(pa.date32()),
                "body": pa.Array.from_buffers(text, 4, half.cast(_bytes_of(text)).buffers()),
            }
        )
        layout = EventLayout("id", "at", payload="body", stream_column="of")
        job = MatchJob(str(tmp_path / "index"), generation, True, layout, faults=True, time_type=pa.int64())
        rows = [row for one in match_batches(job, [batch]) for row in one.to_pylist()]
        assert [(row["subscription"], row["event_id"], row["time"]) for row in rows] == [
            ("x", 4, 2 * 86_400_000_000),
            (None, 1, 0),
            (None, 2, 0),
            (None, None, 0),
        ]
        reasons = [row["reason"] for row in rows[1:]]
        assert [reason[:8] for reason in reasons] == ["not JSON", "the name", "not JSON"]


def _bytes_of(text: Any) -> Any:
    return pa.large_binary() if pa.types.is_large_string(text) else pa.binary()


def test_a_null_struct_is_no_event_and_a_day_may_be_too_far_away(tmp_path: Path) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("true", id="x")
    generation = index.publish()
    batch = pa.RecordBatch.from_pydict(
        {
            "id": [1, 2, 3],
            "at": pa.array([0, 0, 2**31 - 1], pa.int32()).cast(pa.date32()),
            "event": pa.array([{"a": 1}, None, {"a": 1}]),
        }
    )
    layout = EventLayout("id", "at", struct="event")
    job = MatchJob(str(tmp_path / "index"), generation, True, layout, faults=True, time_type=pa.int64())
    rows = [row for one in match_batches(job, [batch]) for row in one.to_pylist()]
    assert [(row["event_id"], row["reason"]) for row in rows] == [
        (1, None),
        (2, "`event` is null, and there is no event"),
        (3, "its `at` is too far away to be counted in microseconds"),
    ]
