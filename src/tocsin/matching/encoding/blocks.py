"""Blocks of a file as events, encoded by column; a record becomes an object only where it is read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

import pyarrow as pa

from tocsin.formats.column_blocks import ColumnBlock
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.streams import StreamColumn
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.event import STREAM, Event, flatten, is_plain
from tocsin.model.values import Value
from tocsin.structures.array_types import Int64s


class BlockEvents(ArrowEvents):
    """The records of a block from `begin` to `end`. Columns that no subscription names are not made."""

    def __init__(
        self, block: ColumnBlock, stream: str | StreamColumn | None, begin: int = 0, end: int | None = None
    ) -> None:
        super().__init__(None, block.paths, {}, stream)
        self._block_of_file = block
        self._begin = begin
        self._end = len(block) if end is None else end
        self._leaves: dict[str, Sequence[Any]] = {}

    @property
    def is_table(self) -> bool:
        """Tell whether a table can hold the rows: no column has values of several kinds, or integers among floats."""
        return all(
            not (found := self._block_of_file.leaves_at(path))
            or (
                len(found) == 1
                and not (pa.types.is_floating(found[0].type) and self._block_of_file.has_integers(path))
            )
            for path in self.paths
        )

    @property
    def table(self) -> Any:
        """Return the rows as an Arrow table, if it `is_table`."""
        if self._table is None:
            found = [self.leaves_at(path) for path in self.paths]
            columns = [leaves[0] if leaves else pa.nulls(len(self)) for leaves in found]
            self._table = pa.table(columns, list(self.paths))
        return self._table

    def with_stream(self, stream: str | StreamColumn | None) -> BlockEvents:
        """Return the same rows as events of other streams."""
        events = BlockEvents(self._block_of_file, stream, self._begin, self._end)
        events._leaves = self._leaves
        return events

    def slice(self, begin: int, end: int) -> BlockEvents:
        """Return the batch of the rows from `begin` to `end`."""
        stream = self._stream.slice(begin, end) if isinstance(self._stream, StreamColumn) else self._stream
        return BlockEvents(self._block_of_file, stream, self._begin + begin, self._begin + end)

    def encode(self, vocabulary: Vocabulary) -> EncodedEvents:
        """Return the batch as arrays; columns that no subscription names are skipped."""
        codes = vocabulary.names.codes
        found = [(path, leaf) for path in self.paths if path in codes for leaf in self.leaves_at(path)]
        return self._pairs(found, vocabulary, None, self.streams, len(self))

    def leaves_at(self, path: str) -> Sequence[Any]:
        """Return the arrays with the values at a path, one for each kind of value."""
        if path == STREAM:
            return super().leaves_at(path)
        found = self._leaves.get(path)
        if found is None:
            found = self._block_of_file.leaves_at(path)
            if len(self) < len(self._block_of_file):
                found = [leaf.slice(self._begin, len(self)) for leaf in found]
            self._leaves[path] = found
        return found

    def may_have(self, path: str) -> bool:
        """Tell whether a row may have anything at a path: a value, or attributes below it."""
        found = self._block_of_file.leaves_at(path) if path in self.paths else ()
        below = path + "."
        is_above = any(one.startswith(below) for one in self.paths)
        return bool(found) or is_above

    def count_opaque(self, rows: Int64s) -> Mapping[str, int]:  # noqa: ARG002
        """Return nothing: who takes a block counts all of it."""
        return {}

    def row(self, position: int) -> Mapping[str, Value]:
        """Return the attributes of one event, without its stream."""
        record = self._block_of_file.record(self._begin + position)
        return cast("Mapping[str, Value]", record) if is_plain(record) else flatten(record)

    def rows_at(self, positions: Int64s) -> Sequence[Mapping[str, Value]]:
        """Return the attributes of some events, without their stream."""
        return list(map(self.row, positions.tolist()))

    def __len__(self) -> int:
        return self._end - self._begin

    def __iter__(self) -> Iterator[Event]:
        for position in range(len(self)):
            yield Event(str(position), self.attributes(position))
