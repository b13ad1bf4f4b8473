"""All time lines of an engine, one for each length of tick: which events reach which sequences."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np
from msgspec import Struct

from tocsin.engine.book import ALWAYS, Terms
from tocsin.engine.results import HeldSequences
from tocsin.engine.tables import TableRows
from tocsin.engine.timeline import Tell, Timeline
from tocsin.language.template.columns import Column
from tocsin.matching import IdArray
from tocsin.model import Event, Sequence, Subscription
from tocsin.model.errors import EventError, SubscriptionError, TocsinError
from tocsin.model.event import is_deletion
from tocsin.model.ticks import StreamTicks, Tick, read_tick
from tocsin.sequences.compilation import CompiledSequence, compile_sequence
from tocsin.sequences.dependencies import Dependencies
from tocsin.sequences.explanation import SequenceExplanation, explain_sequence
from tocsin.sequences.matcher import InspectableSequenceMatcher
from tocsin.sequences.ticks import Ticks, asks_in_units

_log = logging.getLogger("tocsin")


class LateLog:
    """Logs the first event that comes late, and what can be done about it."""

    def __init__(self) -> None:
        self._told = False

    def __call__(self, event: Event) -> None:
        """Take a late event."""
        if not self._told:
            self._told = True
            _log.warning(
                "event `%s` of stream `%s` ended at %d, before one that has come already: it reaches no sequence. If "
                "events may come out of order, say by how many ticks: `Engine(disorder=…)`; if streams count different "
                "ticks, declare them: `engine.stream(…, tick=…)`. Further ones are only counted: `stats().late`",
                event.id,
                event.stream,
                event.end,
            )


class _Run(Struct, eq=False):
    """What is known of subscriptions that were added together, and how many of them are left."""

    prepared: CompiledSequence
    tick: int
    in_units: bool
    left: int
    published: bool = True  # what it publishes counts among the ways that nothing may come round


class Timelines:
    """Runs sequences over events. Called under the engine's lock.

    Streams whose ticks are of one length share a time line. Only events of streams that some sequence reads go to
    it; of the others no more is kept than when the last one ended. `late` events reach no sequence: they are counted,
    and given to `on_late` once the call that brought them has changed all there is to change.
    """

    def __init__(
        self,
        ticks: StreamTicks,
        disorder: int,
        on_late: Callable[[Event], object],
        new_runner: Callable[[], InspectableSequenceMatcher],
    ) -> None:
        self.ticks = ticks
        self._disorder = disorder
        self._on_late = on_late
        self._new_runner = new_runner
        self._lines: dict[int, Timeline] = {}
        self._runs: dict[int, _Run] = {}  # by number
        self._readers: Counter[str] = Counter()
        self._publishers: Counter[str] = Counter()
        self._lent: set[str] = set()  # published names whose ticks nobody declared, as long as they are used
        self._ways = Dependencies()
        ticks.leads_to = self._ways.reachable
        self._let_go: list[_Run] = []
        self._heard: dict[str | None, int] = {}
        self.next_mark = 0
        self.late = 0
        self._untold: list[Event] = []

    def __len__(self) -> int:
        return len(self._runs)

    # subscriptions

    def prepare(self, query: Sequence, id_: str, *, full: bool = False) -> tuple[CompiledSequence, int]:
        """Return a sequence ready to be run, and the microseconds of a tick of its streams."""
        try:
            ticks = Ticks(dict(self.ticks.lengths))
            prepared = compile_sequence(query, ticks, full=full)
            return prepared, ticks.common(prepared.reads)
        except SubscriptionError as fault:
            raise SubscriptionError(fault.reason, fault.id or id_) from fault

    def add(
        self,
        numbers: IdArray,
        prepared: CompiledSequence,
        columns: Mapping[str, Column],
        terms: Terms,
        *,
        tick: int,
        id_: str,
    ) -> None:
        """Add subscriptions that were prepared where a tick of their streams is that long; `id_` is told in errors."""
        if Ticks(self.ticks.lengths).common(prepared.reads) != tick:
            raise SubscriptionError("its streams have been declared meanwhile; subscribe again", id_)
        name = prepared.publishes
        if name is not None:
            self._check_name(name, tick, id_)
        line = self._lines.get(tick)
        if line is None:
            line = self._lines[tick] = Timeline(self._new_runner(), self._disorder)
        heard = max((self._heard.get(stream, ALWAYS) for stream in prepared.reads), default=ALWAYS)
        try:
            self._ways.add(prepared.reads, name)
        except SubscriptionError as fault:
            raise SubscriptionError(fault.reason, id_) from None
        # What is known of it is entered first, so that it can be removed whatever happens next.
        run = _Run(prepared, tick, asks_in_units(prepared.query), len(numbers))
        self._runs.update(dict.fromkeys(numbers.tolist(), run))
        self._readers.update(prepared.reads)
        if name is not None:
            if name not in self.ticks.lengths:
                self.ticks.lengths[name] = tick
                self._lent.add(name)
            self._publishers[name] += 1
        if run.in_units:
            self.ticks.ask(prepared.reads)
        line.add(numbers, prepared, columns, terms, heard)

    def remove(self, numbers: Iterable[int]) -> None:
        """Remove subscriptions; those that are no sequences are passed over."""
        by_line: dict[int, list[int]] = {}
        for number in numbers if self._runs else ():
            run = self._runs.pop(number, None)
            if run is None:
                continue
            by_line.setdefault(run.tick, []).append(number)
            run.left -= 1
            if not run.left:
                self._forget(run)
        for tick, gone in by_line.items():
            self._lines[tick].remove(np.array(gone, dtype=np.int64))

    def let_go(self, numbers: Iterable[int]) -> None:
        """Let what comes next be added as if these published nothing more, since it comes in their place."""
        self._let_go = []
        runs = [run for number in numbers if (run := self._runs.get(number)) is not None]
        for run in {id(run): run for run in runs}.values():
            if sum(one is run for one in runs) == run.left:
                self._ways.remove(run.prepared.reads, run.prepared.publishes)
                run.published = False
                self._let_go.append(run)

    def take_back(self) -> None:
        """Let those that were let go publish again, since nothing has come in their place."""
        for run in self._let_go:
            self._ways.add(run.prepared.reads, run.prepared.publishes)
            run.published = True
        self._let_go = []

    # streams

    def declare(self, stream: str, tick: Tick) -> None:
        """Say how long a tick of a stream is, before anybody reads it."""
        length = read_tick(tick)
        if self.ticks.lengths.get(stream) == length:
            self._lent.discard(stream)
            return
        if self._readers[stream] or self._publishers[stream]:
            raise TocsinError(
                f"stream `{stream}` is read by sequences already; declare its tick before they are subscribed"
            )
        self._lent.discard(stream)
        self.ticks.lengths[stream] = length
        self._heard.pop(stream, None)  # it was counted otherwise

    def reads(self, stream: str | None) -> bool:
        """Tell whether some sequence reads a stream."""
        return stream is not None and self._readers[stream] > 0

    # events

    def mark(self) -> int:
        """Return the next mark, for an event that no sequence sees."""
        self.next_mark += 1
        return self.next_mark - 1

    def take(self, event: Event) -> int:
        """Take an event, which waits for its turn, and return the mark it goes by."""
        mark = self.next_mark
        self.next_mark += 1
        if not self.reads(event.stream):
            self._hear(event.stream, event.end)
        elif not self._line(event.stream).take(event, mark):
            self.late += 1
            self._untold.append(event)
        return mark

    def release(self, tell: Tell) -> None:
        """Give the sequences all events whose turn it is."""
        for line in self._lines.values():
            line.release(tell)

    def flush(self, tell: Tell) -> None:
        """Give the sequences all events that wait."""
        for line in self._lines.values():
            line.flush(tell, self.next_mark)

    def late_events(self) -> list[Event]:
        """Return the late events that nobody has been told of; they are not returned again."""
        untold, self._untold = self._untold, []
        return untold

    def tell_late(self, events: Iterable[Event]) -> None:
        """Tell of late events, not under the lock; if that fails, of the others first."""
        failure: Exception | None = None
        for event in events:
            try:
                self._on_late(event)
            except Exception as fault:  # noqa: BLE001 - whatever it is, each event is told once
                failure = failure or fault
        if failure is not None:
            raise failure

    def take_rows(self, rows: TableRows, tell: Tell) -> None:
        """Take a table's rows, each with the next mark, and give them their turn.

        They go by the column if they come in the order of their end, else one by one.
        """
        mark = self.next_mark
        if not self.reads(rows.stream):
            self.next_mark += len(rows.ends)
            if (latest := rows.latest) is not None:
                self._hear(rows.stream, latest)
        elif self.takes_columns(rows):
            self.next_mark += len(rows.ends)
            self._line(rows.stream).take_columns(rows, mark, tell)
        else:
            for place in range(len(rows.ends)):
                if place in rows.table.faults:
                    self.next_mark += 1
                else:
                    self.take(rows.event(place))
            self.release(tell)

    def follow(self, rows: TableRows, tell: Tell) -> None:
        """Take a table's rows by the column, or raise `EventError` if they do not come in order."""
        if self.reads(rows.stream) and len(rows.ends) and not self.takes_columns(rows):
            raise EventError(
                "the rows are not in the order of their end, or end before events that have come, or some of these "
                "still wait; sort the table, `flush()` first, or publish it"
            )
        self.take_rows(rows, tell)

    def alone(self, query: Sequence, id_: str) -> tuple[CompiledSequence, Timeline]:
        """Return a sequence with a time line of its own, on which nothing has come and nothing runs else."""
        prepared, _ = self.prepare(query, id_)
        Dependencies().add(prepared.reads, prepared.publishes)  # what it publishes must not come back to it
        line = Timeline(self._new_runner(), self._disorder)
        line.add(np.zeros(1, dtype=np.int64), prepared, {}, Terms())
        return prepared, line

    def takes_columns(self, rows: TableRows) -> bool:
        """Tell whether a table's rows can reach the sequences by the column."""
        return not rows.table.faults and self._line(rows.stream).takes_columns(rows.ends)

    # what is known of them

    def explain(self, number: int, held: Subscription, event: Event | None) -> SequenceExplanation:
        """Return where a subscription stands, and what an event would do now."""
        assert isinstance(held.query, Sequence)  # noqa: S101 - the caller asked
        prepared, tick = self.prepare(held.query, held.id, full=held.witness == "full")
        line = self._lines[tick]
        begins = line.begins(number)
        runs = begins is None and not line.has_ceased(number)
        return explain_sequence(
            held.id,
            prepared.automaton,
            prepared.expression,
            line.runner.inspect(number) if runs else None,
            begins=begins,
            event=event,
            outside=() if event is None else self._outside(held, prepared, event),
        )

    def stats(self) -> HeldSequences:
        """Return what is held, all time lines together."""
        lines = self._lines.values()
        parts = [line.runner.stats() for line in lines]
        return HeldSequences(
            subscriptions=len(self._runs),
            nodes=sum(part.nodes for part in parts),
            instances=sum(part.instances for part in parts),
            bytes=sum(part.bytes for part in parts),
            dropped=sum(part.dropped for part in parts),
            late=self.late,
            waiting=sum(line.waiting for line in lines),
        )

    def _line(self, stream: str | None) -> Timeline:
        return self._lines[self.ticks.length(stream)]

    def _hear(self, stream: str | None, end: int) -> None:
        self._heard[stream] = max(end, self._heard.get(stream, ALWAYS))

    def _outside(self, held: Subscription, prepared: CompiledSequence, event: Event) -> tuple[str, ...]:
        """Return what keeps an event away from a sequence."""
        reasons = []
        if event.stream not in prepared.reads:
            of = f"of stream `{event.stream}`" if event.stream is not None else "of no stream"
            reasons.append(
                f"it reads {', '.join(f'`{name}`' for name in sorted(prepared.reads))}, the event is {of}"
            )
        elif self._line(event.stream).is_late(event):
            reasons.append(f"the event ended at {event.end}, before one that has come already: it is late")
        if held.valid_until is not None and event.end >= held.valid_until:
            reasons.append(f"it is valid until {held.valid_until}, the event ended at {event.end}")
        if is_deletion(event):
            reasons.append("the event is a deletion, which reaches no sequence")
        return tuple(reasons)

    def _forget(self, run: _Run) -> None:
        if run.published:
            self._ways.remove(run.prepared.reads, run.prepared.publishes)
        self._readers.subtract(run.prepared.reads)
        if run.prepared.publishes is not None:
            self._publishers[run.prepared.publishes] -= 1
        if run.in_units:
            self.ticks.ask(run.prepared.reads, -1)
        for name in self._lent & {*run.prepared.reads, run.prepared.publishes or ""}:
            if not self._readers[name] and not self._publishers[name]:
                self._lent.discard(name)
                del self.ticks.lengths[name]

    def _check_name(self, name: str, tick: int, id_: str) -> None:
        """Refuse to publish under a name that is known to count otherwise."""
        if self.ticks.length(name) != tick and (name in self.ticks.lengths or self._readers[name]):
            raise SubscriptionError(
                f"it publishes as `{name}` in ticks of {tick:,} microseconds, but `{name}` counts ticks of "
                f'{self.ticks.length(name):,}; declare it first: `engine.stream("{name}", tick={tick})`',
                id_,
            )
