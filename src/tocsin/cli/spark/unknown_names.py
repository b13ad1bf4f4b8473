"""Names that subscriptions have and a file of events has not, which are said before Spark starts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from tocsin.cli.terminal import warn
from tocsin.formats import Format
from tocsin.formats.files import format_of
from tocsin.formats.subscription_files import Entry, read_subscriptions
from tocsin.formats.time_fields import first_names
from tocsin.language.check import read_query
from tocsin.language.schema_inference import ObservedSchema, streams_of
from tocsin.model import Query
from tocsin.model.errors import TocsinError

_MOST: Final = 20  # warnings that are shown
_WITH_COLUMNS: Final = (Format.CSV, Format.PARQUET)  # every record has the names of the first one


def warn_of_unknown_names(
    source: str, format: Format | None, stream: str | None, subscriptions: Any, *, quiet: bool
) -> list[str]:
    """Warn of streams and attributes that subscriptions name and the first records of a file lack; return the warnings.

    Of records that may differ in their names, only those that may be misspelt are named. `stream` is that of all events, or
    None if each has its own. Subscriptions of an index or a template, and events that are no file, are not looked at.
    """
    path = Path(source)
    if quiet or isinstance(subscriptions, str) or not path.is_file():
        return []
    kind = format or format_of(path)
    try:
        names = first_names(path, kind)
    except Exception:  # noqa: BLE001 - whatever it is, it is reported where the events are read
        return []
    queries = list(_queries(subscriptions))
    schema = ObservedSchema()
    schema.add_published(queries)
    if not names:
        return []
    streams = {stream} if stream is not None else set().union(*map(streams_of, queries))
    for one in sorted(streams) or (None,):
        schema.add_names(one, names)
    warnings_of = schema.warnings if kind in _WITH_COLUMNS else schema.misspellings
    warnings = list(dict.fromkeys(warning for query in queries for warning in warnings_of(query)))[:_MOST]
    for warning in warnings:
        warn(warning)
    return warnings


def _queries(subscriptions: Any) -> Iterator[Query]:
    """Yield the queries of entries, of a file of them, or by their ids; what is at fault is reported later."""
    if isinstance(subscriptions, Path):
        subscriptions = read_subscriptions(subscriptions)
    elif isinstance(subscriptions, dict):
        subscriptions = subscriptions.values()
    elif not isinstance(subscriptions, Iterable):
        return
    for one in subscriptions:
        try:
            if isinstance(one, Entry):
                yield read_query(one.query).query
            elif not isinstance(one, Exception):
                yield one
        except TocsinError:
            continue
