"""The reorder buffer: gives events to sequences in the order of their end."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from heapq import heappop, heappush
from itertools import count
from operator import itemgetter
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.formats.packed_events import pack_events, unpack_events
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model import Event
from tocsin.model.errors import SavedError, TocsinError
from tocsin.model.options import ALWAYS
from tocsin.model.ticks import StreamTicks, Tick, read_length
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s

_SAVED: Final = "tocsin reorder buffer"
_FORMAT: Final = 1
_NONE: Final[frozenset[int]] = frozenset()
_LONGEST: Final = 2**63 - 1
_FIRST_ROW: Final = np.zeros(1, dtype=np.int64)


class Delay(Struct, frozen=True):
    """A length of time in ticks of whatever length, or in microseconds."""

    amount: int = 0
    is_in_ticks: bool = True

    @classmethod
    def read(cls, name: str, raw: Tick) -> Delay:
        """Return a number of ticks, a text such as `5 minutes` or a timedelta as a delay, or raise `TocsinError`."""
        if isinstance(raw, int) and not isinstance(raw, bool):
            if raw < 0:
                raise TocsinError(
                    f"`{name}` is a number of ticks from 0 on, or a length such as `5 minutes`, not {raw}"
                )
            return cls(raw)
        length = read_length(raw)
        if length is None or length < 0:
            raise TocsinError(
                f"`{name}` is a number of ticks, a length such as `5 minutes`, or a timedelta, not {raw!r}"
            )
        return cls(length, is_in_ticks=False)

    def in_ticks(self, tick: int) -> int:
        """Return the delay in ticks of so many microseconds, rounded up."""
        return self.amount if self.is_in_ticks else -(-self.amount // tick)


class Released(Struct, frozen=True):
    """Events in the order of their end, all of streams whose ticks are equally long."""

    tick: int  # microseconds
    events: TimedBatch
    rows: IdArray  # for each event, the row of the pushed batch that released it


class ReorderBuffer:
    """Holds an event back until an event has come that ends `out_of_orderness` ticks later.

    Streams whose ticks are equally long share one order; the watermark of an order is the latest end that came less
    `out_of_orderness`. An event that ends before the watermark, or before an event that was released, is late: it is
    counted and left out. Of streams that no sequence reads, only the latest end is kept, because a sequence that is
    subscribed later sees only events that end after it.
    """

    def __init__(self, ticks: StreamTicks, out_of_orderness: Delay) -> None:
        self._ticks = ticks
        self._delay = out_of_orderness
        self._waits = out_of_orderness.amount > 0
        self._orders: dict[int, _Order] = {}  # by the length of a tick
        self._latest_unread: dict[str | None, int] = {}
        self.late_events: list[Event] = []  # since the last `drain_late`
        self.late = 0

    @property
    def waiting(self) -> int:
        """Return how many events are held back."""
        return sum(len(order.waiting) for order in self._orders.values())

    def push(
        self, events: TimedBatch, streams: Collection[str], skipped: Collection[int] = _NONE
    ) -> list[Released]:
        """Take events, except the `skipped` rows, and return those whose turn has come.

        `streams` are those that sequences read.
        """
        if isinstance(events, TimedRows) and not skipped and self._delay.amount < _LONGEST:
            return self._push_columns(events, streams)
        if skipped:
            pass
        elif not streams:
            latest = self._latest_unread
            for event in events.events:
                if event.end > latest.get(event.stream, ALWAYS):
                    latest[event.stream] = event.end
            return []
        elif len(events.events) == 1:
            return self._push_one(events, events.events[0], streams)
        return self._push_each(events, streams, skipped)

    def _push_one(self, events: TimedBatch, event: Event, streams: Collection[str]) -> list[Released]:
        """Push a batch of one event; the batch itself is released, since filters have encoded it already."""
        stream, end = event.stream, event.end
        if stream is None or stream not in streams:
            self._observe(stream, end)
            return []
        tick = self._ticks.length(stream)
        order = self._orders.get(tick) or self._order(stream)
        if self._waits or order.waiting:
            return self._push_each(events, streams, _NONE)
        if end < order.released or end < order.latest:
            self.late += 1
            self.late_events.append(event)
            return []
        order.latest = order.released = end
        return [Released(tick, events, _FIRST_ROW)]

    def _push_columns(self, events: TimedRows, streams: Collection[str]) -> list[Released]:
        """Push rows by the column, those of streams with equally long ticks together."""
        read: dict[int, list[Int64s]] = {}
        for name in events.stream_names:
            rows = events.rows_of(name)
            if not len(rows):
                continue
            if name is None or name not in streams:
                self._observe(name, int(events.ends[rows].max()))
            else:
                read.setdefault(self._ticks.length(name), []).append(rows)
        found: list[tuple[int, list[Released]]] = []
        for tick, parts in read.items():
            order = self._order_of(tick)
            rows = parts[0] if len(parts) == 1 else np.sort(np.concatenate(parts))
            ends = events.ends[rows]
            latest = np.maximum.accumulate(np.append(order.latest, ends))
            watermarks = np.maximum(latest, ALWAYS + order.bound) - order.bound
            is_late = ends < np.maximum(watermarks[:-1], order.released)
            if is_late.any():
                late = rows[is_late]
                self.late += len(late)
                self.late_events += map(events.event, late.tolist())
            on_time = np.flatnonzero(~is_late)
            if len(on_time):
                order.latest = int(latest[-1])
                released = self._release(tick, events, rows, on_time, watermarks[1:])
                found.append((int(rows[on_time[0]]), released))
        return [one for _, released in sorted(found, key=itemgetter(0)) for one in released]

    def _release(
        self, tick: int, events: TimedRows, rows: Int64s, on_time: Int64s, watermarks: Int64s
    ) -> list[Released]:
        """Return the rows, and the events that were held back, whose turn comes with one of the rows.

        `on_time` are positions in `rows`; `watermarks` has the watermark after each of the rows.
        """
        order, ends = self._orders[tick], events.ends[rows[on_time]]
        if not order.bound:
            order.released = int(ends[-1])
            kept = rows[on_time]
            return [Released(tick, events if len(kept) == len(events) else events.take(kept), kept)]
        held = sorted(order.waiting)
        held_ends = np.fromiter((end for end, *_ in held), dtype=np.int64, count=len(held))
        # Held events come first, then the rows; each is released by the first row that moves the watermark to its end.
        every = np.concatenate([held_ends, ends])
        by = np.searchsorted(watermarks, every)
        by[len(held) :] = np.maximum(by[len(held) :], on_time)
        turns = np.lexsort((every, by))  # which keeps the order of arrival
        turns = turns[by[turns] < len(rows)]
        order.waiting = [one for one, row in zip(held, by.tolist(), strict=False) if row >= len(rows)]
        self._hold(order, events, rows[on_time[by[len(held) :] >= len(rows)]])
        if not len(turns):
            return []
        order.released = int(every[turns[-1]])
        # Few events are held, and these and the rows among them become objects; the rows after them stay columns.
        last = int(np.flatnonzero(turns < len(held))[-1]) + 1 if (turns < len(held)).any() else 0
        events.read_ahead(np.sort(rows[on_time[turns[:last][turns[:last] >= len(held)] - len(held)]]))
        single = [
            held[turn][2] if turn < len(held) else events.event(int(rows[on_time[turn - len(held)]]))
            for turn in turns[:last].tolist()
        ]
        released = [Released(tick, TimedBatch(single), rows[by[turns[:last]]])] if single else []
        if last < len(turns):
            taken = rows[on_time[turns[last:] - len(held)]]
            released.append(Released(tick, events.take(taken), rows[by[turns[last:]]]))
        return released

    def _hold(self, order: _Order, events: TimedRows, rows: Int64s) -> None:
        """Hold rows back, as events."""
        events.read_ahead(rows)
        order.waiting.sort()  # a sorted list is a heap
        for row in rows.tolist():
            order.hold(events.event(row))

    def _push_each(
        self, events: TimedBatch, streams: Collection[str], skipped: Collection[int]
    ) -> list[Released]:
        """Push the events one by one, and return the released ones by the length of their stream's tick."""
        ready: dict[int, tuple[list[Event], list[int]]] = {}
        for row, end in enumerate(events.ends.tolist()):
            if row in skipped or row in events.faults:
                continue
            stream = events.stream(row)
            if stream is None or stream not in streams:
                self._observe(stream, end)
                continue
            order = self._order(stream)
            if order.is_late(end):
                self.late += 1
                self.late_events.append(events.event(row))
                continue
            found, rows = ready.setdefault(self._ticks.length(stream), ([], []))
            for event in order.push(events.event(row)):
                found.append(event)
                rows.append(row)
        return [
            # The batch itself, where all of it is released: filters have encoded it already.
            Released(
                tick,
                events if rows == list(range(len(events))) and not self._waits else TimedBatch(found),
                np.array(rows, dtype=np.int64),
            )
            for tick, (found, rows) in ready.items()
            if found
        ]

    def flush(self) -> list[Released]:
        """Return all events that are held back; an event that comes later and ends before one of them is late."""
        released = []
        for tick, order in self._orders.items():
            events = list(order.pop(order.latest))
            if events:
                rows = np.zeros(len(events), dtype=np.int64)
                released.append(Released(tick, TimedBatch(events), rows))
        return released

    def takes_columns(self, events: TimedBatch) -> bool:
        """Tell whether a table's rows can be released as they are: in order, not late, and no event is held back."""
        order = self._order(events.stream(0))
        ends = events.ends
        if self._waits or order.waiting or events.faults or not len(ends):
            return False
        return bool(ends[0] >= order.released and (ends[1:] >= ends[:-1]).all())

    def is_late(self, event: Event) -> bool:
        """Tell whether an event would be late if it came now."""
        return self._order(event.stream).is_late(event.end)

    def latest(self, streams: Iterable[str], tick: int) -> int:
        """Return the latest end that came on these streams, or on others that share their order."""
        order = self._orders.get(tick)
        unread = max((self._latest_unread.get(stream, ALWAYS) for stream in streams), default=ALWAYS)
        return unread if order is None else max(order.latest, unread)

    def forget(self, stream: str) -> None:
        """Forget the latest end of a stream that no sequence reads, since its tick has changed."""
        self._latest_unread.pop(stream, None)

    def drain_late(self) -> list[Event]:
        """Return the late events since the last call."""
        late, self.late_events = self.late_events, []
        return late

    def snapshot(self) -> Parts:
        """Return the events that are held back, and how far each order has come."""
        held = {tick: sorted(order.waiting) for tick, order in self._orders.items()}
        about = {
            "saved": _SAVED,
            "format": _FORMAT,
            "late": self.late,
            "unread": list(self._latest_unread.items()),
            "orders": [
                [tick, order.latest, order.released, len(held[tick])] for tick, order in self._orders.items()
            ],
        }
        return Parts(about, {"events": pack_events([event for one in held.values() for _, _, event in one])})

    def restore(self, parts: Parts) -> None:
        """Replace the state by that of a snapshot; what does not fit raises `SavedError`, and nothing changes.

        Late events that were not yet asked for are forgotten. The delay is that of this buffer.
        """
        about = parts.about
        if about.get("saved") != _SAVED or about.get("format") != _FORMAT:
            raise SavedError("this is no state of a reorder buffer, or one of another version of Tocsin")
        try:
            events = iter(unpack_events(bytes(parts.members["events"])))
            orders: dict[int, _Order] = {}
            for tick, latest, released, held in about["orders"]:
                order = orders[int(tick)] = _Order(self._delay.in_ticks(int(tick)))
                order.latest, order.released = int(latest), int(released)
                for _ in range(held):
                    order.hold(next(events))
            unread = {stream: int(end) for stream, end in about["unread"]}
            late = int(about["late"])
            if next(events, None) is not None:
                raise ValueError("it has too many events")
        except (ValueError, KeyError, TypeError, StopIteration) as fault:
            raise SavedError(f"the events that wait for their turn are damaged: {fault}") from fault
        self._orders, self._latest_unread, self.late, self.late_events = orders, unread, late, []

    def _order(self, stream: str | None) -> _Order:
        return self._order_of(self._ticks.length(stream))

    def _order_of(self, tick: int) -> _Order:
        order = self._orders.get(tick)
        if order is None:
            order = self._orders[tick] = _Order(self._delay.in_ticks(tick))
        return order

    def _observe(self, stream: str | None, end: int | None) -> None:
        if end is not None and end > self._latest_unread.get(stream, ALWAYS):
            self._latest_unread[stream] = end


class _Order:
    """The events of one order that are held back, and how far it has come."""

    def __init__(self, bound: int) -> None:
        self.bound = bound
        self.latest = ALWAYS  # the largest end that came
        self.released = ALWAYS  # the largest end that was released
        self.waiting: list[tuple[int, int, Event]] = []  # a heap; of equal ends, the first to come is first
        self._arrivals = count()

    def is_late(self, end: int) -> bool:
        return end < max(self.released, self.latest - self.bound)

    def push(self, event: Event) -> Iterable[Event]:
        self.latest = max(self.latest, event.end)
        if not self.bound:
            self.released = event.end
            return (event,)
        self.hold(event)
        return self.pop(self.latest - self.bound)

    def hold(self, event: Event) -> None:
        heappush(self.waiting, (event.end, next(self._arrivals), event))

    def pop(self, until: int) -> Iterable[Event]:
        while self.waiting and self.waiting[0][0] <= until:
            self.released, _, event = heappop(self.waiting)
            yield event
