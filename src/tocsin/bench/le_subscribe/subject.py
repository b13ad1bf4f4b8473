"""A matcher under measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from statistics import median

from msgspec import Struct

from tocsin.bench.memory import resident_mb
from tocsin.matching import EventBatch, IdArray, Matcher, create_matcher
from tocsin.matching.encoding.events import encode_events
from tocsin.matching.le_subscribe._kernels.matching import observe_all
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.model.errors import MatcherError
from tocsin.workloads.le_subscribe import Workload
from tocsin.workloads.numbered import NumberedEvents, NumberedSubscriptions, add_to, prepared_for

__all__ = ["Contender", "Loading", "Subject", "Timing"]


class Contender(Struct, frozen=True):
    """A matcher that takes part: what it is called, and how it is made."""

    label: str
    matcher: str
    options: Mapping[str, int | bool] = {}
    frozen: bool = False  # it stops to adapt once it is loaded and warm: the paper's no-change strategy

    @classmethod
    def of(cls, name: str) -> Contender:
        """Return a matcher as it is by default."""
        return cls(name, name)


class Loading(Struct, frozen=True):
    """What it took to add subscriptions."""

    seconds: float
    subscriptions: int
    bytes_each: float  # in the matcher's arrays, per subscription
    resident_mb: float  # what the process grew by

    @property
    def rate(self) -> float:
        """Return the subscriptions added a second."""
        return self.subscriptions / max(self.seconds, 1e-9)


class Timing(Struct, frozen=True):
    """What an event took, in microseconds: the median of several batches."""

    total: float
    first_phase: float | None  # None if the matcher has no such phase
    checks: float | None  # conjunctions looked at

    @property
    def second_phase(self) -> float | None:
        """Return what is left for the clusters."""
        return None if self.first_phase is None else max(self.total - self.first_phase, 0.0)


class Subject:
    """One matcher, and how many events it has seen."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.matcher: Matcher = create_matcher(contender.matcher, **contender.options)
        self._seen = 0

    def warm_up(self) -> None:
        """Compile what is not compiled yet."""
        if (warm_up := getattr(self.matcher, "warm_up", None)) is not None:
            warm_up()

    def load(
        self, workload: Workload, count: int, progress: Callable[[str], None] = lambda _: None
    ) -> Loading:
        """Add the workload's first subscriptions; drawing them is not timed."""
        before, seconds, done = resident_mb(), 0.0, 0
        for batch in workload.subscriptions(0, count):
            seconds += self.add(batch)
            done += len(batch.ids)
            progress(f"{done:,} of {count:,} loaded")
        held = self.matcher.stats().bytes / max(count, 1)
        return Loading(seconds, count, held, resident_mb() - before)

    def add(self, batch: NumberedSubscriptions) -> float:
        """Add subscriptions; return the seconds."""
        start = time.perf_counter()
        add_to(self.matcher, batch)
        return time.perf_counter() - start

    def remove(self, ids: IdArray) -> float:
        """Remove subscriptions; return the seconds."""
        start = time.perf_counter()
        self.matcher.remove(ids)
        return time.perf_counter() - start

    def match(self, events: NumberedEvents) -> tuple[float, EventBatch]:
        """Match events that are encoded already; return the seconds, and the batch."""
        batch = prepared_for(self.matcher, events)
        start = time.perf_counter()
        self.matcher.match(batch)
        seconds = time.perf_counter() - start
        self._seen += len(batch)
        return seconds, batch

    def freeze(self) -> None:
        """Let the matcher stay as it is from now on, if the contender is to."""
        if not self.contender.frozen:
            return
        if not hasattr(self.matcher, "adaptive"):
            raise MatcherError(f"matcher `{self.contender.matcher}` cannot be told to stay as it is")
        self.matcher.adaptive = False

    def time(self, batches: Iterable[NumberedEvents], budget: float = float("inf")) -> Timing:
        """Match distinct events, a batch at a time, until there are no more or the time is up."""
        totals, firsts = [], []
        checked, seen = self._checks(), self._seen
        begun = time.perf_counter()
        for events in batches:
            seconds, batch = self.match(events)
            totals.append(seconds / len(batch))
            first = self._first_phase(batch)
            if first is not None:
                firsts.append(first / len(batch))
            if time.perf_counter() - begun > budget:
                break
        checks = self._checks()
        each = None if checks is None or checked is None else (checks - checked) / (self._seen - seen)
        return Timing(median(totals) * 1e6, median(firsts) * 1e6 if firsts else None, each)

    def time_dicts(self, batches: Iterable[NumberedEvents]) -> float:
        """Return the seconds that an event takes from a dict to its matches: the median of the batches."""
        seconds = []
        for events in batches:
            rows = events.to_dicts()
            start = time.perf_counter()
            self.matcher.match(EventBatch.of_dicts(rows))
            seconds.append((time.perf_counter() - start) / len(rows))
            self._seen += len(rows)
        return median(seconds)

    def _first_phase(self, batch: EventBatch) -> float | None:
        if not isinstance(self.matcher, ClusteredMatcher):
            return None
        events = encode_events(batch, self.matcher.vocabulary)
        start = time.perf_counter()
        observe_all(self.matcher._state, events)  # noqa: SLF001 - no user asks for half a match
        return time.perf_counter() - start

    def _checks(self) -> float | None:
        """Return how many conjunctions were ever looked at; the matcher tells it per event."""
        each = self.matcher.stats().details.get("checks per event")
        return None if each is None else each * self._seen
