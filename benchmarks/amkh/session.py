"""A run of the experiments: how a matcher is filled, and what is counted and timed while it matches."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

from msgspec import Struct

from benchmarks.amkh.scales import Scale
from benchmarks.amkh.workload import FIGURE_1, Parameters, Workload
from benchmarks.runner.agreement import Answers, summary
from benchmarks.runner.session import MatcherSession
from benchmarks.runner.subject import Contender, Subject
from tocsin.matching.encoding.codes import Keys


@runtime_checkable
class Counting(Protocol):
    """A matcher that counts what it looks at, and can be asked to think its choice over."""

    def examined(self) -> Examined:
        """Return what events have cost since that was last forgotten."""

    def forget_examined(self) -> None:
        """Begin anew to count."""

    def review(self) -> None:
        """Choose by what is known now."""


class Examined(Protocol):
    """What events have cost."""

    @property
    def events(self) -> int:
        """Return how many there were."""

    @property
    def probed(self) -> int:
        """Return the buckets looked for."""

    @property
    def unmatched(self) -> int:
        """Return the subscriptions examined in vain."""


class Found(Struct, frozen=True):
    """What an event cost a matcher; None of what it does not count."""

    microseconds: float
    unmatched: float | None
    probed: float | None


class Session(MatcherSession):
    """Fills matchers with a workload's subscriptions, and records what its events cost."""

    def __init__(
        self, scale: Scale, matchers: Sequence[str], progress: Callable[[str], None] = lambda _: None
    ) -> None:
        super().__init__(matchers, progress)
        self.scale = scale
        self._answers = Answers()

    def compile(self) -> float:
        """Use every matcher once, so that nothing is compiled while it is timed; return the seconds."""
        begun = time.perf_counter()
        workload = Workload(FIGURE_1)
        for contender in self.contenders:
            self.tell(contender, "compiling what is not compiled yet")
            subject = Subject(contender)
            subject.warm_up()
            subject.load(workload.subscriptions(0, 2_000))
            subject.time(workload.events(0, 100))
        return time.perf_counter() - begun

    def measure(
        self,
        contender: Contender,
        parameters: Parameters,
        at: float | str,
        count: int,
        *,
        building: bool = False,
    ) -> Found:
        """Record what a workload's first `count` subscriptions cost to hold, if `building`, and its events to match."""
        gc.collect()
        workload, scale = Workload(parameters), self.scale
        subject = Subject(contender)
        loading = subject.load(
            workload.subscriptions(0, count), lambda text: self.tell(contender, f"{text} of {count:,}")
        )
        if building:
            self.record("build time", contender, at, (loading.seconds, "s"))
            self.record("memory", contender, at, (loading.bytes / 1e6, "MB"))
        self.tell(contender, f"matching, {count:,} subscriptions")
        for events in workload.events(0, scale.warm_up, batch=scale.batch):
            subject.match(events)
        matcher = subject.matcher
        if isinstance(matcher, Counting):  # what is measured is its choice, not how soon it makes it
            matcher.review()
            matcher.forget_examined()
        answers: list[Keys] = []
        first, last = scale.warm_up, scale.warm_up + scale.events
        timing = subject.time(
            workload.events(first, last, batch=scale.batch),
            scale.seconds,
            lambda matches: answers.append(summary(matches)),
        )
        self._answers.check((self._experiment, at), contender.label, answers)
        unmatched = probed = None
        if isinstance(matcher, Counting):
            cost = matcher.examined()
            unmatched, probed = cost.unmatched / max(cost.events, 1), cost.probed / max(cost.events, 1)
            self.record("unmatched examined", contender, at, (unmatched, "an event"))
            self.record("buckets probed", contender, at, (probed, "an event"))
        self.record("matches", contender, at, (timing.matches, "an event"))
        self.record("matching time", contender, at, (timing.total, "µs"))
        return Found(timing.total, unmatched, probed)
