from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.packed_strings import PackedStrings


@given(st.lists(st.text(st.characters())))
def test_strings_come_out_as_they_went_in(strings: list[str]) -> None:
    packed = PackedStrings(strings)
    assert list(packed) == strings == packed[:]
    assert [packed[i] for i in range(-len(strings), len(strings))] == strings * 2
    assert packed.listed(1, 3) == strings[1:3]
    assert packed == strings
    assert packed == tuple(strings)
    assert list(packed.take(np.arange(len(strings))[::-1])) == strings[::-1]


def test_packed_strings_are_a_sequence() -> None:
    packed = PackedStrings(["a", "b", "c", "d"])
    with pytest.raises(IndexError):
        packed[4]
    assert packed != ["a", "b", "c"]
    assert packed != "abcd"[:3]
    assert repr(packed) == "<4 strings: 'a', 'b', 'c', …>"
