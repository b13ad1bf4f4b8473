"""Files of events: their format and compression by name, and the progress of reading."""

from __future__ import annotations

import gzip
import io
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import StrEnum
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final, cast

import pyarrow as pa

from tocsin.formats.arrow_rows import arrow_rows, parquet_batches
from tocsin.formats.column_blocks import BlockItem, ColumnBlock
from tocsin.formats.event_blocks import EventBlock
from tocsin.formats.event_reader import EventReader, Fault
from tocsin.formats.json_blocks import json_array_blocks, json_blocks
from tocsin.formats.local_times import in_zone
from tocsin.formats.records import Records, UnreadableRecord, csv_rows, json_array, json_lines
from tocsin.model.errors import EventError
from tocsin.model.event import Event


class Format(StrEnum):
    """The format of a file."""

    JSONL = "jsonl"
    JSON = "json"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"


_SUFFIXES = {f".{format}": format for format in Format} | {
    ".ndjson": Format.JSONL,
    ".pq": Format.PARQUET,
    ".feather": Format.ARROW,
}
_COMPRESSED = (".gz", ".zst")
UNREADABLE: Final = (
    OSError,
    EOFError,
    zlib.error,
    pa.ArrowException,
)  # mostly compressed files that end too early
_TABLES = (Format.PARQUET, Format.ARROW)


class EventFile:
    """The events of one source, to be iterated once: each is an `Event`, or the `Fault` of an unreadable record.

    `size` is the size of the source in bytes or rows, or None; `position` is how much has been read. With
    `takes_options`, an engine reads it as `stream`, `time` and `start` of its own calls say.
    """

    def __init__(
        self, path: Path | None, format: Format, reader: EventReader, *, takes_options: bool = False
    ) -> None:
        self.path = path
        self.format = format
        self.reader = reader
        self.takes_options = takes_options
        self.name = "stdin" if path is None else str(path)
        self.size: int | None = None
        self._raw: IO[bytes] | None = None
        self._row = 0  # the line of the last record
        self._part = 1  # and its place among the records of that line

    @property
    def position(self) -> int:
        """Return how much has been read, in the unit of `size`."""
        if self._raw is None:
            return self._row
        return (self.size or 0) if self._raw.closed else self._raw.tell()

    def __iter__(self) -> Iterator[Event | Fault]:
        try:
            for line, record in self._records():
                yield self._event(line, record)
        except UNREADABLE as fault:
            raise self._unreadable(fault) from None

    def blocks(self) -> Iterator[EventBlock | Event | Fault]:
        """Yield the same events in blocks, which can be taken by the column; records that are not plain come alone.

        A pipe delivers records one by one, and so does this then.
        """
        if self.path is None or not self.path.is_file():
            yield from self
            return
        try:
            for item in self._items():
                if isinstance(item, EventBlock):
                    self._row, self._part = item.last_line, 1
                    yield item
                else:
                    yield self._event(*item)
        except UNREADABLE as fault:
            raise self._unreadable(fault) from None

    def first_records(self, count: int) -> list[Mapping[str, object]]:
        """Return the first records of a file that can be read, without taking them from it."""
        assert self.path is not None  # noqa: S101 - the caller has looked
        try:
            first = list(islice(raw_records(self.path, self.format), count))
        except (EventError, *UNREADABLE):  # it is reported where the events are read
            return []
        return [record for _, record in first if isinstance(record, Mapping)]

    def _event(self, line: int, record: Mapping[str, object] | UnreadableRecord) -> Event | Fault:
        """Return a record as an event; an array on a line of JSON lines has several records."""
        self._part = self._part + 1 if line == self._row else 1
        self._row = line
        return self.reader.event(record, self.name, line, part=self._part)

    def _unreadable(self, fault: BaseException) -> EventError:
        unit = "record" if self.format in _TABLES or self.format is Format.JSON else "line"
        return EventError(f"{self.name} cannot be read further than {unit} {self._row}: {fault}")

    def _items(self) -> Iterator[EventBlock | tuple[int, Mapping[str, object] | UnreadableRecord]]:
        """Yield the records of the file in blocks, or alone with their line numbers."""
        if self.format in _TABLES:
            line = 1
            for batch in self._open_table():
                yield EventBlock(batch, self.reader, self.name, line)
                line += batch.num_rows
            return
        with self._open() as stream:
            for item in _block_reader(self.format)(stream):
                yield EventBlock(item, self.reader, self.name) if isinstance(item, ColumnBlock) else item

    def _open_table(self) -> Iterable[Any]:
        """Return the record batches of a table; times without a zone are of the reader's."""
        if self.path is None:
            raise EventError(f"{self.format} cannot be read from standard input; name the file")
        self.size, batches = _batches(self.path, self.format)
        return (in_zone(batch, self.reader.ticks.zone) for batch in batches)

    @contextmanager
    def _open(self) -> Iterator[IO[bytes]]:
        """Open the file; its decompressed bytes are read."""
        assert self.path is not None  # noqa: S101 - the caller has looked
        self.size = self.path.stat().st_size or None  # the size of a pipe is unknown
        with self.path.open("rb") as self._raw:
            yield open_decompressed(self._raw, self.path.suffix)

    def _records(self) -> Records:
        """Yield the records of the file or of standard input."""
        if self.format in _TABLES:
            yield from arrow_rows(self._open_table())
            return
        if self.path is None:
            yield from _text_records(sys.stdin.buffer, self.format)
            return
        with self._open() as stream:
            yield from _text_records(stream, self.format)


