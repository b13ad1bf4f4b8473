"""Running all sequences at once, by merged automata."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.language.template.columns import Column
from tocsin.language.template.template import bindings_at
from tocsin.matching import IdArray
from tocsin.matching.matcher import MatcherStats
from tocsin.matching.statistics import Statistics
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model.errors import EventError, SubscriptionError
from tocsin.model.event import Event
from tocsin.model.options import ALWAYS
from tocsin.model.values import Value
from tocsin.sequences._kernels import events as kernels
from tocsin.sequences._kernels.graph import enter_holders
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.binding import bind_expression, bound_names
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_expression, parameters_in_programs
from tocsin.sequences.inspection import SequenceState
from tocsin.sequences.matches import SequenceMatch, SequenceMatches
from tocsin.sequences.modes import MODES, Optimisations
from tocsin.sequences.running.events import EventStore
from tocsin.sequences.running.forms import has_any
from tocsin.sequences.running.garbage_collection import GarbageCollector
from tocsin.sequences.running.graph import GraphWriter
from tocsin.sequences.running.holders import Holder, HolderTable
from tocsin.sequences.running.inspection import Inspector
from tocsin.sequences.running.instance_index import InstanceIndexTuner
from tocsin.sequences.running.outputs import OutputReader
from tocsin.sequences.running.saving import MatcherSaver, Progress, SavedMatcher
from tocsin.sequences.running.state import (
    AutomatonStateAddress,
    Death,
    OutputColumn,
    PlaceColumn,
    State,
    StateCounter,
    with_room,
)
from tocsin.sequences.running.values import ValueCodec
from tocsin.structures import hash_index
from tocsin.structures.addresses import Addressed
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Bools, Int32s, Int64s
from tocsin.structures.growth import bytes_of

_NONE: Final = np.empty(0, dtype=np.int64)
_NONE_OF_ONE: Final = kernels.Satisfied(np.zeros(2, dtype=np.int64), _NONE)  # what one event satisfies
# Counters as plain integers: a member of an enumeration takes as long to look up as three of them to read.
_EPOCH: Final = int(StateCounter.EPOCH)
_MADE: Final = int(StateCounter.MADE)
_OUTPUTS: Final = int(StateCounter.OUTPUTS)
_OUTPUT_SLOTS: Final = int(StateCounter.OUTPUT_SLOTS)
_NUMBER: Final = int(StateCounter.NUMBER)
_FEEDING: Final = int(StateCounter.FEEDING)


class SequenceStats(Struct, frozen=True):
    """The size of the automata and their instances; counts of work are since the beginning."""

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
    matches: int
    visited_nodes: int
    examined: int
    matched_predicates: int
    made: int
    expired: int
    stopped: int
    dropped: int
    edges: MatcherStats
    filters: MatcherStats


class AutomatonMatcher:
    """Runs sequences over events in the order of their end.

    `matcher` names the index of the static parts of edges and filters; without it a matcher is chosen by the number of
    conditions. `mode` says which optimisations are used. `memory_limit` is how many bytes partial matches may take;
    beyond it the oldest are dropped and counted, and the log has one warning.
    """

    def __init__(
        self,
        *,
        matcher: str | None = None,
        statistics: Statistics | None = None,
        mode: Optimisations = MODES["cayuga"],
        memory_limit: int | None = None,
    ) -> None:
        self.mode = mode
        self._codec = ValueCodec()
        self._events = EventStore()
        self._graph = GraphWriter(self._codec, mode, matcher, statistics)
        self._holders = HolderTable()
        self._collector = GarbageCollector(self._codec, self._events, memory_limit)
        self._tuner = InstanceIndexTuner()
        self._saver = MatcherSaver(
            mode=mode,
            graph=self._graph,
            codec=self._codec,
            events=self._events,
            collector=self._collector,
            tuner=self._tuner,
        )
        self._addressed = Addressed[State](AutomatonStateAddress)
        self._processed = 0
        self._matched = 0

    @property
    def epoch(self) -> int | None:
        """Return the largest end processed so far; None if no event was."""
        epoch = int(self._graph.state.counters[StateCounter.EPOCH])
        return None if epoch == ALWAYS else epoch

    # subscriptions

    def add(self, numbers: IdArray, compiled: CompiledSequence, columns: Mapping[str, Column]) -> None:
        """Add one subscription for each number; those of a template have a row of `columns` each."""
        numbers = np.ascontiguousarray(numbers, dtype=np.int64)
        alone = _rows_to_compile(compiled.automaton, columns, len(numbers))
        if not alone.any():
            self._add(numbers, compiled.automaton, columns)
            return
        if not alone.all():
            together = {name: column[~alone] for name, column in columns.items()}
            self._add(numbers[~alone], compiled.automaton, together)
        try:
            for row in np.flatnonzero(alone).tolist():
                self._add_row(numbers[row : row + 1], compiled, bindings_at(columns, row))
        except BaseException:
            self.remove(numbers)
            raise

    def _add_row(
        self, number: IdArray, compiled: CompiledSequence, values: Mapping[str, Value | tuple[Value, ...]]
    ) -> None:
        """Add the row of a template that has these values."""
        automaton = compile_expression(
            bind_expression(compiled.expression, values, bound_names(compiled.query, values)),
            mode=self.mode,
            full=compiled.full,
            publish=compiled.publishes,
        )
        self._add(number, automaton, {})

    def _add(self, numbers: IdArray, automaton: Automaton, columns: Mapping[str, Column]) -> None:
        if not len(numbers):
            return
        inner, ends = self._enter(automaton, len(numbers), columns)
        self._add_holders(numbers, ends, Holder(automaton, False, inner))
        for name in inner:  # each subscription uses the inner sequences
            self._holders.inner_uses[name] += len(numbers) - 1

    def _enter(
        self, automaton: Automaton, rows: int, columns: Mapping[str, Column]
    ) -> tuple[tuple[str, ...], IdArray]:
        """Return the sequences in parentheses that an automaton reads, and the end of each row; all or nothing."""
        inner: list[str] = []
        try:
            for name, automaton_within in automaton.inner:
                inner.append(self._acquire_inner(name, automaton_within))
            ends = self._graph.add(automaton, rows, columns)
        except BaseException:
            self._release_inner(inner)
            raise
        return tuple(inner), ends

    def remove(self, numbers: IdArray) -> None:
        """Remove subscriptions; unknown numbers are ignored."""
        entries = self._holders.entries(np.unique(numbers))
        if not len(entries):
            return
        removed = [self._holders.holder(entry) for entry in entries.tolist()]
        self._remove_holders(entries)
        self._release_inner([name for holder in removed for name in holder.inner])

    def _add_holders(self, numbers: IdArray, ends: IdArray, holder: Holder) -> IdArray:
        state = self._graph.state
        since = int(state.counters[StateCounter.EPOCH])
        holders, entries = self._holders.add(state.holders, numbers, holder, since)
        self._graph.state = state._replace(holders=holders)
        enter_holders(self._graph.state, entries, ends, int(holder.automaton.publish is not None))
        return entries

    def _remove_holders(self, entries: IdArray) -> None:
        publishes = [self._holders.holder(entry).automaton.publish is not None for entry in entries.tolist()]
        self._graph.remove(entries, np.array(publishes, dtype=np.int64))
        self._holders.remove(self._graph.state.holders, entries)

    def _acquire_inner(self, name: str, automaton: Automaton) -> str:
        """Add a sequence in parentheses, or one more use of it."""
        if name not in self._holders.inner:
            inner, ends = self._enter(automaton, 1, {})
            entries = self._add_holders(np.array([-1], dtype=np.int64), ends, Holder(automaton, True, inner))
            self._holders.inner[name] = int(entries[0])
            self._holders.inner_uses[name] = 0
        self._holders.inner_uses[name] += 1
        return name

    def _release_inner(self, names: list[str]) -> None:
        """Count one use of these nested sequences less, and remove those that nothing uses any more."""
        for name in names:
            self._holders.inner_uses[name] -= 1
            if self._holders.inner_uses[name] == 0:
                del self._holders.inner_uses[name]
                entry = self._holders.inner.pop(name)
                within = self._holders.holder(entry).inner
                self._remove_holders(np.array([entry], dtype=np.int64))
                self._release_inner(list(within))

    # events

    def process(self, events: TimedBatch) -> SequenceMatches:
        """Process further events, which end no earlier than those before, and return the sequences they complete."""
        ends, state = events.ends, self._graph.state
        counters = state.counters
        if len(ends) and (
            ends.item(0) < counters.item(_EPOCH) or (len(ends) > 1 and (ends[1:] < ends[:-1]).any())
        ):
            raise EventError("events must be processed in the order of their end; this one is late")
        self._collector.collect(state)
        if counters.item(_MADE) >= self._tuner.next_review:
            state = self._graph.state = self._tuner.tune(state)
            counters = state.counters
        counters[_OUTPUTS] = counters[_OUTPUT_SLOTS] = 0
        published: list[tuple[int, Event]] = []
        self._run(events, ends, None, published)
        self._processed += len(ends)
        return self._matches(published)

    def _run(
        self, events: TimedBatch, births: Int64s, origins: Int64s | None, published: list[tuple[int, Event]]
    ) -> None:
        """Run the automata over events, and over the events these publish.

        `births` are the ends of the first events that each was made of, `origins` the rows of `process`, if they are
        other rows.
        """
        graph, count = self._graph, len(events.ends)
        if not count:
            return
        first = self._events.keep(events)
        none = _NONE_OF_ONE if count == 1 else kernels.Satisfied(np.zeros(count + 1, dtype=np.int64), _NONE)
        edges = kernels.Satisfied(*graph.edges.match(events)) if graph.edges.count else none
        filters = kernels.Satisfied(*graph.filters.match(events)) if graph.filters.count else none
        times = kernels.Times(events.starts, events.ends, births)
        values = graph.columns.encode(events)
        streams = self._streams(events)
        if self._codec.has_changed:
            graph.state = self._codec.into(graph.state)
        done = graph.state.counters.item(_OUTPUTS)
        row, status = 0, kernels.ROOM
        while status != kernels.DONE:
            state = self._graph.state
            state.counters[_NUMBER] = first
            known = self._addressed
            address = known.current if known.state is state else known.address(state)
            status, row = kernels.process(address, values, times, streams, edges, filters, row)
            if status == kernels.ROOM:
                self._graph.state = with_room(state)
                continue
            reached = state.counters.item(_OUTPUTS)
            if origins is not None:
                rows = state.outputs.rows[done:reached, OutputColumn.EVENT]
                rows[:] = origins[rows]
            if state.counters.item(_FEEDING):
                state.counters[_FEEDING] = 0
                self._feed(done, reached, published)
                reached = self._graph.state.counters.item(_OUTPUTS)
            done = reached

    def _feed(self, begin: int, finish: int, published: list[tuple[int, Event]]) -> None:
        """Run the automata over the outputs that are published, as events of the same epoch."""
        made: list[Event] = []
        births: list[int] = []
        origins: list[int] = []
        state = self._graph.state
        rows = state.outputs.rows[begin:finish]
        reader = OutputReader(state, self._graph.forms, self._codec, self._events, rows)
        for output in range(begin, finish):
            for holder in self._holders.publishers(state, output):
                event, birth, origin = reader.published_output(output - begin, holder)
                made.append(event)
                births.append(birth)
                origins.append(origin)
                if not holder.is_inner:
                    published.append((origin, event))
        self._run(
            TimedBatch(made), np.array(births, dtype=np.int64), np.array(origins, dtype=np.int64), published
        )

    def _streams(self, events: TimedBatch) -> Int32s:
        """Return the code of each event's stream, or -1 if nothing reads it."""
        codes = self._graph.streams.codes
        single = events.single_stream
        if single is not None:
            code = codes.get(single, -1)
            count = len(events.ends)
            return np.array([code], np.int32) if count == 1 else np.full(count, code, dtype=np.int32)
        known = [codes.get(events.stream(row) or "", -1) for row in range(len(events))]
        return np.array(known, dtype=np.int32)

    def _matches(self, published: list[tuple[int, Event]]) -> SequenceMatches:
        """Return the matches of the outputs that this batch has made, sorted by event and subscription."""
        state = self._graph.state
        count = state.counters.item(_OUTPUTS)
        if not count:
            if not published:
                return _NO_MATCHES
            return SequenceMatches(_NONE, _NONE, _NONE, _NONE, _no_match, tuple(published))
        made, found = state.outputs.rows[:count], 2 * count + 64
        numbers = outputs = _NONE
        known = self._addressed
        address = known.current if known.state is state else known.address(state)
        while len(numbers) < found:
            numbers, outputs = np.empty(found, dtype=np.int64), np.empty(found, dtype=np.int64)
            found = kernels.expand(address, numbers, outputs)
        numbers, outputs = numbers[:found], outputs[:found]
        if found > 1:
            order = np.lexsort((numbers, made[outputs, OutputColumn.EVENT]))
            numbers, outputs = numbers[order], outputs[order]
        rows = made[outputs]
        reader = OutputReader(state, self._graph.forms, self._codec, self._events, rows)
        self._matched += found
        return SequenceMatches(
            numbers,
            rows[:, OutputColumn.EVENT].copy(),
            rows[:, OutputColumn.STARTED].copy(),
            rows[:, OutputColumn.ENDED].copy(),
            reader.match,
            tuple(published),
            reader.values,
        )

    # saving

    def snapshot(self) -> Parts:
        """Return all partial matches; the matches of `process` must have been read."""
        return self._saver.snapshot(Progress(self._processed, self._matched))

    def read_snapshot(self, parts: Parts) -> SavedMatcher:
        """Return a snapshot, checked, or raise `SavedError`; nothing changes."""
        return self._saver.read(parts)

    def nothing_saved(self) -> SavedMatcher:
        """Return the snapshot of a new matcher."""
        return SavedMatcher()

    def restore(self, saved: SavedMatcher) -> int:
        """Replace all partial matches by those of a snapshot; return how many no subscription can continue."""
        dropped = self._saver.restore(saved)
        self._processed, self._matched = saved.progress.events, saved.progress.matches
        return dropped

    def first_ends(self, numbers: IdArray) -> tuple[Int64s, Bools]:
        """Return the first end that each subscription sees, and whether it is known."""
        entries = self._holders.positions(numbers)
        since = self._graph.state.holders.since[np.maximum(entries, 0)] if len(self._holders) else entries
        return since + 1, entries >= 0

    def set_first_ends(self, numbers: IdArray, first_ends: Int64s) -> Bools:
        """Have subscriptions see the events from an end on, each from its own; return which of them are known."""
        entries = self._holders.positions(numbers)
        is_known = entries >= 0
        self._graph.state.holders.since[entries[is_known]] = first_ends[is_known] - 1
        return np.asarray(is_known)

    # inspection

    def inspect(self, number: int, samples: int = 3) -> SequenceState:
        """Return the state of a subscription, with up to `samples` instances of each node, the newest first."""
        entries = self._holders.entries(np.array([number], dtype=np.int64))
        if not len(entries):
            raise SubscriptionError(f"no sequence has the number {number}")
        inspector = Inspector(self._graph.state, self._holders, self._codec, self._events)
        return inspector.sequence(int(entries[0]), samples)

    def stats(self) -> SequenceStats:
        """Return how much is stored and how much work was done."""
        state = self._graph.state
        top = hash_index.top_entry(state.graph.entries)
        edges, filters = self._graph.edges.matcher.stats(), self._graph.filters.matcher.stats()
        live = np.flatnonzero(state.places.rows[:top, PlaceColumn.USES] > 0)
        is_end = state.forms.is_end[state.places.rows[live, PlaceColumn.FORM]] > 0
        deaths = self._saver.deaths().tolist()
        counters = state.counters.tolist()
        return SequenceStats(
            subscriptions=len(self._holders),
            nodes=int((~is_end).sum()),
            ends=int(is_end.sum()),
            active_nodes=int((state.places.rows[live, PlaceColumn.WAITING] > 0).sum()),
            keyed_nodes=int((state.places.rows[live, PlaceColumn.KEYED] > 0).sum()),
            instances=counters[StateCounter.LIVE],
            kept_events=self._events.count,
            strings=len(self._codec.strings),
            bytes=bytes_of(state) + self._codec.bytes + edges.bytes + filters.bytes,
            events=self._processed,
            matches=self._matched,
            visited_nodes=counters[StateCounter.VISITED],
            examined=counters[StateCounter.EXAMINED],
            matched_predicates=counters[StateCounter.MATCHED],
            made=counters[StateCounter.MADE],
            expired=deaths[Death.EXPIRED],
            stopped=deaths[Death.STOPPED],
            dropped=deaths[Death.DROPPED],
            edges=edges,
            filters=filters,
        )


def _rows_to_compile(automaton: Automaton, columns: Mapping[str, Column], rows: int) -> Bools:
    """Return which rows of a template have to be compiled one by one.

    The compiler reads a text beside a timestamp constant as a timestamp, so it has to see the constant.
    """
    alone = np.full(rows, automaton.by_row, dtype=np.bool_)
    for name in () if automaton.by_row else parameters_in_programs(automaton):
        if has_any(columns[name], datetime):
            alone |= np.array([isinstance(value, datetime) for value in columns[name].tolist()])
    return alone


def _no_match(i: int) -> SequenceMatch:
    raise IndexError(i)


_NO_MATCHES: Final = SequenceMatches(_NONE, _NONE, _NONE, _NONE, _no_match)
