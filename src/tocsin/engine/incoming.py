"""Events in whatever form they are given to the engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from tocsin.formats import EventFields, EventReader, Fault
from tocsin.formats.arrow_rows import arrow_rows, is_arrow
from tocsin.model import Event

Incoming: TypeAlias = Iterable[Mapping[str, object] | Event | Fault] | Any
"""Dicts, events, an Arrow table or record batch, or an iterator of any of these."""


def is_at_hand(events: Incoming) -> bool:
    """Tell whether all events are there already, so that they may be taken many at a time."""
    return is_arrow(events) or isinstance(events, Sequence)


def read_incoming(
    events: Incoming, reader: EventReader, stream: str | None, fields: EventFields | None = None
) -> Iterator[Event | Fault]:
    """Return each event, or the fault of a record that is none; `fields` name the attributes that say its times."""
    for number, record in _records(events):
        if isinstance(record, Event):
            yield reader.made(record, number)
        elif isinstance(record, Fault):
            yield record
        else:
            yield reader.event(record, None, number, stream, fields)


def _records(events: Incoming) -> Iterator[tuple[int, Any]]:
    if is_arrow(events):
        yield from arrow_rows([events] if not hasattr(events, "to_batches") else events.to_batches())
        return
    number = 0
    for one in events:
        if is_arrow(one):
            for _, record in _records(one):
                number += 1
                yield number, record
        else:
            number += 1
            yield number, one
