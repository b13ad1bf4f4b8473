"""The cells of an Arrow array as NumPy arrays, from its buffers: `to_numpy` imports pandas where that is installed, which takes a second."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Mask: TypeAlias = NDArray[np.bool_]


def plain_values(leaf: Any) -> tuple[NDArray[Any], Mask | None]:
    """Return a leaf's values, zero at nulls, and the mask of valid cells; None if it has no nulls."""
    values, valid = stored_values(leaf), valid_cells(leaf)
    return values if valid is None else np.where(valid, values, values.dtype.type(0)), valid


def stored_values(leaf: Any) -> NDArray[Any]:
    """Return a leaf's values; those of nulls are arbitrary."""
    kind = leaf.type
    if pa.types.is_timestamp(kind):
        leaf = leaf.view(pa.int64())
    elif pa.types.is_date32(kind):
        leaf = leaf.view(pa.int32())
    buffer = leaf.buffers()[1]
    if buffer is None:  # no cell has a value
        return np.zeros(len(leaf), dtype=leaf.type.to_pandas_dtype())
    if pa.types.is_boolean(kind):
        return _bits(buffer, leaf)
    width = leaf.type.bit_width // 8
    return np.frombuffer(
        buffer, dtype=leaf.type.to_pandas_dtype(), count=len(leaf), offset=leaf.offset * width
    )


def valid_cells(leaf: Any) -> Mask | None:
    """Return which cells have a value; None if all have one."""
    return _bits(leaf.buffers()[0], leaf) if leaf.null_count else None


def validity_bits(valid: Mask) -> Any:
    """Return the buffer that tells which cells of an array have a value; None if all have one."""
    return None if valid.all() else pa.py_buffer(np.packbits(valid, bitorder="little"))


def _bits(buffer: Any, leaf: Any) -> Mask:
    first = leaf.offset // 8
    stored = np.frombuffer(buffer, dtype=np.uint8)[first : (leaf.offset + len(leaf) + 7) // 8]
    begin = leaf.offset - 8 * first
    return np.unpackbits(stored, bitorder="little")[begin : begin + len(leaf)].view(np.bool_)
