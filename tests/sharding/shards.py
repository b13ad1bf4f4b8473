"""All shards of a plan in one process, and one engine beside them, with comparable notifications."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeAlias

import numpy as np

from tocsin import Engine
from tocsin.engine import EventClock
from tocsin.formats.notifications import encode_json
from tocsin.index import StatefulSubscriptions
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Notification, Subscription
from tocsin.model.errors import EventError
from tocsin.sharding import ShardPlan, ShardRouter, ShardRuntime, reshard

Told: TypeAlias = Counter[tuple[Any, ...]]
_NOBODY = np.empty(0, dtype=np.int64)


class Shards:
    """The shards of one query; `restart` goes on from snapshots, as another process would."""

    def __init__(self, stateful: StatefulSubscriptions, count: int, out_of_orderness: int = 0) -> None:
        self.count = count
        self.generation = 0
        self.out_of_orderness = out_of_orderness
        self.stateful = stateful
        self.plan = ShardPlan.of(stateful, count)
        self.router = ShardRouter(self.plan)
        self.runtimes = [
            ShardRuntime(stateful, self.plan, shard, 0, out_of_orderness=out_of_orderness)
            for shard in range(count)
        ]
        self.late: list[str] = []

    def follow(self, stateful: StatefulSubscriptions, generation: int) -> None:
        self.stateful, self.generation = stateful, generation
        self.plan = ShardPlan.of(stateful, self.count)
        self.router = ShardRouter(self.plan)
        for runtime in self.runtimes:
            runtime.migrate(stateful, self.plan, generation)

    def restart(self, stateful: StatefulSubscriptions | None = None, generation: int | None = None) -> None:
        """Go on from snapshots, as new processes would, maybe with a later generation."""
        states = [runtime.snapshot() for runtime in self.runtimes]
        self._begin(states, stateful, generation)

    def grow(self, count: int) -> None:
        """Go on with more shards."""
        states = reshard([runtime.snapshot() for runtime in self.runtimes], count)
        self.count = count
        self._begin(states, None, None)

    def _begin(
        self, states: list[bytes], stateful: StatefulSubscriptions | None, generation: int | None
    ) -> None:
        self.stateful = self.stateful if stateful is None else stateful
        self.generation = self.generation if generation is None else generation
        self.plan = ShardPlan.of(self.stateful, self.count)
        self.router = ShardRouter(self.plan)
        self.runtimes = [
            ShardRuntime(
                self.stateful,
                self.plan,
                shard,
                self.generation,
                state=state,
                out_of_orderness=self.out_of_orderness,
            )
            for shard, state in enumerate(states)
        ]

    def process(self, events: Sequence[Event]) -> Told:
        """Route the events as they come, and give them to the shards in the order of their end."""
        routed = self.router.route(TimedBatch(list(events)))
        sent = {shard: (rows, roles) for shard, rows, roles in routed.by_shard()}
        found: Told = Counter()
        for shard, runtime in enumerate(self.runtimes):
            rows, roles = sent.get(shard, (_NOBODY, _NOBODY))
            order = np.argsort([events[row].end for row in rows.tolist()], kind="stable").astype(np.int64)
            given = [events[row] for row in rows[order].tolist()]
            carried = [event.id.encode() for event in given]
            output = runtime.process(TimedBatch(given), roles[order], routed.latest, carried=carried)
            found += told_of(output.notifications)
            self.late += output.late.column("event_id").to_pylist()
        return found

    def finish(self) -> Told:
        found: Told = Counter()
        for runtime in self.runtimes:
            found += told_of(runtime.finish().notifications)
        return found


def told_of(batch: Any) -> Told:
    found: Told = Counter()
    for line in batch.to_pylist():
        if line["event_id"] is not None and line["row"] is None:
            assert line["carried"] == line["event_id"].encode()
        values = None if line["values"] is None else normal(line["values"])
        old, new = (None if line[name] is None else normal(line[name]) for name in ("old", "new"))
        found[
            line["subscription"], tuple(line["event_ids"]), line["start"], line["end"], values, old, new
        ] += 1
    return found


class Beside:
    """One engine with the same subscriptions, given the events of each batch in the order of their end."""

    def __init__(
        self,
        subscriptions: Iterable[Subscription],
        tables: Mapping[str, str],
        ticks: Mapping[str, int] | None = None,
        out_of_orderness: int = 0,
    ) -> None:
        self.late: list[str] = []
        self.first: Told = Counter()
        self.engine = Engine(
            clock=EventClock(),
            out_of_orderness=out_of_orderness,
            lateness=10**15,
            on_late=lambda event: self.late.append(event.id),
        )
        for stream, tick in (ticks or {}).items():
            self.engine.stream(stream, tick=tick)
        for name, key in tables.items():
            self.engine.table(name, key=key)
        for one in subscriptions:
            self.add(one)

    def add(self, one: Subscription) -> None:
        times = {"valid_from": one.valid_from, "valid_until": one.valid_until}
        done = self.engine.subscribe(one.query, id=one.id, witness=one.witness, replace=True, **times)  # type: ignore[arg-type]
        self.first += told(done.notifications)

    def process(self, events: Sequence[Event]) -> Told:
        found: Told = self.first
        self.first = Counter()
        for event in sorted(events, key=lambda one: one.end):
            with suppress(EventError):  # it is no row of its table
                found += told(note for note in self.engine.publish(event) if not is_of_raw_filter(note))
        return found

    def finish(self) -> Told:
        return told(self.engine.flush())


def is_of_raw_filter(note: Notification) -> bool:
    """Tell whether it is of a filter on an event that no sequence published: another stage has these."""
    return note.witness is None and not note.view and not note.event_ids[-1].endswith(")")


def told(notes: Iterable[Notification]) -> Told:
    found: Told = Counter()
    for note in notes:
        values = None if note.values is None else normal(encode_json(dict(note.values)))
        old, new = (normal(encode_json(one)) if note.view else None for one in (note.old, note.new))
        old = None if note.view and not note.event_ids else old
        found[note.subscription, note.event_ids, note.start, note.end, values, old, new] += 1
    return found


def normal(text: str | bytes) -> str:
    """Return JSON in which rows of an answer have an order."""
    plain = json.loads(text)
    if isinstance(plain, list):
        return json.dumps(sorted(plain, key=json.dumps))
    return json.dumps(plain)