def open_events(
    source: str | Path, reader: EventReader | None = None, *, format: Format | None = None
) -> EventFile:
    """Return the events of a file, or of standard input for `-`; raise `EventError` if there is no such file.

    Without a reader, a file's events are of the stream that is called like the file.
    """
    own = reader is None
    if is_standard(source):
        return EventFile(None, format or Format.JSONL, reader or EventReader(), takes_options=own)
    path = Path(source)
    if not is_readable(path):
        raise EventError(unreadable_reason(path))
    reader = reader or EventReader(stream=stem_of(path))
    return EventFile(path, format or format_of(path), reader, takes_options=own)


def is_standard(path: str | Path) -> bool:
    """Return whether `path` is `-`, which stands for standard input or output."""
    return str(path) == "-"


def is_readable(path: Path) -> bool:
    """Return whether `path` is a file, a pipe, or `-` for standard input."""
    if is_standard(path):
        return True
    try:
        return path.exists() and not path.is_dir()
    except (OSError, ValueError):  # the name is too long or holds a null
        return False


def unreadable_reason(path: Path) -> str:
    """Return why `path` cannot be read as a file: it is a folder, or is not there."""
    try:
        if not path.is_dir():
            return f"there is no file {path}"
        inside = sorted(one for one in path.iterdir() if known_format(one) is not None and one.is_file())
    except (OSError, ValueError):
        return f"there is no file {path}"
    return f"{path} is a folder; name a file in it" + (f", such as {inside[0]}" if inside else "")


def format_of(path: Path) -> Format:
    """Return the format that a file's suffix names, JSON lines if it names none."""
    return known_format(path) or Format.JSONL


def stem_of(path: Path) -> str:
    """Return a file's name without the suffixes of its format and compression.

    >>> stem_of(Path("history/flights.2013.csv.gz"))
    'flights.2013'
    """
    name = path.name
    while (suffix := Path(name).suffix.lower()) in _COMPRESSED or suffix in _SUFFIXES or suffix == ".txt":
        name = name[: -len(suffix)]
    return name or path.name


def known_format(path: Path) -> Format | None:
    """Return the format that a file's suffix names, before `.gz` or `.zst`, or None."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    while suffixes and suffixes[-1] in _COMPRESSED:
        suffixes.pop()
    return _SUFFIXES.get(suffixes[-1] if suffixes else "")


def raw_records(path: Path, format: Format, *, typed: bool = True) -> Records:
    """Yield a file's records with their line numbers; unless `typed`, all fields of CSV are strings."""
    if format in _TABLES:
        yield from arrow_rows(_batches(path, format)[1])
        return
    if is_standard(path):
        yield from _text_records(sys.stdin.buffer, format, typed=typed)
        return
    with path.open("rb") as raw:
        yield from _text_records(open_decompressed(raw, path.suffix), format, typed=typed)


def open_decompressed(raw: IO[bytes], suffix: str) -> IO[bytes]:
    """Return a reader of the decompressed bytes, by the file's last suffix; `raw` stays the caller's to close."""
    if suffix.lower() == ".gz":
        return cast("IO[bytes]", gzip.open(raw))
    if suffix.lower() == ".zst":
        stream = pa.CompressedInputStream(pa.PythonFile(raw), "zstd")
        return cast("IO[bytes]", io.BufferedReader(stream, 1 << 16))
    return raw


@contextmanager
def as_text(stream: IO[bytes]) -> Iterator[IO[str]]:
    """Read bytes as text; bytes that are not UTF-8 become lone surrogates, which are refused in their own record."""
    text = io.TextIOWrapper(stream, "utf-8-sig", "surrogateescape", newline="")
    try:
        yield text
    finally:
        text.detach()  # the caller opened the stream and closes it


def _text_records(stream: IO[bytes], format: Format, *, typed: bool = True) -> Records:
    """Yield the records of a CSV, JSON or JSON Lines stream."""
    if format is Format.CSV:
        with as_text(stream) as text:
            yield from csv_rows(text, typed=typed)
    elif format is Format.JSON:
        yield from json_array(stream.read())
    else:
        yield from json_lines(stream)


def _block_reader(format: Format) -> Callable[[IO[bytes]], Iterator[BlockItem]]:
    """Return the reader of a format that is not a table's."""
    if format is not Format.CSV:
        return json_array_blocks if format is Format.JSON else json_blocks
    from tocsin.formats.csv_blocks import csv_blocks  # noqa: PLC0415 - Arrow's functions take a while to load

    return csv_blocks


def _batches(path: Path, format: Format) -> tuple[int, Iterable[Any]]:
    """Return a table's number of rows, and its record batches."""
    try:
        if format is Format.PARQUET:
            return parquet_batches(str(path))
        table = pa.ipc.open_file(pa.memory_map(str(path))).read_all()
    except pa.ArrowInvalid as fault:
        raise EventError(f"{path} is not a file of {format}: {fault}") from None
    return table.num_rows, table.to_batches()
