"""The columns that programs read of events: one for each attribute, and for each residual predicate."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tocsin.formats.opaque_columns import is_opaque
from tocsin.language.semantics import truth
from tocsin.matching.column_scan import satisfying
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.columns import distinct_texts, in_microseconds, is_text, leaves, plain_values
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model.conditions import Predicate
from tocsin.model.values import Opaque, Value, read_value
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.programs import Column
from tocsin.sequences.running.values import WIDE, ValueCodec
from tocsin.structures.array_types import Bools, Int64s
from tocsin.structures.interning import InterningTable

_INTEGER: Final = int(Tag.INTEGER)
_FLOAT: Final = int(Tag.FLOAT)
_STRING: Final = int(Tag.STRING)
_DOUBLE: Final = struct.Struct("<d").pack
_BITS: Final = struct.Struct("<q").unpack


class Columns:
    """The columns that programs read, by number; a number is reused once no program uses its column."""

    def __init__(self, codec: ValueCodec) -> None:
        self.table: InterningTable[Column] = InterningTable()
        self._codec = codec
        self._version = -1  # of the table when its columns were split
        self._paths: list[tuple[int, str]] = []
        self._residual: list[tuple[int, Predicate]] = []

    def encode(self, events: TimedBatch) -> Int64s:
        """Return, per event, the tag and integer of each column."""
        if self._version != self.table.version:
            self._version = self.table.version
            self._paths = [(code, column) for code, column in self.table if isinstance(column, str)]
            self._residual = [(code, column) for code, column in self.table if not isinstance(column, str)]
        if len(events.events) == 1 and not self._residual:
            return self._encode_row(events.attributes[0])
        values = np.zeros((len(events.ends), max(1, len(self.table.values)), 2), dtype=np.int64)
        if self._paths and isinstance(events, TimedRows):
            self._encode_columns(events.batch, values)
        elif self._paths:
            self._encode_rows(events.attributes, values)
        if self._residual and isinstance(events, TimedRows):
            self._evaluate_columns(events.batch, values)
        elif self._residual:
            self._evaluate_residual(events.attributes, values)
        return values

    def _encode_row(self, row: Mapping[str, Value]) -> Int64s:
        """Return the tag and integer of each column of one event."""
        flat = [0] * (2 * max(1, len(self.table.values)))
        encode, codes = self._codec.encode, self._codec.strings.codes
        for code, path in self._paths:
            value = row.get(path)
            kind = type(value)
            # The most frequent kinds are encoded without a call.
            if kind is int and -WIDE <= value < WIDE:  # type: ignore[operator]
                flat[2 * code], flat[2 * code + 1] = _INTEGER, value  # type: ignore[assignment]
            elif kind is float:
                flat[2 * code], flat[2 * code + 1] = _FLOAT, _BITS(_DOUBLE(value))[0]
            elif kind is str and value in codes:
                flat[2 * code], flat[2 * code + 1] = _STRING, codes[value]  # type: ignore[index]
            else:
                flat[2 * code : 2 * code + 2] = encode(value)
        return np.array(flat, dtype=np.int64).reshape(1, -1, 2)

    def _encode_rows(self, rows: Sequence[Mapping[str, Value]], values: Int64s) -> None:
        """Write the encoded attributes of mappings into `values`."""
        encode, codes = self._codec.encode, self._codec.strings.codes
        for code, path in self._paths:
            tags: list[int] = []
            rest: list[int] = []
            for row in rows:
                value = row.get(path)
                kind = type(value)
                # The most frequent kinds are encoded without a call.
                if kind is int and -WIDE <= value < WIDE:  # type: ignore[operator]
                    tags.append(_INTEGER)
                    rest.append(value)  # type: ignore[arg-type]
                elif kind is float:
                    tags.append(_FLOAT)
                    rest.append(_BITS(_DOUBLE(value))[0])
                elif kind is str and value in codes:
                    tags.append(_STRING)
                    rest.append(codes[value])  # type: ignore[index]
                else:
                    tag, integer = encode(value)
                    tags.append(tag)
                    rest.append(integer)
            values[:, code, 0] = tags
            values[:, code, 1] = rest

    def _evaluate_residual(self, rows: Sequence[Mapping[str, Value]], values: Int64s) -> None:
        for row, attributes in enumerate(rows):
            for code, predicate in self._residual:
                if truth(predicate, attributes):
                    values[row, code, 0], values[row, code, 1] = Tag.BOOLEAN, 1

    def _evaluate_columns(self, batch: ArrowEvents, values: Int64s) -> None:
        """Write the truth of residual predicates on the rows of an Arrow table into `values`."""
        rows = np.arange(len(batch))
        for code, predicate in self._residual:
            values[satisfying(((predicate,),), rows, batch), code] = Tag.BOOLEAN, 1

    def _encode_columns(self, batch: ArrowEvents, values: Int64s) -> None:
        """Write the encoded attributes of an Arrow table into `values`."""
        codes = {path: code for code, path in self._paths}
        wanted = {i: codes[path] for i, path in enumerate(batch.paths) if path in codes}
        done = 0
        for piece in batch.table.to_batches():
            part = values[done : done + piece.num_rows]
            for i, leaf in enumerate(leaves(piece)):
                if i in wanted:
                    for tag, mask, integers in self._encode_leaf(leaf):
                        column = part[:, wanted[i]]
                        column[mask, 0] = tag
                        column[mask, 1] = integers[mask]
            done += piece.num_rows

    def _encode_leaf(self, leaf: Any) -> Iterator[tuple[int, Bools, Int64s]]:
        """Yield the values of an Arrow leaf by tag: in which rows they are, and their integers."""
        kind = leaf.type
        if leaf.null_count == len(leaf):
            return
        if is_opaque(kind):
            for name in leaf.unique().drop_null():
                there, _ = plain_values(pc.equal(leaf, name).fill_null(False))
                code = self._codec.opaque.code(Opaque(name.as_py().decode()))
                yield Tag.OPAQUE, there, np.full(len(leaf), code, dtype=np.int64)
        elif pa.types.is_dictionary(kind) and not is_text(kind.value_type):
            yield from self._encode_leaf(leaf.dictionary_decode())
        elif pa.types.is_dictionary(kind) or is_text(kind):
            texts, positions, mask = distinct_texts(leaf)
            known = [0 if text is None else self._codec.code(text) for text in texts]
            codes = np.array(known, dtype=np.int64)
            yield Tag.STRING, _full_mask(mask, leaf), codes[positions]
        elif pa.types.is_uint64(kind):
            yield from self._objects(leaf)
        else:
            numbers, mask = plain_values(leaf)
            if pa.types.is_boolean(kind):
                yield Tag.BOOLEAN, _full_mask(mask, leaf), numbers.astype(np.int64)
            elif pa.types.is_floating(kind):
                yield Tag.FLOAT, _full_mask(mask, leaf), numbers.astype(np.float64).view(np.int64)
            elif pa.types.is_temporal(kind):
                yield Tag.TIMESTAMP, _full_mask(mask, leaf), in_microseconds(numbers, kind)
            else:
                yield Tag.INTEGER, _full_mask(mask, leaf), numbers.astype(np.int64)

    def _objects(self, leaf: Any) -> Iterator[tuple[int, Bools, Int64s]]:
        pairs = [self._codec.encode(read_value(value)) for value in leaf.to_pylist()]
        table = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        for tag in np.unique(table[:, 0]).tolist():
            yield tag, table[:, 0] == tag, table[:, 1]


def _full_mask(mask: Bools | None, leaf: Any) -> Bools:
    """Return in which rows a leaf has a value."""
    return np.ones(len(leaf), dtype=np.bool_) if mask is None else mask
