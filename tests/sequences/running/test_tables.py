"""Programs read the same values from columns and from rows."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa
import pytest

from tests.sequences.outcomes import compiled, ids, outcomes, table_rows
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model.errors import EventError
from tocsin.model.event import read_event
from tocsin.sequences.running.matcher import AutomatonMatcher

_TEXTS = [
    "from s a next s b on b.x = a.x",
    "from s a next s b where b.x > a.x",
    "from s a next s b where b.x is missing",
    "from s a fold s b while b.x >= last.x compute m = max(x), c = count(x)",
    "from s a where a.x is present next s b select a.x as x, b.x as y",
]
_TIMES = [datetime(2026, 1, day, 3, tzinfo=UTC) if day else None for day in (1, 2, 0, 2, 5)]
_COLUMNS: dict[str, Any] = {
    "integers": pa.array([1, 2, None, 2, 5], pa.int16()),
    "large integers": pa.array([1, 2**63 + 1, None, 2**63 + 1, 2**64 - 1], pa.uint64()),
    "floats": pa.array([1.0, 2.5, None, 2.5, float("inf")], pa.float32()),
    "booleans": pa.array([True, None, False, True]),
    "strings": pa.array(["a", "b", None, "b", ""]),
    "views of strings": pa.array(["a", "b", None, "b", ""], pa.string_view()),
    "words": pa.array(["a", "b", None, "b", ""]).dictionary_encode(),
    "words of which one is null": pa.DictionaryArray.from_arrays(
        pa.array([0, 1, 2, 1, None]), pa.array(["a", None, "c"])
    ),
    "few of many words": pa.DictionaryArray.from_arrays(
        pa.array([7, 3, 7]), pa.array([f"w{n}" for n in range(9)])
    ),
    "no words": pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int32()), pa.array([], pa.string())),
    "words that are numbers": pa.array([1, 2, None, 2]).dictionary_encode(),
    "words in chunks": pa.chunked_array([pa.array(["a", "b"]), pa.array(["b", None, "a"])]),
    "nulls": pa.nulls(4),
    "days": pa.array([date(2026, 1, 1), None, date(2026, 1, 1)]),
    **{unit: pa.array(_TIMES, pa.timestamp(unit, tz="UTC")) for unit in ("s", "ms", "us", "ns")},
}


def _found(arrivals: TimedBatch) -> list[Any]:
    runner = AutomatonMatcher(matcher="oracle")
    for number, text in enumerate(_TEXTS):
        runner.add(ids(number), compiled(text), {})
    return outcomes(runner.process(arrivals))


def _table(column: Any) -> Any:
    return pa.table({"t": range(1, len(column) + 1), "x": column})


@pytest.mark.parametrize("name", _COLUMNS)
def test_columns_are_read_as_rows(name: str) -> None:
    table = _table(_COLUMNS[name])
    rows = table_rows(table)
    events = [
        read_event(row, stream="s", id=rows.event(place).id, time=place + 1)
        for place, row in enumerate(table.to_pylist())
    ]
    assert _found(rows) == _found(TimedBatch(events))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_timestamps_without_a_zone_are_utc_in_every_unit(unit: str) -> None:
    found = [
        [
            (row, *outcome[:3], outcome[4])
            for row, outcome in _found(table_rows(_table(pa.array(_TIMES, kind))))
        ]
        for kind in (pa.timestamp(unit), pa.timestamp("us", tz="UTC"))
    ]
    assert found[0] == found[1] != []


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"t": [1, 2], "x": pa.array([0, 2**62], pa.timestamp("s"))}, "row 1 .* cannot be read"),
        ({"t": pa.array([1, 2**63], pa.uint64())}, "row 1 .* 64 bits"),
        ({"t": pa.array([1, 2**62], pa.timestamp("s"))}, "row 1 .* cannot be read"),
    ],
)
def test_a_table_that_is_no_events_is_refused(columns: dict[str, Any], message: str) -> None:
    with pytest.raises(EventError, match=message):
        table_rows(pa.table(columns))
