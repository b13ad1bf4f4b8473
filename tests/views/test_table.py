"""Tables: the last row of each key, in arrays, and in a file."""

from __future__ import annotations

import io
import json
import math
import re
import zipfile
from contextlib import suppress
from datetime import UTC, date, datetime
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from tocsin.model.errors import EventError, SavedError
from tocsin.model.values import Value
from tocsin.views.batch import read_batch
from tocsin.views.catalog import load_tables, save_tables
from tocsin.views.changes import Row
from tocsin.views.table import StoredTable

VALUES: list[Value] = [
    0, 1, -(2**63), 2**63 - 1, 2**80, 1.5, -0.0, math.inf, True, False, "", "a", "b\u00e9",
    datetime(2026, 1, 1, tzinfo=UTC), datetime(1, 1, 1, tzinfo=UTC),
]  # fmt: skip


def rows_of(table: StoredTable) -> list[Row]:
    return [row for _, row in table.rows()]


def upsert(table: StoredTable, row: Row, end: int) -> int | None:
    return table.upsert(table.key_of(row), row, end)


def delete(table: StoredTable, row: Row, end: int) -> int | None:
    return table.delete(table.key_of(row), end)


def test_a_row_replaces_that_of_its_key_whole() -> None:
    table = StoredTable("t", ("k",))
    assert table.find("a") is None
    first = upsert(table, {"k": "a", "x": 1, "y": 2.5}, 5)
    assert first is not None
    assert table.row(first) == {"k": "a", "x": 1, "y": 2.5}
    assert upsert(table, {"k": "a", "z": "new"}, 5) == first == table.find("a")
    assert table.row(first) == {"k": "a", "z": "new"}
    assert rows_of(table) == [{"k": "a", "z": "new"}]


def test_a_row_older_than_the_stored_one_is_late() -> None:
    table = StoredTable("t", ("k",))
    upsert(table, {"k": 1, "x": 1}, 5)
    assert upsert(table, {"k": 1, "x": 2}, 4) is None
    assert delete(table, {"k": 1}, 4) is None
    assert table.late == 2
    assert rows_of(table) == [{"k": 1, "x": 1}]
    assert delete(table, {"k": 1}, 5) == 0
    assert table.find(1) is None
    assert delete(table, {"k": 1}, 9) is None
    assert len(table) == 0


def test_keys_are_distinguished_by_kind_and_may_be_several_attributes() -> None:
    table = StoredTable("t", ("a", "b"))
    kinds: list[Value] = [1, True, "1", 1.0]
    for kind in kinds:
        upsert(table, {"a": kind, "b": 1}, 0)
    assert len(table) == 3
    with pytest.raises(EventError, match="`b`: a row of the table `t` needs it"):
        upsert(table, {"a": 1}, 0)


def a_row(random: Random) -> dict[str, Value]:
    names = random.sample("vwxyz", random.randrange(6))
    return {"k": random.randrange(12), **{name: random.choice(VALUES) for name in names}}


def test_rows_come_back_as_they_were_and_space_is_used_again() -> None:
    random = Random(3)  # noqa: S311
    table = StoredTable("t", ("k",))
    expected: dict[Value, Row] = {}
    for _ in range(600):
        row = a_row(random)
        if random.random() < 0.3:
            delete(table, row, 0)
            expected.pop(row["k"], None)
        else:
            upsert(table, row, 0)
            expected[row["k"]] = row
        assert {row["k"]: row for row in rows_of(table)} == expected
    held = {(slot, tuple(row)) for slot, row in table.rows()}
    assert max(slot for slot, _ in held) < 12
    assert all(repr(row) == repr(expected[row["k"]]) for row in rows_of(table))


def test_a_table_comes_back_from_a_file(tmp_path: Path) -> None:
    random = Random(4)  # noqa: S311
    tables = [StoredTable("one", ("k",)), StoredTable("two/odd name", ("k", "k"))]
    for table in tables:
        for end in range(50):
            upsert(table, a_row(random), end)
        delete(table, {"k": 3}, 99)
    path = tmp_path / "tables.zip"
    save_tables(tables, path)
    again = load_tables(path)
    assert [(table.name, table.key) for table in again] == [(table.name, table.key) for table in tables]
    for table, loaded in zip(tables, again, strict=True):
        assert [repr(row) for row in rows_of(loaded)] == [repr(row) for row in rows_of(table)]
        for _, row in table.rows():
            key = table.key_of(row)
            assert loaded.is_late(key, 49) == table.is_late(key, 49)
            assert loaded.is_late(key, 30) == table.is_late(key, 30)
    assert [file.name for file in tmp_path.iterdir()] == ["tables.zip"]


