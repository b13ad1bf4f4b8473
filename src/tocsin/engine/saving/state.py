"""The state of an engine: what waits in it and what it has reported, without its subscriptions."""

from __future__ import annotations

from collections import Counter
from typing import Any, Final

from msgspec import Struct

from tocsin.engine.clock import Clock, EventClock, SystemClock
from tocsin.engine.pipeline import EventPipeline
from tocsin.engine.reorder_buffer import ReorderBuffer
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.formats import EventReader
from tocsin.formats.packed_events import pack_events, unpack_events
from tocsin.matching import IdArray
from tocsin.model import Event
from tocsin.model.errors import SavedError
from tocsin.model.ticks import TimeUnit
from tocsin.structures.archive import Parts

FORMAT: Final = 1  # raised whenever an older Tocsin could misread it
_SAVED: Final = "tocsin engine's state"


class EngineParts(Struct, frozen=True):
    """The parts of an engine that have state."""

    store: SubscriptionStore
    pipeline: EventPipeline
    buffer: ReorderBuffer
    reader: EventReader
    clock: Clock

    def stateful(self) -> tuple[IdArray, IdArray]:
        """Return the numbers of sequences and of views, each in the order they came."""
        registry = self.store.registry
        return registry.in_order(self.store.sequences.numbers), registry.in_order(self.store.views.numbers)

    def snapshot(self, sequences: IdArray, views: IdArray) -> Parts:
        """Return the state, with that of these sequences and views in this order; called under the engine's lock."""
        about = {
            "saved": _SAVED,
            "format": FORMAT,
            "clock": clock_contents(self.clock),
            "ticks": self.store.sequences.declared,
            "units": self.store.sequences.ticks.fixed_units(),
            "published": self.pipeline.published,
            "notified": self.pipeline.notified,
            "expired": self.store.expired,
            "refused": self.reader.refused,
            "read": self.reader.read,
            "opaque": dict(self.reader.opaque),
        }
        parts = {
            "sequences": self.store.sequences.snapshot(sequences),
            "buffer": self.buffer.snapshot(),
            "views": self.store.views.snapshot(views),
            "kept": Parts({}, {"events": pack_events(list(self.pipeline.history))}),
        }
        return Parts.join(about, parts)


def clock_contents(clock: Clock) -> dict[str, Any]:
    """Return a clock as JSON has it."""
    if type(clock) is EventClock:
        return {"kind": "EventClock", "now": clock.now()}
    is_system = type(clock) is SystemClock
    return {"kind": "SystemClock"} if is_system else {"kind": "other", "name": type(clock).__name__}


class SavedState(Struct, frozen=True):
    """The state of an engine without that of its runtimes, read and checked."""

    parts: Parts
    now: int | None  # of an `EventClock`
    ticks: dict[str, int]
    units: list[tuple[str | None, str]]
    events: list[Event]
    published: int
    notified: int
    expired: int
    refused: int
    read: int
    opaque: dict[str, int]

    @classmethod
    def of(cls, parts: Parts) -> SavedState:
        """Return the state in these parts, or raise `SavedError` if there is none, or it is damaged."""
        about = parts.about
        if about.get("saved") != _SAVED:
            raise SavedError("this is no state of an engine; `Engine.snapshot` returns one")
        if about.get("format") != FORMAT:
            raise SavedError(
                f"it is a state of format {about.get('format')}, and this version of Tocsin reads format {FORMAT}"
            )
        try:
            counts = {
                name: int(about[name]) for name in ("published", "notified", "expired", "refused", "read")
            }
            now = about["clock"].get("now")
            return cls(
                parts,
                None if now is None else int(now),
                {str(stream): int(tick) for stream, tick in about["ticks"].items()},
                [(stream, TimeUnit(unit)) for stream, unit in about["units"]],
                unpack_events(parts.part("kept").bytes("events")),
                opaque={str(path): int(count) for path, count in about["opaque"].items()},
                **counts,
            )
        except SavedError:
            raise
        except Exception as fault:  # what readers of damaged contents may raise
            raise SavedError(f"the state is damaged: {type(fault).__name__}: {fault}") from fault

    def restore_events(self, parts: EngineParts, sequences: IdArray) -> int:
        """Restore partial matches and the events that wait; return how many of the former no subscription can continue.

        If this fails, nothing changes.
        """
        before = parts.buffer.snapshot()
        late = list(parts.buffer.late_events)
        parts.buffer.restore(self.parts.part("buffer"))
        try:
            return parts.store.sequences.restore(self.parts.part("sequences"), sequences)
        except BaseException:
            parts.buffer.restore(before)
            parts.buffer.late_events = late
            raise

    def restore_clock(self, clock: Clock) -> None:
        """Set a clock that takes its time from events."""
        if type(clock) is EventClock and self.now is not None:
            clock.set(self.now)

    def restore_counts(self, parts: EngineParts) -> None:
        """Restore kept events and counts, which cannot fail."""
        parts.store.sequences.ticks.fix_units(self.units)
        parts.pipeline.history.restore(self.events)
        parts.pipeline.published, parts.pipeline.notified = self.published, self.notified
        parts.store.expired = self.expired
        parts.reader.refused, parts.reader.read = self.refused, self.read
        parts.reader.opaque = Counter(self.opaque)
