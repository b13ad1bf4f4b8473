"""The streams of events that come together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tocsin.formats.arrow_cells import plain_values
from tocsin.formats.column_blocks import integer_array, text_array
from tocsin.matching.encoding.columns import distinct_texts, is_text
from tocsin.structures.array_types import Bools, Int64s


class StreamColumn:
    """The stream of each event, where events of several streams come together.

    >>> streams = StreamColumn(["bid", "ask"], np.array([0, 1, 0]))
    >>> streams[1], streams.take(np.array([2, 0])).names, streams.has("ask").tolist()
    ('ask', ('bid',), [False, True, False])
    """

    def __init__(self, names: Sequence[str], codes: Int64s) -> None:
        present = np.unique(codes)
        self.names: tuple[str, ...] = tuple(names[code] for code in present.tolist())  # of some event each
        self._codes = codes if len(present) == len(names) else np.searchsorted(present, codes)

    @classmethod
    def read(cls, column: Any) -> StreamColumn | None:
        """Return the streams that a column of an event's attributes names, or None if some row has to be read for it."""
        if column.null_count or not len(column):
            return None
        if pa.types.is_integer(column.type):
            distinct, codes = np.unique(plain_values(column)[0], return_inverse=True)
            return cls(list(map(str, distinct.tolist())), codes.astype(np.int64))
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if not is_text(kind):
            return None
        words, positions, valid = distinct_texts(column)
        names = [word for word in words if word is not None]
        if valid is not None or len(names) < len(words):
            return None
        return cls(names, positions.astype(np.int64))

    def has(self, name: str) -> Bools:
        """Tell which events are of a stream."""
        if name not in self.names:
            return np.zeros(len(self._codes), dtype=np.bool_)
        found: Bools = self._codes == self.names.index(name)
        return found

    def slice(self, begin: int, end: int) -> StreamColumn:
        """Return the streams of the events from `begin` to `end`."""
        return StreamColumn(self.names, self._codes[begin:end])

    def take(self, positions: Int64s) -> StreamColumn:
        """Return the streams of some events."""
        return StreamColumn(self.names, self._codes[positions])

    def array(self) -> Any:
        """Return the streams as an Arrow array."""
        return pa.DictionaryArray.from_arrays(integer_array(self._codes.copy()), text_array(self.names))

    def __getitem__(self, row: int) -> str:
        code: int = self._codes.item(row)
        return self.names[code]

    def __len__(self) -> int:
        return len(self._codes)