def test_a_file_that_holds_no_tables_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no.zip"
    with pytest.raises(SavedError, match="there is no such file"):
        load_tables(path)
    path.write_bytes(b"something else")
    with pytest.raises(SavedError, match="it holds no tables, or is damaged"):
        load_tables(path)
    save_tables([StoredTable("t", ("k",))], path)
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(SavedError, match="damaged"):
        load_tables(path)
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("tables.json", '{"format": "tocsin-tables-9"}')
    with pytest.raises(SavedError, match="'tocsin-tables-9', this version reads 'tocsin-tables-1'"):
        load_tables(path)
    with pytest.raises(SavedError, match="cannot be saved"):
        save_tables([], tmp_path / "nowhere" / "t.zip")


def test_a_file_whose_row_lacks_its_key_is_refused(tmp_path: Path) -> None:
    table, path = StoredTable("t", ("k",)), tmp_path / "tables.zip"
    upsert(table, {"k": 1, "x": 2}, 5)
    save_tables([table], path)
    with zipfile.ZipFile(path) as file:
        contents = {name: file.read(name) for name in file.namelist()}
    about = json.loads(contents["tables.json"])["tables"]["t"]
    kinds = f"0/kinds{about['names'].index('k')}.npy"
    changed = io.BytesIO()
    np.save(changed, np.zeros(1, dtype=np.uint8))
    with zipfile.ZipFile(path, "w") as file:
        for name, data in (contents | {kinds: changed.getvalue()}).items():
            file.writestr(name, data)
    with pytest.raises(SavedError, match="damaged: row 0 of `t` lacks a value"):
        load_tables(path)


def test_a_file_is_whole_or_damaged_whatever_byte_is_another(tmp_path: Path) -> None:
    table = StoredTable("t", ("k",))
    for place, value in enumerate(VALUES):
        upsert(table, {"k": place, "x": value}, 1)
    path = tmp_path / "tables"
    save_tables([table], path)
    whole = path.read_bytes()
    for place in range(len(whole)):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0x55]) + whole[place + 1 :])
        with suppress(SavedError):
            load_tables(path)


def test_a_restored_table_goes_on_like_the_one_it_was_taken_of() -> None:
    random = Random(6)  # noqa: S311
    for key in (("k",), ("k", "k"), ("k", "x")):
        table = StoredTable("t", key)
        for end in range(300):
            row: Row = {**a_row(random), "x": random.choice(VALUES[8:12])}
            (delete if random.random() < 0.3 else upsert)(table, row, end)
        restored = StoredTable.of_parts("t", *table.parts())
        for end in range(300, 500):
            row = {**a_row(random), "x": random.choice(VALUES[8:12])}
            change = delete if random.random() < 0.3 else upsert
            late = 10 * random.choice([0, 0, 1])
            for one in (table, restored):
                change(one, row, end - late)
            assert list(map(repr, rows_of(restored))) == list(map(repr, rows_of(table)))
        assert len(restored) == len(table) > 5


def test_columns_that_do_not_fit_a_table_are_refused() -> None:
    table = StoredTable("t", ("k",))
    for place, value in enumerate(VALUES):
        upsert(table, {"k": f"k{place}", "x": value} if place % 2 else {"k": f"k{place}"}, 1)
    arrays, rest = table.parts()
    assert len(StoredTable.of_parts("t", arrays, rest)) == len(VALUES)
    k, x = (f"{what}{rest['names'].index(name)}" for what, name in (("words", "k"), ("kinds", "x")))
    for name, array in (
        ("ends", arrays["ends"][1:]),
        ("ends", arrays["ends"].astype(np.int32)),
        ("shapes", arrays["shapes"] + 7),
        ("shapes", np.zeros_like(arrays["shapes"])),
        (k, arrays[k] + 1000),
        (k, np.full_like(arrays[k], arrays[k][0])),
        (x, arrays[x] + 9),
        (x, arrays[x][1:]),
        (x.replace("kinds", "words"), np.full_like(arrays[k], 2**62)),
    ):
        with pytest.raises((ValueError, OverflowError)):
            StoredTable.of_parts("t", arrays | {name: array}, rest)
    for change in (
        {"key": ["x"]},
        {"key": ["z"]},
        {"names": ["k", "k"]},
        {"values": rest["values"][:1] * 99},
    ):
        with pytest.raises(ValueError, match=r"lacks|codes|key|column"):
            StoredTable.of_parts("t", arrays, rest | change)


def arrow(rows: list[dict[str, Any]]) -> pa.Table:
    return pa.Table.from_pylist(rows)


