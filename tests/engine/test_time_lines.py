"""When events reach sequences: ticks, out-of-orderness, late events, and tables with a column of times."""

from __future__ import annotations

import logging
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin import Engine, Event
from tocsin.engine import EventClock, ManualClock
from tocsin.errors import EventError, KindError, SubscriptionError, TocsinError
from tocsin.formats import Fault

PAIR = "from s a next s b"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def engine(**options: Any) -> Engine:
    return Engine(clock=EventClock(), **options)


def at(end: int, name: str | None = None, *, start: int | None = None) -> Event:
    return Event(name or f"e{end}", {"v": end}, "s", end if start is None else start, end)


def pairs(notes: Any) -> list[tuple[str, ...]]:
    return [note.event_ids for note in notes]


# out_of_orderness


def test_without_out_of_orderness_an_event_is_answered_at_once_and_one_before_it_is_late() -> None:
    late: list[Event] = []
    made = engine(on_late=late.append)
    made.subscribe(PAIR, id="x")
    made.subscribe("v > 0", id="f")
    made.publish(at(5))
    assert pairs(made.publish(at(3))) == [("e3",)]  # filters hear of it
    assert pairs(made.publish(at(6))) == [("e6",), ("e5", "e6")]
    assert [event.id for event in late] == ["e3"]
    assert (made.stats().late, made.stats().sequences.waiting) == (1, 0)


def test_within_the_bound_events_are_put_in_order() -> None:
    made = engine(out_of_orderness=10)
    made.subscribe(PAIR, id="x")
    assert [made.publish(at(end)) for end in (20, 15, 25)] == [[], [], []]
    assert made.stats().sequences.waiting == 2  # 15 has had its turn, for 25 has come
    assert pairs(made.publish(at(40))) == [("e15", "e20"), ("e20", "e25")]
    assert pairs(made.flush()) == [("e25", "e40")]
    assert made.flush() == []
    made.publish(at(39))
    assert made.stats().late == 1  # `flush` has let 40 go


def test_buffered_events_reach_earlier_subscriptions_but_no_later_ones() -> None:
    made = engine(out_of_orderness=10)
    made.subscribe(PAIR, id="early")
    made.publish(at(20))
    made.publish(at(18))
    made.subscribe(PAIR, id="late")
    notes = [*made.publish(at(19)), *made.publish(at(21)), *made.publish(at(22)), *made.flush()]
    assert [(note.subscription, note.start, note.end) for note in notes] == [
        ("early", 18, 19),
        ("early", 19, 20),
        ("early", 20, 21),
        ("early", 21, 22),
        ("late", 21, 22),
    ]


def test_an_expired_subscription_still_matches_buffered_events() -> None:
    made = engine(out_of_orderness=10)
    made.subscribe(PAIR, id="x", valid_until=21)
    notes = [note for end in (15, 20, 25, 29, 45) for note in made.publish(at(end))]
    assert pairs(notes) == [("e15", "e20")]
    assert "x" not in made


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=12),
    st.integers(0, 8),
    st.data(),
)
def test_batches_give_the_matches_of_events_one_by_one(
    ends: list[int], out_of_orderness: int, data: st.DataObject
) -> None:
    events = [at(end, f"e{place}") for place, end in enumerate(ends)]
    received = []
    for whole in (False, True):
        made = engine(matcher="oracle", out_of_orderness=out_of_orderness, on_late=lambda _: None)
        made.subscribe(PAIR, id="x", valid_from=3, valid_until=25)
        made.subscribe("from s t", id="f")
        size = data.draw(st.integers(1, 12)) if whole else 1
        notes = [*made.publish_many(events, batch_size=size), *made.flush()]
        received.append(pairs(notes))
    assert received[0] == received[1]


