import pytest

from tocsin.model import Event, read_event
from tocsin.model.errors import EventError
from tocsin.model.event import flatten


def test_nested_events_are_flattened_to_dotted_paths() -> None:
    assert flatten({"a": {"b": {"c": 1}, "d": "x"}, "e": True}) == {"a.b.c": 1, "a.d": "x", "e": True}


def test_null_is_absence_and_arrays_are_dropped_and_told() -> None:
    dropped: list[str] = []
    assert flatten({"a": None, "b": [1], "c": {"d": (1, 2), "e": None}, "f": 1}, dropped.append) == {"f": 1}
    assert sorted(dropped) == ["b", "c.d"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": {"b": float("nan")}}, "attribute `a.b`: NaN is not a number that can be compared; leave the attribute out, or send null"),
        ({"a.b": 1, "a": {"b": 2}}, "attribute `a.b`: given twice, once nested and once with a dot in its name"),
        ({1: 2}, "an attribute's name is a string of valid Unicode, not 1"),
        ({"a": object()}, "attribute `a`: an object is neither a number, a string, a boolean nor a timestamp"),
    ],
)  # fmt: skip
def test_a_bad_attribute_is_refused_by_its_path(data: dict[str, object], message: str) -> None:
    with pytest.raises(EventError) as caught:
        read_event(data)
    assert str(caught.value) == message


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
