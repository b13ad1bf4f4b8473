"""Values that cannot be compared, in sequences, tables and files: the same by the row and by the column."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tocsin.engine import Engine
from tocsin.formats import EventReader, open_events
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.model.values import Opaque

ROWS: list[dict[str, Any]] = [
    {"t": 1, "k": b"x", "n": 1.0},
    {"t": 2, "k": b"x", "n": 2.0},
    {"t": 3, "k": None, "n": 3.0},
    {"t": 4, "k": b"y", "n": float("nan")},
]
SEQUENCES = {
    "equal": "from s a next s b on b.k = a.k",
    "unequal": "from s a next s b where b.k != a.k or not b.k = a.k",
    "present": "from s a next s b where a.k is present and b.k is missing select a.n as a, b.n as b",
    "bound": "from s a where a.n = 1 next s b where a.k is present next s c where a.k is missing",
    "selected": "from s a where a.n = 1 next s b select a.k as k",
    "least": "from s a where a.n = 1 fold s b while b.n < 3 compute m = min(k), c = count(k) where b.n = 2 select m, c",
}


def table(rows: list[dict[str, Any]] = ROWS) -> pa.Table:
    kinds = {"t": pa.int64(), "k": pa.binary(), "n": pa.float64()}
    return pa.table({name: pa.array([row[name] for row in rows], kind) for name, kind in kinds.items()})


@pytest.mark.parametrize("by_column", [False, True])
def test_sequences_see_that_a_value_is_there_and_no_more(by_column: bool) -> None:
    engine = Engine()
    engine.stream("s", tick="1 second")
    for name, text in SEQUENCES.items():
        engine.subscribe(text, id=name)
    notes = engine.publish_many(table() if by_column else ROWS, stream="s", time="t")
    found = sorted((note.subscription, dict(note.values or {})) for note in notes)
    assert found == [
        ("least", {"m": Opaque("bytes"), "c": 2}),
        ("present", {"a": 2.0, "b": 3.0}),
        ("selected", {"k": Opaque("bytes")}),
    ]
    assert engine.stats().opaque_values == 3


@pytest.mark.parametrize("by_column", [False, True])
def test_tables_keep_opaque_values(by_column: bool, tmp_path: Path) -> None:
    engine = Engine()
    engine.table("r", key="t")
    asked = {
        "there": "select t from table r where k is present",
        "absent": "select t from table r where k is missing",
        "other": "select t from table r where k != 'x' or not k = 'x'",
        "count": "select count(k) from table r",
        "by range": "select count(k) from table r where t between 0 and 9",
        "least": "select min(k) from table r where t between 0 and 9",
        "distinct": "select distinct k from table r where t between 0 and 9",
        "by row": "select distinct k from table r where n is present",
        "joined": "select a.t as one, b.t as other from table r a join table r b on a.k = b.k",
        "no number": "select t from table r where n is missing",
    }
    for name, text in asked.items():
        engine.subscribe(text, id=name)
    engine.publish_many(table() if by_column else ROWS, stream="r")
    expected = {
        "there": ({"t": 1}, {"t": 2}, {"t": 4}),
        "absent": ({"t": 3},),
        "other": (),
        "count": 3,
        "by range": 3,
        "least": None,
        "distinct": (),
        "by row": (),
        "joined": (),
        "no number": ({"t": 4},),
    }
    assert {name: engine.answer(name) for name in asked} == expected
    engine.save(tmp_path / "saved")
    opened = Engine.open(tmp_path / "saved")
    assert {name: opened.answer(name) for name in asked} == expected


def test_a_key_cannot_be_opaque() -> None:
    engine = Engine()
    engine.table("r", key="k")
    with pytest.raises(EventError, match="attribute `k`: a row of the table `r` cannot have a value there"):
        engine.publish({"k": b"x"}, stream="r")
    faults: list[Any] = []
    engine.publish_many(table(), stream="r", on_error=faults.append)
    engine.publish_many(ROWS, stream="r", on_error=faults.append)
    assert [fault.reason.partition(" a row of ")[0] for fault in faults] == ["attribute `k`:"] * 8
    assert engine.stats().views.rows == 0


def test_kept_events_are_saved_with_opaque_values(tmp_path: Path) -> None:
    engine = Engine()
    engine.publish({"raw": b"x"}, time=5, valid_until=2**62)
    engine.save(tmp_path / "saved")
    opened = Engine.open(tmp_path / "saved")
    assert [
        note.events[0].attributes for note in opened.subscribe("raw is present", id="x").notifications
    ] == [{"raw": Opaque("bytes")}]


def test_files_of_every_format_say_the_same(tmp_path: Path) -> None:
    lines = tmp_path / "e.jsonl"
    lines.write_text('{"n":1,"k":[1]}\n{"n":2,"k":null}\n{"n":3,"k":[]}\n' * 20)
    whole = pa.table({"n": [1, 2, 3] * 20, "k": pa.array([[1], None, []] * 20)})
    pq.write_table(whole, tmp_path / "e.parquet")
    for file in (lines, tmp_path / "e.parquet"):
        for by_block in (False, True):
            reader = EventReader()
            engine = Engine()
            for text in ("k is present", "k is missing", "k = 1", "k != 1"):
                engine.subscribe(text, id=text)
            source = open_events(file, reader)
            notes = list(engine.publish_many(source.blocks() if by_block else source))
            assert [note.subscription for note in notes] == [
                "k is present",
                "k is missing",
                "k is present",
            ] * 20
            assert reader.opaque == {"k": 40}
    assert isinstance(next(iter(open_events(lines, EventReader()))), Event)
