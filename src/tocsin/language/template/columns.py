"""The rows of a template as one checked array per parameter."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.formats.frames import as_arrow, as_one_table, is_table, refuse_query, with_named_index
from tocsin.model.errors import KindError, TemplateError
from tocsin.model.terms import constant_value
from tocsin.model.values import Value

Column: TypeAlias = NDArray[Any]
Rows: TypeAlias = Any
"""A mapping of columns, a pandas or Arrow table, or an iterable of mappings."""

Faults: TypeAlias = dict[int, TemplateError]
"""The first error of each faulty row."""

_EXACT: Final = 2**53  # up to here every integer is a float
_NO_ROWS: Final = "rows are mappings of parameter to value, or a table"
_NAN: Final = "NaN is not a number that can be compared"
_INFINITE: Final = "a constant must be finite"


def as_table(rows: Rows) -> Rows:
    """Return rows that can be iterated more than once; a table of a library other than pandas is one of Arrow."""
    if is_table(rows) or isinstance(rows, Mapping):
        return _in_arrow(rows)
    refuse_query(rows)
    if not (isinstance(rows, Iterable) or hasattr(rows, "__getitem__")):
        raise TemplateError(_NO_ROWS)
    whole = as_one_table(rows if isinstance(rows, (list, tuple)) else list(rows))
    if isinstance(whole, (list, tuple)) and any(map(is_table, whole)):
        raise TemplateError(
            "the rows are tables whose columns differ in type, or tables beside others; give one table"
        )
    return whole


def _in_arrow(rows: Rows) -> Rows:
    """Return a frame as an Arrow table, except one of pandas, and other rows as they are."""
    if hasattr(rows, "iloc"):
        return with_named_index(rows) if hasattr(rows, "columns") else rows
    return as_arrow(rows)


def values_of(rows: Rows, name: str) -> list[object]:
    """Return one column of a table unchecked, whether or not it is a parameter."""
    column = _raw_columns(rows, [name])[0][name]
    values = column.tolist() if isinstance(column, np.ndarray) else list(column)
    if values and all(value is _ABSENT for value in values):
        raise TemplateError("no row has a value for it", parameter=name)
    return [None if value is _ABSENT else value for value in values]


def read_columns(rows: Rows, names: Mapping[str, bool]) -> tuple[dict[str, Column], int, Faults]:
    """Return one array per parameter, the number of rows, and the error of each faulty row.

    `names` maps each parameter to whether it is a list. The cells of a faulty row are undefined.
    """
    raw, size = _raw_columns(rows, list(names))
    faults: Faults = {}
    columns = {name: _check_column(name, raw[name], names[name], faults) for name in names}
    # The rows may be stored for long, and the caller may write into an array.
    own = {name: column.copy() if column is raw[name] else column for name, column in columns.items()}
    return own, size, faults


def _raw_columns(rows: Rows, names: list[str]) -> tuple[dict[str, Any], int]:
    """Return the unchecked columns of these names, and the number of rows."""
    rows = _in_arrow(rows)
    if isinstance(rows, Mapping):
        found = {name: _column(name, rows[name]) for name in names if name in rows}
        sizes = {len(column) for column in found.values()}
    elif isinstance(rows, (pa.Table, pa.RecordBatch)):
        known = rows.schema.names
        repeated = [name for name in names if known.count(name) > 1]
        if repeated:
            raise TemplateError("two columns have its name", parameter=repeated[0])
        found = {name: _from_arrow(rows.column(name)) for name in names if name in known}
        sizes = {rows.num_rows}
    elif hasattr(rows, "columns") and hasattr(rows, "iloc"):  # a pandas frame
        found = {name: _from_pandas(rows[name]) for name in names if name in rows.columns}
        sizes = {len(rows)}
    else:
        return _transpose(rows, names)
    missing = [name for name in names if name not in found]
    if missing:
        raise TemplateError("no column has values for it", parameter=missing[0])
    if len(sizes) > 1:
        raise TemplateError(f"the columns differ in length: {sorted(sizes)}")
    return found, sizes.pop() if sizes else 0


def _column(name: str, raw: Any) -> Any:
    """Return a mapping's value if it is a column, or raise `TemplateError`."""
    if isinstance(raw, (pa.Array, pa.ChunkedArray)):
        return _from_arrow(raw)
    if hasattr(raw, "iloc"):  # a pandas series
        return _from_pandas(raw)
    if hasattr(raw, "__arrow_c_stream__"):  # one of polars
        return _from_arrow(pa.chunked_array(raw))
    if isinstance(raw, np.ma.MaskedArray):
        return raw.tolist()  # masked values are nulls
    if isinstance(raw, np.ndarray) and raw.ndim:
        return raw
    if isinstance(raw, (str, bytes, Mapping)) or not isinstance(raw, Sequence):
        raise TemplateError(
            f"a column of values is needed, not {type(raw).__name__}; to bind one row, use `bind`",
            parameter=name,
        )
    return raw


