"""Times as users have them: texts without a zone, days, epoch seconds; and bounds of validity as dates."""

from __future__ import annotations

import logging
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.formats import EventFields, EventReader, Fault, open_events
from tocsin.model import Event
from tocsin.model.errors import EventError, KindError, TocsinError
from tocsin.model.ticks import StreamTicks, TimeUnit, duration_text, guess_unit
from tocsin.model.timestamps import microseconds

NINE = datetime(2013, 1, 1, 9, tzinfo=UTC)
AT = microseconds(NINE)
HUGE = 10**5_000  # that Python refuses to write


def engine(**options: Any) -> Engine:
    made = Engine(clock=EventClock(), **options)
    made.subscribe("true", id="every")
    return made


def end_of(time: Any, stream: str | None = "s", **options: Any) -> int | None:
    return engine(**options).publish({"a": 1}, stream=stream, time=time)[0].end


@pytest.mark.parametrize(
    "time",
    [
        "2013-01-01T09:00:00Z", "2013-01-01T09:00", "2013-01-01 09:00:00", "2013-01-01T10:00+0100", NINE,
        datetime(2013, 1, 1, 9),  # noqa: DTZ001 - that is the point
        np.datetime64("2013-01-01T09:00"), AT // 1_000_000, AT / 1e6, AT // 1_000, AT, AT * 1_000, np.int64(AT // 1_000),
    ],
)  # fmt: skip
def test_a_time_is_read_in_any_usual_form(time: Any) -> None:
    assert end_of(time) == AT
    table = pa.table({"a": [1], "t": [time if not isinstance(time, np.generic) else time.item()]})
    notes = engine().publish_many(table, stream="s", time="t")
    assert [note.end for note in notes] == [AT]
    assert [note.end for note in engine().publish_many([{"a": 1, "t": time}], stream="s", time="t")] == [AT]


def test_a_day_is_its_first_moment_and_small_numbers_are_ticks() -> None:
    assert end_of("2013-01-01") == end_of(date(2013, 1, 1)) == AT - 9 * 3_600_000_000
    assert end_of(17) == end_of(17.0) == 17
    with pytest.raises(
        EventError, match=r"a whole number of ticks, a datetime or a text of ISO 8601, not 17\.5"
    ):
        end_of(17.5)
    with pytest.raises(EventError, match="nan is no time"):
        end_of(float("nan"))
    with pytest.raises(EventError, match="not a bool"):
        end_of(True)


