"""Compact arrays, and looking rows up."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.archive import Parts, pack, unpack
from tocsin.structures.compact_parts import PartsReader, PartsWriter
from tocsin.structures.row_lookup import find_rows

_numbers = st.lists(st.sampled_from([0, 1, 255, 256, 70_000, -1, -300, 2**40, 2**63 - 1, -(2**63)]))


@given(_numbers, st.lists(st.text()), st.binary())
def test_what_is_written_is_read(numbers: list[int], strings: list[str], data: bytes) -> None:
    writer = PartsWriter()
    array = np.array(numbers, dtype=np.int64)
    writer.integers("numbers", array)
    writer.runs("runs", np.repeat(array, 3))
    writer.strings("strings", strings)
    writer.bytes("data", data)
    writer.array("words", array.view(np.uint64).reshape(-1, 1))
    reader = PartsReader(unpack(pack(writer.parts())))
    assert reader.integers("numbers").tolist() == numbers
    assert reader.runs("runs").tolist() == np.repeat(array, 3).tolist()
    assert reader.strings("strings") == strings
    assert reader.bytes("data") == data
    assert reader.words("words", 1).view(np.int64)[:, 0].tolist() == numbers


def test_small_and_equal_integers_take_little() -> None:
    writer = PartsWriter()
    writer.integers("equal", np.full(1000, 2**60))
    writer.integers("close", 2**60 + np.arange(1000) % 200)
    assert {name: member.nbytes for name, member in writer.members.items()} == {"close": 1000}  # type: ignore[union-attr]


def test_a_member_that_is_missing_is_no_array_of_equal_integers() -> None:
    writer = PartsWriter()
    writer.integers("numbers", np.arange(5))
    parts = writer.parts()
    with pytest.raises(ValueError, match="missing"):
        PartsReader(Parts(parts.about, {}))


@given(st.sets(st.integers(-5, 30)), st.lists(st.integers(-5, 30)))
def test_rows_are_found(keys: set[int], sought: list[int]) -> None:
    shuffled = sorted(keys, key=lambda key: key * 7 % 13)
    found = find_rows(np.array(shuffled, dtype=np.int64), np.array(sought, dtype=np.int64))
    assert found.tolist() == [shuffled.index(one) if one in keys else -1 for one in sought]
