"""Arrow tables as events, encoded by column."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import numpy as np
import pyarrow as pa

from tocsin.formats.arrow_cells import plain_values
from tocsin.formats.arrow_rows import arrow_rows
from tocsin.formats.column_blocks import integer_array, text_array
from tocsin.formats.opaque_columns import is_opaque, readable
from tocsin.formats.records import UnreadableRecord
from tocsin.formats.string_views import without_views
from tocsin.matching.batches import REFUSED, EventBatch
from tocsin.matching.encoding.columns import (
    FieldColumn,
    constant_columns,
    doubtful,
    field_columns,
    has_decimals,
    leaf_paths,
    leaves,
    pairs,
)
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.matching.encoding.streams import StreamColumn
from tocsin.matching.encoding.truth import ColumnTruth
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.matching.word_truths import WordTruths
from tocsin.model.conditions import Predicate
from tocsin.model.errors import EventError
from tocsin.model.event import STREAM, Event, flatten
from tocsin.model.values import Value
from tocsin.structures.array_types import Bools, Int64s

_CELLS: Final = 1 << 18  # of a piece that is encoded at a time, so that it fits the cache
_FEWEST: Final = 1 << 10  # rows of such a piece
_MOST: Final = 1 << 16
_BLOCK: Final = 32  # rows that are read together when one of them is needed


def arrow_events(table: Any, *, stream: str | None = None) -> EventBatch:
    """Return the batch of a table's or record batch's rows, all of one stream.

    A row that is not an event matches nothing; `faults` gives the reason by its position.
    """
    return ArrowEvents.by_column(table, stream=stream) or _by_row(table, stream)


class ArrowEvents(EventBatch):
    """The rows of a table, which become Python objects only where one of them is read.

    Nulls are absent, structs are nested attributes, and a timestamp without a zone is UTC. The rows are of one stream or of
    none, or each has a stream of its own in `streams`.
    """

    def __init__(
        self,
        table: Any,
        paths: Iterable[str],
        faults: Mapping[int, str],
        stream: str | StreamColumn | None,
        *,
        source: Any = None,
    ) -> None:
        super().__init__((), faults=faults)
        self.paths = tuple(paths)
        self._source = table if source is None else source  # the rows as they came
        self._stream = stream
        self._table = table
        self._block: tuple[int, list[Mapping[str, Value]]] = (-1, [])
        self._asked = 0  # the row that was read last
        self._truth: ColumnTruth | None = None

    @classmethod
    def by_column(cls, table: Any, *, stream: str | None = None) -> ArrowEvents | None:
        """Return the batch, or None if some column must be read row by row."""
        if isinstance(table, pa.RecordBatch):
            table = pa.Table.from_batches([table])
        table = without_views(table)
        try:
            read = readable(table)
            paths = leaf_paths(read.schema)
            if not paths or STREAM in paths:
                return None
            faults = _faults(read, table)
        except (ValueError, pa.ArrowException):
            return None
        return cls(read, paths, faults, stream, source=table)

    @property
    def table(self) -> Any:
        """Return the rows as an Arrow table; columns of opaque values say no more than where there is one."""
        return self._table

    @property
    def is_table(self) -> bool:
        """Tell whether a table and a sequence can take the rows as they are: decimals are integers or floats in a row."""
        return not has_decimals(self.table.schema)

    @property
    def stream(self) -> str | None:
        """Return the stream of all rows, if they are of one."""
        return None if isinstance(self._stream, StreamColumn) else self._stream

    @property
    def streams(self) -> StreamColumn | None:
        """Return the stream of each row, if each has one of its own."""
        return self._stream if isinstance(self._stream, StreamColumn) else None

    @property
    def stream_names(self) -> tuple[str | None, ...]:
        """Return the streams that some row is of."""
        return self._stream.names if isinstance(self._stream, StreamColumn) else (self._stream,)

    def stream_at(self, position: int) -> str | None:
        """Return the stream of a row."""
        return self._stream[position] if isinstance(self._stream, StreamColumn) else self._stream

    def with_stream(self, stream: str | StreamColumn | None) -> ArrowEvents:
        """Return the same rows as events of other streams."""
        return self._with(self._table, self._source, self.faults, stream)

    def _with(
        self, table: Any, source: Any, faults: Mapping[int, str], stream: str | StreamColumn | None
    ) -> ArrowEvents:
        return ArrowEvents(table, self.paths, faults, stream, source=source)

    def slice(self, begin: int, end: int) -> ArrowEvents:
        """Return the batch of the rows from `begin` to `end`."""
        faults = {
            position - begin: fault
            for position in (range(begin, end) if self.faults else ())
            if (fault := self.faults.get(position)) is not None
        }
        stream = self._stream.slice(begin, end) if isinstance(self._stream, StreamColumn) else self._stream
        count = end - begin
        return self._with(self._table.slice(begin, count), self._source.slice(begin, count), faults, stream)

    def take(self, positions: Int64s) -> ArrowEvents:
        """Return the batch of some rows, which are events."""
        stream = self._stream.take(positions) if isinstance(self._stream, StreamColumn) else self._stream
        rows = integer_array(positions)
        table = self.table.take(rows)
        source = table if self._source is None or self._source is self._table else self._source.take(rows)
        return ArrowEvents(table, self.paths, {}, stream, source=source)

    def lacks(self, path: str) -> Bools:
        """Tell which rows have no value at a path."""
        if path not in self.paths:
            return np.ones(len(self), dtype=np.bool_)
        place, found = self.paths.index(path), [np.zeros(0, dtype=np.bool_)]
        for piece in self.table.to_batches():
            leaf = list(leaves(piece))[place]
            if pa.types.is_dictionary(leaf.type):
                leaf = leaf.dictionary_decode()  # a word of a dictionary may be null
            found.append(plain_values(leaf.is_null())[0])
        return np.concatenate(found)

    def with_faults(self, faults: Mapping[int, str]) -> ArrowEvents:
        """Return the batch with more rows marked as faulty."""
        return self._with(self.table, self._source, {**faults, **self.faults}, self._stream)

    def encode(self, vocabulary: Vocabulary) -> EncodedEvents:
        """Return the batch as arrays; columns that no subscription names are skipped."""
        kept = self._kept()
        done = 0
        found: list[EncodedEvents] = []
        for piece in _pieces(self.table):
            end = done + piece.num_rows
            named = zip(self.paths, leaves(piece), strict=True)
            streams = None if self.streams is None else self.streams.slice(done, end)
            found.append(
                self._pairs(
                    named, vocabulary, None if kept is None else kept[done:end], streams, piece.num_rows
                )
            )
            done = end
        return _joined(found)

    def leaves_at(self, path: str) -> Sequence[Any]:
        """Return the array with the values at a path; none if no row can have one."""
        if path == STREAM:
            if self.streams is not None:
                return [self.streams.array()]
            if self.stream is None:
                return []
            same = integer_array(np.zeros(len(self), dtype=np.int64))
            return [pa.DictionaryArray.from_arrays(same, text_array([self.stream]))]
        if path not in self.paths or not len(self):
            return []
        if path in self.table.schema.names and not has_decimals([self.table.schema.field(path)]):
            return [self.table.column(path).combine_chunks()]
        number = self.paths.index(path)
        found = [next(islice(leaves(piece), number, None)) for piece in self.table.to_batches()]
        return [pa.chunked_array(found).combine_chunks()]

    def may_have(self, path: str) -> bool:
        """Tell whether a row may have anything at a path: a value, or attributes below it."""
        below = path + "."
        return any(one == path or one.startswith(below) for one in self.paths)

    def count_opaque(self, rows: Int64s) -> Mapping[str, int]:
        """Return how many values cannot be compared in some rows that are events, by path."""
        found: Counter[str] = Counter()
        good = np.setdiff1d(rows, list(self.faults)) if self.faults else rows
        for path, type_ in zip(self.paths, _leaf_types(self.table.schema), strict=True):
            if is_opaque(type_):
                found[path] += int(np.count_nonzero(~self.lacks(path)[good]))
        return +found

    @property
    def has_columns(self) -> bool:
        """Tell that predicates can be evaluated for all rows at once."""
        return True

    def holds(self, predicate: Predicate, words: WordTruths | None = None) -> Bools | None:
        """Return which rows satisfy a predicate, or None if each has to be read to know it."""
        if self._truth is None:
            self._truth = ColumnTruth(self, words)
        return self._truth.holds(predicate)

    def row(self, position: int) -> Mapping[str, Value]:
        """Return the attributes of one event, without its stream."""
        number = position // _BLOCK
        block = self._block
        near = abs(position - self._asked) <= _BLOCK
        self._asked = position
        if block[0] != number:
            if not near:  # random access: a block would be read in vain
                return self._read_rows(position, 1)[0]
            block = self._block = number, self._read_rows(number * _BLOCK, _BLOCK)
        return block[1][position % _BLOCK]

    def rows_at(self, positions: Int64s) -> Sequence[Mapping[str, Value]]:
        """Return the attributes of some events, whose positions ascend, without their stream."""
        first, last = int(positions[0]), int(positions[-1])
        taken, begin = [], first
        # Taken piece by piece: taking from a chunked column of strings would copy all of it.
        try:
            for piece in self._source.slice(first, last - first + 1).to_batches():
                own = positions[slice(*np.searchsorted(positions, (begin, begin + piece.num_rows)))]
                taken.append(piece.take(integer_array(own - begin)))
                begin += piece.num_rows
        except pa.ArrowNotImplementedError:  # of some types
            return list(map(self.row, positions.tolist()))
        return [REFUSED if isinstance(row, str) else row for row in _read(taken)]

    def attributes(self, position: int) -> Mapping[str, Value]:
        """Return the attributes of one event."""
        return self._with_stream(REFUSED if self.is_refused(position) else self.row(position), position)

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def __iter__(self) -> Iterator[Event]:
        for position, row in enumerate(_read(self._source.to_batches(max_chunksize=_MOST))):
            yield Event(str(position), self._with_stream(REFUSED if isinstance(row, str) else row, position))

    def _read_rows(self, begin: int, count: int) -> list[Mapping[str, Value]]:
        rows = _read(self._source.slice(begin, count).to_batches())
        return [REFUSED if isinstance(row, str) else row for row in rows]

    def _with_stream(self, row: Mapping[str, Value], position: int) -> Mapping[str, Value]:
        stream = self.stream_at(position)
        return row if stream is None or row is REFUSED else {**row, STREAM: stream}

    def _kept(self) -> Bools | None:
        if not self.faults:
            return None
        kept = np.ones(len(self), dtype=np.bool_)
        kept[list(self.faults)] = False
        return kept

    def _pairs(
        self,
        found: Iterable[tuple[str, Any]],
        vocabulary: Vocabulary,
        kept: Bools | None,
        streams: StreamColumn | None,
        count: int,
    ) -> EncodedEvents:
        """Return the encoded pairs of leaves, each given with its path; rows outside `kept` have none."""
        codes = vocabulary.names.codes
        columns: list[FieldColumn] = []
        for path, leaf in found:
            attribute = codes.get(path)
            if attribute is not None:
                columns += field_columns(leaf, attribute, vocabulary)
        if STREAM in codes and streams is not None:
            columns += field_columns(streams.array(), codes[STREAM], vocabulary)
        elif STREAM in codes and self.stream is not None:
            columns += constant_columns(self.stream, count, codes[STREAM], vocabulary)
        return pairs(count, columns, kept, vocabulary)


def _by_row(table: Any, stream: str | None) -> EventBatch:
    """Return the rows of a table as a batch of mappings; unreadable rows are faults."""
    batches = [table] if isinstance(table, pa.RecordBatch) else table.to_batches()
    faults: dict[int, str] = {}
    rows: list[Mapping[str, Value]] = []
    for position, row in enumerate(_read(batches)):
        if isinstance(row, str):
            faults[position] = row
            rows.append(REFUSED)
        else:
            rows.append(row if stream is None else {**row, STREAM: stream})
    return EventBatch(rows, faults=faults)


def _read(batches: Iterable[Any]) -> Iterator[Mapping[str, Value] | str]:
    """Yield each row's attributes, or the reason why it is not an event."""
    for _, record in arrow_rows(batches):
        if isinstance(record, UnreadableRecord):
            yield record.reason
        else:
            try:
                yield flatten(record)
            except EventError as fault:
                yield str(fault)


