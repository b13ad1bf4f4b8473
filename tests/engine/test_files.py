"""Files published in blocks: the same notifications, faults and counts as one record at a time, to the byte."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from tests.formats.test_blocks import csv_files, json_files, small_blocks
from tests.matching.arrow_tables import tables
from tocsin import Engine
from tocsin.cli.flights import SUBSCRIPTIONS
from tocsin.engine import EventClock
from tocsin.formats import EventFields, EventReader, Format, open_events
from tocsin.formats.notifications import notification_line
from tocsin.matching.encoding.blocks import BlockEvents
from tocsin.model.errors import EventError

FILTERS = {
    "numbers": "a > 1 and a <= 9007199254740993",
    "sum": "select a + 1 as more, b, c from s where a + 1 > 2",
    "text": "b like 't1%' or b ~ 'x' or b = 'ü'",
    "missing": "b is missing and a is present",
    "nested": "a.c > 1 or c.d = 1.5",
    "time": "b >= timestamp '2025-01-01T00:00:00Z'",
    "boolean": "b = true or c = true",
    "stream": "select a from s where a != 3",
    "any": "true",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def published(
    path: Path,
    format: Format | None,
    subscriptions: dict[str, str],
    *,
    blocks: bool,
    fields: EventFields | None = None,
    **options: Any,
) -> tuple[Any, ...]:
    """Return the lines, faults and counts of a file."""
    engine = Engine(clock=EventClock(), out_of_orderness=options.pop("out_of_orderness", 0))
    for stream, tick in options.pop("ticks", {}).items():
        engine.stream(stream, tick=tick)
    for table in options.pop("tables", ()):
        engine.table(table, key="a")
    later = options.pop("later", {})
    for name, text in subscriptions.items():
        engine.subscribe(text, id=name)
    reader = EventReader(fields, stream="s", clock=lambda: 7, ticks=engine.ticks)
    source = open_events(path, reader, format=format)
    faults: list[str] = []
    lines: list[bytes] = []
    failure = ""
    try:
        for batch in engine.publish_batches(
            source.blocks() if blocks else iter(source),
            on_error=lambda fault: faults.append(str(fault)),
            batch_size=50,
            **options,
        ):
            lines += batch.json_lines() if blocks else map(notification_line, batch)
    except Exception as fault:  # noqa: BLE001 - compared
        failure = str(fault)
    lines += map(notification_line, engine.flush())
    for name, text in later.items():  # which meet the events that are kept
        lines += map(notification_line, engine.subscribe(text, id=name).notifications)
    stats = engine.stats()
    counts: tuple[int, ...] = stats.published, stats.refused, stats.notifications, stats.late
    counts += reader.read, reader.refused, stats.kept_events, stats.sequences.waiting, stats.views.rows
    return lines, sorted(faults), counts, reader.opaque, failure


@given(json_files(), st.sampled_from([200, 1 << 20]))
@settings(max_examples=100)
def test_json_lines_are_published_alike(folder: Path, raw: bytes, size: int) -> None:
    path = folder / "events.jsonl"
    path.write_bytes(raw)
    with small_blocks(size):
        found = published(path, Format.JSONL, FILTERS, blocks=True)
    assert found == published(path, Format.JSONL, FILTERS, blocks=False)


@given(csv_files(), st.sampled_from([200, 1 << 20]))
@settings(max_examples=100)
def test_csv_is_published_alike(folder: Path, raw: bytes, size: int) -> None:
    path = folder / "events.csv"
    path.write_bytes(raw)
    with small_blocks(size):
        found = published(path, Format.CSV, FILTERS, blocks=True)
    assert found == published(path, Format.CSV, FILTERS, blocks=False)


@given(tables())
@settings(max_examples=100)
def test_tables_are_published_alike(folder: Path, table: Any) -> None:
    path = folder / "events.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write(table)
    found = published(path, Format.ARROW, FILTERS, blocks=True)
    assert found == published(path, Format.ARROW, FILTERS, blocks=False)


RECORDS = [
    {"a": i % 5, "n": f"id-{i}", "t": i, "u": f"2026-01-01T00:00:{i:02}Z", "f": i + 0.5 if i % 3 else i}
    for i in range(60)
]


@pytest.mark.parametrize("format", [Format.JSONL, Format.CSV, Format.PARQUET])
@pytest.mark.parametrize(
    "fields",
    [
        EventFields(id="n"),
        EventFields(id="t", time="t"),
        EventFields(time="u"),
        EventFields(time="u", start="u"),
        EventFields(time="f"),
        EventFields(time="n"),
        EventFields(time="nothing"),
        EventFields(time="t", start="a"),
        EventFields(time="a", start="t"),
        EventFields(start="t"),
        EventFields(id="f", stream="n"),
    ],
)
def test_ids_and_times_come_from_their_fields(folder: Path, format: Format, fields: EventFields) -> None:
    path = write(folder / f"fields.{format}", format, RECORDS)
    subscriptions = {**FILTERS, "pair": "from s x where x.a = 1 next s y on y.a = x.a within 100 ticks"}
    found = published(path, format, subscriptions, blocks=True, fields=fields)
    assert found == published(path, format, subscriptions, blocks=False, fields=fields)


@pytest.mark.parametrize("format", [Format.JSONL, Format.CSV, Format.PARQUET])
@pytest.mark.parametrize("options", [{"top": 2, "weights": {"a": 2.0}}, {"tables": ["s"]}])
def test_tables_and_rankings_take_the_same_files(
    folder: Path, format: Format, options: dict[str, Any]
) -> None:
    path = write(folder / f"ranked.{format}", format, RECORDS)
    views = {"largest": "select max(t) from table s where f > 3"} if "tables" in options else {}
    fields = EventFields(time="t")
    found = published(path, format, FILTERS | views, blocks=True, fields=fields, **options)
    assert found == published(path, format, FILTERS | views, blocks=False, fields=fields, **options)


STREAMS = {
    **FILTERS,
    "from s": "from s where a > 1",
    "from w": "select a, x from w where x > 1",
    "next": "from s p where p.a > 0 next w q on q.a = p.a select q.x as x, p.t as t",
    "within": "from w p next w q on q.a = p.a where q.x > p.x within 9 ticks",
    "published": "from s p next s q on q.a = p.a select q.a as a, q.x as x publish as out",
    "of published": "from out where a > 1",
    "largest": "select max(x) from table w where a between 0 and 3",
    "rows": "select count(*) from table s where x > 1",
    "joined": "select sum(l.x) from table s l join table w r on l.k = r.k where r.a > 0",
}


@st.composite
def stream_files(draw: st.DrawFn) -> tuple[Format, list[dict[str, Any]]]:
    """Records of several streams, most of them in order and plain, and some not."""
    count = draw(st.integers(0, 60))
    is_tame = draw(st.booleans())
    palettes: list[list[Any]] = [["s", "w"], ["s", "w", "other", "s", "w"], ["w"], ["s", "", "w"], [1, 2]]
    names = draw(st.sampled_from(palettes))
    records = []
    time = 0
    for number in range(count):
        time += draw(st.integers(0 if is_tame else -4, 3))
        record: dict[str, Any] = {
            "of": draw(st.sampled_from(names)),
            "a": draw(st.integers(0, 4)),
            "k": number % 3,
            "x": draw(st.sampled_from([0.5, 1.5, 2.5])),
            "t": time,
            "until": draw(st.sampled_from([None, time + 2, time + 1000])),
        }
        if not is_tame and draw(st.integers(0, 30)) == 0:
            name = draw(st.sampled_from(["of", "a", "t", "x", "until"]))
            record[name] = draw(st.sampled_from([None, "x", True, 2**53 + 1]))
        records.append(record)
    format = draw(st.sampled_from([Format.JSONL, Format.JSONL, Format.CSV, Format.PARQUET]))
    if format is not Format.JSONL:
        for name in ("of", "a", "t", "x", "until"):
            kinds = {type(record[name]) for record in records} - {type(None)}
            if len(kinds) > 1 and format is Format.PARQUET:
                format = Format.JSONL
    return format, records


@given(
    stream_files(),
    st.sets(st.sampled_from(sorted(STREAMS)), min_size=1, max_size=6),
    st.fixed_dictionaries(
        {
            "tables": st.sampled_from([["s", "w"]] * 2),
            "out_of_orderness": st.sampled_from([0, 0, 2, 5, 2**62]),
            "ticks": st.sampled_from([{}, {}, {"w": 3}]),
            "later": st.sampled_from([{}, {"kept": "a > 2"}]),
            "top": st.sampled_from([None, None, 1, 3]),
        }
    ),
    st.sampled_from([None, "of"]),
    st.sampled_from([None, "until"]),
    st.sampled_from([300, 1 << 20]),
)
@settings(max_examples=100, phases=[Phase.generate])
def test_several_streams_of_a_file_are_published_alike(
    folder: Path,
    file: tuple[Format, list[dict[str, Any]]],
    subscribed: set[str],
    options: dict[str, Any],
    stream: str | None,
    until: str | None,
    size: int,
) -> None:
    format, records = file
    path = folder / f"streams.{format}"
    if not records:
        return
    write(path, format, records)
    if options["ticks"]:
        subscribed = (subscribed | {"any"}) - {"next"}  # it reads streams that must count alike
    subscriptions = {name: STREAMS[name] for name in sorted(subscribed)}
    if subscribed.isdisjoint({"largest", "rows", "joined"}):
        options = {**options, "tables": []}
    fields = EventFields(time="t", stream=stream, valid_until=until)
    with small_blocks(size):
        found = published(path, format, subscriptions, blocks=True, fields=fields, **options)
        rows = published(path, format, subscriptions, blocks=False, fields=fields, **options)
    assert found == rows


def write(path: Path, format: Format, records: list[dict[str, Any]]) -> Path:
    if format is Format.PARQUET:
        pq.write_table(pa.Table.from_pylist(records), path)
    elif format is Format.JSONL:
        path.write_text("".join(json.dumps(record) + "\n" for record in records))
    else:
        rows: list[Iterable[Any]] = [records[0].keys(), *(record.values() for record in records)]
        path.write_text(
            "".join(",".join("" if one is None else str(one) for one in row) + "\n" for row in rows)
        )
    return path


def test_a_block_is_not_read_by_the_row(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The flights' filters read columns alone; a record is read for each event with a notification, once."""
    records = [
        {
            "dep_delay": i,
            "arr_delay": i % 7,
            "distance": 400,
            "air_time": 60,
            "origin": "LGA",
            "dest": "SFO",
            "hour": 21,
        }
        for i in range(1000)
    ]
    path = write(folder / "flights.jsonl", Format.JSONL, records)
    read: list[int] = []
    original = BlockEvents.row

    def row(self: BlockEvents, position: int) -> Any:
        read.append(position)
        return original(self, position)

    monkeypatch.setattr(BlockEvents, "row", row)
    engine = Engine()
    for name, text in SUBSCRIPTIONS.items():
        engine.subscribe(text, id=name)
    notified = [note for batch in engine.publish_batches(open_events(path).blocks()) for note in batch]
    assert len(notified) > 900
    assert len(read) == len({note.event_ids[0] for note in notified}) < 1000


