"""`tocsin demo`, and the alerts that it generates."""

from __future__ import annotations

from tests.cli.running import tocsin
from tocsin import Engine
from tocsin.cli.alerts import ALERTS, travellers_alerts
from tocsin.cli.demo import QUERIES
from tocsin.cli.flights import flights_table


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
