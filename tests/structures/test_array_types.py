"""Columns made from the annotations of a named tuple."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.structures.array_types import Float64s, Int32s, Int64s, UInt8s, zeros


class _Inner(NamedTuple):
    flags: UInt8s


class _State(NamedTuple):
    keys: Int64s
    rows: Int32s
    weights: Float64s
    inner: _Inner


def test_columns_have_the_types_of_their_annotations() -> None:
    state = zeros(_State, 5, inner=zeros(_Inner, 3))
    columns: list[NDArray[Any]] = [state.keys, state.rows, state.weights, state.inner.flags]
    assert [column.dtype.name for column in columns] == ["int64", "int32", "float64", "uint8"]
    assert [column.shape for column in columns] == [(5,), (5,), (5,), (3,)]
    assert not any(column.any() for column in columns)


def test_a_field_is_given_by_its_width_or_by_itself() -> None:
    keys = np.arange(2)
    state = zeros(_State, 5, keys=keys, rows=4, inner=zeros(_Inner, 1))
    assert state.keys is keys
    assert (state.rows.shape, state.rows.dtype.name) == ((5, 4), "int32")
