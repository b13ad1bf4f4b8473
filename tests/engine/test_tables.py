"""Arrow tables in the engine: matched by the column, they give what their rows give one by one."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.matching.arrow_tables import tables
from tests.strategies import conditions, predicates
from tocsin import Engine
from tocsin.engine import ManualClock
from tocsin.engine.event_sources import as_columns
from tocsin.formats import Fault
from tocsin.formats.arrow_rows import arrow_rows
from tocsin.formats.records import UnreadableRecord
from tocsin.model import Condition, Filter, Notification

# times of which one is out of the range of datetimes: its row is no event
TOO_LATE_SECOND = pa.array([0, 10**15, 0, 0], pa.timestamp("s"))
TOO_LATE_THIRD = pa.array([0, 0, 10**15, 0], pa.timestamp("s"))
asked = st.lists(st.one_of(predicates(), predicates(), conditions(max_leaves=3)), min_size=1, max_size=6)
streams = st.sampled_from([None, "", "s", "t"])


def engine(asked: list[Condition], matcher: str = "oracle") -> Engine:
    """An engine with questions of one stream, of any, and for a time."""
    made = Engine(matcher=matcher, clock=ManualClock(100))
    for number, condition in enumerate(asked):
        made.subscribe(Filter(condition), id=f"q{9 - number}")
    made.subscribe(Filter(asked[0], "s"), id="of-s")
    made.subscribe(Filter(asked[0]), id="over", valid_from=200)
    made.subscribe(Filter(asked[0]), id="on", valid_from=100, valid_until=101)
    return made


def gist(note: Notification) -> tuple[Any, ...]:
    """All of a notification but the id that was made for its event."""
    (event,) = note.events
    attributes = dict(event.attributes)
    return note.subscription, note.values, note.start, note.end, note.generation, attributes, event.stream


@pytest.mark.parametrize("matcher", ["oracle", "propagation-wp"])
@given(table=tables(), asked=asked, stream=streams)
def test_a_table_matches_as_its_rows_one_by_one(
    matcher: str, table: Any, asked: list[Condition], stream: str | None
) -> None:
    whole, single = engine(asked, matcher), engine(asked)
    found, wanted = whole.match(table, stream=stream), single.match(iter([table]), stream=stream)
    assert list(found) == list(wanted)
    assert found.faults == wanted.faults
    counts, expected = whole.stats(), single.stats()
    assert (counts.refused, counts.opaque_values) == (expected.refused, expected.opaque_values)


@given(table=tables(), asked=asked, stream=streams)
def test_a_table_matches_as_a_list_of_dicts(table: Any, asked: list[Condition], stream: str | None) -> None:
    batches = table.to_batches() if isinstance(table, pa.Table) else [table]
    records = [record for _, record in arrow_rows(batches)]
    if not any(isinstance(record, UnreadableRecord) for record in records):
        made = engine(asked, "propagation-wp")
        found, wanted = made.match(table, stream=stream), made.match(records, stream=stream)
        assert (list(found), found.faults) == (list(wanted), wanted.faults)


@given(table=tables(), asked=asked, stream=streams, size=st.sampled_from([None, 1, 2, 5]))
def test_a_table_is_published_as_its_rows_one_by_one(
    table: Any, asked: list[Condition], stream: str | None, size: int | None
) -> None:
    whole, single = engine(asked), engine(asked)
    received: list[list[Any]] = [[], []]
    for made, source, log in ((whole, table, received[0]), (single, iter([table]), received[1])):
        for note in made.publish_many(source, stream=stream, on_error=log.append, batch_size=size or 1000):
            log.append(gist(note))
    assert received[0] == received[1]
    counts, expected = whole.stats(), single.stats()
    assert (counts.published, counts.refused) == (expected.published, expected.refused)
    assert counts.notifications == expected.notifications


@pytest.mark.parametrize(
    "columns",
    [
        {"a": [1, 1], "$delete": [True, None]},
        {"a": [1, 1], "_deleted": [False, True]},
        {"a": [1, 1], "$stream": ["s", None]},
        {
            "a": [1, 1],
            "specversion": ["1.0", None],
            "id": ["1", "2"],
            "source": ["x", "y"],
            "type": ["s", "s"],
        },
        {"a": [1, 1], "b": pa.array([86_400_000, None], pa.date64())},
    ],
    ids=lambda columns: list(columns)[1],
)
def test_tables_of_deletions_and_cloud_events_are_read_row_by_row(columns: dict[str, Any]) -> None:
    made = Engine(matcher="propagation-wp", clock=ManualClock(100))
    made.subscribe("a = 1", id="x")
    made.subscribe("select * from s where a = 1", id="y")
    table = pa.table(columns)
    assert as_columns(table, None) is None
    found, wanted = made.match(table), made.match(iter([table]))
    assert (list(found), found.faults) == (list(wanted), wanted.faults)
    assert [gist(n) for n in made.publish_many(table)] == [gist(n) for n in made.publish_many(iter([table]))]


def test_when_the_report_of_a_fault_fails_the_rows_before_it_are_published() -> None:
    class StopError(Exception):
        pass

    def report(_: Fault) -> None:
        raise StopError

    made = Engine()
    made.subscribe("a > 0", id="x")
    notes = made.publish_stream(pa.table({"a": [1.0, 2.0, 9.0, 3.0], "t": TOO_LATE_THIRD}), on_error=report)
    assert [next(notes).subscription, next(notes).subscription] == ["x", "x"]
    with pytest.raises(StopError):
        next(notes)
    assert made.stats().refused == 1
    assert made.stats().published == 2


def test_ids_come_in_the_order_of_their_names_and_faults_with_their_lines() -> None:
    made = Engine(matcher="propagation-wp")
    for name in ("b", "ü", "a", "Z"):
        made.subscribe("a >= 1", id=name)
    found = made.match(pa.table({"a": [1.0, 9.0, 0.0, 2.0], "t": TOO_LATE_SECOND}))
    assert list(found) == [("Z", "a", "b", "ü"), (), (), ("Z", "a", "b", "ü")]
    assert [(fault.source, fault.line) for fault in found.faults] == [("event", 2)]
    assert list(made.match(pa.table({"a": pa.array([], pa.int8())}))) == []
