"""Sequences as the engine runs them, behind a reorder buffer, and scripts in which they are saved and restored."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.sequences.contract import columns_of
from tests.sequences.outcomes import ids, kinds_and_values, outcomes, query_of
from tests.sequences.scripts import Add, subscriptions
from tests.sequences.strategies import streams
from tocsin.engine.reorder_buffer import Delay, ReorderBuffer
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event
from tocsin.model.errors import SubscriptionError
from tocsin.model.options import ALWAYS, FOREVER, SubscriptionOptions, Validity
from tocsin.model.ticks import StreamTicks
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.sequences.runtime import SequenceRuntime
from tocsin.structures.archive import Parts


@dataclass(frozen=True)
class Subscribe:
    """Sequences, and when they are valid."""

    add: Add
    validity: Validity

    def __repr__(self) -> str:
        return f"{self.add!r}  [{self.validity.valid_from}, {self.validity.valid_until})"


@dataclass(frozen=True)
class Step:
    """At one moment: sequences go and come, and further events come."""

    gone: tuple[int, ...]
    coming: tuple[Subscribe, ...]
    events: tuple[Event, ...]


@dataclass(frozen=True)
class History:
    """What happens to sequences; streams have these ticks."""

    ticks: dict[str, int]
    delay: int
    steps: tuple[Step, ...]

    def __repr__(self) -> str:
        lines = [f"ticks {self.ticks}, delay {self.delay}"]
        for step in self.steps:
            lines.append(f"step: {step.gone} go")
            lines += [f"  {one!r}" for one in step.coming]
            lines += [f"    {e.stream} {e.id} [{e.start}, {e.end}] {dict(e.attributes)}" for e in step.events]
        return "\n".join(lines)


@st.composite
def histories(draw: st.DrawFn) -> History:
    """Sequences that begin, end, come and go between events, of which some are late."""
    ticks = draw(st.sampled_from([{}, {}, {"t": 7}]))
    random = Random(draw(st.integers(0, 2**32)))  # noqa: S311 - nothing secret
    adds, events = draw(subscriptions(max_size=4)), draw(streams(max_size=14))
    out_of_order = sorted(events, key=lambda event: event.end + random.choice([0, 0, 0, 1, 3]))
    cuts = sorted(draw(st.lists(st.integers(0, len(events)), min_size=1, max_size=5)))
    steps: list[Step] = []
    present: list[int] = []
    for first, last in zip([0, *cuts], [*cuts, len(events)], strict=True):
        gone = [draw(st.sampled_from(present))] if present and draw(st.sampled_from("---r")) == "r" else []
        count = draw(st.integers(0 if steps else 1, 2))
        coming = tuple(Subscribe(add, _validity(random)) for add in adds[:count])
        adds = adds[count:]
        present = [one for one in present if one not in gone] + [n for one in coming for n in one.add.numbers]
        steps.append(Step(tuple(gone), coming, tuple(out_of_order[first:last])))
    return History(ticks, draw(st.sampled_from([0, 0, 2, 5])), tuple(steps))


def _validity(random: Random) -> Validity:
    if random.random() < 0.6:
        return Validity()
    return Validity(random.choice([ALWAYS, ALWAYS, 1, 4, 9]), random.choice([FOREVER, FOREVER, 6, 10, 14]))


class Session:
    """A runtime of sequences, in which they may be called by other numbers than in the script."""

    def __init__(self, ticks: dict[str, int], delay: int) -> None:
        self._ticks, self._delay = ticks, delay
        stream_ticks = StreamTicks()
        self.buffer = ReorderBuffer(stream_ticks, Delay(delay))
        self.runtime = SequenceRuntime(stream_ticks, self.buffer, lambda: AutomatonMatcher(matcher="oracle"))
        for stream, tick in ticks.items():
            self.runtime.declare(stream, tick)
        self.numbers: dict[int, int] = {}  # the number here by that in the script
        self.coming: list[Subscribe] = []

    def subscribe(self, one: Subscribe, numbers: Sequence[int]) -> None:
        """Add sequences under these numbers; one that is refused is left out."""
        add = one.add
        options = SubscriptionOptions(one.validity, witness="full" if add.full else None)
        try:
            compiled = self.runtime.compile(query_of(add.text), "id", options)
            kept = [row for row, number in enumerate(add.numbers) if number not in self._gone]
            columns = {name: column[kept] for name, column in columns_of(add).items()}
            own = ids(*(numbers[row] for row in kept))
            if len(own):
                self.runtime.add(own, compiled, columns, options, "id")
        except SubscriptionError:
            return
        self.coming.append(one)
        self.numbers |= {add.numbers[row]: numbers[row] for row in kept}

    _gone: frozenset[int] = frozenset()

    def unsubscribe(self, gone: Iterable[int]) -> None:
        self._gone |= set(gone)
        self.runtime.remove([self.numbers.pop(number) for number in gone if number in self.numbers])

    def push(self, events: Sequence[Event]) -> dict[Any, list[Any]]:
        """Return the matches of each subscription in order, and the published events."""
        names: dict[Any, int] = {own: number for number, own in self.numbers.items()}
        found: dict[Any, list[Any]] = {}
        for event in events:
            for released in self.buffer.push(TimedBatch([event]), self.runtime.streams):
                for _, matches in self.runtime.process(released.events, released.tick):
                    for _, (number, *rest) in outcomes(matches):
                        found.setdefault(names[number], []).append((event.id, *rest))
                    for _, made in matches.published:
                        shown = made.id, made.stream, made.start, made.end, kinds_and_values(made.attributes)
                        found.setdefault("made", []).append((event.id, *shown))
        return found

    def counts(self) -> tuple[Any, ...]:
        """Return what a user can see of the state."""
        times = []
        for number, own in sorted(self.numbers.items()):
            reader = self.runtime._readers[own]
            scheduled = self.runtime._matchers[reader.tick]
            first = scheduled.first_end(own)
            # One that sees the very next tick is begun with the next event, or with the restored state.
            begins = first if first is not None and first > scheduled._processed + 1 else None
            times.append((number, begins, scheduled.has_expired(own)))
        return times, self.buffer.waiting, self.buffer.late

    def saved(self) -> tuple[list[int], Parts, Parts]:
        """Return the state, with the sequences in the order that it has."""
        order = list(self.numbers)
        numbers = ids(*self.numbers.values())
        return order, carried(self.buffer.snapshot()), carried(self.runtime.snapshot(numbers))

    def restore(self, saved: tuple[list[int], Parts, Parts]) -> int:
        """Take a state up."""
        order, buffer, parts = saved
        self.buffer.restore(buffer)
        return self.runtime.restore(parts, ids(*(self.numbers.get(number, -1) for number in order)))

    def successor(self, random: Random, coming: Sequence[Subscribe]) -> Session:
        """Return a new session with the same sequences and some more, in another order and by other numbers."""
        fresh = Session(self._ticks, self._delay)
        fresh._gone = self._gone
        every = [*self.coming, *coming]
        random.shuffle(every)
        taken = random.sample(range(40), sum(len(one.add.numbers) for one in every))
        for one in every:
            fresh.subscribe(one, [taken.pop() for _ in one.add.numbers])
        return fresh


def carried(parts: Parts) -> Parts:
    """Return parts as another process reads them: as JSON, and arrays that cannot be written."""
    members: dict[str, Any] = {}
    for name, member in parts.members.items():
        members[name] = member
        if isinstance(member, np.ndarray):
            members[name] = np.frombuffer(member.tobytes(), dtype=member.dtype).reshape(member.shape)
    return Parts(json.loads(json.dumps(parts.about)), members)


def bags(found: dict[Any, list[Any]]) -> dict[Any, Counter[Any]]:
    return {name: Counter(each) for name, each in found.items()}
