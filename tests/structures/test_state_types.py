"""Kernels see our named tuples by reference, and others' as Numba has them."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import namedtuple
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest

from tocsin.structures import hash_index, state_types
from tocsin.structures.array_types import Float64s, Int32s, Int64s

state_types.PACKAGES.add(__name__.partition(".")[0])
compiler: Any = numba
typeof, njit = compiler.typeof, compiler.njit(nogil=True, _nrt=False)
COMPILED = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="types are the compiler's")


class Part(NamedTuple):
    rows: Int32s
    weights: Float64s


class Whole(NamedTuple):
    size: int
    part: Part
    other: Part
    totals: Int64s


def whole() -> Whole:
    rows = np.arange(6, dtype=np.int32).reshape(2, 3)
    return Whole(7, Part(rows, np.ones(2)), Part(rows + 10, np.full(2, 0.5)), np.zeros(2, dtype=np.int64))


@njit  # type: ignore[untyped-decorator]
def _sum(part: Part, row: int) -> float:
    total = 0.0
    for column in range(part.rows.shape[1]):
        total += part.rows[row, column] * part.weights[row]
    return total


@njit  # type: ignore[untyped-decorator]
def add_up(state: Whole, row: int, use_other: bool) -> float:
    chosen = state.other if use_other else state.part
    state.totals[row] += state.size
    return float(_sum(chosen, row) + state.part.rows[:, 1].sum())


def test_a_kernel_reads_numbers_arrays_and_nested_states() -> None:
    state = whole()
    assert add_up(state, 1, False) == 3 + 4 + 5 + 5
    assert add_up(state, 1, True) == (13 + 14 + 15) / 2 + 5
    assert state.totals.tolist() == [0, 14]


LOADED = """
from tocsin import Engine
from tocsin.structures import jit

for _ in range(3):
    engine = Engine(matcher="dynamic")
    engine.subscribe("a > 1")
    assert len(engine.publish({"a": 2})) == 1
hits = [dict(one.stats.cache_hits) for one in jit._KERNELS.values()]
print(sum(map(len, hits)) > 0, max(max(one.values(), default=0) for one in hits))
"""


@COMPILED
def test_a_kernel_of_the_cache_is_loaded_once_by_a_process() -> None:
    """Types come out of the cache with the hash of this process, else each engine would load all kernels again."""
    command = [sys.executable, "-c", LOADED]
    subprocess.run(command, capture_output=True, check=True)  # may have to compile
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "1"]


@COMPILED
def test_states_of_one_class_and_one_layout_have_one_type() -> None:
    assert typeof(whole()) is typeof(whole())
    other = whole()._replace(totals=np.zeros(2, dtype=np.int32))
    assert typeof(other) != typeof(whole())
    index = hash_index.new_hash_index(2)
    assert isinstance(typeof(index), state_types.StateType)


@COMPILED
def test_a_field_that_is_not_there_is_named() -> None:
    @njit  # type: ignore[untyped-decorator]
    def wrong(state: Part) -> int:
        return state.unheard  # type: ignore[attr-defined, no-any-return]

    with pytest.raises(numba.TypingError, match="unheard"):
        wrong(whole().part)


@COMPILED
def test_tuples_of_other_packages_stay_as_they_are() -> None:
    foreign = namedtuple("foreign", ["a"])
    foreign.__module__ = "somebody.elses"
    assert isinstance(typeof(foreign(np.zeros(1))), numba.types.BaseTuple)
    assert isinstance(typeof((1, 2.0)), numba.types.Tuple)
