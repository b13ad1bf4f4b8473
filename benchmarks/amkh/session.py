"""A run of the experiments: how a matcher is filled, and its counts and times."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from benchmarks.amkh.workload import FIGURE_1, Parameters, Workload
from benchmarks.runner.agreement import Agreement, summary
from benchmarks.runner.session import MatcherSession
from benchmarks.runner.subject import Contender, Subject
from tocsin.matching.amkh.matcher import Amkh
from tocsin.matching.encoding.codes import Keys


class Found(Struct, frozen=True):
    """The cost of an event; None where the matcher does not count it."""

    microseconds: float
    unmatched: float | None


class AmkhSession(MatcherSession):
    """Fills matchers with a workload's subscriptions, and records the cost of its events."""

    paper = ("amkh", "mkh", "dynamic", "opindex")

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._agreement = Agreement()

    def small_workloads(self) -> Sequence[Any]:
        """Return the workload of figure 1."""
        return [Workload(FIGURE_1)]

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with the usual sizes."""
        return {**super().parameters(), "usual": self.scale.usual, "events": self.scale.events}

    def measure(
        self, contender: Contender, parameters: Parameters, at: float, count: int, *, building: bool = False
    ) -> Found:
        """Record the cost of a workload's events with its first `count` subscriptions and, if `building`, of loading them."""
        gc.collect()
        label, scale, workload = contender.label, self.scale, Workload(parameters)
        subject = Subject(contender)
        loading = subject.load(
            workload.subscriptions(0, count), lambda text: self.tell(label, f"{text} of {count:,}")
        )
        if building:
            self.record("build time", label, at, loading.seconds, "s")
            self.record("memory", label, at, loading.bytes / 1e6, "MB")
        self.tell(label, f"matching, {count:,} subscriptions")
        for events in workload.events(0, scale.warm_up, batch=scale.batch):
            subject.match(events)
        matcher = subject.matcher
        if isinstance(matcher, Amkh):  # the choice itself is measured, not how soon it is made
            matcher.review()
            matcher.forget_examined()
        found: list[Keys] = []
        timing = subject.time(
            workload.events(scale.warm_up, scale.warm_up + scale.events, batch=scale.batch),
            scale.seconds,
            lambda matches: found.append(summary(matches)),
        )
        self._agreement.check((self.experiment, at), label, found)
        unmatched = None
        if isinstance(matcher, Amkh):
            cost = matcher.examined()
            unmatched = cost.unmatched / max(cost.events, 1)
            self.record("unmatched examined", label, at, unmatched, "an event")
            self.record("buckets probed", label, at, cost.probed / max(cost.events, 1), "an event")
        self.record("matches", label, at, timing.matches, "an event")
        self.record("matching time", label, at, timing.total, "µs")
        return Found(timing.total, unmatched)
