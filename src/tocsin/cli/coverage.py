"""What subscriptions ask for and no event had: streams and attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

import pyarrow as pa

from tocsin.cli.terminal import warn
from tocsin.engine import Engine
from tocsin.formats import Fault
from tocsin.formats.column_blocks import ColumnBlock
from tocsin.formats.event_blocks import EventBlock
from tocsin.language.schema_inference import ObservedSchema
from tocsin.matching.encoding.columns import distinct_texts, is_text
from tocsin.model import Event

_MOST: Final = 20  # warnings that are shown


def observed(
    items: Iterable[EventBlock | Event | Fault], schema: ObservedSchema, *, kinds: bool = False
) -> Iterator[EventBlock | Event | Fault]:
    """Return events and blocks, and add their names to a schema; with `kinds` those of single events' values, too."""
    for item in items:
        if isinstance(item, EventBlock):
            paths = tuple(_paths_of(item))
            for number, stream in enumerate(_streams_of(item)):
                schema.add_names(stream, paths, 0 if number else len(item))
        elif isinstance(item, Event):
            if kinds:
                schema.add(item)
            else:
                schema.add_names(item.stream, item.attributes)
        yield item


def _paths_of(block: EventBlock) -> Iterable[str]:
    """Return the attributes of a block's events, whether or not they can be taken by the column."""
    columns = block.columns
    return columns.paths if isinstance(columns, ColumnBlock) else (path for path, _ in _leaves(columns))


def _streams_of(block: EventBlock) -> Collection[str | None]:
    """Return the streams of a block's events; those that name none are refused."""
    field, columns = block.reader.fields.stream, block.columns
    if field is None:
        return (block.reader.stream,)
    if isinstance(columns, ColumnBlock):
        found = columns.leaves_at(field)
    else:
        found = [leaf for path, leaf in _leaves(columns) if path == field]
    return {str(one) for leaf in found for one in _distinct(leaf) if one is not None}


def _leaves(batch: Any) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of a record batch, also those within structs, with their paths."""
    for field, array in zip(batch.schema, batch.columns, strict=True):
        yield from _leaves_within(field.name, array)


def _leaves_within(path: str, array: Any) -> Iterator[tuple[str, Any]]:
    if pa.types.is_struct(array.type):
        for field, inner in zip(array.type, array.flatten(), strict=True):
            yield from _leaves_within(f"{path}.{field.name}", inner)
    else:
        yield path, array


def _distinct(array: Any) -> Iterable[object]:
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    return distinct_texts(array)[0] if is_text(kind) else set(array.to_pylist())


def warn_of_unseen(engine: Engine, schema: ObservedSchema) -> list[str]:
    """Warn of the streams and attributes that subscriptions name and that no event had; return the warnings."""
    queries = list(engine.query_shapes())
    schema.add_published(queries)
    warnings = list(dict.fromkeys(warning for query in queries for warning in schema.warnings(query)))
    for warning in warnings[:_MOST]:
        warn(warning)
    if len(warnings) > _MOST:
        warn(f"and {len(warnings) - _MOST:,} more streams and attributes that no event has")
    return warnings
