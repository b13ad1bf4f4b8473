"""Tables of other libraries: taken as Arrow tables, and given back."""

from __future__ import annotations

import sys
from abc import abstractmethod
from typing import Any

import pyarrow as pa

from tocsin.formats.arrow_rows import is_arrow
from tocsin.model.errors import EventError, TocsinError


class ArrowColumns:
    """Columns that can be had as a table of Arrow, pandas or polars."""

    __slots__ = ()

    @abstractmethod
    def to_arrow(self) -> pa.Table:
        """Return an Arrow table."""

    def to_pandas(self) -> Any:
        """Return a pandas frame with the columns of `to_arrow`; pandas must be installed."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise TocsinError("`to_pandas` needs pandas: install it, or use `to_arrow`") from None

    def to_polars(self) -> Any:
        """Return a polars frame with the columns of `to_arrow`; polars must be installed."""
        try:
            import polars as pl  # noqa: PLC0415 - a library that the user may have
        except ImportError:
            raise TocsinError("`to_polars` needs polars: install it, or use `to_arrow`") from None
        return pl.from_arrow(self.to_arrow())


def as_arrow(table: Any) -> Any:
    """Return a table of another library as an Arrow table, and anything else as it is.

    A frame of pandas with a column of several types, which Arrow has not, becomes a list of dicts; what pandas takes for
    missing is absent in both.
    """
    if not is_table(table) or is_arrow(table):
        refuse_query(table)
        return table
    pandas = sys.modules.get("pandas")
    if pandas is not None and isinstance(table, pandas.DataFrame):
        table = with_named_index(table)
        names = table.columns.map(str)
        if not names.is_unique:
            raise EventError(f"two columns are called `{names[names.duplicated()][0]}`")
        try:
            return pa.Table.from_pandas(table, preserve_index=False)
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            known = table.astype(object).where(table.notna(), None).rename(columns=str)
            return known.to_dict("records")
    if hasattr(table, "toArrow"):  # of Spark, whose C stream would need a Python worker with Arrow
        return table.toArrow()
    if hasattr(table, "__arrow_c_stream__"):
        try:
            return pa.RecordBatchReader.from_stream(table).read_all()
        except pa.ArrowException as fault:  # a column alone, or a type that Arrow has not
            raise TocsinError(
                f"a {type(table).__name__} cannot be read as a table of Arrow: {fault}"
            ) from None
    from pyarrow.interchange import from_dataframe  # noqa: PLC0415 - seldom needed

    return from_dataframe(table)


def with_named_index(frame: Any) -> Any:
    """Return a frame of pandas whose index is among its columns where it has a name, as that of a series of times has."""
    named = [name for name in frame.index.names if name is not None and name not in frame.columns]
    return frame.reset_index(level=named) if named else frame


def refuse_query(given: object) -> None:
    """Raise `TocsinError` for a query of another library, such as a lazy frame, which has no rows until it runs."""
    if hasattr(given, "collect") and not is_table(given):
        raise TocsinError(
            f"a {type(given).__name__} has no rows until it runs: give what its `collect()` returns"
        )


def as_one_table(rows: Any) -> Any:
    """Return a table that may come in parts, as a reader or a list of tables, as one Arrow table; anything else as it is."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if is_table(rows) or not isinstance(rows, (list, tuple)) or not rows:
        return as_arrow(rows)
    parts = [as_arrow(part) for part in rows] if all(map(is_table, rows)) else []
    if not parts or not all(map(is_arrow, parts)):
        return rows
    tables = [pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part for part in parts]
    try:
        return pa.concat_tables(tables, promote_options="default")
    except pa.ArrowException:  # the columns of a name differ in type
        return rows


def is_table(given: object) -> bool:
    """Tell whether something is a table, of Arrow or of another library."""
    # A reader of record batches has a C stream, too; it is iterated, batch by batch.
    is_stream = hasattr(given, "__arrow_c_stream__") and not isinstance(given, pa.RecordBatchReader)
    return is_arrow(given) or is_stream or hasattr(given, "__dataframe__")
