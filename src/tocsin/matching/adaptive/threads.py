"""Several threads for one batch: each matches a part of it, without the interpreter's lock.

The large arrays are shared, and only read while several threads match. Each further thread has arrays of its own for what matching
writes, and counts no events: the first thread's part of a batch stands for all of it. What would change shared arrays is
put off until all threads are done: see `DenseCount.FAULT`.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.single_event import SingleEvent, SingleEventAddress
from tocsin.matching.adaptive import state as arrays
from tocsin.matching.adaptive._kernels.matching import match
from tocsin.matching.adaptive.state import MOST_EVENTS, Dense, DenseCount, State, Top, new_state
from tocsin.matching.base import ids_of, longer
from tocsin.matching.conjunction_store.state import ConjunctionStore
from tocsin.matching.encoding.codes import Keys
from tocsin.matching.encoding.events import EncodedEvents
from tocsin.structures.addresses import Addressed

Found: TypeAlias = tuple[Keys, Keys]
"""The conjunctions that events satisfy, and where each event's begin."""

_NONE: Final = np.zeros(2, dtype=np.int64)
_LEAST: Final = 1_024  # matches of a batch that there is room for at first,
_FEW: Final = 4  # or so many of an event,
_MORE: Final = 1.25  # or so many times as many as an event of the last batch had,
_MOST: Final = 2.0  # but not more than so many times as many as that batch had
_WRITTEN: Final = tuple(field for field in Dense._fields if field != "slots")  # by matching, of `Dense`


class Matching:
    """Hands a state to the kernel, by address, and makes room in it where an event needs more."""

    def __init__(self, addressed: Addressed[State]) -> None:
        self._addressed = addressed
        self._batch = Addressed[SingleEvent](SingleEventAddress)
        self._last = 0  # matches of the last batch,
        self._matches = 0.0  # and of an event of it

    def match(self, state: State, events: EncodedEvents) -> tuple[State, Found]:
        """Return the state, with more room where that was needed, and the matches of some events."""
        count = len(events.offsets) - 1
        offsets = np.zeros(count + 1, dtype=np.int64)
        # A chunk that lacks room is matched again.
        likely = min(_MORE * count * self._matches, _MOST * self._last)
        found, done = np.empty(max(_LEAST, _FEW * count, int(likely)), dtype=np.int64), 0
        while (done := self._match_from(state, done, events, found, offsets)) < count:
            needed, pairs = (int(state.tops[top]) for top in (Top.NEEDED, Top.NEEDED_PAIRS))
            if needed > 0:
                found = longer(found, int(offsets[done]), needed)
            elif pairs > 0:
                state = state._replace(dense=state.dense._replace(pairs=np.zeros(2 * pairs, dtype=np.int64)))
            else:
                state = arrays.with_twice_the_room(state)
        self._last, self._matches = int(offsets[-1]), int(offsets[-1]) / max(count, 1)
        return state, (found[: offsets[-1]], offsets)

    def _match_from(self, state: State, start: int, events: EncodedEvents, found: Keys, offsets: Keys) -> int:
        """Match events from `start` on; return how many are done."""
        batch = SingleEvent(events, found, offsets, _NONE, _NONE, _NONE)
        return match(self._addressed.address(state), self._batch.address(batch), start, 0)


class _FurtherThread:
    """The arrays that one further thread writes, beside the shared ones."""

    def __init__(self) -> None:
        self._state = new_state()
        self._shared: State | None = None  # the state whose arrays are in `_state`
        self._matching = Matching(Addressed(arrays.AdaptiveStateAddress))

    def turn_to(self, shared: State) -> None:
        """Take over the shared arrays as they are now; no thread may match meanwhile."""
        if self._shared is not shared:
            self._state, self._shared = _beside(shared, self._state), shared
        own, number = self._state, int(self._state.tops[Top.NUMBER])
        own.tops[:] = shared.tops
        own.tops[Top.NUMBER], own.tops[Top.UNCOUNTED] = number, MOST_EVENTS  # every number has a bit of these
        own.dense.used[:] = shared.dense.used
        own.dense.used[[DenseCount.IS_SHARED, DenseCount.FAULT]] = 1, 0
        own.dense.hot[:] = shared.dense.hot

    def match(self, events: EncodedEvents) -> Found:
        """Return the matches of some events."""
        self._state, found = self._matching.match(self._state, events)
        return found

    def take_fault(self) -> int:
        """Return the last fault of a chunk, or 0, and forget it."""
        used = self._state.dense.used
        fault, used[DenseCount.FAULT] = int(used[DenseCount.FAULT]), 0
        return fault


