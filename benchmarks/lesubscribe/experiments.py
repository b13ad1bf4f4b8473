"""The experiments. Each fills matchers from a workload, and notes what events and changes take."""

from __future__ import annotations

from typing import Final

import numpy as np
from msgspec.structs import replace

from benchmarks.lesubscribe.session import Session
from benchmarks.lesubscribe.workload import (
    CHURN,
    W0,
    W0_RANGES,
    W1,
    W2,
    W3,
    W4,
    W5,
    W6,
    Churn,
    Parameters,
    Workload,
)
from benchmarks.runner.subject import Contender, Loading, Timing

ADAPTING: Final = (
    Contender.of("propagation-wp"),
    Contender("dynamic, no change", "dynamic", frozen=True),
    Contender.of("dynamic"),
)
_NARROW: Final = Contender("dynamic", "dynamic", {"max_attributes": 2})
_WIDE: Final = Contender.of("propagation-wp")
_FEW_VALUES: Final = (5, 10, 20, 35)  # with more, a cluster is too small to be worth a table
_PAPER_CHANGES: Final = 50  # a second


def subscriptions(session: Session) -> None:
    """Figure 3a: time per event by the number of subscriptions; memory; loading."""
    _by_size(session, W0)


def subscriptions_with_ranges(session: Session) -> None:
    """Figure 3a again, with `<=` and `>=` where subscriptions are free to differ."""
    _by_size(session, W0_RANGES)


def _by_size(session: Session, parameters: Parameters) -> None:
    for contender in session.contenders:
        pace = 0.0  # seconds per subscription that the last size took
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
            _record_loading(session, contender, loading)
            pace = _pace(session, loading, timing)
            del subject  # before the next one needs the memory


def _record_loading(session: Session, contender: Contender, loading: Loading) -> None:
    at = loading.subscriptions
    session.record("loading rate", contender, at, (loading.rate, "subscriptions/s"), seconds=loading.seconds)
    session.record("memory per subscription", contender, at, (loading.bytes_each, "bytes"))
    session.record("growth of resident memory", contender, at, (max(loading.resident_mb, 0.0), "MB"))


def _pace(session: Session, loading: Loading, timing: Timing) -> float:
    """Return the seconds per subscription of the whole, on the guess that everything grows with their number."""
    scale = session.scale
    matching = min(timing.total / 1e6 * scale.events, scale.seconds + timing.total / 1e6 * scale.batch)
    return (loading.seconds + matching + timing.total / 1e6 * scale.warm_up) / loading.subscriptions


def operators(session: Session) -> None:
    """Figure 3b: the mix of operators."""
    for name, parameters in {"W0": W0, "W1": W1, "W2": W2, "W0 with ranges": W0_RANGES}.items():
        _one_size(session, name, parameters)


def domains(session: Session) -> None:
    """Record the time per event by the number of values."""
    for domain in session.scale.domains:
        _one_size(session, domain, _with_domain(domain))


def predicates(session: Session) -> None:
    """Record the time per event by the number of predicates in a subscription."""
    for count in session.scale.predicates:
        _one_size(session, count, replace(W0, predicates=count))


def _one_size(session: Session, at: float | str, parameters: Parameters) -> None:
    for contender in session.contenders:
        workload = Workload(parameters)
        subject, _ = session.loaded(contender, workload, session.scale.usual)
        session.record_timing(contender, at, session.time(subject, workload))
        del subject


def _with_domain(size: int) -> Parameters:
    return replace(W0, highest=size, event_highest=size)


def drift(session: Session) -> None:
    """Figure 4a: new subscriptions use the other half of the names."""
    _over_time(session, W3, W4)


def skew(session: Session) -> None:
    """Figure 4b: the fixed attributes of new subscriptions, and of events, come down to few values."""
    _over_time(session, W5, W6)


def _over_time(session: Session, before: Parameters, after: Parameters) -> None:
    scale, size = session.scale, session.scale.drifting
    rounds = max(int(size * scale.turnover / scale.steps / scale.changes), 1)  # in a step
    protocol = Churn(changes=scale.changes, events=20)
    for contender in session.taking_part(ADAPTING):
        incoming, asking = Workload(after, seed=2, first_id=size), Workload(after, seed=3)
        subject, _ = session.loaded(contender, Workload(before), size)
        for step in range(scale.steps + 1):
            replaced = step * rounds * scale.changes
            session.tell(contender, f"{replaced:,} replaced")
            timing = subject.time(session.events(asking, round_=step))
            session.record_timing(contender, replaced / (_PAPER_CHANGES * 3600), timing)
            if step == scale.steps:
                break
            for gone, new, events in protocol.seconds(incoming, step * rounds, (step + 1) * rounds):
                subject.remove(gone)
                subject.add(new)
                subject.match(events)


def churn(session: Session) -> None:
    """Record how fast subscriptions come and go while events are matched, and the worst single change."""
    scale, size = session.scale, session.scale.churning
    for contender in session.contenders:
        subject, _ = session.loaded(contender, Workload(W0), size)
        incoming = Workload(W0, seed=2, first_id=size)
        session.tell(contender, "changing")
        changing = matching = 0.0
        rounds = 0
        for gone, new, events in CHURN.seconds(incoming, 0, scale.rounds):
            changing += subject.remove(gone) + subject.add(new)
            matching += subject.match(events).seconds
            rounds += 1
            if changing + matching > scale.patience / 10:
                break  # a slow matcher's rate is known after fewer rounds
        done = 2 * rounds * CHURN.changes
        share = matching / (changing + matching)
        session.record("changes", contender, size, (done / changing, "changes/s"), share_matching=share)
        session.tell(contender, "changing one by one")
        begin = rounds * CHURN.changes
        singles = Churn(changes=1, events=1).seconds(incoming, begin, begin + scale.single)
        taken = [max(subject.remove(gone), subject.add(new)) for gone, new, _ in singles]
        typical = float(np.median(taken)) * 1e3
        session.record("worst single change", contender, size, (max(taken) * 1e3, "ms"), median=typical)


def dicts(session: Session) -> None:
    """Record how many events a second are matched from Python dicts."""
    for contender in session.contenders:
        workload = Workload(W0)
        subject, _ = session.loaded(contender, workload, session.scale.usual)
        session.tell(contender, "matching dicts")
        seconds = subject.time_dicts(session.events(workload))
        session.record("events from dicts", contender, session.scale.usual, (1 / seconds, "events/s"))


def two_attributes(session: Session) -> None:
    """Check the paper's analysis: with pairs of attributes, an event reaches as many times fewer as there are values."""
    pair = list(session.taking_part((_WIDE, _NARROW)))
    if len(pair) < 2:
        return
    for domain in _FEW_VALUES:
        parameters = _with_domain(domain)
        wide, narrow = (_timed(session, contender, parameters) for contender in pair)
        if wide.checks is not None and narrow.checks:
            session.record("checks, as a ratio", _NARROW, domain, (wide.checks / narrow.checks, "times"))
        if wide.second_phase is not None and narrow.second_phase:
            ratio = wide.second_phase / narrow.second_phase
            session.record("phase 2, as a ratio", _NARROW, domain, (ratio, "times"))


def _timed(session: Session, contender: Contender, parameters: Parameters) -> Timing:
    workload = Workload(parameters)
    subject, _ = session.loaded(contender, workload, session.scale.usual)
    return session.time(subject, workload)
