"""What a Spark process answers when it is asked to do something."""

from __future__ import annotations

from msgspec import Struct


class Ready(Struct, frozen=True):
    """The session has started."""

    version: str  # Spark's
    seconds: float


class Timed(Struct, frozen=True):
    """Some work that was done once."""

    seconds: float
    rows: int  # that came out: notifications, as a rule


class Joined(Struct, frozen=True):
    """A join that was done once."""

    seconds: float
    rows: int
    plan: str


class Changed(Struct, frozen=True):
    """How a stream followed the changes of its subscriptions."""

    batches: tuple[int, ...]  # micro-batches to each one's effect; the one that was running counts
    seconds: tuple[float, ...]  # from the call of `publish` to the end of the batch that had it
    publishing: tuple[float, ...]  # seconds of that in `publish`
    batch_seconds: tuple[float, ...]  # what all micro-batches but the first took
