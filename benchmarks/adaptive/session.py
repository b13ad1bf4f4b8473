"""A run: matchers that hold one workload are warmed and measured in turns, in processor time."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from math import inf
from pathlib import Path
from statistics import median
from typing import Any, Final, Protocol

import numpy as np
from msgspec import Struct

from benchmarks.adaptive.workloads.numbers import hot_half
from benchmarks.adaptive.workloads.texts import mixed
from benchmarks.opindex.workloads.keywords import Corpus, make_corpus, read_corpus
from benchmarks.opindex.workloads.products import Catalogue, make_catalogue, read_catalogue
from benchmarks.runner.agreement import Agreement, summary
from benchmarks.runner.session import MatcherSession, Progress, find_data, origins, silent
from benchmarks.runner.subject import Contender, Subject
from tocsin.matching import EventBatch
from tocsin.matching.encoding.codes import Keys
from tocsin.model.errors import MatcherError
from tocsin.model.values import Value
from tocsin.replay import numbered

OWN: Final = "adaptive"
BATCHES, SINGLE, RATE, BYTES = "events in batches", "one event", "build rate", "memory"
MATCHES: Final = "matches"
WORK: Final = "checks per event"
RATIO: Final = "ratio"
"""Of `adaptive` over the best of the others; `kind` is the measurement."""

STOPPED: Final = "stopped early"
"""Recorded, with the µs of an event, for a matcher that was far slower than the best."""

_LEARNING: Final = (OWN, "dynamic", "static", "amkh")  # what they do with events depends on those before
_USUAL: Final = {
    "flights": "flights.jsonl.zst",
    "quotes": "stock_quotes.jsonl.gz",
    "products": "products.jsonl.zst",
    "news": "news.jsonl.gz",
}
_ADVICE: Final = "leave out --data, and only made-up workloads are measured"
_ADDED: Final = 1 << 15  # subscriptions that are added at a time
_FASTER: Final = 0.8  # of the batch before: a matcher that still gets faster is not stopped
_SETTLED: Final = 3  # batches after which a matcher that learns from events may be stopped
_STAYS: Final = 10  # batches in a row that are near the best: a change is over
_BEHIND: Final = 3.0  # times the best; a matcher behind that takes part in one round


class Source(Protocol):
    """Subscriptions and events by number."""

    def subscriptions(self, begin: int, end: int, *, batch: int = ...) -> Iterator[Any]:
        """Return the subscriptions from number `begin` to `end`, in batches."""

    def events(self, begin: int, end: int, *, batch: int = ...) -> Iterator[Any]:
        """Return the events from number `begin` to `end`, in batches."""


class Entrant(Subject):
    """A matcher that holds a workload, with the figures taken so far."""

    def __init__(self, contender: Contender) -> None:
        super().__init__(contender)
        self.label = contender.label
        self.last = inf  # µs of an event, in the last batch of the warm-up
        self.warm_seconds = 0.0
        self.batches: list[float] = []  # µs of an event, a round each
        self.single: list[float] = []

    def fill(self, batches: Sequence[Any], patience: float) -> float | None:
        """Add all subscriptions; return the seconds, or None if there were more than `patience`."""
        seconds = 0.0
        for batch in batches:
            start = time.process_time()
            numbered.add_encoded_to(self.matcher, batch, self._encoded(batch))
            seconds += time.process_time() - start
            if seconds > patience:
                return None
        return seconds

    def warm(self, events: Any) -> float:
        """Match events; return the µs of one, and keep them."""
        batch = numbered.prepared_for(self.matcher, events)
        start = time.process_time()
        self.matcher.match(batch)
        seconds = time.process_time() - start
        self.warm_seconds += seconds
        self.last = 1e6 * seconds / len(batch)
        return self.last

    def timed(self, batches: Sequence[EventBatch], on_matches: Callable[[Keys], None] | None = None) -> float:
        """Match prepared batches; return the µs of an event."""
        seconds, count = 0.0, 0
        for batch in batches:
            start = time.process_time()
            matches = self.matcher.match(batch)
            seconds += time.process_time() - start
            count += len(batch)
            if on_matches is not None:
                on_matches(summary(matches))
        return 1e6 * seconds / max(count, 1)

    def timed_single(self, rows: Sequence[Mapping[str, Value]]) -> float:
        """Match events one by one, from dicts; return the µs of one."""
        match_one = self.matcher.match_one
        start = time.process_time()
        for row in rows:
            match_one(row)
        return 1e6 * (time.process_time() - start) / max(len(rows), 1)


class Drift(Struct, frozen=True):
    """The µs of an event after a change, by batches, and the best before it."""

    before: float
    after: tuple[float, ...]

    def recovered(self, within: float) -> int:
        """Return the first batch within so many times the best after which the median of three is, too, ten times."""
        smooth = [median(self.after[i : i + 3]) for i in range(max(len(self.after) - 2, 1))]
        limit = within * min(smooth)
        near = [self.after[i] <= limit and max(smooth[i : i + _STAYS]) <= limit for i in range(len(smooth))]
        return near.index(True) if True in near else len(self.after)


class AdaptiveSession(MatcherSession):
    """Fills all matchers with a workload and measures them in turns; `data` has real files, if it is given."""

    paper = (
        OWN,
        "dynamic",
        "static",
        "propagation",
        "propagation-wp",
        "counting",
        "opindex",
        "opindex-bs",
        "amkh",
        "mkh",
        "k-index",
        "be-tree",
        "points",
    )

    def __init__(
        self,
        scale: Any,
        matcher: Sequence[str] = (),
        *,
        data: Path | None = None,
        subscriptions: int | None = None,
        progress: Progress = silent,
    ) -> None:
        super().__init__(scale, matcher, progress=progress)
        self.files = find_data(_USUAL, data, _ADVICE)
        self.count: int = subscriptions or scale.subscriptions
        self._agreement = Agreement()

    @cached_property
    def corpus(self) -> Corpus:
        """Return a made-up corpus of documents."""
        return make_corpus(self.scale.documents, self.scale.words)

    @cached_property
    def news(self) -> Corpus:
        """Return the documents that were read."""
        path = self.files["news"]
        assert path is not None  # noqa: S101 - `has` was asked
        return read_corpus(path, words=self.scale.words, progress=self.progress)

    @cached_property
    def catalogue(self) -> Catalogue:
        """Return made-up products."""
        return make_catalogue(self.scale.catalogue, self.scale.catalogue_attributes)

    @cached_property
    def products(self) -> Catalogue:
        """Return the products that were read."""
        path = self.files["products"]
        assert path is not None  # noqa: S101 - `has` was asked
        return read_catalogue(path, progress=self.progress)

    def has(self, kind: str) -> bool:
        """Return whether there are real events of a kind; that there are none is said."""
        if self.files[kind] is None:
            self.left_out.append(f"{self.experiment}: needs --data")
            return False
        return True

    def small_workloads(self) -> Sequence[Any]:
        """Return a workload of numbers and one of strings."""
        return [hot_half(0), mixed()]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names."""
        return {**super().parameters(), "subscriptions": self.count, **origins(self.files)}

    # comparing

    def compare(self, source: Source) -> None:
        """Measure all matchers with a workload: what a subscription costs, and an event."""
        scale, end = self.scale, self.scale.warm_up + self.scale.events
        self.tell("drawing")
        drawn = list(source.subscriptions(0, self.count, batch=_ADDED))
        warming = list(source.events(0, scale.warm_up, batch=scale.batch))
        measured = list(source.events(scale.warm_up, end, batch=scale.batch))
        entrants = self._filled(drawn)
        gc.collect()
        gc.freeze()  # no collection of what stays falls into a measurement
        try:
            self._warm(entrants, warming)
            self._measure(entrants, measured)
        finally:
            gc.unfreeze()
        self._record(entrants)

    def _filled(self, drawn: Sequence[Any]) -> list[Entrant]:
        """Return the matchers that hold these subscriptions."""
        entrants = []
        for contender in self.contenders:
            self.tell(contender.label, "adding")
            gc.collect()
            entrant = Entrant(contender)
            try:
                seconds = entrant.fill(drawn, self.scale.patience)
            except MatcherError as error:
                self.left_out.append(f"{self.experiment}: {contender.label} does not hold it ({error})")
                continue
            if seconds is None:
                said = f"{self.experiment}: {contender.label}, adding took over {self.scale.patience:g} s"
                self.left_out.append(said)
                continue
            each = entrant.matcher.stats().bytes / self.count
            self.record(RATE, contender.label, self.count, self.count / max(seconds, 1e-9), "subscriptions/s")
            self.record(BYTES, contender.label, self.count, each, "bytes")
            entrants.append(entrant)
        return entrants

    def _warm(self, entrants: list[Entrant], warming: Sequence[Any]) -> None:
        """Match similar events in turns, and stop the matchers that are far slower than the best."""
        for one in entrants:
            one.warm(_beginning(warming[0], 10))  # what is put off until the first match is not judged
        # Few events follow, so that a slow matcher does not take long to be known.
        for number, events in enumerate([_beginning(warming[0], self.scale.tried), *warming]):
            before = {one.label: one.last for one in entrants}
            for one in entrants:
                # But for a few, matchers do with an event what they did with those before.
                if one.label in _LEARNING or one.warm_seconds <= self.scale.seconds:
                    self.tell(one.label, "warming up")
                    one.warm(events)
            limit = self.scale.stopped * min((one.last for one in entrants), default=inf)
            for one in [slow for slow in entrants if slow.last > limit and slow.label != OWN]:
                # One slow batch may be a reorganisation that comes once.
                is_slow = before[one.label] > limit and one.last > _FASTER * before[one.label]
                is_settled = number >= _SETTLED and is_slow
                if one.label not in _LEARNING or is_settled:
                    self._stop(entrants, one, one.last)

    def _stop(self, entrants: list[Entrant], one: Entrant, taken: float) -> None:
        """Leave out a matcher from now on, and record what an event took it."""
        entrants.remove(one)
        self.record(STOPPED, one.label, self.count, taken, "µs")
        self.left_out.append(f"{self.experiment}: {one.label} stopped early at {taken:,.0f} µs an event")

    def _measure(self, entrants: Sequence[Entrant], measured: Sequence[Any]) -> None:
        """Take the time of events in batches and one by one, a matcher after another, round by round."""
        rows = [row for events in measured for row in events.to_dicts()][: self.scale.single]
        prepared = [[numbered.prepared_for(one.matcher, events) for events in measured] for one in entrants]
        for number in range(self.scale.rounds):
            best = [
                min((min(rounds) for rounds in kind if rounds), default=inf) for kind in _figures(entrants)
            ]
            for one, batches in zip(entrants, prepared, strict=True):
                is_behind = number and (
                    min(one.batches) > _BEHIND * best[0] and min(one.single) > _BEHIND * best[1]
                )
                if is_behind and one.label != OWN:
                    continue
                self.tell(one.label, f"round {number + 1} of {self.scale.rounds}")
                found: list[Keys] = []
                one.batches.append(one.timed(batches, None if number else found.append))
                if found:
                    self._agreement.check(self.experiment, one.label, found)
                    matches = np.concatenate(found, axis=1)[0].mean()
                    self.record(MATCHES, one.label, self.count, float(matches), "an event")
                one.single.append(one.timed_single(rows))

    def _record(self, entrants: Sequence[Entrant]) -> None:
        for one in entrants:
            if one.label == OWN:  # what it did, to explain the figures
                details = one.matcher.stats().details
                work = details.get(WORK, 0.0)
                self.record(
                    WORK,
                    OWN,
                    self.count,
                    work,
                    "an event",
                    **{key: float(value) for key, value in details.items()},
                )
        for name, figure in ((BATCHES, "batches"), (SINGLE, "single")):
            best: dict[str, float] = {one.label: min(getattr(one, figure)) for one in entrants}
            for one in entrants:
                rounds = len(getattr(one, figure))
                self.record(name, one.label, self.count, best[one.label], "µs", rounds=rounds)
            own = best.pop(OWN, None)
            if own is not None and best:
                fastest = min(best, key=lambda label: best[label])
                self.record(RATIO, OWN, self.count, own / best[fastest], "times", kind=name, of=fastest)

    # drift

    def drift(self, before: Source, after: Source) -> None:
        """Record the µs of an event while the events change and the subscriptions stay, and how soon it is over."""
        scale = self.scale
        drawn = list(before.subscriptions(0, self.count, batch=_ADDED))
        for contender in self.taking_part([Contender.of(OWN), Contender.of("dynamic")]):
            self.tell(contender.label, "drifting")
            entrant = Entrant(contender)
            entrant.fill(drawn, inf)
            settled = [
                entrant.warm(part) for part in before.events(0, scale.settling, batch=scale.drift_batch)
            ]
            changed = [
                entrant.warm(part) for part in after.events(0, scale.drifting, batch=scale.drift_batch)
            ]
            found = Drift(min(settled), tuple(changed))
            self._record_drift(contender.label, found)

    def _record_drift(self, label: str, found: Drift) -> None:
        each, batch = self.scale.drift_step, self.scale.drift_batch
        by_batch = ", ".join(f"{one:.2f}" for one in found.after)
        self.record("before the change", label, 0, found.before, "µs", after=by_batch)
        step = max(each // batch, 1)
        for first in range(0, len(found.after), step):
            taken = float(np.mean(found.after[first : first + step]))
            self.record("after the change", label, (first + step) * batch, taken, "µs")
        self.record("best after the change", label, 0, min(found.after), "µs")
        events = found.recovered(self.scale.within) * batch
        self.record("events until it is over", label, 0, events, "events")


def _beginning(events: Any, count: int) -> Any:
    """Return the first of a batch's events."""
    if hasattr(events, "slice"):
        return events.slice(0, min(count, len(events.offsets) - 1))
    return type(events)(events.rows[:count])


def _figures(entrants: Sequence[Entrant]) -> tuple[list[list[float]], list[list[float]]]:
    return [one.batches for one in entrants], [one.single for one in entrants]
