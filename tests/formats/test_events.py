from __future__ import annotations

import gzip
import pickle
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.formats import EventFields, EventReader, Fault, Format, format_of, open_events
from tocsin.formats.arrow_rows import arrow_rows
from tocsin.formats.event_blocks import EventBlock
from tocsin.formats.subscription_files import UnreadableEntryError
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.model.values import Opaque


def read(path: Path, text: str | bytes, reader: EventReader | None = None) -> list[Event | Fault]:
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return list(open_events(path, reader))


def attributes(found: list[Event | Fault]) -> list[object]:
    return [dict(one.attributes) if isinstance(one, Event) else (one.line, one.reason) for one in found]


@pytest.mark.parametrize(
    ("name", "format"),
    [
        ("events.jsonl", Format.JSONL),
        ("events.ndjson.gz", Format.JSONL),
        ("a.b.csv.zst", Format.CSV),
        ("EVENTS.PARQUET", Format.PARQUET),
        ("events.json", Format.JSON),
        ("events.arrow", Format.ARROW),
        ("events", Format.JSONL),
    ],
)
def test_a_files_name_says_its_format(name: str, format: Format) -> None:
    assert format_of(Path(name)) is format


def test_csv_fields_are_typed_by_how_they_are_written(tmp_path: Path) -> None:
    found = read(
        tmp_path / "e.csv",
        '\ufeffa,b,c,d,e\n1,-2.5,true,007,\n9007199254740993,1e3,FALSE,+1,"x,\ny"\n1,2\n\n0,0.0,nan,-,1_000\n',
    )
    assert attributes(found) == [
        {"a": 1, "b": -2.5, "c": True, "d": "007"},
        {"a": 9007199254740993, "b": 1000.0, "c": False, "d": "+1", "e": "x,\ny"},
        (5, "2 fields, but the header names 5"),
        {"a": 0, "b": 0.0, "c": "nan", "d": "-", "e": "1_000"},
    ]


def test_csv_with_a_bad_header_or_bad_bytes(tmp_path: Path) -> None:
    with pytest.raises(EventError, match="two columns are called `a`"):
        read(tmp_path / "e.csv", "a,a\n1,2\n")
    assert read(tmp_path / "e.csv", "") == []
    found = read(tmp_path / "e.csv", b"a\nok\n\xff\nfine\n")
    assert attributes(found) == [{"a": "ok"}, (3, "attribute `a`: the string is not valid Unicode: a lone surrogate at position 0"), {"a": "fine"}]  # fmt: skip


def test_a_json_document_holds_one_event_or_an_array_of_them(tmp_path: Path) -> None:
    assert attributes(read(tmp_path / "e.json", '[{"a": 1},\n {"a": {"b": 2}}, 3]')) == [
        {"a": 1},
        {"a.b": 2},
        (3, "an event is an object with attributes, not a number"),
    ]
    assert attributes(read(tmp_path / "e.json", '{"a": 1}')) == [{"a": 1}]
    assert attributes(read(tmp_path / "e.json", "[")) == [(1, "not JSON: Input data was truncated: [")]


def test_arrow_types_become_kinds() -> None:
    table = pa.table(
        {
            "number": pa.array([Decimal("2.50"), None], pa.decimal128(5, 2)),
            "day": pa.array([date(2026, 1, 1), None]),
            "moment": pa.array([datetime(2026, 1, 1), None], pa.timestamp("ns")),  # noqa: DTZ001 - as Arrow has it
            "nested": [{"x": 1, "y": None}, None],
            "list": [[1], None],
            "bytes": [b"x", None],
            "clock": [time(1), None],
            "span": [timedelta(1), None],
        }
    )
    reader = EventReader()
    first, second = (reader.event(row, "t", n) for n, row in arrow_rows(table.to_batches()))
    assert isinstance(first, Event)
    assert isinstance(second, Event)
    midnight = datetime(2026, 1, 1, tzinfo=UTC)
    assert first.attributes == {"number": 2.5, "day": midnight, "moment": midnight, "nested.x": 1} | {
        "list": Opaque("list"),
        "bytes": Opaque("bytes"),
        "clock": Opaque("time"),
        "span": Opaque("timedelta"),
    }
    assert second.attributes == {}
    assert reader.opaque == {"list": 1, "bytes": 1, "clock": 1, "span": 1}
    with pytest.raises(EventError, match="two columns are called `a`"):
        list(arrow_rows([pa.table([[1], [2]], names=["a", "a"])]))


