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
from tocsin.sequences.running.words import Words

__all__ = ["Collector"]

_FEWEST: Final = 4096  # instances, or links, below which none are looked for that could go
_log = logging.getLogger("tocsin")


class Collector:
    """Looks through all instances whenever there are twice as many of something as there were the last time.

    `limit` is how many bytes instances and what they hold may take; beyond, the oldest are dropped, and counted.
    """

    def __init__(self, words: Words, events: KeptEvents, limit: int | None) -> None:
        self._words = words
        self._events = events
        self._limit = limit
        self._instances = self._links = _FEWEST
        self.dropped = 0
        self._told = False

    def collect(self, state: State) -> None:
        """Let go of what nobody needs, if enough has come since the last time."""
        counters = state.counters
        if counters[LIVE] > self._instances:
            expanding.expire(state, int(counters[TOP]))
            self._instances = max(_FEWEST, 2 * int(counters[LIVE]))
        if self._limit is not None and self.bytes(state) > self._limit:
            self._drop(state)
        if counters[LINKS] > self._links:
            self._collect_links(state)
            self._links = max(_FEWEST, 2 * int(counters[LINKS]))
        if self._words.is_full or self._events.is_full:
            places = _slots(state)
            values = state.arena.slots.rows[places]
            if self._words.is_full:
                self._words.collect(values)
            if self._events.is_full:
                linked = state.arena.links[: counters[LINKS], 0]
                referred = values[values[:, 0] == Tag.EVENT, 1]
                self._events.collect(np.unique(np.concatenate([referred, linked])))

    def bytes(self, state: State) -> int:
        """Return how many bytes the instances and what they hold take."""
        live = int(state.counters[LIVE])
        arena = state.arena.slots
        used = live * state.instances.rows.itemsize * state.instances.rows.shape[1] + int(arena.top[0]) * 16
        return int(used + state.counters[LINKS] * 16 + self._words.bytes + 400 * len(self._events))

    def _drop(self, state: State) -> None:
        """Drop a quarter of all instances: those that began first."""
        rows = state.instances.rows[: state.counters[TOP]]
        live = np.flatnonzero(rows[:, NODE] != NONE)
        if not len(live):
            return
        oldest = live[np.argsort(rows[live, START], kind="stable")][: max(1, len(live) // 4)]
        expanding.release_all(state, oldest)
        self.dropped += len(oldest)
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


def _slots(state: State) -> NDArray[np.int64]:
    """Return the places of all instances' slots."""
    rows = state.instances.rows[: state.counters[TOP]]
    live = rows[rows[:, NODE] != NONE]
    widths = state.forms.width[state.places.rows[live[:, NODE], FORM]].astype(np.int64)
    ends = np.cumsum(widths)
    return np.asarray(np.repeat(live[:, BASE] - (ends - widths), widths) + np.arange(int(widths.sum())))