def test_the_first_late_event_is_logged_with_the_remedy(caplog: pytest.LogCaptureFixture) -> None:
    made = engine()
    made.subscribe(PAIR, id="x")
    with caplog.at_level(logging.WARNING, "tocsin"):
        for end in (5, 3, 2):
            made.publish(at(end))
    (record,) = caplog.records
    assert "event `e3` of stream `s` ended at 3" in record.getMessage()
    assert "Engine(out_of_orderness=…)" in record.getMessage()
    assert made.stats().late == 2
    caplog.clear()
    dated = engine()
    dated.subscribe(PAIR, id="x")
    for day in (5, 3):
        dated.publish({"v": 1}, stream="s", time=f"2026-01-0{day}", id=f"e{day}")
    assert "event `e3` of stream `s` ended at 2026-01-03T00:00:00Z, before" in caplog.text


def test_streams_that_no_sequence_reads_are_never_late() -> None:
    made = engine(on_late=lambda event: pytest.fail(event.id))
    made.subscribe(PAIR, id="x")
    made.publish(at(5))
    made.publish({"v": 1}, stream="other", time=1)
    made.publish({"v": 1}, time=0)
    assert pairs(made.publish(at(6))) == [("e5", "e6")]


def test_streams_of_different_ticks_notify_in_the_order_of_arrival() -> None:
    received = []
    for size in (1, 6):
        made = engine()
        made.stream("slow", tick="1 second")
        made.subscribe(PAIR, id="fast")
        made.subscribe("from slow a next slow b", id="slow")
        events = [
            Event(f"{stream}{end}", {}, stream, end, end) for end in (1, 2, 3) for stream in ("slow", "s")
        ]
        received.append(pairs(made.publish_many(events, batch_size=size)))
    assert received[0] == received[1] == [("slow1", "slow2"), ("s1", "s2"), ("slow2", "slow3"), ("s2", "s3")]


def test_on_late_may_fail_and_may_publish() -> None:
    late: list[str] = []

    def fail(event: Event) -> None:
        late.append(event.id)
        raise OSError(event.id)

    made = engine(on_late=fail)
    made.subscribe(PAIR, id="x")
    made.subscribe("v > 0", id="f")
    received: list[tuple[str, ...]] = []
    notes = made.publish_stream([at(end) for end in (5, 6, 3, 2, 7)])
    with pytest.raises(OSError, match="e3"):
        received.extend(note.event_ids for note in notes)  # those before the failure are kept
    assert received == [("e5",), ("e6",), ("e5", "e6"), ("e3",), ("e2",), ("e7",), ("e6", "e7")]
    assert late == ["e3", "e2"]
    made.subscribe(PAIR, id="y")
    assert [note.subscription for note in made.publish(at(8))] == ["f", "x"]

    def republish(event: Event) -> None:
        received.extend(pairs(again.publish({"v": 1}, stream="dead", time=event.end)))

    again = engine(on_late=republish)
    again.subscribe(PAIR, id="x")
    again.subscribe("from dead", id="dead")
    received.clear()
    assert pairs(again.publish_many([at(end) for end in (5, 6, 3, 7)])) == [("e5", "e6"), ("e6", "e7")]
    assert len(received) == 1


def test_a_bound_is_not_negative() -> None:
    with pytest.raises(
        TocsinError,
        match="`out_of_orderness` is a number of ticks from 0 on, or a length such as `5 minutes`, not -1",
    ):
        Engine(out_of_orderness=-1)


def test_an_event_whose_times_are_none_is_refused_and_leaves_no_trace() -> None:
    made = engine()
    made.subscribe(PAIR, id="x")
    made.publish(at(1))
    for wrong in (Event("big", {}, "s", 0, 2**63), Event("back", {}, "s", 9, 5)):
        with pytest.raises(EventError):
            made.publish(wrong)
        assert list(made.publish_many([wrong], on_error=lambda _: None)) == []
    assert pairs(made.publish(at(2))) == [("e1", "e2")]
    assert made.stats().late == 0


# ticks


