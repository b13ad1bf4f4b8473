from __future__ import annotations

import gc
import mmap
import subprocess
import sys
import weakref
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tocsin.structures import reserves
from tocsin.structures.growth import grown
from tocsin.structures.reserves import grown_in_place, is_reserved, reserved

INTEGER = np.dtype(np.int64)
LARGE = 1 << 20  # integers: more bytes than are copied from then on


class Column(NamedTuple):
    """One column."""

    values: NDArray[np.int64]


def where(array: NDArray[np.int64]) -> int:
    return int(array.__array_interface__["data"][0])


@given(st.lists(st.integers(1, 50_000), min_size=1, max_size=8))
def test_an_array_keeps_its_place_and_its_values(steps: list[int]) -> None:
    array = reserved((10, 3), INTEGER)
    array[:] = 7
    for step in steps:
        wanted = len(array) + step
        if not is_reserved(array, wanted):
            break
        longer = grown_in_place(array, wanted)
        assert longer.shape == (wanted, 3)
        assert where(longer) == where(array)
        assert (longer[: len(array)] == 7).all()
        assert not longer[len(array) :].any()
        assert longer.flags.c_contiguous
        assert longer.flags.writeable
        assert longer.flags.aligned
        longer[:] = 7
        array = longer


@pytest.mark.skipif(not hasattr(mmap, "MAP_PRIVATE"), reason="the system has no addresses to give ahead")
def test_a_large_column_moves_only_when_its_addresses_are_used_up() -> None:
    state = Column(np.arange(LARGE, dtype=np.int64))
    places = set()
    for needed in range(LARGE + 1, 6 * LARGE, LARGE // 10):
        state = grown(state, ("values",), needed)
        assert needed <= len(state.values) <= max(needed, 2 * LARGE, 5 * needed // 4)
        places.add(where(state.values))
    assert len(places) == 1
    assert (state.values[:LARGE] == np.arange(LARGE)).all()
    assert not state.values[LARGE:].any()


def test_a_part_of_an_array_does_not_grow_into_the_rest() -> None:
    whole = reserved((100,), INTEGER)
    whole[:] = 7
    for part in (whole[:50], whole[50:], whole[::2], whole.reshape(50, 2)[:25]):
        assert not is_reserved(part, len(part) + 1)
        longer = grown(Column(part), ("values",), len(part) + 10).values
        assert (longer[: len(part)] == part).all()
        assert not longer[len(part) :].any()
    longer = grown_in_place(whole, 200)
    assert not is_reserved(whole, 300)  # the longer one has what follows
    assert is_reserved(longer, 300)


def test_arrays_that_others_made_are_copied() -> None:
    for array in (np.zeros(5, dtype=np.int64), np.frombuffer(bytearray(40), dtype=np.int64)):
        assert not is_reserved(array, 6)
        with pytest.raises(ValueError, match="no addresses in reserve"):
            grown_in_place(array, 6)


def test_without_addresses_to_spare_the_array_is_had_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError("cannot allocate memory")

    monkeypatch.setattr(reserves, "_Reserve", type("Refused", (), {"__new__": refuse}))
    array = reserved((10, 2), INTEGER)
    assert array.shape == (10, 2)
    assert not array.any()
    assert not is_reserved(array, 11)


@pytest.mark.skipif(not hasattr(mmap, "MAP_PRIVATE"), reason="the system has no addresses to give ahead")
def test_no_addresses_are_taken_ahead_where_they_are_limited() -> None:
    probe = (
        "import resource; resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33)); import numpy as np\n"
        "from tocsin.structures.reserves import is_reserved, is_short_of_addresses, reserved\n"
        "array = reserved((1 << 20,), np.dtype(np.int64))\n"
        "print(is_short_of_addresses(), is_reserved(array, 1 << 21), array.any())"
    )
    ended = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert ended.stdout.split() == ["True", "False", "False"]


def test_an_empty_array_is_no_stretch_of_addresses() -> None:
    assert reserved((0, 2), INTEGER).shape == (0, 2)


def test_addresses_are_given_back_with_the_last_array() -> None:
    array = reserved((10,), INTEGER)
    longer = grown_in_place(array, 20)
    gone = weakref.ref(longer.base)
    del array
    gc.collect()
    assert gone() is not None
    del longer
    gc.collect()
    assert gone() is None
