"""CSV in blocks: lines without quotes are split by Arrow, the others by Python's `csv`; both are typed by the column."""

from __future__ import annotations

import csv
from codecs import BOM_UTF8 as BOM
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from itertools import groupby
from typing import IO, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from tocsin.formats.column_blocks import (
    ROW_SPECIFIC,
    BlockItem,
    ColumnBlock,
    LineBlocks,
    Lines,
    text_array,
    value_arrays,
)
from tocsin.formats.records import UnreadableRecord, csv_fields, csv_header, csv_record, csv_value

_FEWEST_ROWS: Final = 16  # that are worth a block
_LONG: Final = 19  # characters of an integer that may need more than 64 bits
_REPEATED: Final = 4  # cells for each distinct text, so that these are read instead
_NUMBER: Final = r"^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$"
_BOOLEAN: Final = "^(?:true|false|True|False|TRUE|FALSE)$"
_EXACT: Final = 2.0**53


def csv_blocks(stream: IO[bytes]) -> Iterator[BlockItem]:
    """Yield the records of CSV in blocks; the records are those of `csv_rows`."""
    feed = _Feed(iter(LineBlocks(stream)))
    header = csv_header(csv.reader(feed, strict=True))
    if header is None:
        return
    has_columns = bool(header) and ROW_SPECIFIC.isdisjoint(header) and _is_unicode("".join(header))
    while feed.load():
        block = _split_by_arrow(feed.rest(), feed.taken + 1, header) if has_columns else None
        if block is not None:
            feed.skip(block.span)
            yield block
            continue
        before, found = feed.taken, []
        for line, row in csv_fields(csv.reader(feed, strict=True), header):
            found.append((before + line, row))
            if feed.is_at_end:  # of the block; a record that goes on in the next has taken lines of it
                break
        yield from _in_runs(found, header) if has_columns else _records(found, header)


class _Feed:
    """The lines of a file for `csv.reader`, block by block, as a text file would give them."""

    def __init__(self, blocks: Iterator[tuple[int, bytes]]) -> None:
        self._blocks = blocks
        self._text = b""  # of the block whose lines are not split yet
        self._lines: list[str] = []
        self._at = 0
        self._is_first = True
        self.taken = 0

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        if not self.load():
            raise StopIteration
        if self._text:
            self._lines, self._at = _universal_lines(self._text.decode("utf-8", "surrogateescape")), 0
            self._text = b""
        line = self._lines[self._at]
        self._at += 1
        self.taken += 1
        return line

    @property
    def is_at_end(self) -> bool:
        """Tell whether all lines of the present block are taken."""
        return not self._text and self._at >= len(self._lines)

    def load(self) -> bool:
        """Read the next block if the present one is taken; return False if there is none."""
        while self.is_at_end:
            following = next(self._blocks, None)
            if following is None:
                return False
            self._text = following[1].removeprefix(BOM) if self._is_first else following[1]
            self._is_first = False
        return True

    def rest(self) -> bytes:
        """Return the lines of the present block that are not taken."""
        return self._text or "".join(self._lines[self._at :]).encode("utf-8", "surrogateescape")

    def skip(self, lines: int) -> None:
        """Take the rest of the present block, which has so many lines."""
        self._text, self._lines = b"", []
        self._at = 0
        self.taken += lines


def _universal_lines(text: str) -> list[str]:
    return StringIO(text, newline="").readlines()


def _records(
    found: list[tuple[int, list[str] | UnreadableRecord]], header: list[str]
) -> Iterator[tuple[int, Mapping[str, object] | UnreadableRecord]]:
    for line, row in found:
        yield line, row if isinstance(row, UnreadableRecord) else csv_record(header, row)


def _in_runs(found: list[tuple[int, list[str] | UnreadableRecord]], header: list[str]) -> Iterator[BlockItem]:
    """Yield runs of readable rows as blocks, the others as records."""
    for is_readable, run in groupby(found, key=lambda one: not isinstance(one[1], UnreadableRecord)):
        part = list(run)
        block = None
        if is_readable and len(part) >= _FEWEST_ROWS:
            rows = [row for _, row in part if not isinstance(row, UnreadableRecord)]
            block = _of_rows(rows, [line for line, _ in part], header)
        if block is None:
            yield from _records(part, header)
        else:
            yield block


def _of_rows(rows: list[list[str]], lines: list[int], header: list[str]) -> _CsvBlock | None:
    """Return rows as a block, or None if they have to be read one by one."""
    try:
        cells = [text_array([cell or None for cell in column]) for column in zip(*rows, strict=True)]
    except UnicodeError:
        return None
    block = _CsvBlock(header, cells, lines, rows)
    return block if block.fits else None


