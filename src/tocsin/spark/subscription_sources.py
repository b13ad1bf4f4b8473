"""Sources of subscriptions for Spark, turned into an index that workers can open."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from msgspec import Struct
from pyspark.sql import DataFrame

from tocsin.formats.subscription_files import Entry, read_subscriptions
from tocsin.index import Generations, SubscriptionIndex
from tocsin.index.storage import storage_of
from tocsin.language import Template
from tocsin.model import Subscription
from tocsin.model.errors import SparkError, SubscriptionError, TocsinError
from tocsin.model.ticks import Tick

Report: TypeAlias = Callable[[TocsinError], object]
_log = logging.getLogger("tocsin")
COLUMNS: Final = ("id", "text", "valid_from", "valid_until", "owner", "weight", "witness")
Tables: TypeAlias = Mapping[str, str | Sequence[str]]
"""The keys of tables, such as `{"stock": "symbol"}`: an attribute's name, or several."""

Ticks: TypeAlias = Mapping[str, Tick]
"""The length of a tick of each stream, such as `{"quotes": "1 second"}`."""


class FromTemplate(Struct, frozen=True):
    """One text with parameters and a table of rows: a DataFrame, a pandas or Arrow table, or an iterable of dicts.

    `id` names the column that holds the ids, or is a pattern such as `"alert-{s}-{row}"`.
    """

    text: str | Template
    rows: Any
    id: str | None = None


SubscriptionSource: TypeAlias = (
    str
    | os.PathLike[str]
    | SubscriptionIndex
    | DataFrame
    | FromTemplate
    | Mapping[str, Any]
    | Iterable[Subscription | Entry]
)
"""An index or its folder, a file of subscriptions, a DataFrame of rows with `id` and `text` (and `valid_from`,
`valid_until`, `owner`, `weight`, `witness`), a template with its rows, a mapping of ids to queries, or `Subscription`s."""


def is_index(source: object) -> bool:
    """Return whether a source is an index or the folder of one, whose subscriptions may change."""
    if isinstance(source, SubscriptionIndex):
        return True
    return isinstance(source, (str, os.PathLike)) and Generations(storage_of(source)).home() is not None


def ensure_index(
    source: SubscriptionSource,
    *,
    folder: str | os.PathLike[str] | None = None,
    shards: int | None = None,
    matcher: str | None = None,
    options: Mapping[str, Any] | None = None,
    tables: Tables | None = None,
    ticks: Ticks | None = None,
    is_local: bool = True,
    on_error: Report | None = None,
) -> str:
    """Return the address of the index of some subscriptions; build and publish it if the source is none.

    A new index is built in `folder`, or in a temporary folder that is deleted with this process, which workers on
    other machines cannot read. `tables` are the keys of the tables that views read, `ticks` the lengths of streams' ticks; a
    published index has its own.
    """
    if isinstance(source, SubscriptionIndex):
        declare(source, tables, ticks)
        if source.has_changes:
            source.publish()
        _check_shards(source.generations, shards)
        return source.generations.storage.uri
    if is_index(source):
        generations = Generations(storage_of(source))  # type: ignore[arg-type]
        if tables or ticks:
            raise SparkError(
                f"{generations.storage.uri}: the tables and ticks of an index are declared where it is published; leave them "
                "out here"
            )
        _check_shards(generations, shards)
        return generations.storage.uri
    if folder is None and not is_local:
        raise SparkError(
            "the session's workers may be on other machines: give `folder`, a place for the index that all of them "
            "can read"
        )
    index = SubscriptionIndex(
        _temporary() if folder is None else folder, shards=shards, matcher=matcher, options=options
    )
    fill_index(index, source, on_error or log_error, tables=tables, ticks=ticks)
    if not len(index):
        raise SparkError("no subscription could be read")
    index.publish()
    return index.generations.storage.uri


def remaining_folder(folder: str | os.PathLike[str] | None, *, is_local: bool) -> str:
    """Return the folder for an index of the subscriptions that a join leaves out: in `folder`, or temporary."""
    if folder is not None:
        return f"{os.fspath(folder).rstrip('/')}/rest"
    if not is_local:
        raise SparkError(
            "some subscriptions are matched by an index besides the join, and the session's workers may be on other "
            "machines: give `folder`, a place for it that all of them can read"
        )
    return _temporary()