def _from_pandas(series: Any) -> Any:
    """Return a pandas series as an array; nulls of extension types do not become NaN."""
    return series.to_numpy() if isinstance(series.dtype, np.dtype) else series.to_numpy(dtype=object)


def _from_arrow(column: Any) -> Any:
    """Return an Arrow column as an array, or as Python objects if it has nulls or a type that NumPy lacks."""
    kind = column.type
    plain = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    if plain and not column.null_count:
        return column.to_numpy(zero_copy_only=False) if isinstance(column, pa.Array) else column.to_numpy()
    values = column.to_pylist()
    if pa.types.is_timestamp(kind) and kind.tz is None:  # UTC, as in tables of events
        return [None if value is None else value.replace(tzinfo=UTC) for value in values]
    return values


def _transpose(rows: Any, names: list[str]) -> tuple[dict[str, Any], int]:
    """Return the columns of rows that are given one by one, and the number of rows."""
    try:
        listed = list(rows)
    except TypeError:
        raise TemplateError(_NO_ROWS) from None
    columns: dict[str, Any] = {}
    for name in names:
        try:
            columns[name] = [row[name] for row in listed]
        except KeyError:
            columns[name] = [row.get(name, _ABSENT) for row in listed]
        except (TypeError, IndexError, ValueError):
            raise TemplateError(_NO_ROWS) from None
    return columns, len(listed)


class _Absent:
    """Marks a value that a row lacks."""


_ABSENT = _Absent()


def _check_column(name: str, raw: Any, many: bool, faults: Faults) -> Column:
    """Return a column as an array of constants; its rows without a usable value are added to `faults`."""
    if many:
        return _lists(name, raw, faults)
    array = raw if isinstance(raw, np.ndarray) else np.fromiter(raw, dtype=object, count=len(raw))
    if array.ndim != 1:
        raise TemplateError("a parameter takes one value a row", parameter=name)
    kind = array.dtype.kind
    if kind in "bui":
        return array
    if kind == "f":
        return _floats(name, array.astype(np.float64, copy=False), faults)
    if kind == "M":
        return _objects(name, np.array(list(array), dtype=object), faults)
    if kind not in "UO":
        raise TemplateError(
            f"its values, of type {array.dtype}, are neither numbers, strings, booleans nor timestamps",
            parameter=name,
        )
    return _objects(name, array.astype(object, copy=False), faults)


def _floats(name: str, array: NDArray[np.float64], faults: Faults) -> Column:
    for row in np.flatnonzero(~np.isfinite(array)).tolist():
        _fault(faults, row, name, _NAN if np.isnan(array[row]) else _INFINITE)
    return array


def _objects(name: str, array: NDArray[np.object_], faults: Faults) -> Column:
    """Return a column of Python objects, as a numeric array if that loses nothing."""
    values = array.tolist()
    kinds = set(map(type, values))
    if kinds == {str} and "".join(values).isascii():
        known: dict[str, str] = {}  # equal strings become one, which may be a million
        return np.fromiter(map(known.setdefault, values, values), dtype=object, count=len(values))
    if kinds == {bool}:
        return array.astype(np.bool_)
    if kinds == {float}:
        return _floats(name, array.astype(np.float64), faults)
    if kinds == {int}:
        try:
            return array.astype(np.int64)
        except OverflowError:
            pass  # integers beyond 64 bits stay Python objects
    if kinds == {int, float} and all(type(v) is float or abs(v) <= _EXACT for v in values):
        return _floats(name, array.astype(np.float64), faults)
    return _read_cells(name, values, faults, constant_value)


def _lists(name: str, raw: Any, faults: Faults) -> Column:
    """Return a column whose cells are tuples of constants."""

    def read(members: object) -> tuple[Value, ...]:
        if isinstance(members, (str, bytes, Mapping)) or not isinstance(members, Iterable):
            raise KindError(f"`in :{name}` takes a list of values, not {type(members).__name__}")
        try:
            return tuple(constant_value(member) for member in members)
        except TypeError:
            raise KindError(f"`in :{name}` takes a list of values") from None

    return _read_cells(name, raw, faults, read)


def _read_cells(name: str, raw: Any, faults: Faults, read: Callable[[object], object]) -> Column:
    """Return a column of objects, each read by `read`; cells that cannot be read are added to `faults`."""
    cells = np.empty(len(raw), dtype=object)
    for row, value in enumerate(raw):
        try:
            if value is _ABSENT:
                raise KindError("the row has no value for it")
            cells[row] = read(value)
        except KindError as fault:
            _fault(faults, row, name, str(fault))
    return cells


def _fault(faults: Faults, row: int, name: str, reason: str) -> None:
    faults.setdefault(row, TemplateError(reason, row=row, parameter=name))
