"""Blocks of files: the same events, faults, line numbers, ids and counts as one record at a time."""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.matching.arrow_tables import tables
from tocsin.formats import EventFields, EventReader, Fault, Format, column_blocks, json_blocks, open_events
from tocsin.formats.column_blocks import ColumnBlock, LineBlocks
from tocsin.formats.event_blocks import EventBlock
from tocsin.formats.opaque_columns import is_opaque, opaque_values
from tocsin.matching.encoding.blocks import BlockEvents
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.model.event import flatten


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("blocks")


def as_rows(path: Path, format: Format) -> tuple[Any, ...]:
    reader = EventReader(stream="s", clock=lambda: 7)
    found = list(read_all(iter(open_events(path, reader, format=format))))
    return found, reader.read, reader.refused, reader.opaque


def as_blocks(path: Path, format: Format) -> tuple[Any, ...]:
    """Read a file in blocks, and each block in both ways, which must agree."""
    reader = EventReader(stream="s", clock=lambda: 7)
    return (
        list(read_all(expand(open_events(path, reader, format=format).blocks()))),
        reader.read,
        reader.refused,
        reader.opaque,
    )


def read_all(items: Iterator[Event | Fault]) -> Iterator[Event | Fault | str]:
    try:
        yield from items
    except EventError as fault:
        yield str(fault)


def expand(items: Iterator[EventBlock | Event | Fault]) -> Iterator[Event | Fault]:
    for number, item in enumerate(items):
        if not isinstance(item, EventBlock):
            yield item
        elif not isinstance(item.columns, ColumnBlock) or number % 2:
            yield from item
        else:
            check_columns(item.columns)
            item.accept({})
            rows = BlockEvents(item.columns, "s")
            for row in range(len(rows)):
                attributes = rows.row(row)
                yield Event(item.event_id(row, attributes), attributes, "s", 7, 7)


def check_columns(block: ColumnBlock) -> None:
    """Compare a block's columns with its records."""
    records = [flatten(block.record(row)) for row in range(len(block))]
    assert {path for record in records for path in record} <= {*block.paths}
    is_table = BlockEvents(block, None).is_table
    for path in block.paths:
        leaves = [
            opaque_values(leaf) if is_opaque(leaf.type) else leaf.to_pylist()
            for leaf in block.leaves_at(path)
        ]
        for row, record in enumerate(records):
            values = [leaf[row] for leaf in leaves if leaf[row] is not None]
            expected = [record[path]] if path in record else []
            assert values == expected
            assert [isinstance(value, (bool, str)) for value in values] == [
                isinstance(value, (bool, str)) for value in expected
            ]
            if is_table:
                assert list(map(type, values)) == list(map(type, expected))


# JSON lines

VALUES = st.one_of(
    st.sampled_from(
        [
            *(
                "1",
                "-0",
                "0.5",
                "1e5",
                "1E400",
                "-1.0",
                "1.0",
                "true",
                "false",
                "null",
                "NaN",
                "01",
                '""',
                '"x"',
                '"ü"',
            ),
            *(
                '"\\ud800"',
                '"\\ud83d\\ude00"',
                '"2026-01-01T00:00:00Z"',
                '"\\u0061"',
                "[]",
                "[1, {}]",
                "{}",
                '{"c": 2}',
            ),
            *(
                "9007199254740993",
                "9223372036854775808",
                "-9223372036854775808",
                "123456789012345678901234567890",
            ),
            *('{"c": {"d": "deep"}}', '{"c": [1e999]}', '{"c": null}', "[1e400]", '"a\tb"', "9" * 4400),
        ]
    ),
    st.integers(-5, 5).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(json.dumps),
    st.text(max_size=4).map(json.dumps),
)
KEYS = st.sampled_from(
    ["a", "a", "b", "b", "a.c", "größe", "specversion", "_deleted", "$stream", 'q"', "\\u0061", ""]
)


