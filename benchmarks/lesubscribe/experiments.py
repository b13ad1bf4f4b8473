"""The experiments, with their sizes and plots. Each fills matchers from a workload, and records the cost of events and changes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import numpy as np
from msgspec.structs import replace

from benchmarks.lesubscribe.workload import CHURN, WORKLOADS, Churn, Parameters, Workload
from benchmarks.runner.benchmark import MATCHERS, Benchmark, Experiment, sweep
from benchmarks.runner.plots import Bars, Panel, Plot, grouped_bars, lines
from benchmarks.runner.session import MatcherSession, Targets, scales
from benchmarks.runner.subject import Contender, Loading, Subject, Timing
from benchmarks.runner.tables import show_by_matcher
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

SCALES: Final = scales(
    # subscriptions, in the experiment that varies them
    sizes=((1_000, 10_000, 100_000), (10_000, 100_000, 1_000_000, 3_000_000, 6_000_000)),
    usual=(50_000, 1_000_000),  # subscriptions in the experiments that vary something else
    drifting=(20_000, 1_000_000),  # subscriptions while schemas and values drift
    churning=(100_000, 3_000_000),  # subscriptions while single ones come and go
    domains=((10, 35, 100, 1_000), (10, 35, 100, 1_000)),
    predicates=((3, 5, 7, 9), (3, 5, 7, 9)),
    events=(2_000, 5_000),  # events that a figure is taken from,
    seconds=(0.5, 5.0),  # or as many batches of them as this time allows
    warm_up=(500, 2_000),  # events before
    batch=(250, 500),  # events
    steps=(12, 24),  # figures taken while schemas or values drift
    turnover=(1.2, 1.2),  # how often all subscriptions are replaced meanwhile
    changes=(50, 500),  # subscriptions that go and come at a time meanwhile
    rounds=(100, 400),  # seconds of churn
    single=(500, 2_000),  # single changes, of which the worst counts
    patience=(6.0, 600.0),  # seconds that one matcher may take for one size
)

ADAPTING: Final = (
    Contender.of("propagation-wp"),
    Contender("dynamic, no change", "dynamic", frozen=True),
    Contender.of("dynamic"),
)
_NARROW: Final = Contender("dynamic", "dynamic", {"max_attributes": 2})
_WIDE: Final = Contender.of("propagation-wp")
W0: Final = WORKLOADS["W0"]
_RANGES: Final = "W0 with ranges"
_OPERATORS: Final = ("W0", "W1", "W2", _RANGES)
_FEW_VALUES: Final = (5, 10, 20, 35)  # with more, a cluster is too small to be worth a table
_PAPER_CHANGES: Final = 50  # a second


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
        drawn = workload.subscriptions(0, count)
        loading = subject.load(drawn, lambda text: self.tell(contender.label, text))
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


def by_size(parameters: Parameters) -> Callable[[LeSubscribeSession], None]:
    """Return the measuring of figure 3a: time per event, memory and loading by the number of subscriptions."""

    def measure(session: LeSubscribeSession) -> None:
        for contender in session.contenders:
            pace = 0.0  # seconds per subscription of the last size
            for size in session.scale.sizes:
                if pace * size > session.scale.patience:
                    session.left_out.append(
                        f"{contender.label} at {size:,}: it would take about {pace * size:,.0f} s"
                    )
                    break
                workload = Workload(parameters)
                subject, loading = session.loaded(contender, workload, size)
                timing = session.time(subject, workload)
                session.record_timing(contender, size, timing)
                _record_loading(session, contender.label, loading)
                pace = _pace(session, loading, timing)
                del subject  # before the next one needs the memory

    return measure


def _record_loading(session: LeSubscribeSession, label: str, loading: Loading) -> None:
    at = loading.subscriptions
    session.record("loading rate", label, at, loading.rate, "subscriptions/s", seconds=loading.seconds)
    session.record("memory per subscription", label, at, loading.bytes_each, "bytes")
    session.record("growth of resident memory", label, at, max(loading.resident_mb, 0.0), "MB")


def _pace(session: LeSubscribeSession, loading: Loading, timing: Timing) -> float:
    """Return the seconds per subscription in all, assuming that every cost grows with their number."""
    scale, each = session.scale, timing.total / 1e6
    matching: float = min(each * scale.events, scale.seconds + each * scale.batch) + each * scale.warm_up
    return (loading.seconds + matching) / loading.subscriptions


def _operators(session: LeSubscribeSession) -> None:
    for name in _OPERATORS:
        _usual_size(session, name, WORKLOADS[name])


def _usual_size(session: LeSubscribeSession, at: float | str, parameters: Parameters) -> None:
    for contender in session.contenders:
        session.record_timing(contender, at, _timed(session, contender, parameters))


def _timed(session: LeSubscribeSession, contender: Contender, parameters: Parameters) -> Timing:
    workload = Workload(parameters)
    subject, _ = session.loaded(contender, workload, session.scale.usual)
    return session.time(subject, workload)


def _with_domain(size: int) -> Parameters:
    return replace(W0, highest=size, event_highest=size)


def _over_time(first: str, second: str, session: LeSubscribeSession) -> None:
    """Record the time per event while subscriptions of one workload are replaced by those of another."""
    scale, size = session.scale, session.scale.drifting
    before, after = WORKLOADS[first], WORKLOADS[second]
    rounds = max(int(size * scale.turnover / scale.steps / scale.changes), 1)  # in a step
    protocol = Churn(changes=scale.changes, events=20)
    for contender in session.taking_part(ADAPTING):
        incoming, measured = Workload(after, seed=2, first_id=size), Workload(after, seed=3)
        subject, _ = session.loaded(contender, Workload(before), size)
        for step in range(scale.steps + 1):
            replaced = step * rounds * scale.changes
            session.tell(contender.label, f"{replaced:,} replaced")
            timing = subject.time(session.events(measured, round_=step))
            session.record_timing(contender, replaced / (_PAPER_CHANGES * 3600), timing)
            if step == scale.steps:
                break
            for gone, new, events in protocol.seconds(incoming, step * rounds, (step + 1) * rounds):
                subject.remove(gone)
                subject.add(new)
                subject.match(events)


def _churn(session: LeSubscribeSession) -> None:
    """Record the rate of changes while events are matched, and the worst single change."""
    scale, size = session.scale, session.scale.churning
    for contender in session.contenders:
        label = contender.label
        subject, _ = session.loaded(contender, Workload(W0), size)
        incoming = Workload(W0, seed=2, first_id=size)
        session.tell(label, "changing")
        changing = matching = 0.0
        rounds = 0
        for gone, new, events in CHURN.seconds(incoming, 0, scale.rounds):
            changing += subject.remove(gone) + subject.add(new)
            matching += subject.match(events).seconds
            rounds += 1
            if changing + matching > scale.patience / 10:
                break  # a slow matcher's rate is known after fewer rounds
        done, share = 2 * rounds * CHURN.changes, matching / (changing + matching)
        session.record("changes", label, size, done / changing, "changes/s", share_matching=share)
        session.tell(label, "changing one by one")
        begin = rounds * CHURN.changes
        singles = Churn(changes=1, events=1).seconds(incoming, begin, begin + scale.single)
        taken = [max(subject.remove(gone), subject.add(new)) for gone, new, _ in singles]
        typical = float(np.median(taken)) * 1e3
        session.record("worst single change", label, size, max(taken) * 1e3, "ms", median=typical)


def _dicts(session: LeSubscribeSession) -> None:
    for contender in session.contenders:
        workload = Workload(W0)
        subject, _ = session.loaded(contender, workload, session.scale.usual)
        session.tell(contender.label, "matching dicts")
        seconds = subject.time_dicts(session.events(workload))
        session.record("events from dicts", contender.label, session.scale.usual, 1 / seconds, "events/s")


def _two_attributes(session: LeSubscribeSession) -> None:
    """Check the paper's analysis: with pairs of attributes, an event verifies as many times fewer as there are values."""
    pair = list(session.taking_part((_WIDE, _NARROW)))
    if len(pair) < 2:
        return
    for domain in _FEW_VALUES:
        wide, narrow = (_timed(session, contender, _with_domain(domain)) for contender in pair)
        if wide.checks is not None and narrow.checks:
            session.record("checks, as a ratio", _NARROW.label, domain, wide.checks / narrow.checks, "times")
        if wide.second_phase is not None and narrow.second_phase:
            ratio = wide.second_phase / narrow.second_phase
            session.record("phase 2, as a ratio", _NARROW.label, domain, ratio, "times")


