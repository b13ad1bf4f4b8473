"""Sequences on shards, without Spark: `python -m benchmarks.cayuga.sharding --kind Filter --shards 4`.

Measures by processor time, on one core, the router with all subscriptions, and the busiest shard with its own.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from typing import Final

import numpy as np

from benchmarks.cayuga.session import KINDS, Input, technical_input
from benchmarks.cayuga.workloads.technical import Kind
from tocsin.engine.event_sources import require_columns, timed_rows
from tocsin.index.stateful import StatefulRun, StatefulSubscriptions
from tocsin.matching.timed_batch import TimedRows
from tocsin.model.options import SubscriptionOptions
from tocsin.model.ticks import StreamTicks
from tocsin.sharding import Routed, ShardPlan, ShardRouter, ShardRuntime
from tocsin.structures.packed_strings import PackedStrings
from tocsin.subscriptions.queries import StoredTemplate
from tocsin.subscriptions.runs import Run

_TRIED: Final = 2  # batches before anything is timed


def measure(
    kind: Kind,
    count: int,
    shards: int,
    *,
    events: int = 100_000,
    batch: int = 10_000,
    out_of_orderness: int = 0,
) -> Iterator[str]:
    """Yield what was measured, line by line."""
    given = technical_input(kind, count)
    stateful = _subscriptions(given)
    begun = time.process_time()
    plan = ShardPlan.of(stateful, shards)
    yield f"plan: {time.process_time() - begun:.2f} s"
    yield plan.describe()
    router = ShardRouter(plan)
    batches = list(_batches(given, events, batch))
    routed = [router.route(one) for one in batches[:_TRIED]]
    begun = time.process_time()
    routed += [router.route(one) for one in batches[_TRIED:]]
    rows = sum(len(one) for one in batches[_TRIED:])
    yield f"route: {rows / (time.process_time() - begun):,.0f} events/s, " + _travels(batches, routed)
    shard = int(np.bincount(np.concatenate([one.shards for one in routed]), minlength=shards).argmax())
    begun = time.process_time()
    runtime = ShardRuntime(stateful, plan, shard, 1, out_of_orderness=out_of_orderness)
    yield f"shard {shard}: made in {time.process_time() - begun:.2f} s"
    done = [_process(runtime, shard, *one) for one in zip(batches, routed, strict=True)][_TRIED:]
    travelled, seconds = sum(one[0] for one in done), sum(one[1] for one in done)
    yield f"process: {travelled / seconds:,.0f} events/s of those that travel to it; {travelled:,} of {rows:,}"
    begun = time.process_time()
    state = runtime.snapshot()
    yield f"snapshot: {time.process_time() - begun:.3f} s, {len(state):,} bytes"
    begun = time.process_time()
    ShardRuntime(stateful, plan, shard, 1, state=state, out_of_orderness=out_of_orderness)
    yield f"restored with its subscriptions in {time.process_time() - begun:.2f} s"


def _subscriptions(given: Input) -> StatefulSubscriptions:
    runs: list[StatefulRun] = []
    first = 0
    for group in given.groups:
        template = group.template()
        rows = template.bind_many(group.columns)
        numbers = np.arange(first, first + len(rows))
        ids = PackedStrings([f"q{number}" for number in numbers.tolist()])
        run = Run(ids, (SubscriptionOptions(),), StoredTemplate(template, rows), ())
        runs.append(StatefulRun(run, numbers, np.zeros(len(rows), dtype=np.int64)))
        first += len(rows)
    return StatefulSubscriptions("", tuple(runs), (), {}, {})


def _batches(given: Input, events: int, batch: int) -> Iterator[TimedRows]:
    for table in given.events(0, events, batch=batch):
        rows = require_columns(table.sort_by(given.time), given.stream)
        yield timed_rows(rows, given.time, None, StreamTicks())


def _process(runtime: ShardRuntime, shard: int, events: TimedRows, routed: Routed) -> tuple[int, float]:
    """Process what travels to a shard; return how many events these are, and the seconds."""
    parts = {one: (rows, roles) for one, rows, roles in routed.by_shard()}
    none = np.empty(0, dtype=np.int64)
    rows, roles = parts.get(shard, (none, none))
    begun = time.process_time()
    runtime.process(events.take(rows), roles, routed.latest)
    return len(rows), time.process_time() - begun


def _travels(batches: list[TimedRows], routed: list[Routed]) -> str:
    travelled, events = sum(len(one.rows) for one in routed), sum(map(len, batches))
    return f"an event to {travelled / events:.2f} shards"


def main() -> None:
    """Measure, and print the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kind", choices=KINDS, default="Filter")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--shards", type=int, default=4)
    parser.add_argument("--out-of-orderness", type=int, default=0)
    given = parser.parse_args()
    for line in measure(given.kind, given.count, given.shards, out_of_orderness=given.out_of_orderness):
        print(line)  # noqa: T201 - it is a command


if __name__ == "__main__":
    main()