@st.composite
def json_objects(draw: st.DrawFn) -> str:
    pairs = draw(st.lists(st.tuples(KEYS, VALUES), max_size=3))
    return "{" + ", ".join(f'"{key}": {value}' for key, value in pairs) + "}"


PLAIN = [f'{{"a": {i}, "b": "t{i}", "c": {{"d": {i}.5}}, "e": [{i}], "f": null}}' for i in range(40)]
LINES = st.one_of(
    st.integers(0, 39).map(PLAIN.__getitem__),
    st.integers(0, 39).map(PLAIN.__getitem__),
    json_objects(),
    st.sampled_from(
        [
            "",
            " ",
            "\x0c",
            "[]",
            '[{"a": 1}, {"a": 2}]',
            "1",
            '{"a": 1}{"a": 2}',
            '{"a":',
            "1}",
            "{",
            "}",
            '{"a": 1} ',
            "\ufeff{}",
        ]
    ),
)


@st.composite
def json_files(draw: st.DrawFn) -> bytes:
    parts: list[str] = []
    for _ in range(draw(st.integers(0, 4))):
        run = draw(st.lists(LINES, max_size=4)) if draw(st.booleans()) else PLAIN[: draw(st.integers(0, 40))]
        parts += run
    text = draw(st.sampled_from(["\n", "\n", "\r\n"])).join(parts) + draw(st.sampled_from(["", "\n", "\n\n"]))
    raw = text.encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        raw = raw.replace(b"t1", b"t\xff")
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + raw


@given(json_files(), st.sampled_from([60, 400, 1 << 20]))
def test_json_lines_give_the_same_in_blocks(folder: Path, raw: bytes, size: int) -> None:
    path = folder / "events.jsonl"
    path.write_bytes(raw)
    with small_blocks(size):
        assert as_blocks(path, Format.JSONL) == as_rows(path, Format.JSONL)


@st.composite
def json_arrays(draw: st.DrawFn) -> bytes:
    records = [
        draw(LINES) if draw(st.integers(0, 9)) == 0 else one for one in PLAIN[: draw(st.integers(0, 40))]
    ]
    if draw(st.booleans()):
        records = [one if "{" not in one else one.replace(", ", ",\n  ") for one in records]
    text = (
        "["
        + draw(st.sampled_from([",", ",\n", " ,\r\n"])).join(records)
        + draw(st.sampled_from(["]", "]", "", "]\n"]))
    )
    raw = draw(st.sampled_from([text, text, text, '{"a": 1}', "[]", "", "[[]]"])).encode(
        "utf-8", "surrogatepass"
    )
    if draw(st.integers(0, 9)) == 0:
        raw = raw.replace(b"t1", draw(st.sampled_from([b"t\xff", b"t\n", b"\\ud800"])))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + raw


@given(json_arrays(), st.sampled_from([16, 20, 1000]))
def test_json_arrays_give_the_same_in_blocks(folder: Path, raw: bytes, size: int) -> None:
    path = folder / "events.json"
    path.write_bytes(raw)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_blocks, "_OBJECTS", size)
        assert as_blocks(path, Format.JSON) == as_rows(path, Format.JSON)


# CSV

FIELDS = st.one_of(
    st.sampled_from(
        [
            *(
                "",
                "",
                "1",
                "0",
                "-0",
                "007",
                "+1",
                "1.5",
                "1.",
                ".5",
                "1e5",
                "1e400",
                "-1e-5",
                "true",
                "True",
                "TRUE",
                "tRUE",
            ),
            *(
                "nan",
                "inf",
                "0x1F",
                "9007199254740993",
                "9223372036854775807",
                "9223372036854775808",
                "9" * 30,
                "9" * 4001,
            ),
            *(
                "2026-01-01T00:00:00Z",
                "x",
                "ü",
                " ",
                " 1",
                "a b",
                '"q,q"',
                '"two\nlines"',
                '"say ""hi"""',
                '"bad"x',
                'mid"dle',
                '"1"',
            ),
        ]
    ),
    st.integers(-3, 3).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(str),
)
HEADERS = st.sampled_from(
    ["a,b,c", "a,b,c", "a,b,c", '"a","b,b",c', "a,_deleted,c", "a,,c", "a,a,c", "", "a"]
)


