"""Single changes and single events beside many subscriptions: not what they cost on average, but the slowest of them."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from rich.console import Console

from benchmarks.adaptive.session import OWN, AdaptiveSession, Source
from benchmarks.runner.benchmark import Experiment
from benchmarks.runner.report import Measurement, of_experiment
from benchmarks.runner.subject import Contender
from benchmarks.runner.tables import number, table_of
from tocsin.matching import create_matcher
from tocsin.replay import numbered

KINDS: Final = ("add", "removal", "event")
SHARES: Final = {"median": 0.5, "p99": 0.99, "p99.9": 0.999, "worst": 1.0}
_ADDED: Final = 1 << 15  # subscriptions that are added at a time, before single ones


def measure_changes(session: AdaptiveSession, sources: Mapping[str, Source]) -> None:
    """Record how long single adds, removals and events take, in processor time."""
    for contender in session.taking_part([Contender.of(OWN)]):
        for workload, source in sources.items():
            session.tell(contender.label, workload)
            for kind, taken in _measured(session, source).items():
                for name, share in SHARES.items():
                    value = float(np.quantile(taken, share)) / 1e6
                    session.record(name, contender.label, workload, value, "ms", kind=kind)


def _measured(session: AdaptiveSession, source: Source) -> dict[str, list[int]]:
    """Return the nanoseconds of each single add, removal and event."""
    scale, matcher = session.scale, create_matcher(OWN)
    held, count = scale.changed, scale.changes
    # The matcher plans for all when there are half as many again: in the middle of the changes, which add a quarter of `count`.
    first = 2 * (held + count // 8) // 3
    for begin, end, step in ((0, first, first), (first, held, _ADDED)):
        for batch in source.subscriptions(begin, end, batch=step):
            numbered.add_encoded_to(matcher, batch, numbered.encoded_for(matcher, batch))
    for events in source.events(0, scale.warm_up, batch=scale.batch):
        matcher.match(numbered.prepared_for(matcher, events))
    after = source.events(scale.warm_up, scale.warm_up + count // 4, batch=scale.batch)
    rows = [row for events in after for row in events.to_dicts()]
    added = list(source.subscriptions(held, held + count, batch=1))
    gone = np.random.default_rng(1).permutation(held)[:count]
    matcher.remove(gone[-1:])
    gc.collect()
    gc.freeze()  # no collection of what stays falls into a measurement
    try:
        adding = _each(added, lambda one: numbered.add_to(matcher, one))
        removing = _each(range(count - 1), lambda i: matcher.remove(gone[i : i + 1]))
        matching = _each(rows, matcher.match_one)
        found: dict[str, list[int]] = {kind: [] for kind in KINDS}
        for _ in rows:  # in turns
            for kind, source_of, times in zip(KINDS, (adding, removing, matching), (4, 3, 1), strict=True):
                found[kind] += (next(source_of) for _ in range(times))
        return found
    finally:
        gc.unfreeze()


def _each(given: Iterable[Any], work: Callable[[Any], object]) -> Iterator[int]:
    """Yield the nanoseconds of some work on each."""
    for one in given:
        start = time.process_time_ns()
        work(one)
        yield time.process_time_ns() - start


def show_changes(
    measurements: Sequence[Measurement], experiments: Mapping[str, Experiment[Any]], console: Console
) -> None:
    """Print a table of the single changes, if they were measured."""
    for name, experiment in experiments.items():
        found = [one for one in of_experiment(measurements, name) if one.name in SHARES]
        if not found:
            continue
        table = table_of(("workload", "of a single"), [f"{share}, ms" for share in SHARES], experiment.title)
        cells = {
            (str(one.details["at"]), str(one.details["kind"]), one.name): number(one.value) for one in found
        }
        for workload in dict.fromkeys(workload for workload, _, _ in cells):
            for kind in KINDS:
                table.add_row(workload, kind, *(cells[workload, kind, share] for share in SHARES))
        console.print(table)
