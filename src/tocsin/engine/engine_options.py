"""The options of an engine that are plain data, and are saved with it."""

from __future__ import annotations

from datetime import timedelta

from msgspec import Struct

from tocsin.model.ticks import Tick


class EngineOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """The arguments of `Engine` that are numbers and names."""

    matcher: str | None = None
    lateness: int | str = 0
    out_of_orderness: int | str = 0
    memory_limit: int | None = None
    view_matcher: str | None = None
    timezone: str = "UTC"
    time_unit: str | None = None


def plain_delay(delay: Tick) -> int | str:
    """Return a length of time as a number of ticks or a text."""
    if isinstance(delay, timedelta):
        return f"{delay // timedelta(microseconds=1)} microseconds" if delay else 0
    return delay