def test_fields_say_id_time_stream_and_validity(tmp_path: Path) -> None:
    fields = EventFields(id="meta.id", time="end", start="begin", stream="kind", valid_until="until")
    line = '{"meta":{"id":7},"end":20,"begin":10,"kind":"stock","until":30,"x":1}\n{"meta":{},"end":1}\n{"end":5}\n'
    found = read(tmp_path / "e.jsonl", line, EventReader(fields))
    event = found[0]
    assert isinstance(event, Event)
    assert (event.id, event.stream, event.start, event.end, event.valid_until) == ("7", "stock", 10, 20, 30)
    assert [str(f) for f in found[1:]] == [
        f"{tmp_path}/e.jsonl:2: the record has no `kind`, which should hold its stream",
        f"{tmp_path}/e.jsonl:3: the record has no `kind`, which should hold its stream",
    ]


@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize(
    ("name", "text", "places"),
    [
        ("e.jsonl", '{"a":1}\n\nbroken\n{"a":2}\n[{"a":3},4,{"a":5}]\n{"a":6}\n', ["1", "(3)", "4", "5", "(5)", "5.3", "6"]),
        ("e.csv", 'a,b\n1,x\n\n2,"y\nz\n"\n3\n4,w\n', ["2", "4", "(7)", "8"]),
        ("e.csv", "a,b\n1,x\n\n2,y\n3\n4,w\n", ["2", "4", "(5)", "6"]),
        ("e.json", '[{"a":1},\n2,\n\n{"a":3}]', ["1", "(2)", "3"]),
    ],
)  # fmt: skip
def test_ids_that_are_made_and_faults_name_the_same_lines(
    tmp_path: Path, name: str, text: str, places: list[str], blocks: bool
) -> None:
    path = tmp_path / name
    path.write_text(text)
    source = open_events(path)
    items = source.blocks() if blocks else iter(source)
    events = [one for item in items for one in (item if isinstance(item, EventBlock) else [item])]
    found = [f"({one.line})" if isinstance(one, Fault) else one.id for one in events]
    assert [place.removeprefix(f"{path}:") for place in found] == places


def test_rows_of_a_table_are_named_by_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"a": range(25_000)}), path)
    ids = [one.id for one in open_events(path) if isinstance(one, Event)]
    assert ids == [f"{path}:{number}" for number in range(1, 25_001)]
    in_blocks = [
        item.event_id(row, None)
        for item in open_events(path).blocks()
        if isinstance(item, EventBlock)
        for row in range(len(item))
    ]
    assert in_blocks == ids


def test_a_cloud_event_brings_its_own_id_time_and_stream() -> None:
    record: dict[str, object] = {
        "specversion": "1.0", "id": "e1", "source": "/s", "type": "order", "time": "2026-01-01T00:00:01Z",
        "expirytime": "2026-01-02T00:00:00Z", "subject": "x", "data": {"qty": 3, "tags": [1]},
    }  # fmt: skip
    reader = EventReader(clock=lambda: 99)
    event = reader.event(record, "t", 1)
    assert isinstance(event, Event)
    assert (event.id, event.stream, event.end) == ("e1", "order", 1767225601000000)
    assert event.valid_until == 1767312000000000
    assert event.attributes["data.qty"] == 3
    assert reader.opaque == {"data.tags": 1}
    timeless = reader.event({k: v for k, v in record.items() if k != "time"}, "t", 2)
    assert isinstance(timeless, Event)
    assert timeless.end == 99
    old = reader.event({**record, "specversion": "0.3"}, "t", 3)
    assert isinstance(old, Fault)
    assert old.reason == "CloudEvents version `0.3` is unknown; Tocsin reads 1.0"
    late = reader.event({**record, "time": "yesterday"}, "t", 4)
    assert isinstance(late, Fault)
    assert "`yesterday` is not a time such as" in late.reason


def test_progress_is_known_while_a_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text('{"a":1}\n' * 10)
    file = open_events(path)
    list(file)
    assert file.size == file.position == 80
    assert file.reader.read == 10


def test_a_file_of_another_format_than_its_name(tmp_path: Path) -> None:
    for name in ("e.parquet", "e.arrow"):
        (tmp_path / name).write_text("no such thing")
        with pytest.raises(EventError, match=f"{name} is not a file of"):
            list(open_events(tmp_path / name))


def test_one_odd_line_of_json_breaks_itself_alone(tmp_path: Path) -> None:
    deep = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
    found = read(
        tmp_path / "e.jsonl",
        b'\xef\xbb\xbf{"a":1}\n{"n":"caf\xe9"}\n' + deep + b'\n["x", {"a":2}]\n{"a":3}\n',
    )
    kinds = [type(one).__name__ for one in found]
    assert kinds == ["Event", "Fault", "Fault", "Fault", "Event", "Event"]
    assert [one.line for one in found if isinstance(one, Fault)] == [2, 3, 4]
    assert str(found[3]).endswith("an event is an object with attributes, not a string")
    assert attributes(read(tmp_path / "e.json", b'\xef\xbb\xbf[{"a":1}]')) == [{"a": 1}]


