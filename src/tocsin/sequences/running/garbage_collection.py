"""What nobody needs any more: instances that have expired, strings, events and links of chains."""

from __future__ import annotations

import logging
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.sequences._kernels import expanding
from tocsin.sequences.programs import Tag
from tocsin.sequences.running.events import KeptEvents
from tocsin.sequences.running.state import (
    BASE,
    FORM,
    LINKS,
    LIVE,
    NODE,
    NONE,
    START,
    TOP,
    State,
)
from tocsin.sequences.running.values import ValueCodec

_FEWEST: Final = 4096  # instances, or links, below which none are looked for that could go
_log = logging.getLogger("tocsin")


class GarbageCollector:
    """Looks through all instances whenever there are twice as many of something as there were the last time.

    `limit` is how many bytes instances and what they hold may take; beyond, the oldest are dropped, and counted.
    """

    def __init__(self, words: ValueCodec, events: KeptEvents, limit: int | None) -> None:
        self._words = words
        self._events = events
        self._limit = limit
        self._instances = self._links = _FEWEST
        self._told = False

    def collect(self, state: State) -> None:
        """Let go of what nobody needs, if enough has come since the last time."""
        if state.counters[LIVE] > self._instances:
            self._expire(state)
        if self._limit is not None and self.bytes(state) > self._limit:
            self._expire(state)
            self._collect_all(state)
            # Were only what is above the limit dropped, the next event would let all be looked through again.
            if self.bytes(state) > self._limit - self._limit // 8:
                self._drop(state)
                self._collect_all(state)
        if state.counters[LINKS] > self._links:
            self._collect_links(state)
        self._collect_references(state, words=self._words.is_full, events=self._events.is_full)

    def bytes(self, state: State) -> int:
        """Return about how many bytes the instances and what they hold take."""
        live, most = int(state.counters[LIVE]), int(state.counters[TOP])
        slots = (
            int(state.arena.slots.top[0]) * live // max(1, most)
        )  # it counts those of the time of the most
        used = live * state.instances.rows.itemsize * state.instances.rows.shape[1] + slots * 16
        return int(used + state.counters[LINKS] * 16 + self._words.passing_bytes + 400 * len(self._events))

    def _expire(self, state: State) -> None:
        expanding.expire(state, int(state.counters[TOP]))
        self._instances = max(_FEWEST, 2 * int(state.counters[LIVE]))

    def _collect_all(self, state: State) -> None:
        self._collect_links(state)
        self._collect_references(state, words=True, events=True)

    def _collect_references(self, state: State, *, words: bool, events: bool) -> None:
        """Let go of strings, or of events, that no instance refers to."""
        if not (words or events):
            return
        values = state.arena.slots.rows[_slots(state)]
        if words:
            self._words.collect(values)
        if events:
            linked = state.arena.links[: state.counters[LINKS], 0]
            referred = values[values[:, 0] == Tag.EVENT, 1]
            self._events.collect(np.unique(np.concatenate([referred, linked])))

    def _drop(self, state: State) -> None:
        """Drop a quarter of all instances: those that began first."""
        rows = state.instances.rows[: state.counters[TOP]]
        live = np.flatnonzero(rows[:, NODE] != NONE)
        if not len(live):
            return
        oldest = live[np.argsort(rows[live, START], kind="stable")][: max(1, len(live) // 4)]
        expanding.release_all(state, oldest)
        if not self._told:
            self._told = True
            _log.warning(
                "sequences have reached their memory limit of %s bytes: the oldest partial matches are dropped; bound "
                "them with `within`, or raise the limit",
                f"{self._limit:,}",
            )

    def _collect_links(self, state: State) -> None:
        count = int(state.counters[LINKS])
        slots = state.arena.slots.rows
        places = _slots(state)
        chained = places[slots[places, 0] == Tag.CHAIN]
        marks = np.zeros(count, dtype=np.uint8)
        moved = np.full(count, NONE, dtype=np.int64)
        expanding.mark_links(state.arena.links, slots[chained, 1], marks)
        state.counters[LINKS] = expanding.move_links(state.arena.links, marks, moved)
        slots[chained, 1] = moved[slots[chained, 1]]
        self._links = max(_FEWEST, 2 * int(state.counters[LINKS]))


def _slots(state: State) -> NDArray[np.int64]:
    """Return the places of all instances' slots."""
    rows = state.instances.rows[: state.counters[TOP]]
    live = rows[rows[:, NODE] != NONE]
    widths = state.forms.width[state.places.rows[live[:, NODE], FORM]].astype(np.int64)
    ends = np.cumsum(widths)
    return np.asarray(np.repeat(live[:, BASE] - (ends - widths), widths) + np.arange(int(widths.sum())))