EXPERIMENTS: Final[Mapping[str, Experiment[LeSubscribeSession]]] = {
    "subscriptions": Experiment("W0, equalities", "subscriptions", by_size(W0)),
    "subscriptions with ranges": Experiment("W0 with ranges", "subscriptions", by_size(WORKLOADS[_RANGES])),
    "operators": Experiment("mix of operators", "workload", _operators),
    "domain": Experiment(
        "number of values", "values", sweep("domains", lambda s, at: _usual_size(s, at, _with_domain(at)))
    ),
    "predicates": Experiment(
        "predicates in a subscription",
        "predicates",
        sweep("predicates", lambda s, at: _usual_size(s, at, replace(W0, predicates=at))),
    ),
    "drift": Experiment("schemas drift, W3 to W4", "hours", partial(_over_time, "W3", "W4")),
    "skew": Experiment("values become skewed, W5 to W6", "hours", partial(_over_time, "W5", "W6")),
    "churn": Experiment("subscriptions come and go", "subscriptions", _churn),
    "dicts": Experiment("from Python dicts", "subscriptions", _dicts),
    "two attributes": Experiment(
        "propagation-wp over dynamic with pairs only (by analysis: the values)", "values", _two_attributes
    ),
}

_TIME: Final = "time per event"
_HOURS: Final = "hours, at 50 subscriptions replaced a second"
_WORKLOADS: Final = {
    "W0": "W0\n5 equalities",
    "W1": "W1\n4 equalities, 1 range",
    "W2": "W2\n4 equalities, 5 ranges",
    "W0 with ranges": "W0 with ranges\n2 equalities, 3 ranges",
}