def _split_by_arrow(text: bytes, first: int, header: list[str]) -> _CsvBlock | None:
    """Return lines without quotes as a block, or None if `csv` has to split them."""
    if b'"' in text or b"\0" in text or text.count(b"\r") != text.count(b"\r\n"):
        return None
    raw = Lines(text)
    if np.diff(raw.bounds).max(initial=0) > csv.field_size_limit():
        return None
    names = [str(number) for number in range(len(header))]
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            read_options=pa.csv.ReadOptions(column_names=names, use_threads=False, block_size=len(text) + 1),
            parse_options=pa.csv.ParseOptions(quote_char=False, escape_char=False),
            convert_options=pa.csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()), null_values=[""], strings_can_be_null=True
            ),
        )
    except pa.ArrowInvalid:
        return None
    lines: Sequence[int] = range(first, first + len(raw))
    if table.num_rows != len(raw):
        lines = [first + number for number in range(len(raw)) if raw[number].rstrip(b"\r\n")]
        if not lines or table.num_rows != len(lines):
            return None
    cells = [column.combine_chunks() for column in table.columns]
    block = _CsvBlock(header, cells, lines, raw, first)
    return block if block.fits else None


class _CsvBlock(ColumnBlock):
    """Rows of CSV as columns of texts, null where a field is empty; a column is typed when somebody asks for it."""

    def __init__(
        self,
        header: list[str],
        cells: list[Any],
        lines: Sequence[int],
        raw: Lines | list[list[str]],
        first: int = 0,
    ) -> None:
        super().__init__(header, lines)
        self.span = len(raw)  # how many lines of the file it takes, if it is made of lines
        self._cells = dict(zip(header, cells, strict=True))
        self._raw = raw
        self._first = first  # line of the block, which may be blank
        self._typed: dict[str, list[Any]] = {}

    @property
    def fits(self) -> bool:
        """Tell whether every integer has a column; those of more than 64 bits have none."""
        try:
            for path, column in self._cells.items():
                longest = pc.max(pc.binary_length(column)).as_py()
                if longest is not None and longest >= _LONG:
                    self.leaves_at(path)
        except OverflowError:
            return False
        return True

    def leaves_at(self, path: str) -> Sequence[Any]:
        """Return the Arrow arrays with the values at a path."""
        found = self._typed.get(path)
        if found is None:
            cells = self._cells.get(path)
            found = self._typed[path] = [] if cells is None else _typed(cells)
        return found

    def has_integers(self, path: str) -> bool:
        """Tell whether integers stand among the floats at a path."""
        return not pc.all(pc.match_substring_regex(self._cells[path], "[.eE]")).as_py()

    def record(self, row: int) -> Mapping[str, object]:
        """Return a record as the row reader gives it."""
        if isinstance(self._raw, Lines):
            line = self._raw[self.lines[row] - self._first]
            return csv_record(self.paths, line.rstrip(b"\r\n").decode().split(","))
        return csv_record(self.paths, self._raw[row])


def _typed(cells: Any) -> list[Any]:
    """Return the arrays of a column's values, one for each kind; raise `OverflowError` if some integer has no column."""
    if cells.null_count == len(cells):
        return []
    encoded = cells.dictionary_encode()
    words = encoded.dictionary
    integers = _integers(words)
    if integers is not None:
        return [integers.take(encoded.indices)]
    if len(words) * _REPEATED <= len(cells):
        values = _values(words)
        if all(type(value) is str for value in values):
            return [encoded]
        return [_decoded(array).take(encoded.indices) for array in value_arrays(values)]
    is_number = pc.match_substring_regex(cells, _NUMBER)
    if pc.all(is_number).as_py():
        floats = _floats(cells)
        if floats is not None:
            return [floats]
    elif not pc.any(is_number).as_py() and not pc.any(pc.match_substring_regex(cells, _BOOLEAN)).as_py():
        return [cells]
    return value_arrays(_values(cells))


def _decoded(array: Any) -> Any:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _values(cells: Any) -> list[Any]:
    values = [None if cell is None else csv_value(cell) for cell in cells.to_pylist()]
    for value in values:
        if type(value) is int and not -(2**63) <= value < 2**63:
            raise OverflowError(value)
    return values


def _integers(cells: Any) -> Any:
    """Return a column of integers that are written as Arrow writes them, else None."""
    try:
        integers = cells.cast(pa.int64())
    except pa.ArrowInvalid:
        return None
    return integers if pc.all(pc.equal(integers.cast(cells.type), cells)).as_py() else None


def _floats(cells: Any) -> Any:
    """Return a column of numbers as floats, or None if one may stand for an integer that is no float."""
    try:
        floats = cells.cast(pa.float64())
    except pa.ArrowInvalid:
        return None
    bounds = pc.min_max(floats).as_py()
    return floats if bounds["min"] >= -_EXACT and bounds["max"] <= _EXACT else None


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
