from __future__ import annotations

from collections import Counter
from datetime import date
from decimal import Decimal
from typing import Any

import pyarrow as pa
from hypothesis import given

from tests.matching.arrow_tables import tables
from tocsin.matching import EventBatch
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.matching.statistics.tally import Tally


def rows(tally: Tally) -> Counter[tuple[str, str, str]]:
    counts: Counter[tuple[str, str, str]] = Counter()
    for row in tally.rows():
        counts[row.subject, row.kind, row.value] += row.events
    return +counts


def rows_of(table: Any, stream: str) -> EventBatch:
    """Return a table's rows as events that are not in columns."""
    events = arrow_events(table, stream=stream)
    return EventBatch([events.attributes(place) for place in range(len(events))], faults=events.faults)


@given(tables())
def test_columns_are_counted_as_rows_are(table: Any) -> None:
    groups = [("a", "b"), ("a", "data.city"), ("a", "b", "price"), ("$stream", "a")]
    by_column, by_row = Tally(groups), Tally(groups)
    by_column.add(arrow_events(table, stream="stock"))
    by_row.add(rows_of(table, "stock"))
    assert rows(by_column) == rows(by_row)


def test_a_table_is_counted_with_its_nested_columns_and_without_refused_rows() -> None:
    table = pa.table(
        {
            "a": [1.0, 2.5, 3.0, float("nan")],
            "raw": pa.array([b"x"] * 4),
            "t": pa.array([None, None, 10**15, None], pa.timestamp("s")),  # out of range: no event
            "c": [{"d": True}, {"d": None}, {"d": True}, {"d": False}],
            "b": pa.array([date(2026, 1, 1)] * 4),
            "price": pa.array([Decimal("2.0"), Decimal("2.5"), None, None]),
        }
    )
    tally = Tally([("a", "b"), ("b", "c.d")])
    tally.add(arrow_events(table))
    day = "2026-01-01T00:00:00Z"
    assert rows(tally) == {
        ("", "events", ""): 3,
        ("", "refused", ""): 1,
        ("a", "number", "1.0"): 1,
        ("a", "number", "2.5"): 1,
        ("b", "timestamp", day): 3,
        ("c.d", "boolean", "true"): 1,
        ("c.d", "boolean", "false"): 1,
        ("price", "number", "2.0"): 1,
        ("price", "number", "2.5"): 1,
        ("0", "group", f'["n1.0","t{day}"]'): 1,
        ("0", "group", f'["n2.5","t{day}"]'): 1,
        ("1", "group", f'["t{day}","btrue"]'): 1,
        ("1", "group", f'["t{day}","bfalse"]'): 1,
    }


def test_some_places_may_be_left_out_of_columns_and_of_rows() -> None:
    table = pa.table(
        {"a": [1.0, 2.0, 3.0, 4.0], "t": pa.array([None, None, 10**15, 10**15], pa.timestamp("s"))}
    )
    for events in (arrow_events(table), rows_of(table, "stock")):
        tally = Tally()
        tally.add(events, without={1, 3})
        tally.refuse(2)
        assert rows(tally)["", "events", ""] == 1
        assert rows(tally)["", "refused", ""] == 3
        assert rows(tally)["a", "number", "1.0"] == 1
