"""A matcher under measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from statistics import median
from typing import TypeVar

import numpy as np
from msgspec import Struct

from benchmarks.workloads.pooled import PooledSubscriptions, PoolEncoding
from tocsin.matching import EventBatch, IdArray, Matcher, Matches, create_matcher
from tocsin.matching.encoding.conjunctions import EncodedClauses, EncodedConjunctions
from tocsin.matching.encoding.events import encode_events
from tocsin.model.errors import MatcherError
from tocsin.replay import numbered
from tocsin.replay.memory import give_back, resident_mb

Batch = TypeVar("Batch")
Prepared = TypeVar("Prepared")


class Contender(Struct, frozen=True):
    """A matcher that takes part: its label, its name and its options."""

    label: str
    matcher: str
    options: Mapping[str, float | bool] = {}
    frozen: bool = False  # it stops adapting once it is loaded and warm

    @classmethod
    def of(cls, name: str) -> Contender:
        """Return a matcher with its default options."""
        return cls(name, name)


class Loading(Struct, frozen=True):
    """The cost of adding subscriptions."""

    adding: float  # seconds
    preparing: float  # seconds of encoding or compiling before
    subscriptions: int
    bytes: int  # in arrays
    resident_mb: float  # growth of the process

    @property
    def seconds(self) -> float:
        """Return the seconds in all."""
        return self.adding + self.preparing

    @property
    def rate(self) -> float:
        """Return the subscriptions added a second."""
        return self.subscriptions / max(self.seconds, 1e-9)

    @property
    def bytes_each(self) -> float:
        """Return the bytes in arrays per subscription."""
        return self.bytes / max(self.subscriptions, 1)


def measure_loading(
    batches: Iterable[Batch],
    *,
    prepare: Callable[[Batch], Prepared],
    add: Callable[[Batch, Prepared], None],
    count: Callable[[Batch], int],
    held: Callable[[], int],
    progress: Callable[[str], None],
) -> Loading:
    """Prepare and add batches of subscriptions; drawing them is not timed. `held` returns the bytes in arrays."""
    give_back()
    before, adding, preparing, done = resident_mb(), 0.0, 0.0, 0
    for batch in batches:
        start = time.perf_counter()
        prepared = prepare(batch)
        between = time.perf_counter()
        add(batch, prepared)
        adding += time.perf_counter() - between
        preparing += between - start
        done += count(batch)
        progress(f"{done:,} loaded")
    return Loading(adding, preparing, done, held(), resident_mb() - before)


class Matched(Struct, frozen=True):
    """A matched batch, and the seconds it took."""

    seconds: float
    batch: EventBatch
    matches: Matches


class Timing(Struct, frozen=True):
    """The cost of an event in microseconds: the median of several batches."""

    total: float
    first_phase: float | None  # None if the matcher has no phases
    checks: float | None  # conjunctions verified
    matches: float  # per event

    @property
    def second_phase(self) -> float | None:
        """Return the microseconds left for the clusters."""
        return None if self.first_phase is None else max(self.total - self.first_phase, 0.0)


class Subject:
    """One matcher, and the number of events it has seen."""

    def __init__(self, contender: Contender) -> None:
        self.contender = contender
        self.matcher: Matcher = create_matcher(contender.matcher, **contender.options)
        self._seen = 0
        self._pooled: PoolEncoding | None = None

    def warm_up(self) -> None:
        """Compile the kernels that are not compiled yet."""
        if (warm_up := getattr(self.matcher, "warm_up", None)) is not None:
            warm_up()

    def load(
        self, batches: Iterable[numbered.Subscriptions], progress: Callable[[str], None] = lambda _: None
    ) -> Loading:
        """Add subscriptions and return the cost."""
        return measure_loading(
            batches,
            prepare=self._encoded,
            add=lambda batch, encoded: numbered.add_encoded_to(self.matcher, batch, encoded),
            count=lambda batch: len(np.unique(batch.ids)),  # several conjunctions may be of one subscription
            held=lambda: self.matcher.stats().bytes,
            progress=progress,
        )

    def add(self, batch: numbered.Subscriptions) -> float:
        """Add subscriptions; return the seconds."""
        start = time.perf_counter()
        numbered.add_encoded_to(self.matcher, batch, self._encoded(batch))
        return time.perf_counter() - start

    def remove(self, ids: IdArray) -> float:
        """Remove subscriptions; return the seconds."""
        start = time.perf_counter()
        self.matcher.remove(ids)
        return time.perf_counter() - start

    def match(self, events: numbered.Events) -> Matched:
        """Match encoded events, and time only that."""
        batch = numbered.prepared_for(self.matcher, events)
        start = time.perf_counter()
        matches = self.matcher.match(batch)
        seconds = time.perf_counter() - start
        self._seen += len(batch)
        return Matched(seconds, batch, matches)

    def freeze(self) -> None:
        """Stop adaptation, if the contender asks for it."""
        if not self.contender.frozen:
            return
        if not hasattr(self.matcher, "adaptive"):
            raise MatcherError(f"matcher `{self.contender.matcher}` cannot stop adapting")
        self.matcher.adaptive = False

    def time(
        self,
        batches: Iterable[numbered.Events],
        budget: float = float("inf"),
        on_matches: Callable[[Matches], None] = lambda _: None,
    ) -> Timing:
        """Match distinct events, a batch at a time, until there are no more or the seconds of `budget` are spent."""
        totals, firsts, found = [], [], 0
        checked, seen = self._checks(), self._seen
        begun = time.perf_counter()
        for events in batches:
            matched = self.match(events)
            totals.append(matched.seconds / len(matched.batch))
            found += len(matched.matches.ids)
            on_matches(matched.matches)
            first = self._first_phase(matched.batch)
            if first is not None:
                firsts.append(first / len(matched.batch))
            if time.perf_counter() - begun > budget:
                break
        count = max(self._seen - seen, 1)
        checks = self._checks()
        each = None if checks is None or checked is None else (checks - checked) / count
        return Timing(median(totals) * 1e6, median(firsts) * 1e6 if firsts else None, each, found / count)

    def time_dicts(self, batches: Iterable[numbered.Events]) -> float:
        """Return the seconds of an event from a dict to its matches: the median of the batches."""

        def match(batch: EventBatch) -> None:
            self.matcher.match(batch)
            self._seen += len(batch)

        return median(_seconds_each(batches, match))

    def time_encoding(self, batches: Iterable[numbered.Events]) -> float | None:
        """Return the seconds of encoding an event from a dict; None if the matcher takes events as dicts."""
        if not isinstance(self.matcher, numbered.EncodingMatcher):
            return None
        vocabulary = self.matcher.vocabulary
        return median(_seconds_each(batches, lambda batch: encode_events(batch, vocabulary)))

    def _encoded(self, batch: numbered.Subscriptions) -> EncodedConjunctions | EncodedClauses | None:
        """Return subscriptions as arrays, or None if the matcher takes predicates."""
        if isinstance(batch, PooledSubscriptions) and isinstance(self.matcher, numbered.EncodingMatcher):
            # The next batch has the same predicates, so their codes are kept.
            if self._pooled is None or self._pooled.pool is not batch.pool:
                self._pooled = PoolEncoding(batch.pool, self.matcher.vocabulary)
            return self._pooled.encode(batch)
        return numbered.encoded_for(self.matcher, batch)

    def _first_phase(self, batch: EventBatch) -> float | None:  # noqa: ARG002 - most matchers have no phases
        """Return the seconds of the first phase alone, or None if the matcher has no phases."""
        return None

    def _checks(self) -> float | None:
        """Return the number of conjunctions verified so far, or None if the matcher does not count them."""
        each = self.matcher.stats().details.get("checks per event")
        return None if each is None else each * self._seen


def _seconds_each(
    batches: Iterable[numbered.Events], work: Callable[[EventBatch], object]
) -> Iterator[float]:
    """Return, per batch, the seconds that some work on dicts takes for an event."""
    for events in batches:
        rows = events.to_dicts()
        start = time.perf_counter()
        work(EventBatch.of_dicts(rows))
        yield (time.perf_counter() - start) / len(rows)