def test_spans_and_datetimes_count_the_ticks_of_their_stream() -> None:
    made = engine()
    made.stream("s", tick="1 second")
    made.subscribe("from s a next s b where duration <= 2 minutes", id="x")
    made.publish({}, stream="s", time=NOON)
    (note,) = made.publish({}, stream="s", time=(NOON + timedelta(seconds=90)).isoformat())
    assert (note.start, note.end) == (NOON.timestamp(), NOON.timestamp() + 90)
    assert made.publish({}, stream="s", time=int(NOON.timestamp()) + 300) == []


@pytest.mark.parametrize("tick", ["1 minute", timedelta(minutes=1), 60_000_000, "60 seconds"])
def test_a_tick_is_given_in_many_ways(tick: Any) -> None:
    made = engine()
    made.stream("s", tick=tick)
    made.subscribe("from s a next s b within 3 minutes", id="x")
    notes = [note for time in (1, 3, 6) for note in made.publish({}, stream="s", time=time)]
    assert [(note.start, note.end) for note in notes] == [(1, 3)]


@pytest.mark.parametrize("tick", ["a while", "0 seconds", 0, -1, timedelta(0), 1.5, None, "1.5 seconds"])
def test_an_invalid_length_of_time_is_refused_as_a_tick(tick: Any) -> None:
    with pytest.raises(KindError, match="a tick is a length of time such as `1 second`"):
        engine().stream("s", tick=tick)


def test_integer_times_need_a_declared_tick_if_a_sequence_uses_units() -> None:
    made = engine()
    made.publish({}, stream="s", time=1)
    made.subscribe("from s a next s b within 5 minutes", id="x")
    remedy = (
        r"`time`: a sequence uses units of time on stream `s`.* `engine.stream\(\"s\", tick=\"1 second\"\)`"
    )
    with pytest.raises(EventError, match=remedy):
        made.publish({}, stream="s", time=5)
    with pytest.raises(EventError, match="`start`: a sequence uses units of time on stream `s`"):
        made.publish({}, stream="s", time=NOON, start=5)
    faults: list[Fault] = []
    assert list(made.publish_many([{"t": 5}], stream="s", time="t", on_error=faults.append)) == []
    assert "engine.stream" in faults[0].reason
    with pytest.raises(EventError, match=r"engine\.stream"):
        list(made.publish_many(pa.table({"t": [5]}), stream="s", time="t"))
    made.publish(at(5))  # an event made by hand has ticks already
    made.publish({}, stream="s", time=NOON)
    made.publish({}, stream="other", time=5)
    made.unsubscribe("x")
    made.publish({}, stream="s", time=5)


def test_integer_times_are_refused_on_streams_that_feed_a_sequence_with_units() -> None:
    made = engine()
    made.subscribe("from p x next p y within 5 minutes", id="asks")
    made.publish({}, stream="s", time=1)
    made.subscribe("from s a next s b publish as q", id="first")
    made.subscribe("from q a publish as p", id="second")
    with pytest.raises(EventError, match="a sequence uses units of time on stream `s`"):
        made.publish({}, stream="s", time=2)
    made.unsubscribe("second")
    made.publish({}, stream="s", time=2)


def test_a_published_name_counts_like_its_events_only_as_long_as_it_is_used() -> None:
    made = engine()
    made.stream("slow", tick="1 second")
    made.subscribe("from slow a publish as t", id="x")
    made.subscribe("from t a next t b", id="reader")
    made.unsubscribe("x")
    with pytest.raises(SubscriptionError, match="it publishes as `t` in ticks of 1 microseconds"):
        made.subscribe("from s a publish as t", id="y")
    with pytest.raises(TocsinError, match="stream `t` is read by sequences already"):
        made.stream("t", tick="1 hour")
    made.unsubscribe("reader")
    made.subscribe("from s a publish as t", id="y")


def test_a_stream_is_declared_before_it_is_read() -> None:
    made = engine()
    made.subscribe(PAIR, id="x")
    with pytest.raises(TocsinError, match=r"stream `s` is read by sequences already"):
        made.stream("s", tick="1 second")
    made.unsubscribe("x")
    made.stream("s", tick="1 second")
    made.subscribe(PAIR, id="x")
    made.stream("s", tick="1000 milliseconds")  # it is that already


