"""Notifications as columns of Arrow."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa

from tocsin.formats.column_blocks import floats_array, integers_array, string_array
from tocsin.formats.notifications import answer_record, attributes_text, encode_json, witness_record
from tocsin.model import Event, Notification

NOTIFICATION_COLUMNS: Final = (
    ("subscription", pa.string()),
    ("stream", pa.string()),
    ("start", pa.int64()),
    ("end", pa.int64()),
    ("generation", pa.int64()),
    ("score", pa.float64()),
    ("values", pa.string()),
    ("witness", pa.string()),
    ("answer", pa.string()),
)
"""The columns of every table of notifications, with their types."""

EVENT_COLUMNS: Final = (("event_id", pa.string()), ("event", pa.string()))
"""The id of the last event and its attributes, as JSON."""


def object_columns(notes: Sequence[Notification], *, with_events: bool) -> pa.Table:
    """Return the NOTIFICATION_COLUMNS of objects, and the EVENT_COLUMNS where they are asked for."""
    columns: dict[str, Any] = {
        name: [getattr(note, name) for note in notes]
        for name in ("subscription", "start", "end", "generation", "score")
    }
    columns["stream"] = [note.events[-1].stream if note.events else None for note in notes]
    columns["values"] = [json_text(note.values) for note in notes]
    columns["witness"] = [
        None if note.witness is None else json_text([witness_record(step) for step in note.witness])
        for note in notes
    ]
    columns["answer"] = [json_text(answer_record(note)) if note.view else None for note in notes]
    table = notification_columns(columns, len(notes))
    if not with_events:
        return table
    ids = [note.event_ids[-1] if note.event_ids else None for note in notes]
    return with_event_columns(table, ids, [note.events[-1] if note.events else None for note in notes])


def with_event_columns(
    table: pa.Table, ids: Sequence[str | None], events: Sequence[Event | None]
) -> pa.Table:
    """Return a table with the EVENT_COLUMNS, too; an event that several notifications have is encoded once."""
    texts: dict[int, str | None] = {id(None): None}  # by address: the caller keeps the events
    for event in events:
        if id(event) not in texts and event is not None:
            texts[id(event)] = attributes_text(event)
    for (name, _), column in zip(EVENT_COLUMNS, (ids, [texts[id(one)] for one in events]), strict=True):
        table = table.append_column(name, string_array(column))
    return table


def notification_columns(columns: Mapping[str, Any], count: int) -> pa.Table:
    """Return a table with the NOTIFICATION_COLUMNS; those that are not given are null."""
    return pa.table(
        {
            name: _ARRAYS[kind](columns[name]) if name in columns else pa.nulls(count, kind)
            for name, kind in NOTIFICATION_COLUMNS
        }
    )


# Arrays are made from their buffers: `pa.array` imports pandas where that is installed, which takes most of a second.
_ARRAYS: Final[dict[Any, Callable[[Sequence[Any]], Any]]] = {
    pa.string(): string_array,
    pa.int64(): integers_array,
    pa.float64(): floats_array,
}


def json_text(value: object) -> str | None:
    """Return a value as a text of JSON; None for None."""
    return None if value is None else encode_json(value).decode()
