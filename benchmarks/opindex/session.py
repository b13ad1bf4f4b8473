"""A run of the experiments: how a matcher is filled and timed, unless it would not fit or take too long."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct

from benchmarks.opindex.inputs import Input, Material
from benchmarks.opindex.scales import Scale
from benchmarks.opindex.workloads.prefix import PrefixParameters, PrefixWorkload
from benchmarks.opindex.workloads.table3 import Parameters, Workload
from benchmarks.runner.agreement import Answers, summary
from benchmarks.runner.session import MatcherSession
from benchmarks.runner.subject import Contender, Loading, Subject
from tocsin.matching import create_matcher, takes_clauses
from tocsin.matching.encoding.codes import Keys
from tocsin.replay.memory import available_mb

_DOES_NOT_FIT: Final = "does not fit"
_LEFT_OUT: Final = "left out"
GAPS: Final = (_DOES_NOT_FIT, _LEFT_OUT)
"""What is recorded, with the estimate, in place of figures that were not taken."""

_GROWING: Final = 1.5  # while an array grows, the old one is still there
_MILLION: Final = 1_000_000
_TARGETS: Final = {  # (experiment, measurement, at, subscriptions): what `opindex` is to reach on one core
    ("input A", "matching time", _MILLION, _MILLION): 40.0,
    ("input A", "build time", _MILLION, _MILLION): 3.0,
    ("input A", "resident memory", _MILLION, _MILLION): 300.0,
    ("input A", "matching time", 10 * _MILLION, 10 * _MILLION): 300.0,
    ("prefix share", "matching time", 100, _MILLION): 100.0,
    ("products", "matching time", _MILLION, _MILLION): 100.0,
}


class Pace(Struct, frozen=True):
    """What a subscription takes, on the guess that everything grows with their number."""

    seconds: float
    mb: float


class Session(MatcherSession):
    """Fills matchers from inputs and times them; `memory_mb` is what they may take, if less than is available."""

    def __init__(
        self,
        scale: Scale,
        matchers: Sequence[str],
        material: Material,
        memory_mb: float = float("inf"),
        progress: Callable[[str], None] = lambda _: None,
    ) -> None:
        super().__init__(matchers, progress)
        self.scale = scale
        self.material = material
        self._memory_mb = memory_mb
        self._answers = Answers()
        self._held = 0  # subscriptions, in the matcher that is under way
        self._paces: dict[str, Pace] = {}  # by contender, in the experiment that is under way

    def begin(self, experiment: str) -> None:
        """Let what follows belong to an experiment."""
        super().begin(experiment)
        self._paces.clear()

    def target(self, name: str, matcher: str, at: float | str) -> float | None:
        """Return what one core is to reach, or None."""
        place = self._experiment, name, at, self._held
        return _TARGETS.get(place) if matcher == "opindex" else None  # type: ignore[arg-type]

    def compile(self) -> float:
        """Use every matcher once, so that nothing is compiled while it is timed; return the seconds."""
        begun = time.perf_counter()
        numbers = Workload(Parameters(attributes=1_000))
        words = PrefixWorkload(PrefixParameters(numbers=100, words=1_000, word_share=0.5))
        for contender in self.contenders:
            self.tell(contender, "compiling what is not compiled yet")
            for workload in (numbers, words):
                subject = Subject(contender)
                subject.warm_up()
                subject.load(workload.subscriptions(0, 2_000))
                subject.time(workload.events(0, 100))
                subject.remove(np.arange(100, dtype=np.int64))
        return time.perf_counter() - begun

    def compare(self, given: Input, at: float | str, count: int, *, growing: bool = False) -> None:
        """Measure all matchers with an input's first subscriptions; kinds of events that are numbers say at what."""
        for contender in self.contenders:
            self.measure(contender, given, at, count, growing=growing)

    def holding_clauses(self) -> Iterator[Contender]:
        """Return the matchers that hold clause forms; the others are said to be left out."""
        for contender in self.contenders:
            if takes_clauses(create_matcher(contender.matcher, **contender.options)):
                yield contender
            else:
                self.left_out.append(f"{self._experiment}: {contender.label} holds no clauses")

    def measure(
        self, contender: Contender, given: Input, at: float | str, count: int, *, growing: bool = False
    ) -> None:
        """Record what a matcher takes to hold an input's first subscriptions, and to match its events.

        What would not fit in memory, or take too long, is recorded as that. Where the numbers of subscriptions
        are `growing` the last one tells it, else a small number of the same.
        """
        pace = self._paces.get(contender.label) if growing else None
        if pace is None and count > self.scale.tried:
            self.tell(contender, "trying")
            pace = self._fill(contender, given, self.scale.tried, None)
        if pace is None or self._may(contender, at, count, pace):
            pace = self._fill(contender, given, count, at)
        self._paces[contender.label] = pace

    def _may(self, contender: Contender, at: float | str, count: int, pace: Pace) -> bool:
        """Tell whether so many subscriptions fit, and would not take too long; record it if not."""
        needed, there = pace.mb * count * _GROWING, min(available_mb(), self._memory_mb)
        seconds = pace.seconds * count
        where = f"{self._experiment}: {contender.label} at {at if isinstance(at, str) else f'{at:,}'}"
        if needed > there:
            self.left_out.append(
                f"{where} {_DOES_NOT_FIT}, it would need about {needed / 1e3:,.1f} GB of {there / 1e3:,.1f}"
            )
            self.record(_DOES_NOT_FIT, contender, at, (needed / 1e3, "GB"))
        elif seconds > self.scale.patience:
            self.left_out.append(f"{where} {_LEFT_OUT}, it would take about {seconds:,.0f} s")
            self.record(_LEFT_OUT, contender, at, (seconds, "s"))
        else:
            return True
        return False

    def _fill(self, contender: Contender, given: Input, count: int, at: float | str | None) -> Pace:
        """Fill a matcher and match events, record what that took if it is said `at` what, and return the pace."""
        scale = self.scale
        if count > scale.tried:
            gc.collect()  # what matchers before it took is needed
        subject = Subject(contender)
        self._held = count
        loading = subject.load(
            given.subscriptions(0, count), lambda text: self.tell(contender, f"{text} of {count:,}")
        )
        if at is not None and not any(isinstance(kind, int) for kind in given.events):
            self._record_loading(contender, at, loading)
        seconds = loading.seconds
        for kind, draw in given.events.items():
            self.tell(contender, f"matching {kind}".rstrip())
            begun = time.perf_counter()
            first = min(scale.warm_up, scale.batch) if at is None else scale.warm_up
            taken = [
                subject.match(events).seconds / scale.batch for events in draw(0, first, batch=scale.batch)
            ]
            if at is not None:
                self._record_matching(subject, given, kind, kind if isinstance(kind, int) else at)
                seconds += time.perf_counter() - begun
            else:
                slowest = max(taken, default=0.0)
                expected = min(slowest * scale.events, scale.seconds + slowest * scale.batch)
                seconds += expected + slowest * scale.warm_up
        mb = max(loading.resident_mb, loading.bytes / 1e6, 0.0)
        return Pace(seconds / count, mb / count)

    def _record_loading(self, contender: Contender, at: float | str, loading: Loading) -> None:
        self.record("build time", contender, at, (loading.adding, "s"))
        self.record("encoding", contender, at, (loading.encoding, "s"))
        self.record("memory", contender, at, (loading.bytes / 1e6, "MB"), each=loading.bytes_each)
        self.record("resident memory", contender, at, (max(loading.resident_mb, 0.0), "MB"))

    def _record_matching(self, subject: Subject, given: Input, kind: str | int, at: float | str) -> None:
        scale, contender, draw = self.scale, subject.contender, given.events[kind]
        told = kind if isinstance(kind, str) and kind else None
        found: list[Keys] = []
        batches = draw(scale.warm_up, scale.warm_up + scale.events, batch=scale.batch)
        timing = subject.time(batches, scale.seconds, lambda matches: found.append(summary(matches)))
        self._answers.check((self._experiment, at, told or ""), contender.label, found)
        count = sum(part.shape[1] for part in found)
        self.record("matching time", contender, at, (timing.total, "µs"), kind=told, events=count)
        self.record("matches", contender, at, (timing.matches, "an event"), kind=told)
        encoding = subject.time_encoding(draw(0, scale.dicts, batch=scale.batch))
        if encoding is not None:
            self.record("encoding dicts", contender, at, (encoding * 1e6, "µs"), kind=told)
