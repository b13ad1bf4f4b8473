"""CloudEvents 1.0 in JSON: structured, and batches of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from tocsin.model.errors import EventError
from tocsin.model.event import Event, read_event, read_given_time
from tocsin.model.ticks import StreamTicks

SPEC_VERSION: Final = "specversion"
"""The attribute by which a record is a CloudEvent."""

_REQUIRED: Final = ("id", "source", "type")


def read_cloud_event(
    record: Mapping[str, object],
    *,
    now: int,
    opaque: Callable[[str], None] | None = None,
    ticks: StreamTicks | None = None,
) -> Event:
    """Return a CloudEvent as an event.

    Its `type` is the stream, its `id` the id, its `time` the time, and its extension `expirytime` the time until
    which it is kept. Subscriptions can use all its attributes, and those of its payload as `data.…`.
    """
    version = record[SPEC_VERSION]
    if version != "1.0":
        raise EventError(f"CloudEvents version `{version}` is unknown; Tocsin reads 1.0")
    for name in _REQUIRED:
        value = record.get(name)
        if not isinstance(value, str) or not value:
            raise EventError(f"a CloudEvent needs its `{name}`, a string that is not empty")
    stream, time = str(record["type"]), record.get("time")
    if ticks is not None and time:
        time = read_given_time(ticks, stream, "time", time)
    return read_event(
        record,
        id=str(record["id"]),
        stream=stream,
        time=time or now,
        valid_until=record.get("expirytime"),
        opaque=opaque,
        ticks=ticks,
    )
