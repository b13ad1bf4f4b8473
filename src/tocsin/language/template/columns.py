"""Rows of parameters, from wherever they come, as one checked array per parameter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.model.errors import KindError, TemplateError
from tocsin.model.values import Value, read_value

__all__ = ["Column", "Faults", "Rows", "as_table", "read_columns", "values_of"]

Column: TypeAlias = NDArray[Any]
Rows: TypeAlias = Any
"""A mapping of columns, a pandas or Arrow table, or an iterable of mappings."""

Faults: TypeAlias = dict[int, TemplateError]
"""The first fault of each faulty row."""

_EXACT: Final = 2**53  # up to here every integer is a float
_NULL: Final = "null is no value; leave the row out, or use `is missing` in another template"
_NAN: Final = "NaN is not a number that can be compared"
_INFINITE: Final = "a constant must be finite"


def as_table(rows: Rows) -> Rows:
    """Return rows that can be gone through more than once."""
    is_table = isinstance(rows, (Mapping, list, tuple)) or hasattr(rows, "num_rows") or hasattr(rows, "iloc")
    return rows if is_table else list(rows)


def values_of(rows: Rows, name: str) -> list[object]:
    """Return one column of a table as it is, whether or not it is a parameter."""
    column = _raw_columns(rows, [name])[0][name]
    return column.tolist() if isinstance(column, np.ndarray) else list(column)


def read_columns(rows: Rows, names: Mapping[str, bool]) -> tuple[dict[str, Column], int, Faults]:
    """Return one array per parameter, the number of rows, and the fault of each row that has one.

    `names` says of each parameter whether it stands for a whole list. Where a value is at fault its place in
    the array is not to be read.
    """
    raw, size = _raw_columns(rows, list(names))
    faults: Faults = {}
    columns = {name: _checked(name, raw[name], names[name], faults) for name in names}
    return columns, size, faults


def _raw_columns(rows: Rows, names: list[str]) -> tuple[dict[str, Any], int]:
    if isinstance(rows, Mapping):
        found = {name: rows[name] for name in names if name in rows}
        sizes = {len(column) for column in (found or rows).values()}
    elif hasattr(rows, "column_names") and hasattr(rows, "num_rows"):  # an Arrow table
        found = {name: _from_arrow(rows.column(name)) for name in names if name in rows.column_names}
        sizes = {rows.num_rows}
    elif hasattr(rows, "columns") and hasattr(rows, "iloc"):  # a pandas frame
        found = {name: rows[name].to_numpy() for name in names if name in rows.columns}
        sizes = {len(rows)}
    else:
        return _transposed(list(rows), names)
    missing = [name for name in names if name not in found]
    if missing:
        raise TemplateError("no column gives it a value", parameter=missing[0])
    if len(sizes) > 1:
        raise TemplateError(f"the columns differ in length: {sorted(sizes)}")
    return found, sizes.pop() if sizes else 0


def _from_arrow(column: Any) -> Any:
    # Arrow turns integers with nulls into floats; as a list they stay exact.
    return column.to_pylist() if column.null_count else column.to_numpy()


def _transposed(rows: list[Mapping[str, object]], names: list[str]) -> tuple[dict[str, Any], int]:
    columns: dict[str, Any] = {}
    for name in names:
        try:
            columns[name] = [row[name] for row in rows]
        except KeyError:
            row = next(i for i, row in enumerate(rows) if name not in row)
            raise TemplateError("the row does not give it", row=row, parameter=name) from None
        except TypeError:
            raise TemplateError("rows are mappings of parameter to value, or a table") from None
    return columns, len(rows)


def _checked(name: str, raw: Any, many: bool, faults: Faults) -> Column:
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
        raise TemplateError("its times have no time zone; convert them, for example to UTC", parameter=name)
    return _objects(name, array.astype(object, copy=False), faults)


def _floats(name: str, array: NDArray[np.float64], faults: Faults) -> Column:
    for row in np.flatnonzero(~np.isfinite(array)).tolist():
        _fault(faults, row, name, _NAN if np.isnan(array[row]) else _INFINITE)
    return array


def _objects(name: str, array: NDArray[np.object_], faults: Faults) -> Column:
    values = array.tolist()
    kinds = set(map(type, values))
    if kinds == {str} and "".join(values).isascii():
        return array
    if kinds == {bool}:
        return array.astype(np.bool_)
    if kinds == {float}:
        return _floats(name, array.astype(np.float64), faults)
    if kinds == {int}:
        try:
            return array.astype(np.int64)
        except OverflowError:
            return array  # beyond 64 bits an integer stays as Python has it
    if kinds == {int, float} and all(type(v) is float or abs(v) <= _EXACT for v in values):
        return _floats(name, array.astype(np.float64), faults)
    read = np.empty(len(values), dtype=object)
    for row, value in enumerate(values):
        try:
            read[row] = _constant(value)
        except KindError as fault:
            _fault(faults, row, name, str(fault))
    return read


def _lists(name: str, raw: Any, faults: Faults) -> Column:
    read = np.empty(len(raw), dtype=object)
    for row, members in enumerate(raw):
        if isinstance(members, (str, bytes, Mapping)) or not isinstance(members, Iterable):
            _fault(faults, row, name, f"`in :{name}` takes a list of values, not {type(members).__name__}")
            continue
        try:
            read[row] = tuple(_constant(member) for member in members)
        except KindError as fault:
            _fault(faults, row, name, str(fault))
    return read


def _constant(raw: object) -> Value:
    value = read_value(raw)
    if value is None:
        raise KindError(_NULL)
    if isinstance(value, float) and value in (float("inf"), float("-inf")):
        raise KindError(_INFINITE)
    return value


def _fault(faults: Faults, row: int, name: str, reason: str) -> None:
    faults.setdefault(row, TemplateError(reason, row=row, parameter=name))
