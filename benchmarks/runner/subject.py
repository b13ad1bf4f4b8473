"""A matcher under measurement."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from statistics import median

import numpy as np
from msgspec import Struct

from benchmarks.workloads.pooled import PooledSubscriptions, PoolEncoding
from tocsin.matching import EventBatch, IdArray, Matcher, Matches, create_matcher
from tocsin.matching.encoding.conjunctions import EncodedClauses, EncodedConjunctions
from tocsin.matching.encoding.events import encode_events
from tocsin.model.errors import MatcherError
from tocsin.replay.memory import give_back, resident_mb
from tocsin.replay.numbered import (
    EncodingMatcher,
    Events,
    Subscriptions,
    add_encoded_to,
    encoded_for,
    prepared_for,
)


class Contender(Struct, frozen=True):
    """A matcher that takes part: what it is called, and how it is made."""

    label: str
    matcher: str
    options: Mapping[str, float | bool] = {}
    frozen: bool = False  # it stops to adapt once it is loaded and warm

    @classmethod
    def of(cls, name: str) -> Contender:
        """Return a matcher as it is by default."""
        return cls(name, name)


class Loading(Struct, frozen=True):
    """What it took to add subscriptions."""

    adding: float  # seconds, from encoded arrays if the matcher takes them
    encoding: float  # seconds
    subscriptions: int
    bytes: int  # in the matcher's arrays
    resident_mb: float  # what the process grew by

    @property
    def seconds(self) -> float:
        """Return the seconds of the whole."""
        return self.adding + self.encoding

    @property
    def rate(self) -> float:
        """Return the subscriptions added a second."""
        return self.subscriptions / max(self.seconds, 1e-9)

    @property
    def bytes_each(self) -> float:
        """Return the bytes in the matcher's arrays, per subscription."""
        return self.bytes / max(self.subscriptions, 1)


class Matched(Struct, frozen=True):
    """A batch that was matched, and how long that took."""

    seconds: float
    batch: EventBatch
    matches: Matches


class Timing(Struct, frozen=True):
    """What an event took, in microseconds: the median of several batches."""

    total: float
    first_phase: float | None  # None if the matcher has no such phase
    checks: float | None  # conjunctions looked at
    matches: float  # per event

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
        self._pooled: PoolEncoding | None = None

    def warm_up(self) -> None:
        """Compile what is not compiled yet."""
        if (warm_up := getattr(self.matcher, "warm_up", None)) is not None:
            warm_up()

    def load(
        self, batches: Iterable[Subscriptions], progress: Callable[[str], None] = lambda _: None
    ) -> Loading:
        """Add subscriptions; drawing them is not timed."""
        give_back()
        before, adding, encoding, done = resident_mb(), 0.0, 0.0, 0
        for batch in batches:
            start = time.perf_counter()
            encoded = self._encoded(batch)
            between = time.perf_counter()
            add_encoded_to(self.matcher, batch, encoded)
            adding += time.perf_counter() - between
            encoding += between - start
            done += len(np.unique(batch.ids))  # several conjunctions may be of one subscription
            progress(f"{done:,} loaded")
        held = self.matcher.stats().bytes
        return Loading(adding, encoding, done, held, resident_mb() - before)

    def add(self, batch: Subscriptions) -> float:
        """Add subscriptions; return the seconds."""
        start = time.perf_counter()
        add_encoded_to(self.matcher, batch, self._encoded(batch))
        return time.perf_counter() - start

    def remove(self, ids: IdArray) -> float:
        """Remove subscriptions; return the seconds."""
        start = time.perf_counter()
        self.matcher.remove(ids)
        return time.perf_counter() - start

    def match(self, events: Events) -> Matched:
        """Match events that are encoded already, and time only that."""
        batch = prepared_for(self.matcher, events)
        start = time.perf_counter()
        matches = self.matcher.match(batch)
        seconds = time.perf_counter() - start
        self._seen += len(batch)
        return Matched(seconds, batch, matches)

    def freeze(self) -> None:
        """Let the matcher stay as it is from now on, if the contender is to."""
        if not self.contender.frozen:
            return
        if not hasattr(self.matcher, "adaptive"):
            raise MatcherError(f"matcher `{self.contender.matcher}` cannot be told to stay as it is")
        self.matcher.adaptive = False

    def time(
        self,
        batches: Iterable[Events],
        budget: float = float("inf"),
        look: Callable[[Matches], None] = lambda _: None,
    ) -> Timing:
        """Match distinct events, a batch at a time, until there are no more or the time is up.

        `look` is shown the answers.
        """
        totals, firsts, found = [], [], 0
        checked, seen = self._checks(), self._seen
        begun = time.perf_counter()
        for events in batches:
            matched = self.match(events)
            totals.append(matched.seconds / len(matched.batch))
            found += len(matched.matches.ids)
            look(matched.matches)
            first = self._first_phase(matched.batch)
            if first is not None:
                firsts.append(first / len(matched.batch))
            if time.perf_counter() - begun > budget:
                break
        count = max(self._seen - seen, 1)
        checks = self._checks()
        each = None if checks is None or checked is None else (checks - checked) / count
        return Timing(median(totals) * 1e6, median(firsts) * 1e6 if firsts else None, each, found / count)

    def time_dicts(self, batches: Iterable[Events]) -> float:
        """Return the seconds that an event takes from a dict to its matches: the median of the batches."""
        seconds = []
        for events in batches:
            rows = events.to_dicts()
            start = time.perf_counter()
            self.matcher.match(EventBatch.of_dicts(rows))
            seconds.append((time.perf_counter() - start) / len(rows))
            self._seen += len(rows)
        return median(seconds)

    def time_encoding(self, batches: Iterable[Events]) -> float | None:
        """Return the seconds that encoding an event from a dict takes; None if the matcher wants none encoded."""
        if not isinstance(self.matcher, EncodingMatcher):
            return None
        seconds = []
        for events in batches:
            rows = events.to_dicts()
            start = time.perf_counter()
            encode_events(EventBatch.of_dicts(rows), self.matcher.vocabulary)
            seconds.append((time.perf_counter() - start) / len(rows))
        return median(seconds)

    def _encoded(self, batch: Subscriptions) -> EncodedConjunctions | EncodedClauses | None:
        """Return subscriptions as the matcher takes them in arrays, or None if it does not."""
        if isinstance(batch, PooledSubscriptions) and isinstance(self.matcher, EncodingMatcher):
            # Its predicates come again in the next batch.
            if self._pooled is None or self._pooled.pool is not batch.pool:
                self._pooled = PoolEncoding(batch.pool, self.matcher.vocabulary)
            return self._pooled.encode(batch)
        return encoded_for(self.matcher, batch)

    def _first_phase(self, batch: EventBatch) -> float | None:  # noqa: ARG002 - most matchers have no phases
        """Return the seconds of the first phase alone, or None if the matcher has no such phase."""
        return None

    def _checks(self) -> float | None:
        """Return how many conjunctions were ever looked at; the matcher tells it per event."""
        each = self.matcher.stats().details.get("checks per event")
        return None if each is None else each * self._seen
