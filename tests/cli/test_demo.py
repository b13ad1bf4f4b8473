"""`tocsin demo`, and the alerts that it generates."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tests.cli.running import tocsin
from tocsin import Engine
from tocsin.cli.alerts import ALERTS, travellers_alerts
from tocsin.cli.demo_spark import COLUMNS, QUERIES, compare
from tocsin.cli.flights import flights_table
from tocsin.model.errors import TocsinError


def test_demo_ends_with_a_summary() -> None:
    done = tocsin("demo", "--flights", "3000", "--alerts", "2000", "--no-spark")
    assert done.returncode == 0, done.stderr
    assert "3,000 flights of 2013 against 2,014 subscriptions, which were loaded in " in done.stdout
    assert "cancelled at JFK" in done.stdout
    assert "late, and late again" in done.stdout
    assert "worst of JFK to Los Angeles" in done.stdout
    assert "Now with your own data:" in done.stdout


def test_travellers_alerts_are_as_many_as_asked_for_and_the_same_each_time() -> None:
    flights = flights_table()
    for count in (0, 1, 7, 1_000):
        kinds = list(travellers_alerts(flights, count))
        assert sum(rows.num_rows for _, rows in kinds) == count
        for (kind, rows), (_, again) in zip(kinds, travellers_alerts(flights, count), strict=True):
            assert rows.equals(again)
            Engine().subscribe_many(kind.text, rows, id=kind.id)


def test_no_named_subscription_is_counted_as_a_kind_of_alert() -> None:
    assert not [name for name in QUERIES for kind in ALERTS if name.startswith(f"{kind.name} ")]


NOTES = [
    (0, "worst of JFK to Los Angeles", 7, None, '{"old":null,"new":3}'),
    (5, "late, and late again", 2, '{"first":130}', None),
    (5, "late, and late again", 4, '{"first":150}', None),
]


def notes(*rows: tuple[object, ...]) -> pa.Table:
    kinds = (pa.int64(), pa.string(), pa.int64(), pa.string(), pa.string())
    columns = [pa.array([row[place] for row in rows], kind) for place, kind in enumerate(kinds)]
    return pa.table(dict(zip(COLUMNS, columns, strict=True)))


def test_the_notifications_of_the_engine_and_of_spark_may_come_in_any_order() -> None:
    compare(notes(*NOTES), notes(*reversed(NOTES)))


@pytest.mark.parametrize(
    ("found", "told"),
    [
        (NOTES[1:], "1 are missing, 0 are too many \\(of worst of JFK"),
        ([*NOTES, NOTES[1]], "0 are missing, 1 are too many \\(of late, and late again"),
        ([*NOTES[:2], (5, "late, and late again", 3, *NOTES[2][3:])], "1 are missing, 1 are too many"),
        ([(*NOTES[0][:4], '{"old":2,"new":3}'), *NOTES[1:]], "1 are missing, 1 are too many"),
    ],
    ids=["missing", "twice", "another start", "another answer"],
)
def test_a_notification_that_differs_on_spark_ends_the_demo(
    found: list[tuple[object, ...]], told: str
) -> None:
    with pytest.raises(TocsinError, match=told):
        compare(notes(*found), notes(*NOTES))
