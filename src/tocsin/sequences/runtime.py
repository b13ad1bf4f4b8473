"""The runtime of sequences: which subscriptions read which streams, and the matcher that runs them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from collections.abc import Sequence as AbstractSequence
from contextlib import suppress
from typing import Final, Protocol

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tocsin.language import Cnf, Dnf, Template, TemplateRows
from tocsin.language.parsing.parser import canonical
from tocsin.language.sequence_shapes import SequenceShape
from tocsin.language.template.binding import bind_query
from tocsin.language.template.columns import Column
from tocsin.language.template.template import bindings_at
from tocsin.language.text_shapes import MOST_SHAPES
from tocsin.matching import IdArray
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Sequence, Subscription
from tocsin.model.errors import SavedError, SubscriptionError, TemplateError, TocsinError
from tocsin.model.event import check_stream, is_deletion
from tocsin.model.options import ALWAYS, FOREVER, SubscriptionOptions
from tocsin.model.ticks import StreamTicks, Tick, read_tick
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_sequence
from tocsin.sequences.dependencies import Dependencies
from tocsin.sequences.explanation import SequenceExplanation, explain_sequence
from tocsin.sequences.matcher import InspectableSequenceMatcher
from tocsin.sequences.matches import SequenceMatches
from tocsin.sequences.saved_schedule import EXPIRED, SAVED, SavedSchedule, Standing, read_ticks_of
from tocsin.sequences.scheduled_matcher import ScheduledMatcher
from tocsin.sequences.shown_times import ShownTimes
from tocsin.sequences.ticks import asks_in_units, common_tick
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s

FORMAT: Final = 1  # of snapshots; raised whenever an older Tocsin could misread one


class CompiledSequences(Struct, frozen=True):
    """A sequence, or a template of sequences, compiled for streams whose ticks are `tick` microseconds.

    `each` has the rows of a template one by one, where a parameter stands in a place that an automaton cannot share.
    """

    compiled: CompiledSequence
    tick: int
    each: tuple[CompiledSequence, ...] | None = None
    in_units: bool = False  # whether it has a length of time that is not in ticks


class SequenceRuntimeStats(Struct, frozen=True):
    """Sizes and counts of sequences: `nodes` of merged automata, `instances` that wait, and events that came late."""

    subscriptions: int = 0
    nodes: int = 0
    instances: int = 0
    bytes: int = 0
    dropped: int = 0
    late: int = 0
    waiting: int = 0


class LatestEnds(Protocol):
    """The reorder buffer in front of the sequences, which follows the time of streams."""

    def latest(self, streams: Iterable[str], tick: int) -> int:
        """Return the latest end that came on these streams."""

    def is_late(self, event: Event) -> bool:
        """Tell whether an event would be late if it came now."""

    def forget(self, stream: str) -> None:
        """Forget the latest end of a stream whose tick changes."""


class _Reader(Struct, eq=False):
    """Subscriptions that were added together, and how many of them are left."""

    compiled: CompiledSequence
    tick: int
    in_units: bool
    left: int
    valid_from: int
    valid_until: int
    is_dependency: bool = True  # whether its published stream counts in the search for cycles


class SequenceRuntime:
    """Runs sequences over events in the order of their end. The caller makes one call at a time.

    Streams whose ticks are equally long share a matcher. `streams` counts the subscriptions that read each stream.
    """

    def __init__(
        self, ticks: StreamTicks, buffer: LatestEnds, new_matcher: Callable[[], InspectableSequenceMatcher]
    ) -> None:
        self.ticks = ticks
        self.streams: Counter[str] = Counter()
        self._buffer = buffer
        self._new_matcher = new_matcher
        self._matchers: dict[int, ScheduledMatcher] = {}  # by the length of a tick
        self._readers: dict[int, _Reader] = {}  # by number
        self._publishers: Counter[str] = Counter()
        self._lent: set[str] = set()  # published names whose ticks nobody declared, as long as they are used
        self._dependencies = Dependencies()
        ticks.feeds = self._dependencies.reachable
        self._suspended: list[_Reader] = []
        self._shapes: dict[tuple[SequenceShape, bool], CompiledSequences] = {}

    def __len__(self) -> int:
        return len(self._readers)

    @property
    def numbers(self) -> IdArray:
        """Return the numbers of all subscriptions."""
        return np.fromiter(self._readers, dtype=np.int64, count=len(self._readers))

    # subscriptions

    def compile(
        self, query: Sequence, id_: str, options: SubscriptionOptions, _: Dnf | Cnf | None = None
    ) -> CompiledSequences:
        """Return a compiled sequence, or raise `SubscriptionError`."""
        try:
            ticks = dict(self.ticks.lengths)
            compiled = compile_sequence(query, ticks, full=options.witness == "full")
            tick = common_tick(ticks, compiled.reads)
            return CompiledSequences(compiled, tick, in_units=asks_in_units(query))
        except SubscriptionError as fault:
            raise SubscriptionError(fault.reason, fault.id or id_) from fault

    def compile_shape(
        self, shape: SequenceShape, id_: str, options: SubscriptionOptions
    ) -> CompiledSequences:
        """Return the compiled sequence of a shape, or raise `SubscriptionError`; it is compiled once.

        The lengths of ticks may have changed since: the automaton of a shape depends on nothing else.
        """
        key = shape, options.witness == "full"
        known = self._shapes.get(key)
        with suppress(SubscriptionError):  # which the compiler raises again
            if known is not None and common_tick(self.ticks.lengths, known.compiled.reads) == known.tick:
                return known
        compiled = self.compile(shape.query, id_, options)
        if len(self._shapes) >= MOST_SHAPES:
            self._shapes.clear()
        self._shapes[key] = compiled
        return compiled

    def compile_rows(
        self, template: Template, rows: TemplateRows, ids: AbstractSequence[str], options: SubscriptionOptions
    ) -> tuple[CompiledSequences, list[TemplateError]]:
        """Return the compiled template, and the errors of rows that cannot be compiled."""
        assert isinstance(template.query, Sequence)  # noqa: S101 - the caller asked
        shared = self.compile(template.query, "template", options)
        if not shared.compiled.automaton.by_row:
            return shared, []
        each: list[CompiledSequence] = []
        errors: list[TemplateError] = []
        for position, row in enumerate(rows.rows.tolist()):
            try:
                bound = canonical(bind_query(template.query, bindings_at(rows.columns, position)))
                assert isinstance(bound, Sequence)  # noqa: S101 - a template stays what it is
                each.append(self.compile(bound, ids[position], options).compiled)
            except TocsinError as fault:
                errors.append(TemplateError(str(fault), row=row))
        return replace(shared, each=tuple(each)), errors

    def add(
        self,
        numbers: IdArray,
        compiled: CompiledSequences,
        columns: Mapping[str, Column],
        options: SubscriptionOptions,
        id_: str,
    ) -> None:
        """Add one subscription for each number; the rows of a template take their constants from `columns`."""
        validity = options.validity.in_ticks(compiled.tick)
        parts = [(numbers, compiled.compiled, columns)]
        if compiled.each is not None:
            parts = [(numbers[i : i + 1], one, {}) for i, one in enumerate(compiled.each)]
        for own, one, constants in parts:
            matcher, first_end = self._record(own, one, compiled, validity, id_)
            matcher.add(own, one, constants, first_end, validity[1])

    def _record(
        self,
        numbers: IdArray,
        compiled: CompiledSequence,
        whole: CompiledSequences,
        validity: tuple[int, int],
        id_: str,
    ) -> tuple[ScheduledMatcher, int]:
        """Record subscriptions, and return the matcher to add them to, and the first end that they see."""
        tick = whole.tick
        if common_tick(self.ticks.lengths, compiled.reads) != tick:
            raise SubscriptionError("its streams have been declared meanwhile; subscribe again", id_)
        name = compiled.publishes
        if name is not None:
            self._check_published(name, tick, id_)
        matcher = self._matchers.get(tick)
        if matcher is None:
            matcher = self._matchers[tick] = ScheduledMatcher(self._new_matcher())
        first_end = max(validity[0], self._buffer.latest(compiled.reads, tick) + 1)
        try:
            self._dependencies.add(compiled.reads, name)
        except SubscriptionError as fault:
            raise SubscriptionError(fault.reason, id_) from None
        # The record comes first, so that the subscriptions can be removed wherever the call is interrupted.
        reader = _Reader(compiled, tick, whole.in_units, len(numbers), *validity)
        self._readers.update(dict.fromkeys(numbers.tolist(), reader))
        self.streams.update(compiled.reads)
        if name is not None:
            if name not in self.ticks.lengths:
                self.ticks.lengths[name] = tick
                self._lent.add(name)
            self._publishers[name] += 1
        if reader.in_units:
            self.ticks.count_unit_use(compiled.reads)
        return matcher, first_end

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions; numbers that are no sequences are passed over."""
        by_tick: dict[int, list[int]] = {}
        for number in numbers if self._readers else ():
            reader = self._readers.pop(number, None)
            if reader is None:
                continue
            by_tick.setdefault(reader.tick, []).append(number)
            reader.left -= 1
            if not reader.left:
                self._forget(reader)
        for tick, gone in by_tick.items():
            self._matchers[tick].remove(np.array(gone, dtype=np.int64))

    def suspend(self, numbers: Iterable[int]) -> None:
        """Leave these out of the search for cycles: new subscriptions are about to replace them."""
        self._suspended = []
        readers = [reader for number in numbers if (reader := self._readers.get(number)) is not None]
        for reader in {id(reader): reader for reader in readers}.values():
            if sum(one is reader for one in readers) == reader.left:
                self._dependencies.remove(reader.compiled.reads, reader.compiled.publishes)
                reader.is_dependency = False
                self._suspended.append(reader)

    def resume(self) -> None:
        """Undo `suspend` after a failed replacement."""
        for reader in self._suspended:
            self._dependencies.add(reader.compiled.reads, reader.compiled.publishes)
            reader.is_dependency = True
        self._suspended = []

    def declare(self, stream: str, tick: Tick) -> None:
        """Set the length of a stream's ticks, before any sequence reads it."""
        check_stream(stream)
        length = read_tick(tick)
        if self.ticks.lengths.get(stream) == length:
            self._lent.discard(stream)
            return
        if self.streams[stream] or self._publishers[stream]:
            raise TocsinError(
                f"stream `{stream}` is read by sequences already; declare its tick before they are subscribed"
            )
        self._lent.discard(stream)
        self.ticks.lengths[stream] = length
        self._buffer.forget(stream)

    @property
    def declared(self) -> dict[str, int]:
        """Return the microseconds of a tick of each stream for which they were declared."""
        return {name: length for name, length in self.ticks.lengths.items() if name not in self._lent}

    def reads(self, stream: str | None) -> bool:
        """Tell whether some sequence reads a stream."""
        return stream is not None and self.streams[stream] > 0

    # events

    def process(self, events: TimedBatch, tick: int) -> Iterable[tuple[int, SequenceMatches]]:
        """Process events in the order of their end, and return matches with the number that their rows count from.

        Read each before the next: a match is decoded from the state of its automaton, which further events change.
        """
        return self._matchers[tick].process(events)

    def advance(self, time: int) -> tuple[SequenceMatches, ...]:  # noqa: ARG002 - the protocol of runtimes has it
        """Return the sequences that time completes without an event: none, since no sequence waits for absence."""
        return ()

    def dry_run(self, query: Sequence) -> tuple[CompiledSequence, ScheduledMatcher]:
        """Return a compiled sequence, and a matcher with nothing but it."""
        compiled = self.compile(query, "test", SubscriptionOptions()).compiled
        Dependencies().add(compiled.reads, compiled.publishes)  # it must not read its own output
        matcher = ScheduledMatcher(self._new_matcher())
        matcher.add(np.zeros(1, dtype=np.int64), compiled, {}, ALWAYS)
        return compiled, matcher

    # saving

    def snapshot(self, numbers: IdArray) -> Parts:
        """Return the state, with that of these subscriptions in this order: all partial matches and what they need."""
        parts = {str(tick): matcher.snapshot(numbers) for tick, matcher in self._matchers.items()}
        return Parts.join({"saved": SAVED, "format": FORMAT}, parts)

    def restore(self, parts: Parts, numbers: IdArray) -> int:
        """Replace the state by that of a snapshot; return how many partial matches no subscription can continue.

        `numbers` are those that the snapshot was taken with, in its order, as they are called here; -1 for those that
        are gone. Other subscriptions see only later events. The reorder buffer must have been restored before. What does
        not fit raises `SavedError`, and nothing changes.
        """
        saved = self._read_snapshot(parts, len(numbers))
        dropped = 0
        for tick, matcher in self._matchers.items():
            own, first_ends = self._first_ends(tick, saved[tick], numbers)
            dropped += matcher.restore(saved[tick], own, first_ends)
        return dropped

    def _read_snapshot(self, parts: Parts, count: int) -> dict[int, SavedSchedule]:
        """Return the snapshot of each matcher by the length of a tick; matchers that are not there are made."""
        ticks = read_ticks_of(parts, FORMAT)
        made = {tick: self._matchers.get(tick) or ScheduledMatcher(self._new_matcher()) for tick in ticks}
        saved = {tick: made[tick].read_snapshot(one) for tick, one in ticks.items()}
        if any(len(one.standings) != count for one in saved.values()):
            raise SavedError(f"the partial matches are not those of {count:,} sequences")
        self._matchers |= made
        return {
            tick: saved.get(tick) or matcher.nothing_saved(count) for tick, matcher in self._matchers.items()
        }

    def _first_ends(self, tick: int, saved: SavedSchedule, numbers: IdArray) -> tuple[IdArray, Int64s]:
        """Return the subscriptions of a matcher, and the first end that each of them sees after `restore`."""
        mine = self._readers if len(self._matchers) == 1 else self._numbers_with(tick)
        own = np.fromiter(mine, dtype=np.int64, count=len(mine))
        standings, first_ends = saved.of(numbers, own)
        first_ends[standings == Standing.EXPIRED] = EXPIRED
        begun: dict[int, int] = {}  # by the reader
        for row in np.flatnonzero(standings != Standing.ACTIVE).tolist():
            reader = self._readers[own.item(row)]
            if standings[row] == Standing.UNKNOWN or reader.valid_until == FOREVER:
                if id(reader) not in begun:
                    latest = max(self._buffer.latest(reader.compiled.reads, tick), saved.processed)
                    begun[id(reader)] = max(reader.valid_from, latest + 1)
                first_ends[row] = begun[id(reader)]
        return own, first_ends

    def _numbers_with(self, tick: int) -> list[int]:
        return [number for number, reader in self._readers.items() if reader.tick == tick]

    # inspection

    def explain(self, number: int, subscription: Subscription, event: Event | None) -> SequenceExplanation:
        """Return the state of a subscription, and the effect that an event would have now."""
        assert isinstance(subscription.query, Sequence)  # noqa: S101 - the caller asked
        options = SubscriptionOptions(witness=subscription.witness)
        found = self.compile(subscription.query, subscription.id, options)
        scheduled = self._matchers[found.tick]
        first_end = scheduled.first_end(number)
        is_running = first_end is None and not scheduled.has_expired(number)
        return explain_sequence(
            subscription.id,
            found.compiled.automaton,
            found.compiled.expression,
            scheduled.matcher.inspect(number) if is_running else None,
            begins=first_end,
            event=event,
            outside=() if event is None else self._not_reached_reasons(subscription, found.compiled, event),
            times=ShownTimes(self.ticks, found.compiled.automaton.stream, asks_in_units(subscription.query)),
        )

    def stats(self) -> SequenceRuntimeStats:
        """Return sizes and counts of all matchers together."""
        parts = [one.matcher.stats() for one in self._matchers.values()]
        return SequenceRuntimeStats(
            subscriptions=len(self._readers),
            nodes=sum(part.nodes for part in parts),
            instances=sum(part.instances for part in parts),
            bytes=sum(part.bytes for part in parts),
            dropped=sum(part.dropped for part in parts),
        )

    def _not_reached_reasons(
        self, subscription: Subscription, compiled: CompiledSequence, event: Event
    ) -> tuple[str, ...]:
        """Return why an event does not reach a sequence."""
        reasons = []
        if event.stream not in compiled.reads:
            of = f"of stream `{event.stream}`" if event.stream is not None else "of no stream"
            streams = ", ".join(f"`{name}`" for name in sorted(compiled.reads))
            reasons.append(f"it reads {streams}, the event is {of}")
        elif self._buffer.is_late(event):
            ended = self.ticks.shown(event.end, event.stream)
            reasons.append(f"the event ended at {ended}, before one that has come already: it is late")
        reasons += subscription.after_validity(event, self.ticks)
        if is_deletion(event):
            reasons.append("the event is a deletion, which reaches no sequence")
        return tuple(reasons)

    def _forget(self, reader: _Reader) -> None:
        """Undo the record of subscriptions that are all removed."""
        reads, name = reader.compiled.reads, reader.compiled.publishes
        if reader.is_dependency:
            self._dependencies.remove(reads, name)
        self.streams.subtract(reads)
        for stream in reads:
            if not self.streams[stream]:
                del self.streams[stream]  # an empty counter says that no sequence reads anything
        if name is not None:
            self._publishers[name] -= 1
        if reader.in_units:
            self.ticks.count_unit_use(reads, -1)
        for lent in self._lent & {*reads, name or ""}:
            if not self.streams[lent] and not self._publishers[lent]:
                self._lent.discard(lent)
                del self.ticks.lengths[lent]

    def _check_published(self, name: str, tick: int, id_: str) -> None:
        """Refuse to publish under a name whose stream is known to have ticks of another length."""
        if self.ticks.length(name) != tick and (name in self.ticks.lengths or self.streams[name]):
            raise SubscriptionError(
                f"it publishes as `{name}` in ticks of {tick:,} microseconds, but `{name}` counts ticks of "
                f'{self.ticks.length(name):,}; declare it first: `engine.stream("{name}", tick={tick})`',
                id_,
            )
