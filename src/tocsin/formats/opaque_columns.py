"""Arrow columns of values that cannot be compared, and columns with NaN, in the form that all readers of columns take.

An *opaque column* holds bytes, arrays, lengths of time and the like: only whether a value is there is of interest. It becomes a
column of `OPAQUE`, whose cells are the name of the values' type. NaN becomes null.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.formats.arrow_cells import stored_values, valid_cells, validity_bits
from tocsin.formats.arrow_leaves import with_leaves
from tocsin.model.values import Opaque

OPAQUE: Final = pa.large_binary()
"""The type of an opaque column in its new form; what has this type as it comes holds bytes, and is opaque, too."""


def readable(table: Any) -> Any:
    """Return a table or record batch with opaque columns in their new form, and without NaN.

    One that has neither is returned itself.
    """
    return with_leaves(table, _readable, _is_concerned)


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
    buffers = [validity_bits(there), pa.py_buffer(offsets), pa.py_buffer(text * count)]
    return pa.Array.from_buffers(OPAQUE, count, buffers)


def opaque_values(array: Any) -> list[Opaque | None]:
    """Return the values of an opaque column in its new form."""
    return [None if name is None else Opaque(name.decode()) for name in array.to_pylist()]


def _is_concerned(kind: Any) -> bool:
    """Tell whether a column of this type may be changed."""
    inner = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_floating(inner) or opaque_name(kind) is not None


def _readable(array: Any) -> Any:
    """Return an array of opaque values in their new form, or floats without NaN; floats that have none as they are."""
    name = opaque_name(array.type)
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()  # a word of a dictionary may be null
    if name is None:
        return _without_nan(array)
    there = valid_cells(array)
    return opaque_array(name, np.ones(len(array), dtype=np.bool_) if there is None else there)


def _without_nan(array: Any) -> Any:
    """Return floats with null for NaN."""
    numbers = stored_values(array)
    there = ~np.isnan(numbers)
    if there.all():
        return array
    valid = valid_cells(array)
    there = there if valid is None else there & valid
    return pa.Array.from_buffers(array.type, len(array), [validity_bits(there), pa.py_buffer(numbers)])


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