def test_streams_of_different_ticks_have_their_own_time_but_no_sequence_in_common() -> None:
    made = engine()
    made.stream("slow", tick="1 second")
    made.subscribe("from slow a next slow b", id="slow")
    made.subscribe(PAIR, id="fast")
    for time in (NOON, NOON + timedelta(seconds=5)):
        made.publish({}, stream="s", time=time, id="f")
        made.publish({}, stream="slow", time=time, id="s")
    assert made.stats().late == 0
    assert made.stats().notifications == 2
    with pytest.raises(SubscriptionError, match=r"`mixed`: .*a sequence reads streams that count alike"):
        made.subscribe("from slow a next s b", id="mixed")


def test_published_events_have_the_ticks_of_their_sources() -> None:
    made = engine()
    made.stream("slow", tick="1 second")
    made.subscribe("from slow a next slow b publish as twos", id="x")
    made.subscribe("from twos t next slow c within 1 minute", id="y")
    notes = [note.subscription for time in (1, 2, 3) for note in made.publish({}, stream="slow", time=time)]
    assert notes == ["x", "x", "y"]
    made.subscribe("from rare r next rare q", id="reader")
    with pytest.raises(SubscriptionError, match="`z`: it publishes as `rare` in ticks of 1,000,000"):
        made.subscribe("from slow a publish as rare", id="z")


def test_an_event_without_a_time_gets_the_clocks() -> None:
    made = Engine()
    made.stream("s", tick="1 hour")
    (event,) = made.test("true", [{}], stream="s").events
    assert event.end < 1_000_000  # hours since 1970
    by_hand = Engine(clock=ManualClock(7))
    by_hand.stream("s", tick="1 hour")
    assert by_hand.test("true", [{}], stream="s").events[0].end == 7


# tables


def table(ends: list[int | None], **more: list[Any]) -> pa.Table:
    return pa.table({"t": ends, "v": list(range(len(ends))), **more})


def test_a_table_with_a_column_of_times_gives_the_notifications_of_its_rows() -> None:
    rows = table([1, 2, 2, 5, 9])
    received = []
    for source in (rows, iter([rows])):
        made = engine()
        made.subscribe(PAIR + " where b.v > 1", id="x")
        made.subscribe("v = 2", id="f")
        notes = list(made.publish_many(source, stream="s", time="t"))
        gist = [(n.end, n.subscription, n.start, [e.attributes["v"] for e in n.events]) for n in notes]
        assert [note.end for note in notes] == sorted(note.end or 0 for note in notes)
        received.append(sorted(gist))
    assert received[0] == received[1]
    assert received[0] == [
        (2, "f", 2, [2]),
        (2, "x", 1, [0, 2]),
        (5, "x", 2, [1, 3]),
        (5, "x", 2, [2, 3]),
        (9, "x", 5, [3, 4]),
    ]


def test_a_rows_event_has_one_id_for_filters_and_sequences() -> None:
    made = engine()
    made.subscribe(PAIR, id="x")
    made.subscribe("v = 1", id="f")
    filtered, completed = made.publish_many(table([1, 2]), stream="s", time="t")
    assert filtered.event_ids[0] == completed.event_ids[1]


def test_rows_out_of_order_or_without_a_time_are_taken_one_by_one() -> None:
    made = engine(out_of_orderness=5, on_late=lambda _: None)
    made.subscribe(PAIR, id="x")
    faults: list[Fault] = []
    notes = list(made.publish_many(table([5, 3, None, 7, 2]), stream="s", time="t", on_error=faults.append))
    notes += made.flush()
    assert [(note.start, note.end) for note in notes] == [(2, 3), (3, 5), (5, 7)]
    assert [str(fault) for fault in faults] == ["event:3: the record has no `t`, which should hold its time"]


