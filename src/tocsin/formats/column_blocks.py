"""Blocks of records: consecutive records of a file that are plain, with their values by the column.

A record that is not plain (broken, nested in an unusual way, of a special meaning) is given as the row reader gives it, in
its turn. A block gives the same records as the row reader, too: it is read by the column for matching, and a record of it is
read again where somebody asks for it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.formats.arrow_cells import validity_bits
from tocsin.formats.cloud_events import SPEC_VERSION
from tocsin.formats.records import UnreadableRecord
from tocsin.model.event import DELETIONS, STREAM

ROW_SPECIFIC: Final = frozenset({STREAM, SPEC_VERSION, *DELETIONS})
"""Attributes that make a record a different sort of event, so that it must be read by itself."""

BLOCK_BYTES: Final = 1 << 20  # of a file that are read at a time
_READ_BYTES: Final = 1 << 16
_BREAK: Final = b"\n"[0]
_EXACT: Final = 2**53  # every integer up to this is a float


class ColumnBlock(ABC):
    """Consecutive plain records of a file; `lines` are their line numbers."""

    def __init__(self, paths: Sequence[str], lines: Sequence[int]) -> None:
        self.paths = tuple(paths)
        self.lines = lines

    def __len__(self) -> int:
        return len(self.lines)

    @abstractmethod
    def leaves_at(self, path: str) -> Sequence[Any]:
        """Return the Arrow arrays with the values at a path, one for each kind of value; none if no row has one.

        Integers stand among floats if floats represent them.
        """

    @abstractmethod
    def has_integers(self, path: str) -> bool:
        """Tell whether integers stand among the floats at a path."""

    @abstractmethod
    def record(self, row: int) -> Mapping[str, object]:
        """Return a record as the row reader gives it."""

    def opaque(self) -> Mapping[str, int]:
        """Return how many values cannot be compared, by path."""
        return {}


BlockItem: TypeAlias = ColumnBlock | tuple[int, Mapping[str, object] | UnreadableRecord]
"""A block, or a single record with its line number."""


class LineBlocks:
    """A file in blocks of whole lines, each with the number of its first line.

    A file that cannot be read further gives the whole lines before, and then raises; so does a row reader.
    """

    def __init__(self, stream: IO[bytes], size: int | None = None) -> None:
        self._stream = stream
        self._size = BLOCK_BYTES if size is None else size

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        line, parts, held = 1, [b""], 0
        failure: BaseException | None = None
        while failure is None:
            try:
                read = self._stream.read1(_READ_BYTES)  # type: ignore[attr-defined]
            except Exception as fault:  # noqa: BLE001 - it is raised after the lines before it
                read, failure = b"", fault
            parts.append(read)
            held += len(read)
            if read and (held < self._size or b"\n" not in read):
                continue
            text = b"".join(parts)
            end = len(text) if not read and failure is None else text.rfind(b"\n") + 1
            if end:
                yield line, text[:end]
                line += text.count(b"\n", 0, end)
            parts, held = [text[end:]], len(text) - end
            if not read and failure is None:
                return
        raise failure


class Lines:
    """The lines of a text, cut out where they are asked for."""

    def __init__(self, text: bytes) -> None:
        self.text = text
        ends = np.flatnonzero(np.frombuffer(text, dtype=np.uint8) == _BREAK) + 1
        # where each line begins, and the end of the text
        self.bounds = np.concatenate([[0], ends if text.endswith(b"\n") else [*ends, len(text)]])

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> bytes:
        return self.text[self.bounds[number] : self.bounds[number + 1]]


def value_arrays(values: Sequence[Any]) -> list[Any]:
    """Return the Arrow arrays of one column's values: one array, or one for each kind if they are of several.

    Values are None, booleans, integers of 64 bits, floats and strings of valid Unicode.
    """
    kinds = set(map(type, values))
    kinds.discard(type(None))
    if kinds >= {int, float} and all(
        type(value) is not int or -_EXACT <= value <= _EXACT for value in values
    ):
        kinds.remove(int)
        values = [float(value) if type(value) is int else value for value in values]
    if len(kinds) == 1:
        return [_ARRAYS[kinds.pop()](values)]
    return [
        array([value if type(value) is kind else None for value in values])
        for kind, array in _ARRAYS.items()
        if kind in kinds
    ]


def integer_array(values: NDArray[np.int64]) -> Any:
    """Return integers as an Arrow array.

    `pa.array` would do, but it imports pandas where that is installed, and a command would start a second later.
    """
    return pa.Array.from_buffers(pa.int64(), len(values), [None, pa.py_buffer(values)])


def text_array(values: Sequence[str | None]) -> Any:
    """Return strings as an Arrow array; raise `UnicodeEncodeError` if one is not valid Unicode."""
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    filled = [value or "" for value in values]
    text = "".join(filled)
    data = text.encode()
    lengths = map(len, filled if text.isascii() else map(str.encode, filled))
    offsets = np.zeros(len(values) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(lengths, dtype=np.int64, count=len(values)), out=offsets[1:])
    buffers = [validity_bits(valid), pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.large_string(), len(values), buffers)


def string_array(values: Sequence[str | None]) -> Any:
    """Return strings as an Arrow array of Arrow's usual type, else as `text_array`."""
    return text_array(values).cast(pa.string())


def integers_array(values: Sequence[Any] | NDArray[Any]) -> Any:
    """Return integers and None as an array."""
    if isinstance(values, np.ndarray) or None not in values:
        return integer_array(np.array(values, dtype=np.int64))
    floats = np.array(values, dtype=np.float64)  # None is NaN
    valid = ~np.isnan(floats)
    filled = np.where(valid, floats, 0)
    if np.abs(filled).max(initial=0) >= _EXACT:
        numbers = np.array([value or 0 for value in values], dtype=np.int64)
    else:
        numbers = filled.astype(np.int64)
    return pa.Array.from_buffers(pa.int64(), len(values), [validity_bits(valid), pa.py_buffer(numbers)])


def floats_array(values: Sequence[Any] | NDArray[Any]) -> Any:
    """Return floats and None as an array; none of the floats is NaN."""
    numbers = np.array(values, dtype=np.float64)
    return pa.Array.from_buffers(
        pa.float64(), len(values), [validity_bits(~np.isnan(numbers)), pa.py_buffer(numbers)]
    )


def _booleans(values: Sequence[Any]) -> Any:
    true = np.array([value is True for value in values], dtype=np.bool_)
    valid = np.array([value is not None for value in values], dtype=np.bool_)
    stored = pa.py_buffer(np.packbits(true, bitorder="little"))
    return pa.Array.from_buffers(pa.bool_(), len(values), [validity_bits(valid), stored])


def _texts(values: Sequence[Any]) -> Any:
    """Return strings and None as an array of distinct strings, which is what matching makes of them anyway."""
    distinct = dict.fromkeys(values)
    distinct.pop(None, None)
    codes = dict(zip(distinct, range(len(distinct)), strict=True))
    codes[None] = -1
    positions = np.fromiter(map(codes.__getitem__, values), dtype=np.int64, count=len(values))
    buffers = [validity_bits(positions >= 0), pa.py_buffer(np.maximum(positions, 0))]
    indices = pa.Array.from_buffers(pa.int64(), len(values), buffers)
    return pa.DictionaryArray.from_arrays(indices, text_array(list(distinct)))


_ARRAYS: Final[dict[type, Callable[[Sequence[Any]], Any]]] = {
    bool: _booleans,
    int: integers_array,
    float: floats_array,
    str: _texts,
}