def test_rows_by_the_column_are_the_same_as_one_by_one() -> None:
    random = Random(5)  # noqa: S311
    columns: dict[str, list[Any]] = {
        "x": [1.5, -2.0, math.inf, None],
        "n": [1, 2**60, None],
        "s": ["a", "b", "c", None],
        "b": [True, None],
        "t": [datetime(2026, 1, 1, tzinfo=UTC), None],
    }
    by_column, by_row = StoredTable("t", ("k",)), StoredTable("t", ("k",))
    for end in range(30):
        size = random.randrange(1, 20)
        names = random.sample(list(columns), random.randrange(1, 5))
        made = [
            {"k": random.randrange(10), **{name: random.choice(columns[name]) for name in names}}
            for _ in range(size)
        ]
        schema = pa.schema(
            [("k", pa.int64())]
            + [
                (
                    name,
                    {"x": pa.float64(), "n": pa.int64(), "s": pa.string(), "b": pa.bool_()}.get(
                        name, pa.timestamp("us", "UTC")
                    ),
                )
                for name in names
            ]
        )
        batch = read_batch(pa.Table.from_pylist(made, schema), ("k",), "t")
        ends = np.array([end - random.randrange(2) for _ in range(size)], dtype=np.int64)
        changed = by_column.upsert_batch(batch, ends)
        places = []
        for place, row in enumerate(made):
            plain = {name: value for name, value in row.items() if value is not None}
            assert batch.rows[place] == plain
            if upsert(by_row, plain, int(ends[place])) is not None:
                places.append(place)
        assert changed.positions.tolist() == places
        assert by_column.late == by_row.late
        assert rows_of(by_column) == rows_of(by_row)


def test_keys_of_every_kind_are_the_same_by_the_column() -> None:
    for values in [[1.0, 2.5], [True, False], ["a", "b"], [datetime(2026, 1, 1), datetime(2026, 1, 2)]]:  # noqa: DTZ001
        rows = pa.table({"k": values, "l": [1, 1], "x": [1, 2]})
        for key in (("k",), ("k", "l")):
            table = StoredTable("t", key)
            batch = read_batch(rows, key, "t")
            for _ in range(2):
                table.upsert_batch(batch, np.zeros(2, dtype=np.int64))
            for place in range(2):
                slot = table.find(table.key_of(batch.rows[place]))
                assert slot is not None
                assert table.row(slot) == batch.rows[place]
                assert upsert(table, batch.rows[place], 0) == slot
            assert len(table) == 2


def test_columns_of_kinds_that_cells_do_not_have_are_cast_where_nothing_is_lost() -> None:
    day, time = date(2026, 3, 1), datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
    columns: dict[str, tuple[pa.DataType, Any, Any]] = {
        "date32": (pa.date32(), day, datetime(2026, 3, 1, tzinfo=UTC)),
        "date64": (pa.date64(), day, datetime(2026, 3, 1, tzinfo=UTC)),
        "nanoseconds": (pa.timestamp("ns"), time, time),
        "zone": (pa.timestamp("ms", "Europe/Berlin"), time, time),
        "seconds": (pa.timestamp("s", "UTC"), time, time),
        "uint64": (pa.uint64(), 2**63 - 1, 2**63 - 1),
        "uint8": (pa.uint8(), 7, 7),
        "half": (pa.float16(), 1.5, 1.5),
        "codes": (pa.dictionary(pa.int8(), pa.string()), "a", "a"),
    }
    for kind, given, wanted in columns.values():
        rows = pa.table({"k": [1, 2], "x": pa.array([given, None], kind)})
        assert read_batch(rows, ("k",), "t").rows == [{"k": 1, "x": wanted}, {"k": 2}]
    for kind, value in ((pa.uint64(), 2**63), (pa.timestamp("ns"), 1)):
        with pytest.raises(
            EventError, match=rf"`x`: a column of {re.escape(str(kind))} is not taken as it is"
        ):
            read_batch(pa.table({"k": [1], "x": pa.array([value], kind)}), ("k",), "t")


def test_a_row_that_another_of_its_batch_overtook_is_late() -> None:
    table = StoredTable("t", ("k",))
    batch = read_batch(arrow([{"k": 1, "x": 1}, {"k": 1, "x": 2}, {"k": 1, "x": 3}]), ("k",), "t")
    assert table.upsert_batch(batch, np.array([2, 1, 2])).positions.tolist() == [0, 2]
    assert (table.late, rows_of(table)) == (1, [{"k": 1, "x": 3}])


def test_a_batch_that_cannot_be_read_by_the_column_is_not_taken() -> None:
    with pytest.raises(EventError, match=r"`l`: a column of list<.*> is not taken as it is"):
        read_batch(arrow([{"k": 1, "l": [1]}]), ("k",), "t")
    assert read_batch(arrow([{"k": 1, "n": None}]), ("k",), "t").rows[0] == {"k": 1}
    with pytest.raises(EventError, match="`k`: row 1 has none"):
        read_batch(arrow([{"k": 1}, {"k": None}]), ("k",), "t")
