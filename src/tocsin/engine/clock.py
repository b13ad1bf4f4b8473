"""Clocks: the time of events that have none, and the time that ends validity."""

from __future__ import annotations

from time import time_ns
from typing import Protocol


class Clock(Protocol):
    """Tells the time in ticks."""

    def now(self) -> int:
        """Return the time."""

    def saw(self, end: int) -> None:
        """Hear of an event that ended then."""


class SystemClock:
    """The time of day, in microseconds since 1970."""

    def now(self) -> int:
        """Return the time of day."""
        return time_ns() // 1_000

    def saw(self, end: int) -> None:
        """Take no notice: time passes by itself."""


class EventClock:
    """The latest end of any event so far: for replays, and for streams that count their own ticks."""

    def __init__(self, now: int = -(2**63)) -> None:
        self._now = now

    def now(self) -> int:
        """Return the latest end so far."""
        return self._now

    def saw(self, end: int) -> None:
        """Move on to `end` if it is later."""
        self._now = max(self._now, end)

    def set(self, now: int) -> None:
        """Go to a time, which may be earlier: that of a state that is restored."""
        self._now = now


class ManualClock:
    """A clock that is set by hand, for tests."""

    def __init__(self, now: int = 0) -> None:
        self.time = now

    def now(self) -> int:
        """Return the time that was set."""
        return self.time

    def saw(self, end: int) -> None:
        """Take no notice."""
