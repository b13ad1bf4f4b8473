"""Lists of dicts are published by the column, with the notifications and faults of one at a time."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.engine.test_files import FILTERS
from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.formats.dict_blocks import dict_block
from tocsin.formats.notifications import notification_record

VALUES = st.one_of(
    st.integers(-3, 3),
    st.floats(),
    st.booleans(),
    st.none(),
    st.text(max_size=3),
    st.sampled_from(
        [
            2**53 + 1,
            2**63,
            -(2**63),
            "\ud800",
            "2026-01-01T00:00:00Z",
            Decimal("2.5"),
            datetime(2026, 1, 1, tzinfo=UTC),
        ]
    ),
    st.sampled_from([[1], {"c": 2}, {"c": {"d": 1.5}}, b"x", datetime(2026, 1, 1)]),  # noqa: DTZ001 - refused
)
NAMES = st.sampled_from(["a", "a", "b", "b", "c", "a.c", "specversion", "$stream", "_deleted", "\ud800"])
ODD = st.one_of(st.dictionaries(NAMES, VALUES, max_size=3), st.sampled_from([None, 5, {1: 2}]))
PLAIN = [{"a": i % 5, "b": f"t{i}", "c": i + 0.5 if i % 3 else i} for i in range(40)]


def published(rows: list[Any], *, at_once: bool, **options: Any) -> tuple[Any, ...]:
    engine = Engine(clock=EventClock(0))
    for name, text in FILTERS.items():
        engine.subscribe(text, id=name)
    faults: list[tuple[int, str]] = []
    found = engine.publish_many(
        rows if at_once else iter(rows),
        stream="s",
        on_error=lambda fault: faults.append((fault.line, fault.reason)),
        **options,
    )
    records = [{**notification_record(note), "event_ids": None} for note in found]
    for record in records:
        for event in record["events"]:
            event["id"] = None
    stats = engine.stats()
    return (
        records,
        faults,
        found.to_arrow().drop(["generation"]),
        stats.published,
        stats.refused,
        stats.opaque_values,
    )


@given(st.lists(ODD, max_size=4), st.integers(0, 40), st.sampled_from([None, 7, 20]))
@settings(max_examples=150)
def test_a_list_of_dicts_is_published_alike(odd: list[Any], count: int, size: int | None) -> None:
    rows = [*PLAIN[:count], *odd, *PLAIN[count:]]
    assert published(rows, at_once=True, batch_size=size) == published(rows, at_once=False, batch_size=size)


@given(st.lists(ODD, max_size=2), st.integers(0, 40))
@settings(max_examples=50)
def test_a_list_of_dicts_is_matched_alike(odd: list[Any], count: int) -> None:
    engine = Engine()
    for name, text in FILTERS.items():
        engine.subscribe(text, id=name)
    rows = [*PLAIN[:count], *odd, *PLAIN[count:]]
    together, alone = engine.match(rows, stream="s"), engine.match(iter(rows), stream="s")
    assert list(together) == list(alone)
    assert together.faults == alone.faults


@pytest.mark.parametrize("time", ["a", "c", "b", "nothing"])
def test_dicts_have_their_times_in_a_field(time: str) -> None:
    assert published(PLAIN, at_once=True, time=time) == published(PLAIN, at_once=False, time=time)


def test_plain_dicts_are_a_block() -> None:
    assert dict_block(PLAIN) is not None
    assert dict_block([{"a": None}, {}, {"b": "ü"}]) is not None
    odd: list[Any] = [
        {"a": float("nan")},
        {"a": 2**63},
        {"a": []},
        {"a": "\ud800"},
        {"_deleted": True},
        {1: 2},
        None,
    ]
    for row in odd:
        assert dict_block([*PLAIN, row]) is None


def test_a_dict_may_change_after_it_was_published() -> None:
    engine = Engine()
    engine.subscribe("a = 1", id="x")
    rows = [{"a": 1} for _ in range(50)]
    found = engine.publish_many(rows)
    for row in rows:
        row["a"] = 2
    assert {note.events[0].attributes["a"] for note in found} == {1}
