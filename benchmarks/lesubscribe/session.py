"""A run of the experiments: how large they are, and how a matcher is filled and timed."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from benchmarks.lesubscribe.scales import Scale
from benchmarks.lesubscribe.subject import PhasedSubject
from benchmarks.lesubscribe.workload import W0_RANGES, Workload
from benchmarks.runner.session import MatcherSession
from benchmarks.runner.subject import Contender, Loading, Subject, Timing
from tocsin.replay.numbered import NumberedEvents

_TARGETS: Final = {  # (measurement, matcher, at): what one core is to reach
    ("time per event", "dynamic", 1_000_000): 3.0,
    ("time per event", "dynamic", 6_000_000): 8.0,
    ("loading rate", "propagation", 1_000_000): 500_000,
    ("loading rate", "dynamic", 1_000_000): 150_000,
    ("memory per subscription", "dynamic", 6_000_000): 120,
    ("events from dicts", "dynamic", 1_000_000): 40_000,
    ("changes", "dynamic", 3_000_000): 20_000,
    ("worst single change", "dynamic", 3_000_000): 50,
}


class Session(MatcherSession):
    """Fills matchers from the paper's workloads and times them."""

    def __init__(self, scale: Scale, matchers: Sequence[str], progress: Callable[[str], None]) -> None:
        super().__init__(matchers, progress)
        self.scale = scale

    def target(self, name: str, matcher: str, at: float | str) -> float | None:
        """Return what one core is to reach, or None."""
        return _TARGETS.get((name, matcher, at))  # type: ignore[arg-type]

    def compile(self) -> float:
        """Use every matcher once, so that nothing is compiled while it is timed; return the seconds."""
        begun = time.perf_counter()
        workload = Workload(W0_RANGES)
        for contender in self.contenders:
            self.tell(contender, "compiling what is not compiled yet")
            subject = PhasedSubject(contender)
            subject.warm_up()
            subject.load(workload.subscriptions(0, 2_000))
            subject.time(workload.events(0, 100))
            subject.remove(np.arange(100, dtype=np.int64))
        return time.perf_counter() - begun

    def record_timing(self, contender: Contender, at: float | str, timing: Timing) -> None:
        """Keep what an event took, with the phases."""
        self.record(
            "time per event",
            contender,
            at,
            (timing.total, "µs"),
            phase_1=timing.first_phase,
            phase_2=timing.second_phase,
            checks=timing.checks,
        )

    def loaded(self, contender: Contender, workload: Workload, count: int) -> tuple[Subject, Loading]:
        """Return a matcher that holds the workload's first subscriptions and has seen some events."""
        subject = PhasedSubject(contender)
        loading = subject.load(workload.subscriptions(0, count), lambda text: self.tell(contender, text))
        for events in workload.events(0, self.scale.warm_up, batch=self.scale.batch):
            subject.match(events)
        subject.freeze()
        return subject, loading

    def events(self, workload: Workload, *, round_: int = 0) -> Iterator[NumberedEvents]:
        """Return batches of events to measure with: none of the warm-up, and others each round."""
        begin = self.scale.warm_up + round_ * self.scale.events
        return workload.events(begin, begin + self.scale.events, batch=self.scale.batch)

    def time(self, subject: Subject, workload: Workload) -> Timing:
        """Return what an event of the workload takes."""
        self.tell(subject.contender, "matching")
        return subject.time(self.events(workload), self.scale.seconds)
