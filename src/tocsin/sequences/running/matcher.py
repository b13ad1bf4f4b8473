"""The runtime: subscriptions over sequences of events, all of them at once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.language.template.columns import Column
from tocsin.language.template.template import bindings_at
from tocsin.matching import IdArray
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import EventError, SubscriptionError
from tocsin.model.event import Event
from tocsin.sequences._kernels import entering, expanding, stepping
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.binding import bind_expression, bound_names
from tocsin.sequences.compilation import CompiledSequence
from tocsin.sequences.compiling import compile_expression
from tocsin.sequences.compiling.parameters import parameters_in_programs
from tocsin.sequences.inspection import SequenceState
from tocsin.sequences.matches import SequenceMatches
from tocsin.sequences.modes import MODES, Optimisations
from tocsin.sequences.running import room
from tocsin.sequences.running.events import KeptEvents
from tocsin.sequences.running.forms import holds_any
from tocsin.sequences.running.garbage_collection import GarbageCollector
from tocsin.sequences.running.graph import GraphWriter
from tocsin.sequences.running.holders import Holder, HolderTable
from tocsin.sequences.running.inspection import Inspector
from tocsin.sequences.running.instance_index import InstanceIndexTuner
from tocsin.sequences.running.outputs import OutputReader
from tocsin.sequences.running.predicates import Predicates
from tocsin.sequences.running.state import (
    EPOCH,
    FEEDING,
    FOREVER,
    FORM,
    KEYED,
    LIVE,
    LOOKED,
    MADE,
    MATCHED,
    NUMBER,
    OUTPUT_ROWS,
    OUTPUTS,
    USES,
    VISITED,
    WAITING,
    new_state,
)
from tocsin.sequences.running.values import ValueCodec
from tocsin.sequences.timed_batch import TimedBatch
from tocsin.structures import hash_index
from tocsin.structures.growth import bytes_of
from tocsin.structures.jit import is_compiled_before

_NEVER: Final = -FOREVER - 1
_log = logging.getLogger("tocsin")


class SequenceStats(Struct, frozen=True):
    """What sequences hold and what has passed through them; counts of work are since the beginning."""

    subscriptions: int
    nodes: int
    ends: int
    active_nodes: int
    keyed_nodes: int
    instances: int
    kept_events: int
    strings: int
    bytes: int
    events: int
    witnesses: int
    visited_nodes: int
    looked_at: int
    matched_predicates: int
    made: int
    expired: int
    stopped: int
    dropped: int
    edges: MatcherStats
    filters: MatcherStats


class AutomatonMatcher:
    """Runs sequences over events that come in the order of their end.

    `matcher` names the index that holds the static parts of edges and filters, any that is registered; without it
    there is none while there is little to do. `mode` says which optimisations are used. `memory_limit` is how many
    bytes partial matches may take; beyond it the oldest are dropped, counted and told once in the log.
    """

    def __init__(
        self,
        *,
        matcher: str | None = None,
        statistics: Statistics | None = None,
        mode: Optimisations = MODES["cayuga"],
        memory_limit: int | None = None,
    ) -> None:
        if not is_compiled_before("tocsin.sequences._kernels.stepping"):
            _log.info("compiling what runs sequences, once on this machine: this takes about 20 seconds")
        self.mode = mode
        self._words = ValueCodec()
        self._events = KeptEvents()
        self._graph = GraphWriter(
            new_state(), self._words, Predicates(matcher, statistics), Predicates(matcher, statistics), mode
        )
        self._holders = HolderTable()
        self._collector = GarbageCollector(self._words, self._events, memory_limit)
        self._keying = InstanceIndexTuner()
        self._taken = 0
        self._told = 0

    @property
    def epoch(self) -> int | None:
        """Return the largest end that has come; None if nothing has."""
        epoch = int(self._graph.state.counters[EPOCH])
        return None if epoch == _NEVER else epoch

    # subscriptions

    def add(self, numbers: IdArray, prepared: CompiledSequence, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        in_programs = parameters_in_programs(prepared.automaton)
        timed = any(holds_any(column, datetime) for name, column in columns.items() if name in in_programs)
        if not prepared.automaton.by_row and not timed:
            self._add(np.ascontiguousarray(numbers, dtype=np.int64), prepared.automaton, columns)
            return
        # A text is read as a timestamp beside a constant that is one, and that is seen when it is compiled.
        for row in range(len(numbers)):
            values = bindings_at(columns, row)
            automaton = compile_expression(
                bind_expression(prepared.expression, values, bound_names(prepared.query, values)),
                index_edges=self.mode.edges,
                index_filters=self.mode.instances,
                full=prepared.full,
                publish=prepared.publishes,
            )
            try:
                self._add(np.ascontiguousarray(numbers[row : row + 1], dtype=np.int64), automaton, {})
            except BaseException:
                self.remove(numbers[:row])
                raise

    def _add(self, numbers: IdArray, automaton: Automaton, columns: Mapping[str, Column]) -> None:
        if not len(numbers):
            return
        inner, ends = self._enter(automaton, len(numbers), columns)
        self._hold(numbers, ends, Holder(automaton, automaton.publish, False, inner))
        for name in inner:  # each of them holds what is in parentheses
            self._holders.inner_uses[name] += len(numbers) - 1

    def _enter(
        self, automaton: Automaton, rows: int, columns: Mapping[str, Column]
    ) -> tuple[tuple[str, ...], IdArray]:
        """Return the sequences in parentheses that an automaton reads, and the end of each row; all or nothing."""
        inner: list[str] = []
        try:
            for name, within in automaton.inner:
                inner.append(self._hold_inner(name, within))
            ends = self._graph.add(automaton, rows, columns)
        except BaseException:
            self._release_inner(inner)
            raise
        return tuple(inner), ends

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; those that are not there are passed over."""
        entries = self._holders.of(np.unique(numbers))
        if not len(entries):
            return
        gone = [self._holders.info(entry) for entry in entries.tolist()]
        self._leave(entries)
        self._release_inner([name for holder in gone for name in holder.inner])

    def _hold(self, numbers: IdArray, ends: IdArray, holder: Holder) -> IdArray:
        state = self._graph.state
        holders, entries = self._holders.enter(state.holders, numbers, holder, int(state.counters[EPOCH]))
        self._graph.state = state._replace(holders=holders)
        entering.enter_holders(self._graph.state, entries, ends, int(holder.publish is not None))
        return entries

    def _leave(self, entries: IdArray) -> None:
        feeding = np.array(
            [self._holders.info(entry).publish is not None for entry in entries.tolist()], dtype=np.int64
        )
        self._graph.leave(entries, feeding)
        self._holders.leave(entries)

    def _hold_inner(self, name: str, automaton: Automaton) -> str:
        """Hold a sequence in parentheses, once for all who read it."""
        if name not in self._holders.inner:
            inner, ends = self._enter(automaton, 1, {})
            entries = self._hold(np.array([-1], dtype=np.int64), ends, Holder(automaton, name, True, inner))
            self._holders.inner[name] = int(entries[0])
            self._holders.inner_uses[name] = 0
        self._holders.inner_uses[name] += 1
        return name

    def _release_inner(self, names: list[str]) -> None:
        for name in names:
            self._holders.inner_uses[name] -= 1
            if self._holders.inner_uses[name] == 0:
                del self._holders.inner_uses[name]
                entry = self._holders.inner.pop(name)
                within = self._holders.info(entry).inner
                self._leave(np.array([entry], dtype=np.int64))
                self._release_inner(list(within))

    # events

    def process(self, arrivals: TimedBatch) -> SequenceMatches:
        """Take further events, which end no earlier than those before, and return what they completed."""
        self._check(arrivals)
        state = self._graph.state
        self._collector.collect(state)
        state = self._graph.state = self._keying.review(state)
        state.counters[OUTPUTS] = state.counters[OUTPUT_ROWS] = 0
        published: list[tuple[int, Event]] = []
        self._run(arrivals, arrivals.ends, np.arange(len(arrivals)), published)
        self._taken += len(arrivals)
        return self._witnesses(published)

    def _check(self, arrivals: TimedBatch) -> None:
        ends = arrivals.ends
        if len(ends) and (ends[0] < self._graph.state.counters[EPOCH] or (ends[1:] < ends[:-1]).any()):
            raise EventError("events reach sequences in the order of their end; this one comes too late")

    def _run(
        self,
        arrivals: TimedBatch,
        births: NDArray[np.int64],
        origins: NDArray[np.int64],
        published: list[tuple[int, Event]],
    ) -> None:
        """Take arrivals, and what comes of them; `origins` are the arrivals of `advance` that they come of."""
        if not len(arrivals):
            return
        first = self._events.keep(arrivals)
        edges = stepping.Held(*self._graph.edges.matched(arrivals.batch))
        filters = stepping.Held(*self._graph.filters.matched(arrivals.batch))
        times = stepping.Times(arrivals.starts, arrivals.ends, births)
        values = self._graph.columns.values(arrivals)
        streams = self._streams(arrivals)
        self._graph.state = self._words.into(self._graph.state)
        done = int(self._graph.state.counters[OUTPUTS])
        at, status = 0, stepping.ROOM
        while status != stepping.DONE:
            state = self._graph.state
            state.counters[NUMBER] = first
            status, at = stepping.step(state, values, times, streams, edges, filters, at)
            if status == stepping.ROOM:
                self._graph.state = room.given(state)
                continue
            reached = int(state.counters[OUTPUTS])
            rows = state.outputs.rows[done:reached]
            rows[:, 1] = origins[rows[:, 1]]
            if state.counters[FEEDING]:
                state.counters[FEEDING] = 0
                self._feed(done, reached, published)
                reached = int(self._graph.state.counters[OUTPUTS])
            done = reached

    def _feed(self, begin: int, finish: int, published: list[tuple[int, Event]]) -> None:
        """Take what sequences publish as events of the same epoch."""
        made: list[Event] = []
        births: list[int] = []
        origins: list[int] = []
        teller = self._teller()
        for row in range(begin, finish):
            for holder in self._holders.publishers(self._graph.state, row):
                event, birth, origin = teller.published(row, holder)
                made.append(event)
                births.append(birth)
                origins.append(origin)
                if not holder.internal:
                    published.append((origin, event))
        self._run(
            TimedBatch.of(made),
            np.array(births, dtype=np.int64),
            np.array(origins, dtype=np.int64),
            published,
        )

    def _streams(self, arrivals: TimedBatch) -> NDArray[np.int32]:
        """Return the code of each arrival's stream, or -1 where nothing reads it."""
        codes = self._graph.streams.codes
        one = arrivals.single_stream
        if one is not None:
            return np.full(len(arrivals), codes.get(one, -1), dtype=np.int32)
        return np.array(
            [codes.get(arrivals.stream(i) or "", -1) for i in range(len(arrivals))], dtype=np.int32
        )

    def _teller(self) -> OutputReader:
        return OutputReader(self._graph.state, self._graph.forms, self._words, self._events)

    def _witnesses(self, published: list[tuple[int, Event]]) -> SequenceMatches:
        state = self._graph.state
        count = int(state.counters[OUTPUTS])
        if not count:
            none = np.empty(0, dtype=np.int64)
            return SequenceMatches(none, none, none, none, self._teller().match, tuple(published))
        numbers = np.empty(2 * count + 64, dtype=np.int64)
        outputs = np.empty_like(numbers)
        found = expanding.expand(state, 0, count, numbers, outputs)
        if found > len(numbers):
            numbers, outputs = np.empty(found, dtype=np.int64), np.empty(found, dtype=np.int64)
            expanding.expand(state, 0, count, numbers, outputs)
        numbers, outputs = numbers[:found], outputs[:found]
        rows = state.outputs.rows[outputs]
        order = np.lexsort((numbers, rows[:, 1]))
        numbers, outputs, rows = numbers[order], outputs[order], rows[order]
        teller = self._teller().settled()
        self._told += found
        return SequenceMatches(
            numbers,
            rows[:, 1].copy(),
            rows[:, 2].copy(),
            teller.ends(outputs),
            lambda place: teller.match(int(outputs[place])),
            tuple(published),
            lambda: teller.values(outputs),
        )

    # what is held

    def inspect(self, number: int, samples: int = 3) -> SequenceState:
        """Return where a subscription stands, with up to so many instances of each node, the newest first."""
        entries = self._holders.of(np.array([number], dtype=np.int64))
        if not len(entries):
            raise SubscriptionError(f"no sequence has the number {number}")
        viewer = Inspector(self._graph.state, self._holders, self._words, self._events)
        return viewer.standing(int(entries[0]), samples)

    def stats(self) -> SequenceStats:
        """Return what is held and what has passed through."""
        state = self._graph.state
        top = hash_index.top_entry(state.graph.entries)
        counters = state.counters
        edges, filters = self._graph.edges.matcher.stats(), self._graph.filters.matcher.stats()
        live = np.flatnonzero(state.places.rows[:top, USES] > 0)
        is_end = state.forms.is_end[state.places.rows[live, FORM]] > 0
        deaths = self._graph.deaths + state.places.deaths[live].sum(axis=0)
        return SequenceStats(
            subscriptions=len(self._holders),
            nodes=int((~is_end).sum()),
            ends=int(is_end.sum()),
            active_nodes=int((state.places.rows[live, WAITING] > 0).sum()),
            keyed_nodes=int((state.places.rows[live, KEYED] > 0).sum()),
            instances=int(counters[LIVE]),
            kept_events=len(self._events),
            strings=len(self._words.codes),
            bytes=bytes_of(state) + self._words.bytes + edges.bytes + filters.bytes,
            events=self._taken,
            witnesses=self._told,
            visited_nodes=int(counters[VISITED]),
            looked_at=int(counters[LOOKED]),
            matched_predicates=int(counters[MATCHED]),
            made=int(counters[MADE]),
            expired=int(deaths[0]),
            stopped=int(deaths[1]),
            dropped=int(deaths[2]),
            edges=edges,
            filters=filters,
        )
