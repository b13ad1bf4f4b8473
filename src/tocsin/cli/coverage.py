"""What subscriptions ask for and no event had: streams and attributes."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, Final

import pyarrow as pa

from tocsin.cli.terminal import warn
from tocsin.engine import Engine
from tocsin.formats import Fault
from tocsin.formats.column_blocks import ColumnBlock
from tocsin.formats.event_blocks import EventBlock
from tocsin.language.schema_inference import ObservedSchema, compared_kinds
from tocsin.matching.encoding.columns import distinct_texts, is_text
from tocsin.model import Event
from tocsin.model.values import Kind, kind_of

_MOST: Final = 20  # warnings that are shown
NO_EVENTS: Final = "there were no events"


def observed(
    items: Iterable[EventBlock | Event | Fault], schema: ObservedSchema, engine: Engine
) -> Iterator[EventBlock | Event | Fault]:
    """Return events and blocks, and add their names to a schema, and the kinds of what an engine's subscriptions compare."""
    kinds = _ComparedKinds(engine, schema)
    for item in items:
        if isinstance(item, EventBlock):
            _add_block(item, schema, kinds)
        elif isinstance(item, Event):
            schema.add_names(item.stream, item.attributes)
            for path in kinds.awaited(item.stream, item.attributes):
                kinds.add(item.stream, path, (kind_of(item.attributes[path]),))
        yield item


class _ComparedKinds:
    """The kinds of the attributes that subscriptions compare.

    The values of an attribute are looked at until each predicate on it has met a kind that it admits: mostly once.
    """

    def __init__(self, engine: Engine, schema: ObservedSchema) -> None:
        self._schema = schema
        self._admitted = compared_kinds(engine.query_shapes())
        self._settled: set[tuple[str | None, str]] = set()

    def awaited(self, stream: str | None, paths: Iterable[str]) -> list[str]:
        """Return the attributes of a stream's events whose values are still to be looked at."""
        return [path for path in paths if path in self._admitted and (stream, path) not in self._settled]

    def add(self, stream: str | None, path: str, kinds: Iterable[Kind]) -> None:
        """Add kinds that an attribute has in events of a stream."""
        known = self._schema.add_kinds(stream, path, kinds)
        if known and all(known & admitted for admitted in self._admitted[path]):
            self._settled.add((stream, path))


def _add_block(block: EventBlock, schema: ObservedSchema, kinds: _ComparedKinds) -> None:
    """Add a block's names to a schema, whether or not its events can be taken by the column."""
    columns = block.columns
    if isinstance(columns, ColumnBlock):
        paths, leaves_at = columns.paths, columns.leaves_at
    else:
        found = list(_leaves(columns))
        paths = tuple(path for path, _ in found)

        def leaves_at(path: str) -> Sequence[Any]:
            return [leaf for name, leaf in found if name == path]

    for number, stream in enumerate(_streams_of(block)):
        schema.add_names(stream, paths, 0 if number else len(block))
        for path in kinds.awaited(stream, dict.fromkeys(paths)):
            kinds.add(stream, path, set(map(_kind, filter(_has_value, leaves_at(path)))))


def _has_value(array: Any) -> bool:
    return int(array.null_count) < len(array)


def _kind(array: Any) -> Kind:
    """Return the kind of an array's values."""
    kind = array.type.value_type if pa.types.is_dictionary(array.type) else array.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return Kind.NUMBER
    if is_text(kind):
        return Kind.STRING
    if pa.types.is_boolean(kind):
        return Kind.BOOLEAN
    return Kind.TIMESTAMP if pa.types.is_timestamp(kind) or pa.types.is_date(kind) else Kind.OPAQUE


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


def warn_of_unseen(engine: Engine, schema: ObservedSchema, refused: int) -> list[str]:
    """Warn of the streams and attributes that subscriptions name and that no event had; return the warnings.

    Without any event, that is the warning, unless as many records as `refused` were reported.
    """
    if not schema.events and not refused:
        warn(NO_EVENTS)
        return [NO_EVENTS]
    queries = list(engine.query_shapes())
    schema.add_published(queries)
    warnings = list(dict.fromkeys(warning for query in queries for warning in schema.warnings(query)))
    for warning in warnings[:_MOST]:
        warn(warning)
    if len(warnings) > _MOST:
        warn(f"and {len(warnings) - _MOST:,} more streams and attributes that no event has")
    return warnings
