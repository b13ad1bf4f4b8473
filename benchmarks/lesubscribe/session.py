"""A run of the experiments: how a matcher is filled from the paper's workloads and timed."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from benchmarks.lesubscribe.workload import WORKLOADS, Workload
from benchmarks.runner.session import MatcherSession, Targets
from benchmarks.runner.subject import Contender, Loading, Subject, Timing
from tocsin.matching import EventBatch
from tocsin.matching.encoding.events import encode_events
from tocsin.matching.le_subscribe._kernels.matching import observe_all
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.replay.numbered import NumberedEvents

_BY_SIZE: Final = {
    ("time per event", "dynamic", 1_000_000): 3.0,
    ("time per event", "dynamic", 6_000_000): 8.0,
    ("loading rate", "propagation", 1_000_000): 500_000,
    ("loading rate", "dynamic", 1_000_000): 150_000,
    ("memory per subscription", "dynamic", 6_000_000): 120,
}


class PhasedSubject(Subject):
    """A matcher whose first phase, in which predicates are evaluated, is timed by itself."""

    def _first_phase(self, batch: EventBatch) -> float | None:
        if not isinstance(self.matcher, ClusteredMatcher):
            return None
        events = encode_events(batch, self.matcher.vocabulary)
        start = time.perf_counter()
        observe_all(self.matcher._state, events)  # noqa: SLF001 - no user asks for half a match
        return time.perf_counter() - start


class LeSubscribeSession(MatcherSession):
    """Fills matchers from the paper's workloads and times them."""

    paper = ("counting", "propagation", "propagation-wp", "static", "dynamic")
    subject = PhasedSubject
    targets: ClassVar[Targets] = {
        **{
            (experiment, *figure): target
            for experiment in ("subscriptions", "subscriptions with ranges")
            for figure, target in _BY_SIZE.items()
        },
        ("dicts", "events from dicts", "dynamic", 1_000_000): 40_000,
        ("churn", "changes", "dynamic", 3_000_000): 20_000,
        ("churn", "worst single change", "dynamic", 3_000_000): 50,
    }

    def small_workloads(self) -> Sequence[Any]:
        """Return a workload with all of the paper's operators."""
        return [Workload(WORKLOADS["W0 with ranges"])]

    def record_timing(self, contender: Contender, at: float | str, timing: Timing) -> None:
        """Keep the time per event, with its phases."""
        phases = {"phase_1": timing.first_phase, "phase_2": timing.second_phase}
        self.record("time per event", contender.label, at, timing.total, "µs", **phases, checks=timing.checks)

    def loaded(self, contender: Contender, workload: Workload, count: int) -> tuple[Subject, Loading]:
        """Return a matcher that holds the workload's first subscriptions and has seen some events."""
        subject = self.subject(contender)
        loading = subject.load(
            workload.subscriptions(0, count), lambda text: self.tell(contender.label, text)
        )
        for events in workload.events(0, self.scale.warm_up, batch=self.scale.batch):
            subject.match(events)
        subject.freeze()
        return subject, loading

    def events(self, workload: Workload, *, round_: int = 0) -> Iterator[NumberedEvents]:
        """Return batches of events to measure with: none of the warm-up, and others each round."""
        begin = self.scale.warm_up + round_ * self.scale.events
        return workload.events(begin, begin + self.scale.events, batch=self.scale.batch)

    def time(self, subject: Subject, workload: Workload) -> Timing:
        """Return the time per event of the workload."""
        self.tell(subject.contender.label, "matching")
        return subject.time(self.events(workload), self.scale.seconds)