def test_matching_a_file_imports_neither_pandas_nor_the_compiler(folder: Path) -> None:
    for format in (Format.JSONL, Format.CSV, Format.PARQUET):
        path = write(folder / f"light.{format}", format, RECORDS)
        code = (
            "import sys; from pathlib import Path; from tocsin import Engine; from tocsin.formats import EventReader, open_events;"
            "from tocsin.formats.notifications import ParquetNotifications; engine = Engine();"
            "engine.subscribe('select a, b from s where a > 1', id='x');"
            f"found = list(engine.publish_batches(open_events({str(path)!r}, EventReader(stream='s')).blocks()));"
            "lines = [l for b in found for l in b.json_lines()];"
            f"writer = ParquetNotifications(Path({str(folder / 'out.parquet')!r}));"
            "[writer.write_table(b.with_events()) for b in found];"
            "[writer.write(note) for b in found for note in b]; writer.__exit__();"
            "print(len(lines), 'pandas' in sys.modules, 'numba' in sys.modules)"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert done.stdout.split() == ["36", "False", "False"]


def test_a_path_and_an_open_file_are_no_events(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text('{"a": 1}\n')
    for call in (Engine().match, Engine().publish_many):
        with pytest.raises(
            EventError, match=r"events are expected, not a path; .*`open_events\(path\)` for a file"
        ):
            call(path)
        with path.open() as file, pytest.raises(EventError, match="events are expected, not an open file"):
            call(file)
    assert len(Engine().match(open_events(path))) == 1