def declare(index: SubscriptionIndex, tables: Tables | None, ticks: Ticks | None) -> None:
    """Declare tables and ticks to an index."""
    for name, key in (tables or {}).items():
        index.table(name, key=key)
    for stream, tick in (ticks or {}).items():
        index.stream(stream, tick=tick)


def fill_index(
    index: SubscriptionIndex,
    source: SubscriptionSource,
    report: Report,
    *,
    tables: Tables | None = None,
    ticks: Ticks | None = None,
) -> None:
    """Replace the subscriptions of an index by those of a source; invalid ones are reported and left out."""
    declare(index, tables, ticks)
    if isinstance(source, FromTemplate):
        _fill_from_template(index, source, report)
    elif isinstance(source, (str, os.PathLike)):
        _fill_from_file(index, Path(source), report)
    elif isinstance(source, DataFrame):
        index.apply(_rows(source), on_error=report)
    else:
        index.apply(source, on_error=report)  # type: ignore[arg-type]


def _fill_from_template(index: SubscriptionIndex, source: FromTemplate, report: Report) -> None:
    """Make the index hold the subscriptions of a template's rows; errors are reported."""
    rows = source.rows.toArrow() if isinstance(source.rows, DataFrame) else source.rows
    if source.id is None:  # generated ids are new each time
        index.apply({})
        done = index.subscribe_many(source.text, rows)
    else:
        done = index.apply_many(source.text, rows, id=source.id)
    for error in done.errors:
        report(error)
    if done.never:
        _log.warning("%s rows of the template can never match", f"{len(done.never):,}")


def _fill_from_file(index: SubscriptionIndex, path: Path, report: Report) -> None:
    """Apply a file's subscriptions; an error is reported with its line."""
    places: dict[str | None, str] = {}
    entries = []
    for entry in read_subscriptions(path):
        if isinstance(entry, SubscriptionError):
            report(entry)
        else:
            entries.append(entry)
            places[entry.id] = entry.location
    index.apply(entries, on_error=lambda error: report(_with_place(error, places.get(error.id))))


def _with_place(error: SubscriptionError, location: str | None) -> TocsinError:
    return error if location is None else SubscriptionError(f"{location}: {error}")


def check_rows(frame: DataFrame) -> None:
    """Raise `SparkError` unless a DataFrame has the columns of subscriptions."""
    missing = [name for name in ("id", "text") if name not in frame.columns]
    if missing:
        raise SparkError(
            f"the subscriptions have no column `{missing[0]}`; they need `id` and `text`, and may have `valid_from`, "
            f"`valid_until`, `owner`, `weight` and `witness`. There are: {', '.join(frame.columns)}"
        )


def _rows(frame: DataFrame) -> Iterator[Entry]:
    """Return the subscriptions of a DataFrame's rows."""
    check_rows(frame)
    return entries_of(frame.select(*(name for name in COLUMNS if name in frame.columns)).toArrow())


def entries_of(table: Any) -> Iterator[Entry]:
    """Yield the subscriptions of an Arrow table's rows, or of a record batch's."""
    held, none = table.schema.names, [None] * table.num_rows
    columns = [table.column(name).to_pylist() if name in held else none for name in COLUMNS]
    for number, row in enumerate(zip(*columns, strict=True), 1):
        id_, text, valid_from, valid_until, owner, weight, witness = row
        plain = 1.0 if weight is None else weight
        yield Entry("subscriptions", number, 0, id_, text, valid_from, valid_until, owner, plain, witness)


def _check_shards(generations: Generations, shards: int | None) -> None:
    home = generations.home()
    if home is not None and shards is not None and shards != home.shards:
        raise SparkError(
            f"{generations.storage.uri}: the index has {home.shards} shards, not {shards}; leave `shards` out, or make "
            "another index"
        )


def _temporary() -> str:
    folder = tempfile.mkdtemp(prefix="tocsin-index-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return f"{folder}/index"


def log_error(error: TocsinError) -> None:
    """Log an invalid subscription."""
    _log.warning("%s", error)
