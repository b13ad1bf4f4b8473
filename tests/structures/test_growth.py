from __future__ import annotations

from typing import NamedTuple

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tocsin.structures.growth import bytes_of, grown, roomier


class Columns(NamedTuple):
    """Two columns of one length, and an array that has its own."""

    names: NDArray[np.int32]  # [length]
    pairs: NDArray[np.float64]  # [length, 2]
    totals: NDArray[np.int64]  # [3]


def columns(length: int) -> Columns:
    return Columns(
        np.arange(1, length + 1, dtype=np.int32),
        np.arange(1, 2 * length + 1, dtype=np.float64).reshape(length, 2),
        np.array([7, 8, 9], dtype=np.int64),
    )


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_capacity_grows_by_a_quarter_at_least_and_by_half_where_it_is_small(
    capacity: int, needed: int
) -> None:
    share = 2 if capacity < 500_000 else 4
    assert roomier(capacity, needed) >= max(needed, capacity + capacity // share, capacity + 1)


@given(st.integers(0, 200), st.integers(0, 1000))
def test_named_columns_grow_together_and_new_cells_are_zero(length: int, needed: int) -> None:
    before = columns(length)
    after = grown(before, ("names", "pairs"), needed)
    assert len(after.names) == len(after.pairs) >= needed
    assert after.names[:length].tolist() == before.names.tolist()
    assert after.pairs[:length].tolist() == before.pairs.tolist()
    assert not after.names[length:].any()
    assert not after.pairs[length:].any()
    assert after.totals is before.totals
    assert [array.dtype for array in after] == [array.dtype for array in before]
    # A kernel is compiled once more for arrays that are laid out otherwise.
    assert all(array.flags.c_contiguous and array.flags.writeable for array in after)


def test_an_array_that_is_large_enough_is_not_copied() -> None:
    state = columns(10)
    assert grown(state, ("names", "pairs"), 10) is state


def test_growing_one_by_one_moves_seldom() -> None:
    state = columns(1)
    moves = 0
    for needed in range(2, 20_000):
        after = grown(state, ("names",), needed)
        moves += after is not state
        state = after
    assert moves < 20


def test_bytes_are_counted_in_states_within_states() -> None:
    inner = columns(10)
    assert bytes_of(inner) == 10 * 4 + 20 * 8 + 3 * 8
    assert bytes_of((inner, np.zeros(5, dtype=np.uint8), (inner,))) == 2 * bytes_of(inner) + 5