@st.composite
def csv_files(draw: st.DrawFn) -> bytes:
    rows = [draw(HEADERS)]
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.booleans()):
            first = draw(st.integers(0, 99))
            kinds = draw(st.sampled_from(["{i},{i}.5,x{i}", "{i},{j},true", "{i},,t", "{i}.25,{j},9{i}"]))
            rows += [kinds.format(i=i, j=i % 2) for i in range(first, first + draw(st.integers(0, 30)))]
        else:
            width = draw(st.sampled_from([3, 3, 3, 1, 2, 4]))
            rows += [",".join(draw(FIELDS) for _ in range(width)) for _ in range(draw(st.integers(0, 3)))]
    text = draw(st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])).join(rows)
    text += draw(st.sampled_from(["", "\n", "\n\n"]))
    raw = text.encode()
    if draw(st.integers(0, 9)) == 0:
        raw = raw.replace(b"x", draw(st.sampled_from([b"\xff", b"\0", b"\r"])))
    return draw(st.sampled_from([b"", b"\xef\xbb\xbf"])) + raw


@given(csv_files(), st.sampled_from([20, 200, 1 << 20]))
def test_csv_gives_the_same_in_blocks(folder: Path, raw: bytes, size: int) -> None:
    path = folder / "events.csv"
    path.write_bytes(raw)
    with small_blocks(size):
        assert as_blocks(path, Format.CSV) == as_rows(path, Format.CSV)


@given(tables())
def test_tables_give_the_same_in_blocks(folder: Path, table: Any) -> None:
    path = folder / "events.arrow"
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write(table)
    assert as_blocks(path, Format.ARROW) == as_rows(path, Format.ARROW)


