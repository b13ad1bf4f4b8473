"""Garbage collection: expired instances, and strings, events and links that no instance refers to."""

from __future__ import annotations

import logging
from typing import Final

import numpy as np

from tocsin.sequences._kernels import garbage_collection as kernels
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.state import NONE, InstanceColumn, LinkColumn, PlaceColumn, State, StateCounter
from tocsin.sequences.running.values import ValueCodec
from tocsin.structures.array_types import Int64s

_LIVE: Final = int(StateCounter.LIVE)
_LINKS: Final = int(StateCounter.LINKS)
_FEWEST: Final = 4096  # instances, or links, below which no garbage is collected
_log = logging.getLogger("tocsin")


class GarbageCollector:
    """Scans all instances whenever something has doubled since the last scan.

    `limit` is how many bytes instances and their values may take; beyond it the oldest are dropped, and counted.
    """

    def __init__(self, codec: ValueCodec, events: EventStore, limit: int | None) -> None:
        self._codec = codec
        self._events = events
        self._limit = limit
        self._instances = self._links = _FEWEST
        self._has_warned = False

    def collect(self, state: State) -> None:
        """Free unused events and instances, if enough events have come since the last time."""
        counters = state.counters
        if counters.item(_LIVE) > self._instances:
            self._expire(state)
        if self._limit is not None and self.bytes(state) > self._limit:
            self._expire(state)
            self._collect_all(state)
            # If only the excess were dropped, the very next event would cause another full scan.
            if self.bytes(state) > self._limit - self._limit // 8:
                self._drop_oldest(state)
                self._collect_all(state)
        if counters.item(_LINKS) > self._links:
            self._collect_links(state)
        codec, events = self._codec, self._events.count > self._events.threshold
        strings = len(codec.strings.codes) + len(codec.integers.codes) > codec.threshold
        if strings or events:
            self._collect_references(state, strings=strings, events=events)

    def restart(self, state: State) -> None:
        """Begin anew with the instances of another state."""
        self._instances = max(_FEWEST, 2 * int(state.counters[_LIVE]))
        self._links = max(_FEWEST, 2 * int(state.counters[_LINKS]))

    def bytes(self, state: State) -> int:
        """Return about how many bytes the instances and their values take."""
        live, top = int(state.counters[StateCounter.LIVE]), int(state.counters[StateCounter.TOP])
        # Both tops are of the time with the most instances.
        slots = int(state.arena.slots.top[0]) * live // max(1, top)
        used = live * state.instances.rows.itemsize * len(InstanceColumn) + slots * 16
        links = int(state.counters[StateCounter.LINKS])
        return used + links * 16 + self._codec.passing_bytes + 400 * self._events.count

    def _expire(self, state: State) -> None:
        kernels.expire(state, int(state.counters[StateCounter.TOP]))
        self._instances = max(_FEWEST, 2 * int(state.counters[StateCounter.LIVE]))

    def _collect_all(self, state: State) -> None:
        self._collect_links(state)
        self._collect_references(state, strings=True, events=True)

    def _collect_references(self, state: State, *, strings: bool, events: bool) -> None:
        """Free strings, or events, that no instance refers to."""
        values = state.arena.slots.rows[_live_slots(state)]
        if strings:
            self._codec.collect(values)
        if events:
            linked = state.arena.links[: state.counters[StateCounter.LINKS], LinkColumn.EVENT]
            referred = values[values[:, 0] == Tag.EVENT, 1]
            self._events.collect(np.unique(np.concatenate([referred, linked])))

    def _drop_oldest(self, state: State) -> None:
        """Drop the oldest quarter of all instances."""
        rows = state.instances.rows[: state.counters[StateCounter.TOP]]
        live = np.flatnonzero(rows[:, InstanceColumn.NODE] != NONE)
        if not len(live):
            return
        by_age = live[np.argsort(rows[live, InstanceColumn.START], kind="stable")]
        kernels.drop(state, by_age[: max(1, len(live) // 4)])
        if not self._has_warned:
            self._has_warned = True
            _log.warning(
                "sequences have reached their memory limit of %s bytes: the oldest partial matches are dropped; bound "
                "them with `within`, or raise the limit",
                f"{self._limit:,}",
            )

    def _collect_links(self, state: State) -> None:
        """Compact the links of event chains: keep those that a bound value still reaches."""
        count = int(state.counters[StateCounter.LINKS])
        slots = state.arena.slots.rows
        live = _live_slots(state)
        chained = live[slots[live, 0] == Tag.CHAIN]
        marks = np.zeros(count, dtype=np.uint8)
        moved = np.full(count, NONE, dtype=np.int64)
        kernels.mark_links(state.arena.links, slots[chained, 1], marks)
        state.counters[StateCounter.LINKS] = kernels.move_links(state.arena.links, marks, moved)
        slots[chained, 1] = moved[slots[chained, 1]]
        self._links = max(_FEWEST, 2 * int(state.counters[StateCounter.LINKS]))


def _live_slots(state: State) -> Int64s:
    """Return the positions of all instances' slots."""
    rows = state.instances.rows[: state.counters[StateCounter.TOP]]
    live = rows[rows[:, InstanceColumn.NODE] != NONE]
    forms = state.places.rows[live[:, InstanceColumn.NODE], PlaceColumn.FORM]
    widths = state.forms.width[forms].astype(np.int64)
    ends = np.cumsum(widths)
    firsts = np.repeat(live[:, InstanceColumn.BASE] - (ends - widths), widths)
    return np.asarray(firsts + np.arange(int(widths.sum())))