def _faults(table: Any, source: Any) -> dict[int, str]:
    """Return the reason, by its position, why a row is not an event; only doubtful rows are read, from `source`."""
    faults: dict[int, str] = {}
    begin = 0
    for piece in _pieces(table):
        doubts = [mask for leaf in leaves(piece) if (mask := doubtful(leaf)) is not None]
        if doubts:
            positions = np.flatnonzero(np.logical_or.reduce(doubts))
            for start in (np.unique(positions // _BLOCK) * _BLOCK).tolist():
                count = min(_BLOCK, piece.num_rows - start)
                rows = enumerate(_read(source.slice(begin + start, count).to_batches()), begin + start)
                faults.update((position, row) for position, row in rows if isinstance(row, str))
        begin += piece.num_rows
    return faults


def _leaf_types(fields: Iterable[Any]) -> Iterator[Any]:
    """Yield the types of the leaves, in the order of their paths."""
    for field in fields:
        if pa.types.is_struct(field.type):
            yield from _leaf_types(field.type)
        else:
            yield field.type


def _pieces(table: Any) -> list[Any]:
    """Return the table as record batches of a suitable size."""
    most = min(max(_CELLS // max(len(table.schema), 1), _FEWEST), _MOST)
    pieces: list[Any] = table.to_batches(max_chunksize=most)
    if len(pieces) > 1 and len(pieces) * _FEWEST > table.num_rows:
        pieces = table.combine_chunks().to_batches(max_chunksize=most)
    return pieces


def _joined(pieces: list[EncodedEvents]) -> EncodedEvents:
    """Return the events of all pieces, one after another."""
    if len(pieces) == 1:
        return pieces[0]
    ends = np.cumsum([0, *(len(piece.keys) for piece in pieces)])
    offsets = [piece.offsets[1:] + end for piece, end in zip(pieces, ends[:-1], strict=True)]
    keys = _concatenated([piece.keys for piece in pieces])
    lows = highs = keys
    if any(piece.lows is not piece.keys for piece in pieces):
        lows = _concatenated([piece.lows for piece in pieces])
        highs = _concatenated([piece.highs for piece in pieces])
    fields = np.concatenate([piece.fields for piece in pieces]) if pieces else np.empty(0, dtype=np.int32)
    return EncodedEvents(_concatenated([np.zeros(1, dtype=np.int64), *offsets]), fields, keys, lows, highs)


def _concatenated(arrays: list[Int64s]) -> Int64s:
    return np.concatenate(arrays) if arrays else np.empty(0, dtype=np.int64)