class small_blocks:  # noqa: N801 - a context, like `raises`
    """Read files in blocks of so many bytes, which are read a few at a time."""

    def __init__(self, size: int) -> None:
        self._patch = pytest.MonkeyPatch()
        self._size = size

    def __enter__(self) -> None:
        self._patch.setattr(column_blocks, "BLOCK_BYTES", self._size)
        self._patch.setattr(column_blocks, "_READ_BYTES", max(7, self._size // 4))

    def __exit__(self, *_: object) -> None:
        self._patch.undo()


def test_plain_files_are_read_in_blocks(folder: Path) -> None:
    """The tests above would pass if nothing ever were a block."""
    lines = [
        json.dumps({"a": i, "b": f"t{i}", "c": {"d": i + 0.5}, "e": [i], "f": None}) for i in range(1000)
    ]
    lines[500] = "{broken"
    path = folder / "plain.jsonl"
    path.write_text("\n".join(lines))
    items = list(open_events(path).blocks())
    assert [len(item) if isinstance(item, EventBlock) else item.line for item in items] == [500, 501, 499]  # type: ignore[union-attr]
    rows = io.StringIO()
    csv.writer(rows).writerows(
        [["a", "b"], *([i, f'say "{i}"' if i == 300 else f"t{i}"] for i in range(1000))]
    )
    path = folder / "plain.csv"
    path.write_text(rows.getvalue())
    assert [len(item) for item in open_events(path).blocks()] == [1000]  # type: ignore[arg-type]
    path = folder / "plain.json"
    path.write_text(json.dumps([{"a": i} for i in range(1000)], indent=1))
    assert [len(item) for item in open_events(path).blocks()] == [1000]  # type: ignore[arg-type]
    path = folder / "plain.parquet"
    pq.write_table(pa.table({"a": range(1000)}), path)
    assert [len(item) for item in open_events(path).blocks()] == [1000]  # type: ignore[arg-type]


def test_a_file_of_records_that_are_not_plain_is_tried_now_and_then(folder: Path) -> None:
    """Names that vary without end have no columns; where they end, the blocks begin."""
    path = folder / "varied.jsonl"
    varied = [json.dumps({f"name {i} {j}": 1 for j in range(20)}) for i in range(300)]
    path.write_text("\n".join([*varied, *(json.dumps({"name 0 0": i}) for i in range(20_000))]))
    with small_blocks(5_000):
        items = list(open_events(path).blocks())
        assert as_blocks(path, Format.JSONL) == as_rows(path, Format.JSONL)
    assert sum(isinstance(item, Event) for item in items) >= 250
    assert isinstance(items[-1], EventBlock)
    assert sum(len(item) for item in items if isinstance(item, EventBlock)) > 10_000


def test_lines_with_hundreds_of_names_in_no_order_are_read_by_the_row(folder: Path) -> None:
    random = np.random.default_rng(4)
    for names, in_order, are_blocks in ((100, False, True), (400, True, True), (400, False, False)):
        lines = []
        for number in range(3000):
            chosen = random.choice(names, 10, replace=False).tolist()
            lines.append(
                json.dumps({f"n{name}": number for name in (sorted(chosen) if in_order else chosen)})
            )
        path = folder / "named.jsonl"
        path.write_text("\n".join([json.dumps({f"n{name}": 0 for name in range(names)}), *lines]))
        with small_blocks(100_000):
            items = list(open_events(path).blocks())
            assert as_blocks(path, Format.JSONL) == as_rows(path, Format.JSONL)
        found = sum(len(item) for item in items if isinstance(item, EventBlock))
        assert (found == 3001) if are_blocks else (found < 1500)


def test_records_with_a_stream_or_a_validity_of_their_own_come_in_blocks(folder: Path) -> None:
    path = folder / "own.jsonl"
    path.write_text('{"a": 1, "s": "x", "t": 5}\n' * 20)
    for fields in (EventFields(stream="s"), EventFields(valid_until="t"), EventFields(time="t")):
        assert [len(one) for one in open_events(path, EventReader(fields)).blocks()] == [20]  # type: ignore[arg-type]


@pytest.mark.parametrize("cut", [1, 9, 60])
def test_a_file_that_ends_too_early_gives_what_is_there(folder: Path, cut: int) -> None:
    path = folder / "cut.jsonl.gz"
    whole = gzip.compress(b"".join(b'{"a": %d}\n' % i for i in range(100)))
    path.write_bytes(whole[:-cut])
    found, *rest = as_blocks(path, Format.JSONL)
    expected, *others = as_rows(path, Format.JSONL)
    assert (found, rest) == (expected, others)
    assert "cannot be read further" in found[-1]


def test_lines_are_cut_where_they_end() -> None:
    text = b"one\ntwo\n\nthree is longer than a block\nfour"
    for size in (1, 4, 9, 100):
        with small_blocks(size):
            blocks = list(LineBlocks(io.BytesIO(text), size))
        assert b"".join(block for _, block in blocks) == text
        assert all(block.endswith(b"\n") for _, block in blocks[:-1])
        assert [first for first, _ in blocks] == [
            1 + text[: text.index(block)].count(b"\n") for _, block in blocks
        ]


def test_the_time_of_a_record_is_that_of_its_field(folder: Path) -> None:
    path = folder / "timed.jsonl"
    path.write_text("".join(f'{{"t": "2026-01-{day:02}T00:00:00Z"}}\n' for day in range(1, 21)))
    events = list(open_events(path, EventReader(EventFields(time="t"))))
    assert isinstance(events[0], Event)
    assert events[0].end == datetime(2026, 1, 1, tzinfo=UTC).timestamp() * 1e6
