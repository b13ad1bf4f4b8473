"""Arrow tables in the engine: which are matched by the column, and what comes of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import numpy as np

from tocsin.engine.book import Book, in_force
from tocsin.engine.filters import DELETIONS
from tocsin.engine.incoming import Incoming
from tocsin.engine.results import NamedMatches
from tocsin.formats import EventReader, Fault
from tocsin.formats.arrow_rows import is_arrow
from tocsin.matching import Matches
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model.event import STREAM

__all__ = ["TELLING", "named", "publishable", "table_events"]

TELLING: Final = frozenset({STREAM, "specversion", *DELETIONS})  # these say what a row is, row by row


def table_events(events: Incoming, stream: str | None) -> ArrowEvents | None:
    """Return a table that can be matched by the column, or None for whatever else."""
    table: Any = events
    if not is_arrow(table) or not TELLING.isdisjoint(table.schema.names):
        return None
    return ArrowEvents.by_column(table, stream=stream or None)


def named(matches: Matches, book: Book, end: int, faults: Mapping[int, str]) -> NamedMatches:
    """Return the ids of those subscriptions that apply to events that ended at `end`, per row in order."""
    numbers = matches.ids
    rows = np.repeat(np.arange(len(matches)), np.diff(matches.offsets))
    if book.has_terms:
        applies = in_force(book.valid_from[numbers], book.valid_until[numbers], end)
        numbers, rows = numbers[applies], rows[applies]
    offsets = np.zeros(len(matches) + 1, dtype=np.int64)
    np.cumsum(np.bincount(rows, minlength=len(matches)), out=offsets[1:])
    distinct, places = np.unique(numbers, return_inverse=True)
    ids = [book.id(number) for number in distinct.tolist()]
    order = sorted(range(len(ids)), key=ids.__getitem__)
    rank = np.empty(len(ids), dtype=np.int64)
    rank[order] = np.arange(len(ids))
    by_name = np.sort(rows * max(len(ids), 1) + rank[places]) % max(len(ids), 1)
    told = tuple(ids[place] for place in np.array(order, dtype=np.int64)[by_name].tolist())
    return NamedMatches(offsets, told, tuple(_fault(place, faults) for place in sorted(faults)))


def publishable(
    table: ArrowEvents, reader: EventReader, report: Callable[[Fault], object], size: int
) -> Iterator[ArrowEvents]:
    """Return the table in parts of `size` events each; report the faults of a part before it is returned."""
    refused = np.zeros(len(table), dtype=np.bool_)
    refused[list(table.faults)] = True
    last = np.flatnonzero(~refused)[max(size, 1) - 1 :: max(size, 1)]
    begin = 0
    for end in [*(last + 1).tolist(), len(table)]:
        reached, failure = end, None
        for place in (np.flatnonzero(refused[begin:end]) + begin).tolist():
            reader.refuse()
            try:
                report(_fault(place, table.faults))
            except Exception as fault:  # noqa: BLE001 - whatever it is, what came before is published
                reached, failure = place, fault
                break
        part = table.slice(begin, reached)
        reader.count(read=len(part) - len(part.faults))
        if len(part):
            yield part
        if failure is not None:
            raise failure
        begin = end


def _fault(place: int, faults: Mapping[int, str]) -> Fault:
    return Fault("event", place + 1, faults[place])
