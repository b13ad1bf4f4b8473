"""Diagnostics of AMKH: the cost of events, and the buckets of one event."""

from __future__ import annotations

from msgspec import Struct


class Examined(Struct, frozen=True):
    """The cost of events since the counts were last reset."""

    events: int
    schemas: int  # visited
    probed: int  # buckets
    examined: int  # subscriptions found there, whether they match or not
    matched: int

    @property
    def unmatched(self) -> int:
        """Return how many examined subscriptions did not match."""
        return self.examined - self.matched


class Lookup(Struct, frozen=True):
    """The buckets that an event probes.

    A schema with fewer buckets than the event has coordinates for it is scanned bucket by bucket. For an event with more
    than 1,024 probes only the buckets that are not empty are listed: it is not `is_complete`.
    """

    buckets: tuple[int, ...]  # ascending; empty ones included, if it is complete
    examined: tuple[int, ...]  # ids of the subscriptions there, ascending
    is_complete: bool
