"""Files of subscriptions: plain text, JSON lines, or a table with a column `text`."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from io import BytesIO
from pathlib import Path
from typing import IO, cast

from msgspec import Struct

from tocsin.formats.files import (
    Format,
    as_text,
    is_readable,
    is_standard,
    known_format,
    open_decompressed,
    raw_records,
    unreadable_reason,
)
from tocsin.formats.records import UnreadableRecord, json_lines
from tocsin.model.errors import EventError, LanguageError, SubscriptionError

_NAMED = re.compile(r"([^\s:'\"()=<>~,]+):(?=\s|$)[ \t]*")
_MISWRITTEN = re.compile(r"[^:'\"()=<>~,]+:")
_FEW = 5  # names that an error shows
_KNOWN = {"id", "text", "query", "valid_from", "valid_until", "owner", "weight", "witness"}


class Entry(Struct, frozen=True):
    """A subscription in a file: its id, its text or JSON form, and its location."""

    source: str
    line: int
    column: int
    id: str
    query: str | Mapping[str, object]
    valid_from: object | None = None
    valid_until: object | None = None
    owner: str | None = None
    weight: object = 1.0
    witness: object = None

    @property
    def location(self) -> str:
        """Return file and line, as editors know them."""
        return f"{self.source}:{self.line}"


class UnreadableEntryError(SubscriptionError):
    """An entry of a file that cannot be read, with its location."""

    def __init__(self, source: str, line: int, reason: str) -> None:
        super().__init__(reason)
        self.source = source
        self.line = line

    def _message(self) -> str:
        return f"{self.source}:{self.line}: {self.reason}"


def read_subscriptions(path: Path, format: Format | None = None) -> Iterator[Entry | SubscriptionError]:
    """Yield the subscriptions of a file; an unreadable entry is returned as its `SubscriptionError`.

    In plain text a subscription begins at the beginning of a line, after an optional `id:`, and continues on
    indented lines; `--` begins a comment. JSON lines and tables have `id` and `text` (or `query`, the JSON form),
    and may have `valid_from`, `valid_until`, `owner`, `weight` and `witness`. `format` overrides the file's name. `-` is
    standard input: JSON lines if it begins with a brace, else plain text.
    """
    if is_standard(path):
        yield from _from_standard_input()
        return
    if not is_readable(path):
        raise SubscriptionError(unreadable_reason(path))
    known = format or known_format(path)
    if known is None:
        with path.open("rb") as raw, as_text(open_decompressed(raw, path.suffix)) as text:
            yield from _from_text(text, str(path))
        return
    try:
        for number, (line, record) in enumerate(raw_records(path, known, typed=False)):
            if number == 0:
                _refuse_other_records(record, path)
            yield _from_record(record, str(path), line)
    except EventError as fault:
        raise SubscriptionError(f"{path}: {fault}") from None


def _refuse_other_records(first: object, path: Path) -> None:
    """Raise `SubscriptionError` if the first record of a file is none of a subscription, such as an event."""
    if not isinstance(first, Mapping) or first.keys() & {"text", "query"}:
        return
    unknown = [str(key) for key in first if key not in _KNOWN]
    if len(unknown) > 1:
        shown = ", ".join(f"`{key}`" for key in unknown[:_FEW])
        raise SubscriptionError(
            f"{path} holds no subscriptions: each has a `text`, or a `query` in JSON, and the first record has {shown}"
        )


def _from_standard_input() -> Iterator[Entry | SubscriptionError]:
    text = sys.stdin.buffer.read()
    if text.lstrip().startswith(b"{"):
        for line, record in json_lines(BytesIO(text)):
            yield _from_record(record, "stdin", line)
        return
    with as_text(BytesIO(text)) as lines:
        yield from _from_text(lines, "stdin")


def position(error: LanguageError, entry: Entry) -> tuple[int, int]:
    """Return the line and the column of an error in the file of an entry."""
    return entry.line + error.line - 1, error.column + (entry.column if error.line == 1 else 0)


def describe(error: LanguageError, entry: Entry) -> str:
    """Return an error in an entry's text with its location in the file."""
    line, column = position(error, entry)
    named = _MISWRITTEN.match(entry.query) if isinstance(entry.query, str) else None
    if named is not None and error.offset < named.end() and entry.column == 0:
        error.suggestion = "an id is one word, with a colon right after it and then a space: my-id: price > 5"
    return f"{entry.source}:{line}:{column}: subscription `{entry.id}`: {error.reason}\n{error.details()}"


def _from_text(lines: IO[str], source: str) -> Iterator[Entry | SubscriptionError]:
    """Yield each subscription of a text file; an indented line continues the one before."""
    begun: tuple[int, int, str] | None = None
    parts: list[str] = []
    for number, line in enumerate(lines, 1):
        if line[:1].isspace() or line.startswith("--"):
            if begun is not None:
                parts.append(line)
            elif line.strip() and not line.lstrip().startswith("--"):
                yield UnreadableEntryError(
                    source, number, "an indented line continues a subscription, but none has begun"
                )
            continue
        if begun is not None:
            yield Entry(source, *begun, "".join(parts).rstrip())
        named = _NAMED.match(line)
        column = named.end() if named else 0
        begun = number, column, named.group(1) if named else _made_id(source, number)
        parts = [line[column:]]
    if begun is not None:
        yield Entry(source, *begun, "".join(parts).rstrip())


def _made_id(source: str, line: int) -> str:
    """Return an id for a subscription without one; no subscription of another file gets it."""
    return f"{Path(source).name}:{line}"


def _from_record(
    record: Mapping[str, object] | UnreadableRecord, source: str, line: int
) -> Entry | SubscriptionError:
    """Return the subscription that a record describes, or the error that says what is wrong with it."""
    if isinstance(record, UnreadableRecord):
        return UnreadableEntryError(source, line, record.reason)
    if not hasattr(record, "items"):  # JSON may hold anything
        return UnreadableEntryError(
            source, line, f"a subscription is an object with `id` and `text`, not {record!r}"
        )
    fields = {key: value for key, value in record.items() if value is not None}
    unknown = [key for key in fields if key not in _KNOWN]
    if unknown:
        near = get_close_matches(unknown[0], _KNOWN, 1)
        hint = f"did you mean `{near[0]}`? Known" if near else "known"
        return UnreadableEntryError(
            source, line, f"unknown key `{unknown[0]}`; {hint} are {', '.join(sorted(_KNOWN))}"
        )
    query = fields.get("query", fields.get("text"))
    if not isinstance(query, (str, Mapping)) or ("query" in fields and "text" in fields):
        return UnreadableEntryError(
            source, line, "a subscription needs either a `text`, or a `query` in JSON"
        )
    owner = fields.get("owner")
    return Entry(
        source,
        line,
        0,
        str(fields.get("id", _made_id(source, line))),
        cast("str | Mapping[str, object]", query),
        _time(fields.get("valid_from")),
        _time(fields.get("valid_until")),
        None if owner is None else str(owner),
        _number(fields.get("weight", 1.0)),
        fields.get("witness"),
    )


def _number(raw: object) -> object:
    """Return a weight as a number if a file without types holds it as text."""
    return float(raw) if isinstance(raw, str) and re.fullmatch(r"[0-9]+(\.[0-9]+)?", raw) else raw


def _time(raw: object | None) -> object | None:
    """Return ticks as an integer if a file without types holds them as text."""
    return int(raw) if isinstance(raw, str) and re.fullmatch(r"-?[0-9]{1,19}", raw) else raw
