"""Which attribute of a file's events holds their time, if nobody says so."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from itertools import islice
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tocsin.formats.files import Format, raw_records
from tocsin.formats.records import UnreadableRecord
from tocsin.model.errors import EventError
from tocsin.model.event import flatten
from tocsin.model.ticks import TimeUnit, guess_unit
from tocsin.model.timestamps import parse_timestamp

_SAMPLE: Final = 200  # records that are looked at
# The last part of a path without `_`, the most telling names first.
_NAMES: Final = (
    ("time", "timestamp", "eventtime", "datetime", "ts"),
    ("date", "at", "when", "occurredat", "happenedat", "recordedat", "t"),
    ("created", "createdat", "published", "publishedat"),
)
_LIKELY: Final = re.compile(r"(time|timestamp|date|_at|_on|_ts|[a-z]At)$")


class TimeFields(Struct, frozen=True):
    """The attributes that may hold an event's time; `best` is the one that does beyond doubt, if there is one."""

    best: str | None
    candidates: tuple[str, ...] = ()
    is_empty: bool = False  # there are no records


def find_time_fields(path: Path, format: Format) -> TimeFields:
    """Return the attributes of a file that may hold the time of its events, by their names and the first values."""
    if next(iter(raw_records(path, format)), None) is None:
        return TimeFields(None, is_empty=True)
    return _rank(_sample(raw_records(path, format)))


def time_field_of(records: Iterable[Mapping[str, Any]]) -> str | None:
    """Return the attribute that holds the time of records beyond doubt, by its name and the first values, or None."""
    return _rank(_sample(enumerate(records))).best


def first_names(path: Path, format: Format) -> frozenset[str]:
    """Return the attributes of a file's first records."""
    return frozenset(name for record in _sample(raw_records(path, format)) for name in record)


def _sample(
    records: Iterable[tuple[int, Mapping[str, object] | UnreadableRecord]],
) -> list[Mapping[str, Any]]:
    """Return the first readable records, flat."""
    found: list[Mapping[str, Any]] = []
    for _, record in islice(records, _SAMPLE):
        if isinstance(record, Mapping):
            try:
                found.append(flatten(record))
            except EventError:
                continue
    return found


def _rank(records: list[Mapping[str, Any]]) -> TimeFields:
    """Return the attributes whose values may be times in all records that have them, the likeliest first."""
    paths = dict.fromkeys(path for record in records for path in record)
    ranked: list[tuple[int, str]] = []
    for path in paths:
        values = [record[path] for record in records if path in record]
        is_date = all(map(_is_date, values))
        is_number = all(map(_is_moment, values))
        rank = _rank_of(path)
        if is_date:
            ranked.append((rank, path))
        elif (is_number and rank <= len(_NAMES)) or (rank < 2 and all(map(_is_count, values))):
            ranked.append((rank + 1, path))  # a text with a date says more than a number
    ranked.sort(key=lambda one: one[0])
    best = [path for rank, path in ranked if rank == ranked[0][0]]
    is_everywhere = bool(best) and all(best[0] in record for record in records)
    clear = best[0] if len(best) == 1 and is_everywhere else None
    return TimeFields(clear, tuple(path for _, path in ranked))


def _rank_of(path: str) -> int:
    """Return how telling a name is: 0 is best."""
    last = path.rpartition(".")[2]
    name = last.replace("_", "").replace(" ", "").lower()
    for rank, names in enumerate(_NAMES):
        if name in names:
            return rank
    return len(_NAMES) if _LIKELY.search(last) else len(_NAMES) + 2


def _is_date(value: Any) -> bool:
    return isinstance(value, (date, np.datetime64)) or (
        isinstance(value, str) and parse_timestamp(value) is not None
    )


def _is_moment(value: Any) -> bool:
    return _is_number(value) and guess_unit(value) is not TimeUnit.TICKS


def _is_count(value: Any) -> bool:
    return _is_number(value) and value == int(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 2**63
