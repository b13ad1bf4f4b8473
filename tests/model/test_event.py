import copy
from datetime import UTC, datetime, time, timedelta, timezone
from decimal import Decimal
from typing import Any
from uuid import UUID

import numpy as np
import pandas as pd
import pytest

from tocsin.model import Event, read_event
from tocsin.model.errors import EventError
from tocsin.model.event import check_event, flatten
from tocsin.model.values import Opaque


def test_nested_events_are_flattened_to_dotted_paths() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": "x"}, "e": True}) == {"a.b.c": 1, "a.d": "x", "e": True}


def test_null_and_nan_are_absence() -> None:
    nan = float("nan")
    assert flatten(
        {"a": None, "b": nan, "c": {"d": Decimal("nan"), "e": None}, "f": np.float32(nan), "g": 1}
    ) == {"g": 1}
    assert flatten({"a": np.datetime64("NaT"), "b": np.timedelta64("NaT"), "c": pd.NaT, "d": pd.NA}) == {}


def test_what_cannot_be_compared_is_opaque_and_named() -> None:
    named: list[str] = []
    data = {
        "a": b"x",
        "b": [1],
        "c": {"d": (1, 2), "e": timedelta(1)},
        "f": UUID(int=0),
        "g": time(1),
        "h": {1},
        "i": 1,
    }
    event = read_event(data, id="e", opaque=named.append)
    types = {
        "a": "bytes",
        "b": "list",
        "c.d": "tuple",
        "c.e": "timedelta",
        "f": "UUID",
        "g": "time",
        "h": "set",
    }
    assert event.attributes == {**{path: Opaque(name) for path, name in types.items()}, "i": 1}
    assert sorted(named) == sorted(types)
    with pytest.raises(EventError):  # one that is no event names nothing
        read_event({"a": b"x", "$stream": 1}, opaque=named.append)
    assert len(named) == len(types)


def test_an_opaque_value_equals_only_one_of_its_type() -> None:
    one = Opaque.of(b"x")
    assert one == Opaque("bytes") == copy.copy(one)
    assert one not in {Opaque("list"), "bytes", None}
    assert hash(one) == hash(Opaque.of(b"y"))


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a.b": 1, "a": {"b": 2}}, "attribute `a.b`: the path is given twice, once nested and once with a dot in its name"),
        ({1: 2}, "an attribute's name is a string of valid Unicode, not 1"),
        ({"a": {"b": "\ud800"}}, "attribute `a.b`: the string is not valid Unicode: a lone surrogate at position 0"),
    ],
)  # fmt: skip
def test_a_bad_attribute_is_refused_by_its_path(data: dict[str, object], message: str) -> None:
    with pytest.raises(EventError) as caught:
        read_event(data)
    assert str(caught.value) == message


def test_a_mapping_that_contains_itself_is_refused() -> None:
    within: dict[str, object] = {"a": 1}
    within |= {"first": within, "second": within}
    with pytest.raises(EventError, match="attribute `second`: it is nested more than 1,000 levels deep"):
        read_event(within)
    deep: dict[str, object] = {"n": 1}
    for _ in range(999):
        deep = {"in": deep}
    assert len(read_event(deep).attributes) == 1


def test_a_streams_name_is_a_string_of_valid_unicode() -> None:
    for stream in ("\ud800", 1):
        with pytest.raises(EventError, match="a stream's name is a string of valid Unicode"):
            read_event({}, stream=stream)  # type: ignore[arg-type]
        with pytest.raises(EventError, match="a stream's name is a string of valid Unicode"):
            check_event(Event("x", {}, stream))  # type: ignore[arg-type]


def test_an_event_made_by_hand_is_read_like_any_other() -> None:
    good = Event("x", {"a": 1, "b": "é", "c": True, "d": datetime(2026, 1, 1, tzinfo=UTC)}, "s", 1, 2, 3)
    assert check_event(good) is good
    opaque: list[str] = []
    mended: Any = {"a": {"b": Decimal("1.5")}, "c": None, "d": [1], "e": float("nan")}
    assert check_event(Event("x", mended, "s", 1, 2, 3), opaque.append) == Event(
        "x", {"a.b": 1.5, "d": Opaque("list")}, "s", 1, 2, 3
    )
    assert opaque == ["d"]
    for bad in ("\ud800", datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=2)))):
        attributes: Any = {"a": bad}
        with pytest.raises(EventError, match="attribute `a`: "):
            check_event(Event("x", attributes))


def test_the_times_of_an_event_made_by_hand_are_ticks_in_order() -> None:
    counted: Any = np.int64(5)
    read = check_event(Event("x", {}, "s", counted, 7, counted))
    assert [(time, type(time)) for time in (read.start, read.end, read.valid_until)] == [
        (5, int),
        (7, int),
        (5, int),
    ]
    wrong: list[tuple[Any, Any, str]] = [
        (5, 3, "the event starts at 5, after its end at 3"),
        (0, 2**63, "`end`: the time 9223372036854775808 does not fit into 64 bits"),
        (-(2**63) - 1, 0, "`start`: the time -9223372036854775809 does not fit"),
        (1.5, 2, "`start`: a time is a whole number of ticks"),
        (None, 2, "`start`: a time is a whole number of ticks"),
        (0, "2026-01-01T00:00:00Z", "`end`: an `Event` object takes ticks of its stream"),
    ]
    for start, end, words in wrong:
        with pytest.raises(EventError, match=words):
            check_event(Event("x", {}, "s", start, end))
    named: Any = 5
    with pytest.raises(EventError, match="an event's id is a string, not 5"):
        check_event(Event(named, {}))


def test_an_id_is_made_where_none_is_given() -> None:
    assert read_event({}).id != read_event({}).id
    assert read_event({}, id="x").id == "x"


def test_time_is_the_end_and_the_start_unless_one_is_given() -> None:
    event = read_event({}, time=5)
    assert (event.start, event.end) == (5, 5)
    event = read_event({}, time=5, start=2, valid_until=9)
    assert (event.start, event.end, event.valid_until) == (2, 5, 9)
    with pytest.raises(EventError, match="starts at 6, after its end at 5"):
        read_event({}, time=5, start=6)
    with pytest.raises(EventError, match="`start`: a time is a whole number"):
        read_event({}, time=5, start=1.5)


def test_an_event_cannot_be_changed() -> None:
    event = Event("x", {"a": 1})
    with pytest.raises(AttributeError):
        event.id = "y"  # type: ignore[misc]