def test_the_first_number_decides_the_unit_which_is_said_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "tocsin")
    made = engine()
    ends = [
        made.publish({"a": 1}, stream="s", time=time)[0].end for time in (AT // 10**6, AT // 10**6 + 1, 5)
    ]
    assert ends == [AT, AT + 1_000_000, 5_000_000]
    said = [one.getMessage() for one in caplog.records]
    [one] = said
    assert one.startswith("the times of stream `s` are numbers, which are read as seconds since 1970; ")
    assert one.endswith("the first, 1357030800, is 2013-01-01T09:00:00Z")
    assert made.publish({"a": 1}, stream="other", time=5)[0].end == 5


@pytest.mark.parametrize(
    "wrong",
    [float("nan"), float("inf"), 17.5, 1e308, 10**40, HUGE],
    ids=["nan", "inf", "part", "float", "integer", "huge"],
)
@pytest.mark.parametrize("as_table", [False, True])
def test_a_number_that_is_no_time_does_not_decide_the_unit(wrong: float, as_table: bool) -> None:
    made, faults = engine(), list[Fault]()
    with pytest.raises(EventError, match="`time`: "):
        made.publish({"a": 1}, time=wrong)
    rows: Any = [{"a": 1, "t": time} for time in (wrong, AT // 10**6, AT // 10**6 + 1)]
    if as_table and isinstance(wrong, float):
        rows = pa.Table.from_pylist(rows)
    found = made.publish_many(rows, time="t", on_error=faults.append)
    assert [note.end for note in found] == [AT, AT + 1_000_000]
    assert len(faults) == 1


def test_a_block_of_streams_of_which_one_begins_with_no_time_is_read_row_by_row(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    seconds = AT // 10**6
    times = [float(seconds), 17.5, float(seconds), float(seconds + 1)]
    pq.write_table(pa.table({"s": ["a", "b", "b", "a"], "t": times, "a": [1, 1, 1, 1]}), path)
    reader = EventReader(EventFields(stream="s", time="t"))
    found = engine().publish_many(open_events(path, reader).blocks(), on_error=lambda _: None)
    assert [note.end for note in found] == [AT, AT, AT + 1_000_000]


@pytest.mark.parametrize("time", [1e308, HUGE], ids=["float", "integer"])
def test_a_number_that_is_too_large_is_a_fault(time: float) -> None:
    made = engine()
    made.publish({"a": 1}, time=AT / 10**6)
    with pytest.raises(EventError, match=r"is no time|does not fit into 64 bits"):
        made.publish({"a": 1}, time=time)
    faults: list[Fault] = []
    assert (
        len(made.publish_many([{"a": 1, "t": time}, {"a": 1, "t": 5}], time="t", on_error=faults.append)) == 1
    )
    assert [fault.line for fault in faults] == [1]


def test_a_unit_that_is_named_holds_whatever_the_size() -> None:
    assert end_of(5, time_unit="s") == end_of(5_000, time_unit="milliseconds") == 5_000_000
    assert end_of(AT // 10**6, time_unit="ticks") == AT // 10**6
    assert end_of(1.5, time_unit="seconds") == 1_500_000
    with pytest.raises(KindError, match="`fortnights` is no unit of a time field"):
        Engine(time_unit="fortnights")
    with pytest.raises(KindError, match="`5` is no unit of a time field"):
        Engine(time_unit=5)  # type: ignore[arg-type]


def test_numbers_of_a_stream_with_a_declared_tick_count_its_ticks() -> None:
    made = engine(time_unit="ms")
    made.stream("s", tick="1 second")
    assert made.publish({"a": 1}, stream="s", time=AT // 1_000_000)[0].end == AT // 1_000_000
    assert made.publish({"a": 1}, stream="s", time="2013-01-01T09:00")[0].end == AT // 1_000_000


@given(st.lists(st.floats(0, 4e9) | st.integers(0, 4 * 10**9), min_size=1, max_size=8))
def test_columns_of_numbers_are_read_as_one_by_one(numbers: list[float]) -> None:
    array = np.array(numbers)
    one, all_ = StreamTicks(), StreamTicks()
    read = all_.read_column(array, "s")
    if read is not None:
        assert [one.read_field(number, "s") for number in array.tolist()] == read.tolist()


def test_units_follow_from_the_size() -> None:
    sizes = (10**8 - 1, 10**8, 10**11 - 1, 10**11, 10**14, 10**17 - 1, 10**17, -(10**9))
    assert [guess_unit(number) for number in sizes] == [
        TimeUnit.TICKS, TimeUnit.SECONDS, TimeUnit.SECONDS, TimeUnit.MILLISECONDS, TimeUnit.MICROSECONDS,
        TimeUnit.MICROSECONDS, TimeUnit.NANOSECONDS, TimeUnit.SECONDS,
    ]  # fmt: skip


def test_a_sequence_with_units_takes_epoch_seconds_and_refuses_plain_ticks() -> None:
    made = engine()
    made.subscribe("from s a next s b where b.a > a.a within 10 minutes", id="pair")
    found = [made.publish({"a": i}, stream="s", time=AT // 10**6 + 300 * i) for i in range(3)]
    assert [[note.subscription for note in notes] for notes in found] == [
        ["every"],
        ["every", "pair"],
        ["every", "pair"],
    ]
    other = engine()
    other.subscribe("from s a next s b within 10 minutes")
    with pytest.raises(EventError, match="a sequence uses units of time on stream `s`"):
        other.publish({"a": 1}, stream="s", time=5)


def test_times_without_a_zone_are_of_the_engines() -> None:
    oslo = timezone(timedelta(hours=1))
    for zone in ("Europe/Oslo", "+01:00", oslo):
        for time in ("2013-01-01T10:00", datetime(2013, 1, 1, 10), "2013-01-01T09:00Z"):  # noqa: DTZ001 - the point
            assert end_of(time, timezone=zone) == AT
    made = engine(timezone=oslo)
    note = made.publish({"at": datetime(2013, 1, 1, 10)}, time=1)[0]  # noqa: DTZ001 - the point
    assert note.events[0].attributes == {"at": NINE}
    with pytest.raises(KindError, match="'Mars/Base' is no time zone"):
        Engine(timezone="Mars/Base")


NAIVE = {"at": datetime(2013, 1, 1, 10), "n": 1}  # noqa: DTZ001 - the point
FORMS: dict[str, Any] = {
    "dicts": lambda: [NAIVE, NAIVE],
    "columns of dicts": lambda: [NAIVE] * 40,
    "a table": lambda: pa.Table.from_pylist([NAIVE, NAIVE]),
    "a frame of pandas": lambda: pa.Table.from_pylist([NAIVE, NAIVE]).to_pandas(),
    "batches": lambda: iter(pa.Table.from_pylist([NAIVE, NAIVE]).to_batches()),
    "rows of a table": lambda: pa.Table.from_pylist(
        [{**NAIVE, "n": Decimal("123456789012345678901234.5")}] * 2
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_whatever_has_no_zone_is_of_the_engines(form: str) -> None:
    made = engine(timezone="Europe/Oslo")
    made.subscribe("at = timestamp '2013-01-01T09:00:00Z'", id="nine")
    notes = made.publish_many(FORMS[form](), time="at")
    assert {note.subscription for note in notes} == {"every", "nine"}
    assert {note.end for note in notes} == {AT}
    assert {note.events[0].attributes["at"] for note in notes} == {NINE}
    assert set(made.match(FORMS[form]()).ids) == {"every", "nine"}
    assert made.test("at = timestamp '2013-01-01T09:00:00Z'", FORMS[form]()).fired > 1


@pytest.mark.parametrize("tick", [None, "1 second", "7 seconds", "1 day"])
def test_bounds_of_validity_are_dates_on_streams_of_any_tick(tick: str | None) -> None:
    made = Engine(clock=EventClock())
    if tick is not None:
        made.stream("s", tick=tick)
    bounds: dict[str, Any] = {"valid_from": datetime(2013, 1, 2, tzinfo=UTC), "valid_until": "2013-01-04"}
    made.subscribe("from s where true", id="filter", **bounds)
    made.subscribe("from s a where true", id="sequence", **bounds)
    made.table("s", key="k")
    made.subscribe("select count(*) from table s where a between 0 and 100", id="view", **bounds)
    [stored, *_] = made.subscriptions()
    assert (stored.valid_from, stored.valid_until) == (
        datetime(2013, 1, 2, tzinfo=UTC),
        datetime(2013, 1, 4, tzinfo=UTC),
    )
    early = made.explain("filter", {"a": 1}, stream="s", time="2013-01-01").outside
    assert [
        one.startswith("it is valid from 2013-01-02T00:00:00Z, the event ended at ") for one in early
    ] == [True]
    found = []
    for day in range(1, 6):
        notes = made.publish({"k": day, "a": day}, stream="s", time=f"2013-01-0{day}T12:00")
        found.append({note.subscription for note in notes})
    assert found == [set(), {"filter", "sequence", "view"}, {"filter", "sequence", "view"}, set(), set()]


def test_delays_are_lengths_of_time_too() -> None:
    made = Engine(clock=EventClock(), out_of_orderness="1 minute", lateness=timedelta(minutes=5))
    made.stream("s", tick="1 second")
    made.subscribe("from s a next s b where b.a > a.a", id="pair")
    ends = [
        note.end for time in (100, 50, 170, 240) for note in made.publish({"a": time}, stream="s", time=time)
    ]
    assert ends == [100, 170]
    assert [note.end for note in made.flush()] == [240]
    for none in (0, "0 minutes", timedelta(0)):
        assert Engine(out_of_orderness=none).publish({"a": 1}) == []
    for bad in (-1, "soon", 1.5, timedelta(-1), True):
        with pytest.raises(TocsinError, match="`out_of_orderness` is a number of ticks"):
            Engine(out_of_orderness=bad)  # type: ignore[arg-type]


def test_an_event_clock_has_no_time_for_sequences() -> None:
    made = Engine(clock=EventClock())
    made.publish({"a": 1}, stream="s")
    made.subscribe("from s a next s b", id="pair")
    with pytest.raises(
        EventError, match="the event has no time, and an `EventClock` takes the time from events"
    ):
        made.publish({"a": 1}, stream="s")
    reported: list[object] = []
    made.publish_many([{"a": 1}], stream="s", on_error=reported.append)
    assert len(reported) == 1
    made.publish({"a": 1}, stream="other")
    valid = Engine(clock=EventClock())
    valid.subscribe("a = 1", valid_from=5)
    with pytest.raises(EventError, match="the event has no time"):
        valid.publish({"a": 1})
    valid.publish({"a": 1}, time=7)
    assert len(valid.publish({"a": 1})) == 1


@pytest.mark.parametrize("given", [5, None, 1.5])
def test_what_cannot_be_iterated_is_refused_by_name(given: Any) -> None:
    made = Engine()
    for refused in (made.publish_many, made.match):
        with pytest.raises(EventError, match=f"events are expected, not {type(given).__name__}"):
            refused(given)
    with pytest.raises(TocsinError, match="rows are mappings of parameter to value, or a table"):
        made.subscribe_many("price > :p", given)
    with pytest.raises(TocsinError, match="a set maps ids to queries, or lists `Subscription`s, not"):
        made.apply(given)
    with pytest.raises(TocsinError, match="there is no matcher `5`; known: adaptive, amkh, "):
        Engine(matcher=5)  # type: ignore[arg-type]


def test_one_event_is_no_source_of_events() -> None:
    made = engine()
    for one in ({"a": 1}, "events.jsonl", b"{}"):
        for call in (made.match, made.publish_many, lambda given: made.test("a = 1", given)):
            with pytest.raises(EventError, match="events are expected"):
                call(one)


def test_json_lines_show_dates_and_ticks_as_they_are() -> None:
    made = engine()
    table = made.publish_many([{"a": 1, "t": AT // 1000}], stream="s", time="t")
    [line] = table.json_lines(made.ticks)
    assert b'"start":"2013-01-01T09:00:00Z"' in line
    [plain] = table.json_lines()
    assert b'"start":%d' % AT in plain
    [ticks] = made.publish_many([{"a": 1, "t": 3}], stream="counted", time="t").json_lines(made.ticks)
    assert b'"end":3' in ticks


def test_files_are_read_in_the_zone_of_their_reader(tmp_path: Path) -> None:
    path = tmp_path / "events.parquet"
    pq.write_table(pa.Table.from_pylist([NAIVE]), path)
    reader = EventReader(EventFields(time="at"), ticks=engine(timezone="Europe/Oslo").ticks)
    for events in (open_events(path, reader), open_events(path, reader).blocks()):
        [note] = engine(timezone="Europe/Oslo").publish_many(events)
        assert (note.end, note.events[0].attributes["at"]) == (AT, NINE)


def test_units_survive_saving(tmp_path: Path) -> None:
    made = engine(timezone="+01:00", time_unit=None, out_of_orderness=timedelta(seconds=5))
    made.publish({"a": 1}, stream="s", time=AT // 10**6)
    made.subscribe("a = 2", id="dated", valid_until="2014-01-01T00:00")
    made.save(tmp_path / "saved.tocsin")
    again = Engine.open(tmp_path / "saved.tocsin")
    assert [note.end for note in again.publish({"a": 1}, stream="s", time=7)] == [7_000_000]
    assert {one.id: one.valid_until for one in again.subscriptions()}["dated"] == datetime(
        2013, 12, 31, 23, tzinfo=UTC
    )
    assert again.ticks.zone.utcoffset(None) == timedelta(hours=1)


def test_lengths_are_shown_in_their_largest_unit() -> None:
    assert [duration_text(86_400 * 10**6 * days) for days in (1, 7, 10)] == ["1 day", "1 week", "10 days"]
    assert duration_text(0) == "0 microseconds"
    assert duration_text(999_999) == "999,999 microseconds"
    assert duration_text(5_000_000_000) == "1 hour 23 minutes 20 seconds"
    assert duration_text(3_600_250_000) == "1 hour 0.25 seconds"
    assert duration_text(5_000 * 86_400 * 10**6) == "5,000 days"
    assert duration_text(400 * 86_400 * 10**6 + 1) == "400 days 0.000001 seconds"


def test_times_without_a_zone_are_in_the_zone_of_the_engine_everywhere() -> None:
    made = Engine(timezone="America/New_York", clock=EventClock())
    noon = datetime.fromisoformat("2026-01-31T12:00")  # in New York, 17:00 in UTC
    made.subscribe("t = timestamp '2026-01-31T17:00:00Z'", id="filter")
    [found] = made.publish(Event("e", {"t": noon}, None, 1, 1))
    [also] = made.publish_many([Event("f", {"t": noon}, None, 2, 2)])
    assert found.events[0].attributes == also.events[0].attributes
    made.table("rows", key="id")
    made.subscribe("select max(t) from table rows", id="view")
    changed = made.upsert(pa.table({"id": [1], "t": [noon]}), stream="rows")
    assert changed.new.tolist() == [datetime(2026, 1, 31, 17, tzinfo=UTC)]
    made.subscribe(
        "from s a next s b on b.t = a.t where b.t = timestamp '2026-01-31T17:00:00Z'", id="sequence"
    )
    rows = pa.table({"t": [noon, noon], "at": [3, 4]})
    assert made.match_sequences(rows, stream="s", time="at").subscriptions == ("sequence",)


DAYS = [{"at": f"2013-01-{day:02}", "a": day} for day in (1, 20)]
NEXT = "from s a next s b within 2 days"


def test_a_dry_run_says_that_a_sequence_took_the_time_of_reading() -> None:
    made = Engine()
    for rows in (DAYS, pa.Table.from_pylist(DAYS), iter(DAYS)):
        (warning,) = made.test(NEXT, rows, stream="s").warnings
        assert warning.endswith('name the attribute with their own, perhaps `time="at"`')
    assert made.test(NEXT, DAYS, stream="s", time="at").warnings == ()
    assert made.test("a = 1", DAYS, stream="s").warnings == ()
    ordered = [{"a": 1}, {"a": 2}]  # nothing there could be a time
    assert made.test(NEXT, ordered, stream="s").warnings == ()
    made.stream("s", tick="1 hour")
    assert len(made.test(NEXT, DAYS, stream="s").warnings) == 1
    assert (
        made.test(NEXT, [Event(str(end), {"at": "2013-01-01"}, "s", end, end) for end in (1, 2)]).fired == 1
    )


def test_a_dry_run_with_an_event_clock_says_that_there_is_no_time() -> None:
    run = Engine(clock=EventClock()).test(NEXT, [{"a": 1}, {"a": 2}], stream="s")
    assert run.fired == 0
    assert run.warnings == (
        "the events have the time at which they are read: name the attribute with their own, `time=`",
    )


@pytest.mark.parametrize("form", [list, tuple, pa.Table.from_pylist])
def test_a_time_that_nobody_named_is_said_once(form: Any, caplog: pytest.LogCaptureFixture) -> None:
    made = Engine()
    made.subscribe(NEXT)
    made.publish_many(form(DAYS), stream="other")
    made.publish_many(form(DAYS), stream="s", time="at")
    assert caplog.messages == []
    made = Engine()
    made.subscribe(NEXT)
    for _ in range(2):
        made.publish_many(form(DAYS), stream="s")
        list(made.publish_stream(form(DAYS), stream="s"))
    (said,) = caplog.messages
    assert said.startswith("events of stream `s` have the time at which they are published")
    assert said.endswith('set `time="at"`')


def test_nothing_is_said_of_events_that_happen_when_they_are_published(
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = Engine()
    made.subscribe(NEXT)
    made.publish_many([{"a": 1}, {"a": 2}], stream="s")
    made.publish({"at": "2013-01-01"}, stream="s")
    made.publish_many([], stream="s")
    assert caplog.messages == []


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_a_file_is_read_as_a_call_says(tmp_path: Path, suffix: str, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / f"s.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(DAYS), path)
    else:
        path.write_text("".join(f'{{"at": "{row["at"]}", "a": {row["a"]}}}\n' for row in DAYS))

    def engine() -> Engine:
        made = Engine(timezone="Europe/Oslo")
        made.subscribe("from s a next s b within 30 days", id="month")
        made.subscribe("from other where a > 1", id="other")
        return made

    (note,) = engine().publish_many(open_events(path), time="at")  # of stream `s`, as the file is called
    assert (note.subscription, note.start) == ("month", microseconds(datetime(2012, 12, 31, 23, tzinfo=UTC)))
    assert engine().test(NEXT, open_events(path), time="at").fired == 0
    assert [list(ids) for ids in engine().match(open_events(path), stream="other")] == [[], ["other"]]
    assert caplog.messages == []
    assert len(list(engine().publish_stream(open_events(path)))) == 1
    assert caplog.messages[0].endswith('set `time="at"`')
    own = open_events(path, EventReader(EventFields(time="at"), stream="s"))
    with pytest.raises(EventError, match="the file was opened with an `EventReader`"):
        engine().publish_many(own, time="at")
    assert len(engine().publish_many(own)) == 1