def test_a_faulty_row_moves_no_time() -> None:
    made = engine()
    rows = pa.table({"begin": [1, 900], "end": [2, 800]})
    assert list(made.publish_many(rows, stream="s", time="end", start="begin", on_error=lambda _: None)) == []
    made.subscribe(PAIR, id="x", valid_until=500)
    assert [note.start for end in (3, 4) for note in made.publish(at(end))] == [3]


def test_times_of_a_table_may_be_timestamps_texts_and_spans() -> None:
    begin = [NOON, NOON + timedelta(seconds=3)]
    end = [NOON + timedelta(seconds=1), NOON + timedelta(seconds=4)]
    made, rows = engine(), pa.table({"begin": begin, "end": end})
    for times in (end, [time.isoformat() for time in end]):
        made = engine()
        made.stream("s", tick="1 second")
        made.subscribe(PAIR, id="x")
        rows = pa.table({"begin": begin, "end": times})
        (note,) = made.publish_many(rows, stream="s", time="end", start="begin")
        assert (note.start, note.end) == (int(NOON.timestamp()), int(NOON.timestamp()) + 4)
    faults: list[Fault] = []
    wrong = pa.table({"begin": [5, 5], "end": [3, 6]})
    list(engine().publish_many(wrong, stream="s", time="end", start="begin", on_error=faults.append))
    assert [fault.reason for fault in faults] == ["the event starts at 5, after its end at 3"]
    with pytest.raises(EventError, match="no column `when`"):
        list(made.publish_many(rows, stream="s", time="when"))


def test_a_table_without_times_gives_each_row_its_own() -> None:
    made = Engine()
    made.subscribe(PAIR, id="x")
    rows = pa.table({"v": list(range(200))})
    assert made.stats().late == 0
    assert len(list(made.publish_many(rows, stream="s"))) > 100  # nearly all differ in the microsecond


def test_follow_gives_columns() -> None:
    made = engine()
    made.subscribe(PAIR + " select a.v as first, b.v - a.v as gap", id="x")
    made.subscribe(PAIR + " where b.v = 3", id="y", valid_from=3)
    made.subscribe("true", id="filter")
    found = made.match_sequences(table([1, 2, 3, 4]), stream="s", time="t")
    assert found.to_arrow().to_pylist() == [
        {"row": 1, "subscription": "x", "start": 1, "end": 2, "values": '{"first":0,"gap":1}'},
        {"row": 2, "subscription": "x", "start": 2, "end": 3, "values": '{"first":1,"gap":1}'},
        {"row": 3, "subscription": "x", "start": 3, "end": 4, "values": '{"first":2,"gap":1}'},
        {"row": 3, "subscription": "y", "start": 3, "end": 4, "values": None},
    ]
    assert len(found) == made.stats().notifications == 4
    more = made.match_sequences(table([6]), stream="s", time="t")
    assert (more.subscriptions, more.rows.tolist(), more.starts.tolist()) == (("x",), [0], [4])
    assert len(made.match_sequences(table([]), stream="s", time="t")) == 0
    assert len(made.match_sequences(table([7]), stream="unread", time="t")) == 0


def test_match_sequences_refuses_an_unordered_table_and_processes_none_of_it() -> None:
    made = engine()
    made.subscribe(PAIR, id="x")
    with pytest.raises(EventError, match="sort the table"):
        made.match_sequences(table([2, 1]), stream="s", time="t")
    with pytest.raises(EventError, match="row 1 is no event: the record has no `t`"):
        made.match_sequences(table([1, None]), stream="s", time="t")
    with pytest.raises(EventError, match=r"a table is expected, .* not list; make one of dicts"):
        made.match_sequences([{"t": 1}], stream="s", time="t")
    assert made.stats().published == 0
    assert len(made.match_sequences(table([1, 2]), stream="s", time="t")) == 1
    with pytest.raises(EventError, match="end before events that have come"):
        made.match_sequences(table([1]), stream="s", time="t")
