"""What subscriptions ask for and no event had: streams and attributes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from tocsin.cli.terminal import warn
from tocsin.engine import Engine
from tocsin.formats import Fault
from tocsin.formats.column_blocks import ColumnBlock
from tocsin.formats.event_blocks import EventBlock
from tocsin.formats.opaque_columns import readable
from tocsin.language.schema_inference import ObservedSchema
from tocsin.matching.encoding.columns import leaf_paths
from tocsin.matching.encoding.streams import StreamColumn
from tocsin.model import Event

_MOST: Final = 20  # warnings that are shown


def observed(
    items: Iterable[EventBlock | Event | Fault], schema: ObservedSchema, *, kinds: bool = False
) -> Iterator[EventBlock | Event | Fault]:
    """Return events and blocks, and add their names to a schema; with `kinds` those of single events' values, too."""
    for item in items:
        if isinstance(item, EventBlock):
            columns = item.columns
            paths = (
                columns.paths
                if isinstance(columns, ColumnBlock)
                else leaf_paths(readable(columns).schema) or ()
            )
            for number, stream in enumerate(_streams_of(item)):
                schema.add_names(stream, paths, 0 if number else len(item))
        elif isinstance(item, Event):
            if kinds:
                schema.add(item)
            else:
                schema.add_names(item.stream, item.attributes)
        yield item


def _streams_of(block: EventBlock) -> tuple[str | None, ...]:
    """Return the streams of a block's events."""
    field, columns = block.reader.fields.stream, block.columns
    if field is None:
        return (block.reader.stream,)
    if isinstance(columns, ColumnBlock):
        found = columns.leaves_at(field)
    else:
        found = [columns.column(field)] if field in columns.schema.names else []
    read = StreamColumn.read(found[0]) if len(found) == 1 else None
    return (block.reader.stream,) if read is None else read.names


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
