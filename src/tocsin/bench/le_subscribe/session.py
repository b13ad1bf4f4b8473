"""A run of the experiments: who takes part, how large, and what was found."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

import numpy as np

from tocsin.bench.le_subscribe.scales import Scale
from tocsin.bench.le_subscribe.subject import Contender, Loading, Subject, Timing
from tocsin.bench.report import Measurement
from tocsin.workloads.le_subscribe import W0_RANGES, Workload
from tocsin.workloads.numbered import NumberedEvents

__all__ = ["Session"]

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


class Session:
    """Gathers measurements; each says which experiment it is of, which matcher, and at what."""

    def __init__(self, scale: Scale, matchers: Sequence[str], progress: Callable[[str], None]) -> None:
        self.scale = scale
        self.contenders = [Contender.of(name) for name in matchers]
        self.measurements: list[Measurement] = []
        self.left_out: list[str] = []
        self._progress = progress
        self._experiment = ""

    def begin(self, experiment: str) -> None:
        """Let what follows belong to an experiment."""
        self._experiment = experiment
        self._progress(experiment)

    def compile(self) -> float:
        """Use every matcher once, so that nothing is compiled while it is timed; return the seconds."""
        begun = time.perf_counter()
        workload = Workload(W0_RANGES)
        for contender in self.contenders:
            self.tell(contender, "compiling what is not compiled yet")
            subject = Subject(contender)
            subject.warm_up()
            subject.load(workload, 2_000)
            subject.time(workload.events(0, 100))
            subject.remove(np.arange(100, dtype=np.int64))
        return time.perf_counter() - begun

    def tell(self, contender: Contender, text: str) -> None:
        """Tell how far the experiment is."""
        self._progress(f"{self._experiment}: {contender.label}, {text}")

    def taking_part(self, contenders: Sequence[Contender]) -> Iterator[Contender]:
        """Return those contenders whose matchers were asked for."""
        names = {contender.matcher for contender in self.contenders}
        return (contender for contender in contenders if contender.matcher in names)

    def record(
        self,
        name: str,
        contender: Contender,
        at: float | str,
        figure: tuple[float, str],
        **details: float | str | None,
    ) -> None:
        """Keep a figure and its unit."""
        told = {key.replace("_", " "): value for key, value in details.items() if value is not None}
        target = _TARGETS.get((name, contender.label, at))  # type: ignore[arg-type]
        self.measurements.append(
            Measurement(
                name,
                *figure,
                target,
                {"experiment": self._experiment, "matcher": contender.label, "at": at, **told},
            )
        )

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
        subject = Subject(contender)
        loading = subject.load(workload, count, lambda text: self.tell(contender, text))
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
