"""Where a DataFrame's rows hold the events: in typed columns, in one struct, or in a column of JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa
from msgspec import Struct

from tocsin.matching.batches import EventBatch
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.model.errors import SparkError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["Layout", "find_layout"]

_NOT_JSON = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
_decode = msgspec.json.Decoder().decode


class Layout(Struct, frozen=True):
    """Which columns hold the events; a payload or a struct is one column alone."""

    columns: tuple[str, ...]
    is_payload: bool = False
    is_struct: bool = False

    def selected(self, events: DataFrame) -> DataFrame:
        """Return the DataFrame with the columns that hold the events, and no others."""
        return events.select(*(f"`{name.replace('`', '``')}`" for name in self.columns))

    def table(self, batch: pa.RecordBatch) -> Any:
        """Return selected rows with a column for each attribute, or None if they are JSON.

        A null struct is an event without attributes.
        """
        if self.is_payload:
            return None
        return pa.RecordBatch.from_struct_array(batch.column(0)) if self.is_struct else batch

    def events(self, batch: pa.RecordBatch) -> EventBatch:
        """Return selected rows as events; `faults` tells what is wrong with those that are none."""
        if self.is_payload:
            return EventBatch.of_dicts([_read(payload) for payload in batch.column(0).to_pylist()])
        return arrow_events(self.table(batch))


def find_layout(
    events: DataFrame, *, event_id: str | None = None, payload: str | None = None, struct: str | None = None
) -> Layout:
    """Return where the events are: in the column of JSON `payload`, in the column `struct`, or in all columns.

    The column `event_id` is none of an event's attributes. Columns of lists, maps and bytes are left out, as
    arrays are. Raise `SparkError` if there is no such column, or if it is of another type.
    """
    types = dict(events.dtypes)
    for name in (event_id, payload, struct):
        if name is not None and name not in types:
            raise SparkError(f"the DataFrame has no column `{name}`; it has {', '.join(types) or 'none'}")
    if payload is not None and struct is not None:
        raise SparkError("events are in a payload or in a struct; give one of `payload` and `struct`")
    if payload is not None:
        if types[payload] not in ("string", "binary"):
            raise SparkError(f"a payload is JSON in a string or in bytes; `{payload}` is {types[payload]}")
        return Layout((payload,), is_payload=True)
    if struct is not None:
        if not types[struct].startswith("struct<"):
            raise SparkError(f"`{struct}` is {types[struct]}, and no struct")
        return Layout((struct,), is_struct=True)
    return Layout(tuple(name for name, kind in types.items() if name != event_id and _holds_values(kind)))


def _holds_values(kind: str) -> bool:
    return not kind.startswith(("array<", "map<", "binary", "interval", "variant"))


def _read(payload: str | bytes | None) -> Any:
    """Return what a payload says, or None, which is no event, if that cannot be read."""
    try:
        return None if payload is None else _decode(payload)
    except _NOT_JSON:
        return None
