"""What the engine answers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tocsin.formats import Fault
from tocsin.language.explanation import Reason
from tocsin.matching import IdArray, MatcherStats
from tocsin.model import Event, Notification
from tocsin.model.errors import TemplateError

__all__ = [
    "Difference",
    "EngineStats",
    "EventExplanation",
    "NamedMatches",
    "Subscribed",
    "SubscribedMany",
    "Trial",
]


class Subscribed(Struct, frozen=True):
    """A new subscription: what kept events it met at once, and what its writer should be warned of."""

    id: str
    notifications: tuple[Notification, ...] = ()
    warnings: tuple[str, ...] = ()


class SubscribedMany(Struct, frozen=True):
    """New subscriptions from a template: those made, the rows at fault, and the rows that can never match."""

    ids: tuple[str, ...]
    errors: tuple[TemplateError, ...] = ()
    never: tuple[int, ...] = ()
    notifications: tuple[Notification, ...] = ()


class Difference(Struct, frozen=True):
    """What applying a set of subscriptions changes."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    notifications: tuple[Notification, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class EventExplanation(Struct, frozen=True):
    """Why a subscription would be notified of an event, or would not.

    `outside` says what keeps the event away from the condition altogether: its stream, or its time.
    """

    subscription: str
    matched: bool
    reason: Reason
    outside: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Reason, ...]:
        """Return the predicates that failed; none if the condition holds."""
        return self.reason.failed()


class Trial(Struct, frozen=True):
    """What a subscription would have been told: the events, of how many, and the records that were refused."""

    events: tuple[Event, ...]
    examined: int
    faults: tuple[Fault, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.events)


class NamedMatches(Struct, frozen=True):
    """Per row, the subscriptions it satisfies: those of row i are `ids[offsets[i]:offsets[i + 1]]`.

    They come in the order of their ids, or, if the best were asked for, with their `scores`, the highest first.
    """

    offsets: IdArray  # int64[rows + 1]
    ids: tuple[str, ...]
    faults: tuple[Fault, ...] = ()
    scores: tuple[float, ...] | None = None

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, row: int) -> tuple[str, ...]:
        if not 0 <= row < len(self):
            raise IndexError(row)
        return self.ids[self.offsets[row] : self.offsets[row + 1]]

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return (self[row] for row in range(len(self)))

    def to_arrow(self) -> pa.Table:
        """Return one line per match, with the columns `row` and `subscription`, and `score` if they are ranked."""
        rows = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        columns = {"row": rows, "subscription": pa.array(self.ids, pa.string())}
        ranked = {} if self.scores is None else {"score": pa.array(self.scores, pa.float64())}
        return pa.table(columns | ranked)


class EngineStats(Struct, frozen=True):
    """What the engine holds and what has passed through it."""

    subscriptions: int
    kept_events: int
    generation: int
    published: int
    refused: int
    notifications: int
    expired: int
    dropped_arrays: int
    matcher: MatcherStats