class FurtherThreads:
    """So many threads beside the one that holds the matcher; they start when they are first needed, also after a fork."""

    def __init__(self, count: int) -> None:
        self._threads = [_FurtherThread() for _ in range(count)]
        self._pool: ThreadPoolExecutor | None = None  # its threads end when nothing refers to it any more
        self._process = 0  # that the pool is of: a fork has none of its threads

    def __len__(self) -> int:
        return len(self._threads)

    def start(self, state: State, parts: Sequence[EncodedEvents], begun: list[Future[Found]]) -> None:
        """Begin to match parts of a batch, a thread each, and append them to `begun`; the caller must `end` it in any case."""
        pool, threads = self._started(), self._threads[: len(parts)]
        for thread in threads:
            thread.turn_to(state)
        state.dense.used[[DenseCount.IS_SHARED, DenseCount.FAULT]] = 1, 0
        for thread, part in zip(threads, parts, strict=True):
            begun.append(pool.submit(thread.match, part))

    def end(self, state: State, begun: Sequence[Future[Found]]) -> None:
        """Wait for all threads, and note in the state what stood in the way of some chunk."""
        try:
            wait_for(begun)
        finally:
            used = state.dense.used
            used[DenseCount.IS_SHARED] = 0
            for thread in self._threads:
                fault = thread.take_fault()
                used[DenseCount.FAULT] = used[DenseCount.FAULT] or fault

    def start_gathering(
        self, store: ConjunctionStore, found: Keys, parts: Sequence[Keys]
    ) -> list[Future[Found]]:
        """Begin to look up the ids of matches, of which parts are given by where each event's begin."""
        pool = self._started()
        return [pool.submit(ids_of, store, found, part) for part in parts]

    def _started(self) -> ThreadPoolExecutor:
        """Return the threads of this process."""
        if self._pool is None or self._process != os.getpid():
            self._pool, self._process = ThreadPoolExecutor(len(self), "tocsin-match"), os.getpid()
        return self._pool


def wait_for(begun: Sequence[Future[Found]]) -> None:
    """Wait for threads, also when interrupted: nothing that they read may change before. They need milliseconds."""
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            wait(begun)
            break
        except KeyboardInterrupt as raised:
            interrupt = raised
    if interrupt is not None:
        raise interrupt


def joined(parts: Sequence[Found]) -> Found:
    """Return the matches of consecutive parts of a batch as those of the batch."""
    before = np.cumsum([0, *(len(found) for found, _ in parts)])
    starts = [offsets[1:] + first for (_, offsets), first in zip(parts, before.tolist(), strict=False)]
    return np.concatenate([found for found, _ in parts]), np.concatenate([parts[0][1][:1], *starts])


def _beside(shared: State, own: State) -> State:
    """Return the shared state, but with a thread's own arrays for what matching writes; where the shared ones grew, with new ones."""
    predicates, slots, dense, values = shared.predicates, shared.slots, shared.dense, own.slots.values
    if len(values) < len(slots.values):
        values = arrays.absent(_empty(slots.values))
    is_roomy = len(own.room.touched) >= len(shared.room.touched)
    return shared._replace(
        predicates=predicates._replace(
            bits=_long_enough(own.predicates.bits, predicates.bits),
            marks=_long_enough(own.predicates.marks, predicates.marks),
        ),
        slots=slots._replace(values=values),
        room=own.room if is_roomy else arrays.new_room(len(shared.room.touched)),
        dense=dense._replace(
            **{one: _long_enough(getattr(own.dense, one), getattr(dense, one)) for one in _WRITTEN}
        ),
        tops=own.tops,
    )


def _long_enough(own: NDArray[Any], shared: NDArray[Any]) -> NDArray[Any]:
    """Return a thread's own array, or a new one as long as the shared one if that is longer."""
    return own if len(own) >= len(shared) else _empty(shared)


def _empty(array: NDArray[Any]) -> NDArray[Any]:
    """Return zeros of the same shape."""
    return np.zeros(array.shape, dtype=array.dtype)