def test_csv_records_over_several_lines_and_open_quotes(tmp_path: Path) -> None:
    found = read(tmp_path / "e.csv", 'a,b\n1,"x\ny"\n"1\n2"\n3,c\n4,"open\n5,d\n')
    assert attributes(found)[:3] == [
        {"a": 1, "b": "x\ny"},
        (4, "1 field, but the header names 2"),
        {"a": 3, "b": "c"},
    ]
    assert isinstance(found[-1], Fault)
    assert found[-1].line == 7


def test_a_name_that_is_not_unicode_is_refused(tmp_path: Path) -> None:
    (found,) = read(tmp_path / "e.csv", b"a,caf\xe9\n1,2\n")
    assert isinstance(found, Fault)
    assert "an attribute's name is a string of valid Unicode" in found.reason


def test_one_cell_that_python_cannot_hold_breaks_its_row_alone() -> None:
    table = pa.table({"t": pa.array([1, 10**15], pa.timestamp("s")), "d": pa.array([1, 2], pa.date32())})
    reader = EventReader()
    first, second = (reader.event(row, "t", n) for n, row in arrow_rows(table.to_batches()))
    assert isinstance(first, Event)
    assert isinstance(second, Fault)
    assert "a cell cannot be read" in second.reason


def test_types_within_structs_and_dictionaries_are_minded() -> None:
    inner = pa.struct([("t", pa.timestamp("us")), ("b", pa.binary()), ("x", pa.int64())])
    table = pa.table(
        {
            "s": pa.array([{"t": 0, "b": b"1", "x": 5}, None], inner),
            "v": pa.array([b"x", None], pa.binary_view()),
        }
    )
    reader = EventReader()
    first, second = (reader.event(row, "t", n) for n, row in arrow_rows(table.to_batches()))
    assert isinstance(first, Event)
    assert isinstance(second, Event)
    assert first.attributes == {"s.t": datetime(1970, 1, 1, tzinfo=UTC), "s.x": 5} | {
        "s.b": Opaque("bytes"),
        "v": Opaque("bytes"),
    }
    assert second.attributes == {}
    assert reader.opaque == {"s.b": 1, "v": 1}


def test_suffixes_in_capitals_and_pipes_are_read(tmp_path: Path) -> None:
    packed = tmp_path / "E.JSONL.GZ"
    packed.write_bytes(gzip.compress(b'{"a":1}\n'))
    assert attributes(list(open_events(packed))) == [{"a": 1}]
    with pytest.raises(EventError, match="is a folder; name a file in it, such as"):
        open_events(tmp_path)
    with pytest.raises(EventError, match="there is no file"):
        open_events("x" * 5000)


def test_an_entry_of_a_file_with_an_odd_name_can_be_reported() -> None:
    fault = UnreadableEntryError("\udcff.txt", 3, "it is empty")
    assert str(fault) == "\\udcff.txt:3: it is empty"
    assert str(pickle.loads(pickle.dumps(fault))) == str(fault)  # noqa: S301 - our own


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ('{"a": NaN}', "it has no NaN and no Infinity: write null"),
        ('[1, -Infinity]', "it has no NaN and no Infinity: write null"),
        ('{"a": True}', "it writes true, false and null"),
        ("{'a': 1}", "its strings are in double quotes"),
    ],
)  # fmt: skip
def test_a_line_in_the_notation_of_another_language_has_a_hint(tmp_path: Path, line: str, hint: str) -> None:
    for name in ("e.jsonl", "e.json"):
        (fault,) = read(tmp_path / name, line)
        assert isinstance(fault, Fault)
        assert fault.reason.startswith(f"not JSON ({hint}): ")
    (other,) = read(tmp_path / "e.jsonl", '{"a": NaNs}')
    assert isinstance(other, Fault)
    assert other.reason.startswith("not JSON: ")


def test_json_under_the_name_of_another_form_has_a_hint(tmp_path: Path) -> None:
    (lines,) = read(tmp_path / "e.json", '{"a": 1}\n{"a": 2}\n')
    assert isinstance(lines, Fault)
    assert "a document on each line is JSON lines: name the file .jsonl" in lines.reason
    for text in ('[{"a": 1},\n{"a": 2}]', '{\n"a": 1\n}'):
        first, *others = read(tmp_path / "e.jsonl", text)
        assert isinstance(first, Fault)
        assert "a document over several lines is no JSON lines: name the file .json" in first.reason
        assert not any("several lines" in other.reason for other in others if isinstance(other, Fault))
    (broken,) = read(tmp_path / "e.json", '{"a": 1\n}}')
    assert isinstance(broken, Fault)
    assert "JSON lines" not in broken.reason
