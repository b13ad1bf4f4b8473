"""Blocks of a file's records as events: taken by the column, or one by one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tocsin.formats.arrow_rows import arrow_rows
from tocsin.formats.column_blocks import ColumnBlock
from tocsin.formats.event_reader import EventReader, Fault, find
from tocsin.formats.records import Records
from tocsin.model.event import Event


class EventBlock:
    """Consecutive records of a file, all of which may be events of one stream.

    Whoever takes the block either iterates it, which reads the records one by one, or takes its columns and calls
    `accept`; nothing is counted before. `columns` are a block of plain records, or a record batch that was not looked at.
    """

    def __init__(
        self, columns: ColumnBlock | Any, reader: EventReader, source: str, first_line: int = 1
    ) -> None:
        self.columns = columns
        self.reader = reader
        self._source = source
        self._first_line = first_line

    def __len__(self) -> int:
        return len(self.columns) if isinstance(self.columns, ColumnBlock) else int(self.columns.num_rows)

    def __iter__(self) -> Iterator[Event | Fault]:
        """Yield each event, or the fault of a record that is none."""
        for line, record in self._records():
            yield self.reader.event(record, self._source, line)

    @property
    def last_line(self) -> int:
        """Return the line of the last record."""
        if isinstance(self.columns, ColumnBlock):
            return self.columns.lines[-1]
        return self._first_line + len(self) - 1

    def accept(self, opaque: Mapping[str, int]) -> None:
        """Count all records as read, since the columns were taken, and the values of a table that cannot be compared."""
        self.reader.count(read=len(self))
        self.reader.count_opaque(opaque)
        if isinstance(self.columns, ColumnBlock):
            self.reader.count_opaque(self.columns.opaque())

    def event_id(self, row: int, record: Any) -> str:
        """Return the id of a row's event; `record` has its attributes."""
        path = self.reader.fields.id
        if path is not None:
            return str(find(record, path))
        columns = self.columns
        line = columns.lines[row] if isinstance(columns, ColumnBlock) else self._first_line + row
        return f"{self._source}:{line}"

    def _records(self) -> Records:
        columns = self.columns
        if isinstance(columns, ColumnBlock):
            yield from ((line, columns.record(row)) for row, line in enumerate(columns.lines))
        else:
            yield from ((self._first_line + number - 1, row) for number, row in arrow_rows([columns]))
