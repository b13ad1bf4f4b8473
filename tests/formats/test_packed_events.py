"""Events as bytes and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.sequences.outcomes import kinds_and_values
from tests.sequences.strategies import ODD_NUMBERS, TEXTS, TIMES
from tocsin.formats.packed_events import pack_events, unpack_events
from tocsin.model import Event, Value
from tocsin.model.values import Opaque

_VALUES: list[Value] = [
    *ODD_NUMBERS,
    *TEXTS,
    *TIMES,
    True,
    False,
    float("inf"),
    -0.0,
    Opaque("bytes"),
    "größe",
]


@st.composite
def _events(draw: st.DrawFn) -> list[Event]:
    times = st.integers(-(2**63), 2**63 - 1)
    found = []
    for number in range(draw(st.integers(0, 6))):
        start, end = sorted((draw(times), draw(times)))
        given = draw(st.dictionaries(st.sampled_from(["a", "b.c", "ü", ""]), st.sampled_from(_VALUES)))
        stream, until = draw(st.sampled_from([None, "s", "t"])), draw(st.sampled_from([None, 7]))
        found.append(Event(f"e{number}", given, stream, start, end, until))
    return found


@given(_events())
def test_events_are_the_same_afterwards(events: list[Event]) -> None:
    again = unpack_events(pack_events(events))
    assert again == events
    for one, other in zip(events, again, strict=True):
        assert list(one.attributes) == list(other.attributes)
        assert repr(kinds_and_values(one.attributes)) == repr(kinds_and_values(other.attributes))


def test_bytes_that_are_no_events_are_refused() -> None:
    data = pack_events([Event("e1", {"x": 2**70, "y": Opaque("bytes"), "z": "text"}, "s", 3, 4)] * 3)
    for broken in (data[:-1], data + b"\x01", b"{}", b"\x97" + b"\x90" * 6 + b"\x91\x01", b"\x90"):
        with pytest.raises(ValueError, match=r"cannot be read|too many values"):
            unpack_events(broken)
