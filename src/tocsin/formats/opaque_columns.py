"""Arrow columns of values that cannot be compared, and columns with NaN, in the form that all readers of columns take.

An *opaque column* holds bytes, arrays, lengths of time and the like: only whether a value is there is of interest. It becomes a
column of `OPAQUE`, whose cells are the name of the values' type. NaN becomes null.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.model.values import Opaque

OPAQUE: Final = pa.large_binary()
"""The type of an opaque column in its new form; what has this type as it comes holds bytes, and is opaque, too."""

_FLOATS: Final = {16: np.float16, 32: np.float32, 64: np.float64}


def readable(table: Any) -> Any:
    """Return a table or record batch with opaque columns in their new form, and without NaN.

    One that has neither is returned itself.
    """
    if not any(_is_concerned(field.type) for field in table.schema):
        return table
    is_changed = False
    columns = []
    for column in table.columns:
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        read = [_readable(chunk) for chunk in chunks]
        if all(one is chunk for one, chunk in zip(read, chunks, strict=True)) and not is_opaque(column.type):
            columns.append(column)
            continue
        is_changed = True
        type_ = read[0].type if read else _readable(pa.nulls(0, column.type)).type
        columns.append(pa.chunked_array(read, type_) if isinstance(column, pa.ChunkedArray) else read[0])
    if not is_changed:
        return table
    return type(table).from_arrays(columns, names=table.schema.names)


def is_opaque(kind: Any) -> bool:
    """Tell whether a leaf of a table that is `readable` holds opaque values."""
    return bool(pa.types.is_large_binary(kind))


def opaque_name(kind: Any) -> str | None:
    """Return the name of the type that the values of an Arrow type have, if they are opaque; else None."""
    if pa.types.is_dictionary(kind):
        return opaque_name(kind.value_type)
    if isinstance(kind, pa.BaseExtensionType):
        return str(kind.extension_name)
    return next((name for name, kinds in _NAMES.items() if any(is_kind(kind) for is_kind in kinds)), None)


def opaque_array(name: str, there: NDArray[np.bool_]) -> Any:
    """Return an opaque column with values where `there` says so."""
    count, text = len(there), name.encode()
    offsets = np.arange(count + 1, dtype=np.int64) * len(text)
    buffers = [_bits(there), pa.py_buffer(offsets), pa.py_buffer(text * count)]
    return pa.Array.from_buffers(OPAQUE, count, buffers)


def opaque_values(array: Any) -> list[Opaque | None]:
    """Return the values of an opaque column in its new form."""
    return [None if name is None else Opaque(name.decode()) for name in array.to_pylist()]


def _is_concerned(kind: Any) -> bool:
    """Tell whether a column of this type may be changed."""
    if pa.types.is_struct(kind):
        return any(_is_concerned(field.type) for field in kind)
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_floating(inner) or opaque_name(kind) is not None


def _readable(array: Any) -> Any:
    """Return an array with opaque values in their new form, and without NaN; itself if it has neither."""
    kind = array.type
    if not _is_concerned(kind):
        return array
    if pa.types.is_struct(kind):
        given = array.flatten()  # a field is null where its struct is
        inner = [_readable(one) for one in given]
        if all(one is other for one, other in zip(inner, given, strict=True)):
            return array
        fields = [pa.field(field.name, one.type) for field, one in zip(kind, inner, strict=True)]
        return pa.StructArray.from_arrays(inner, fields=fields, mask=array.is_null())
    if pa.types.is_dictionary(kind):
        if opaque_name(kind) is None:
            return _without_nan(array.dictionary_decode())
        array = array.dictionary_decode()  # a word of a dictionary may be null
    name = opaque_name(kind)
    return _without_nan(array) if name is None else opaque_array(name, _mask(array.is_valid()))


def _without_nan(array: Any) -> Any:
    """Return floats with null for NaN."""
    width, data = array.type.bit_width, array.buffers()[1]
    if data is None or not len(array):
        return array
    start = array.offset * width // 8
    numbers = np.frombuffer(data, dtype=_FLOATS[width], count=len(array), offset=start)
    there = ~np.isnan(numbers)
    if there.all():
        return array
    if array.null_count:
        there &= _mask(array.is_valid())
    return pa.Array.from_buffers(array.type, len(array), [_bits(there), data.slice(start)])


def _mask(array: Any) -> NDArray[np.bool_]:
    """Return booleans, none of them null, from their buffer: `to_numpy` imports pandas where that is installed."""
    stored = np.frombuffer(array.buffers()[1], dtype=np.uint8)
    bits = np.unpackbits(stored, bitorder="little")
    return bits[array.offset : array.offset + len(array)].view(np.bool_)


def _bits(mask: NDArray[np.bool_]) -> Any:
    return None if mask.all() else pa.py_buffer(np.packbits(mask, bitorder="little"))


_NAMES: Final = {
    "bytes": (
        pa.types.is_binary,
        pa.types.is_large_binary,
        pa.types.is_fixed_size_binary,
        pa.types.is_binary_view,
    ),
    "list": (
        pa.types.is_list,
        pa.types.is_large_list,
        pa.types.is_fixed_size_list,
        pa.types.is_list_view,
        pa.types.is_large_list_view,
        pa.types.is_map,
    ),
    "time": (pa.types.is_time,),
    "timedelta": (pa.types.is_duration,),
    "MonthDayNano": (pa.types.is_interval,),
}
