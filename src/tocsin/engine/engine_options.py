"""The options of an engine that are plain data, and are saved with it."""

from __future__ import annotations

from datetime import timedelta
from numbers import Integral

from msgspec import Struct

from tocsin.matching.registry import create_matcher, registered_matchers
from tocsin.model.errors import TocsinError
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


def check_arguments(
    clock: object, on_late: object, memory_limit: object, view_matcher: str | None, threads: object
) -> None:
    """Raise `TocsinError` for an argument of `Engine` that would fail only when it is first used."""
    if clock is not None and (isinstance(clock, type) or not callable(getattr(clock, "now", None))):
        named = clock.__name__ if isinstance(clock, type) else type(clock).__name__
        hint = f", the class; write `{named}()`" if isinstance(clock, type) else ""
        raise TocsinError(f"`clock` is a clock such as `EventClock()`, not {named}{hint}")
    if on_late is not None and not callable(on_late):
        raise TocsinError(f"`on_late` is a function that takes an event, not {type(on_late).__name__}")
    if memory_limit is not None and not (isinstance(memory_limit, Integral) and int(memory_limit) > 0):
        raise TocsinError(f"`memory_limit` is a number of bytes above 0, not {memory_limit!r}")
    if not (isinstance(threads, Integral) and int(threads) > 0):
        raise TocsinError(f"`threads` is a number of threads from 1 on, not {threads!r}")
    if view_matcher is not None and view_matcher not in registered_matchers():
        create_matcher(view_matcher)  # raises, with a name that is close