PLOTS: Final[Mapping[str, Plot]] = {
    "time_per_event": lines(
        Panel("subscriptions", _TIME, "subscriptions", "figure 3a, W0: five equalities"),
        Panel("subscriptions with ranges", _TIME, "subscriptions", "W0: two equalities, three ranges"),
    ),
    "phases": lines(
        Panel("subscriptions", _TIME, "subscriptions", "W0, phase 1: predicates", detail="phase 1"),
        Panel("subscriptions", _TIME, "subscriptions", "W0, phase 2: subscriptions", detail="phase 2"),
    ),
    "operators": grouped_bars(Bars("operators", _TIME, "figure 3b: mix of operators", names=_WORKLOADS)),
    "memory": lines(
        Panel("subscriptions", "memory per subscription", "subscriptions", "W0: memory in the matcher")
    ),
    "loading": lines(
        Panel("subscriptions", "loading rate", "subscriptions", "W0: loading", detail="seconds")
    ),
    "values_and_predicates": lines(
        Panel("domain", _TIME, "values an attribute may have", "number of values"),
        Panel("predicates", _TIME, "predicates in a subscription", "number of predicates"),
    ),
    "drift": lines(
        Panel("drift", _TIME, _HOURS, "figure 4a: new subscriptions use the other half of the names")
    ),
    "skew": lines(Panel("skew", _TIME, _HOURS, "figure 4b: fixed attributes come down to two values")),
}

BENCHMARK: Final = Benchmark(
    name="lesubscribe",
    title="Le Subscribe (SIGMOD 2001): time per event, memory, loading, drift and churn, by matcher.",
    sizes="small: about a minute; paper: up to 6,000,000 subscriptions",
    scales=SCALES,
    session=LeSubscribeSession,
    experiments=EXPERIMENTS,
    show=show_by_matcher,
    plots=PLOTS,
    options=(MATCHERS,),
)
