"""A state by its address is the state."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from numpy.typing import NDArray

from tocsin.structures import state_types
from tocsin.structures.addresses import Addressed, load

state_types.PACKAGES.add(__name__.partition(".")[0])

njit: Any = numba.njit
COMPILED = pytest.mark.skipif(
    "NUMBA_DISABLE_JIT" in os.environ, reason="only compiled kernels depend on the layout"
)


class Inner(NamedTuple):
    rows: NDArray[np.int32]
    flags: NDArray[np.uint8]


class Outer(NamedTuple):
    totals: NDArray[np.float64]
    inner: Inner
    words: NDArray[np.int64]


class OuterAddress(NamedTuple):
    words: NDArray[np.int64]


def state(size: int = 4) -> Outer:
    rows = np.arange(3 * size, dtype=np.int32).reshape(size, 3)
    return Outer(np.zeros(2), Inner(rows, np.ones(size, np.uint8)), np.arange(size))


@njit  # type: ignore[untyped-decorator]
def add_up(address: OuterAddress, column: int) -> int:
    """Sum a column into the totals, and return the sum of all words."""
    outer: Outer = load(address)
    for row in range(outer.inner.rows.shape[0]):
        outer.totals[0] += outer.inner.rows[row, column] * outer.inner.flags[row]
    total = 0
    for i in range(outer.words.shape[0]):
        total += int(outer.words[i])
    return total


def test_a_kernel_reads_and_writes_the_arrays_of_the_state() -> None:
    one = state()
    assert add_up(Addressed[Outer](OuterAddress).address(one), 2) == 6
    assert one.totals[0] == 2 + 5 + 8 + 11


def test_arrays_that_are_replaced_are_found_at_the_next_address() -> None:
    addressed, one = Addressed[Outer](OuterAddress), state()
    assert add_up(addressed.address(one), 0) == 6
    other = one._replace(words=np.arange(100), inner=one.inner._replace(flags=np.zeros(4, np.uint8)))
    assert add_up(addressed.address(other), 0) == 4950
    assert other.totals[0] == one.totals[0] == 18
    assert add_up(addressed.address(one), 0) == 6


@COMPILED
@pytest.mark.parametrize(
    "words", [np.arange(4, dtype=np.int32), np.arange(8)[::2], np.zeros((2, 2), np.int64)]
)
def test_an_array_of_another_layout_is_refused(words: NDArray[np.int64]) -> None:
    addressed = Addressed[Outer](OuterAddress)
    addressed.address(state())
    with pytest.raises(TypeError, match="is not one of int64"):
        addressed.address(state()._replace(words=words))


@COMPILED
def test_an_array_that_cannot_be_written_is_refused() -> None:
    words = np.arange(4)
    words.flags.writeable = False
    with pytest.raises(TypeError, match="can be written"):
        Addressed[Outer](OuterAddress).address(state()._replace(words=words))
