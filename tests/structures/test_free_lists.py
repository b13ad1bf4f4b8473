from __future__ import annotations

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tocsin.structures import free_lists


@numba.njit(nogil=True)
def _run(
    steps: NDArray[np.int64], rows: NDArray[np.int32], heads: NDArray[np.int64], held: NDArray[np.int64]
) -> int:
    """Take a slot for each positive step, a pair for each zero, and give back the last for each negative one."""
    count = 0
    for step in steps:
        if step > 0:
            held[count, 0], held[count, 1] = free_lists.take(rows[:, 1], heads, 0, 2), 1
            count += 1
        elif step == 0:
            held[count, 0] = free_lists.take_run(rows[:, 1], heads, 1, heads, 2, 2)
            held[count, 1] = 2
            count += 1
        elif count > 0:
            count -= 1
            free_lists.give(rows[:, 1], heads, held[count, 1] - 1, held[count, 0])
            held[count, 0] = -1
    return count


@given(st.lists(st.integers(-1, 1), max_size=60))
def test_kernels_take_distinct_slots_and_runs(steps: list[int]) -> None:
    rows = np.zeros((128, 2), dtype=np.int32)
    heads = np.array([-1, -1, 0], dtype=np.int64)
    held = np.zeros((64, 2), dtype=np.int64)
    count = _run(np.array(steps, dtype=np.int64), rows, heads, held)
    used = [int(first) + i for first, size in held[:count] for i in range(size)]
    assert len(set(used)) == len(used)
    assert max(used, default=-1) < heads[2]


def test_kernels_give_the_last_slot_again_before_a_new_one() -> None:
    rows = np.zeros((8, 2), dtype=np.int32)
    heads = np.array([-1, -1, 0], dtype=np.int64)
    held = np.zeros((8, 2), dtype=np.int64)
    _run(np.array([1, 1, -1, 1], dtype=np.int64), rows, heads, held)
    assert held[:2].tolist() == [[0, 1], [1, 1]]
    assert heads.tolist() == [-1, -1, 2]
