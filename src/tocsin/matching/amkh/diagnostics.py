"""What a matcher tells of its work: what events cost, and where one leads to."""

from __future__ import annotations

from msgspec import Struct


class Examined(Struct, frozen=True):
    """What events have cost since it was last forgotten."""

    events: int
    schemas: int  # looked at
    probed: int  # buckets looked for
    examined: int  # subscriptions found there, whether they match or not
    matched: int

    @property
    def unmatched(self) -> int:
        """Return how many were examined in vain."""
        return self.examined - self.matched


class Lookup(Struct, frozen=True):
    """Where an event leads to.

    Where a schema has fewer buckets than the event has coordinates for it, it is these buckets that are asked for.
    Of an event that asks more than 1,024 times, only the buckets where anything is are told: it is not `is_complete`.
    """

    buckets: tuple[
        int, ...
    ]  # that it asks for, ascending; whether anything is there or not, if it is complete
    examined: tuple[int, ...]  # ids of the subscriptions there, ascending
    is_complete: bool
