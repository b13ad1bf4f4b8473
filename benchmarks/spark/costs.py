"""The costs of the parts of the work; `docs/scaling.md` computes with these."""

from __future__ import annotations

import time

from msgspec.structs import replace

from benchmarks.lesubscribe.workload import Workload
from benchmarks.spark.inputs import filled, write_table
from benchmarks.spark.process import Timed
from benchmarks.spark.session import SparkBenchSession
from benchmarks.workloads.tabular import event_table, templates
from tocsin.index import IndexReader, Shard, SubscriptionIndex
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.matching.encoding.events import encode_events
from tocsin.replay.numbered import EncodingMatcher


def costs(session: SparkBenchSession) -> None:
    """Record the costs of an event, a notification, and a change of the index."""
    _events(session)
    _notifications(session)
    _index(session)


def _events(session: SparkBenchSession) -> None:
    """Record the parts of an event's way on one core: into Python, into codes, to its matches."""
    count, files = session.scale.events, session.inputs.event_files
    shard = _opened(session)
    paces = []
    for is_counted in session.rounds("events"):
        sent = session.one.ask("transferred", Timed, events=files)
        seconds = sent.seconds, *_by_part(session, shard)
        if is_counted:
            paces.append([1e9 * one / count for one in seconds])
    columns, held = {"columns": session.scale.workload.names}, {"subscriptions": session.scale.subscriptions}
    parts = {"into Python": columns, "into codes": columns, "to its matches": held}
    for (name, size), runs in zip(parts.items(), zip(*paces, strict=True), strict=True):
        session.record_runs(name, "an event", runs, "ns", **size)


def _by_part(session: SparkBenchSession, shard: Shard) -> tuple[float, float]:
    """Return the seconds that all events take to be encoded, and to be matched then."""
    matcher = shard.matcher
    assert isinstance(matcher, EncodingMatcher)  # noqa: S101 - the index was made with one
    encoding = matching = 0.0
    for rows in session.inputs.events.drop_columns("event_id").to_batches(max_chunksize=session.scale.batch):
        begun = time.perf_counter()
        batch = arrow_events(rows)
        encode_events(batch, matcher.vocabulary)
        encoded = time.perf_counter()
        shard.matcher.match(batch)
        matching += time.perf_counter() - encoded
        encoding += encoded - begun
    return encoding, matching


def _notifications(session: SparkBenchSession) -> None:
    """Record the cost of one more notification, from two indexes with different numbers of matches per event."""
    scale = session.scale
    workload = Workload(replace(scale.workload, predicates=scale.workload.fixed))
    events = event_table(workload.events(0, scale.noted_events), scale.workload.names)
    files = write_table(events, session.folder / "noted-events")
    indexes = [
        filled(session.folder / f"noted-{count}", templates(workload.subscriptions(0, count))).folder
        for count in scale.noted
    ]
    paces = []
    for is_counted in session.rounds("notifications"):
        few, many = (session.one.match(files, index) for index in indexes)
        if is_counted:
            paces.append(1e9 * (many.seconds - few.seconds) / max(many.rows - few.rows, 1))
    session.record_runs("told to a counting query", "a notification", paces, "ns")


def _index(session: SparkBenchSession) -> None:
    """Record the costs of filling an index, opening it, and publishing one change of it."""
    session.tell("the index")
    index, count = session.inputs.index(), session.scale.subscriptions
    begun = time.perf_counter()
    for _ in range(session.scale.rounds):
        _opened(session)
    opening = (time.perf_counter() - begun) / session.scale.rounds
    seconds = index.subscribing + index.publishing
    begun = time.perf_counter()
    changed = SubscriptionIndex(index.folder)
    opened = time.perf_counter()
    changed.subscribe("a0 = 0", id="one more")
    changed.publish()
    published = time.perf_counter()
    for name, value, unit in (
        ("filled and published", count / seconds, "subscriptions/s"),
        ("of which: publish", index.publishing, "s"),
        ("on disk, a subscription", index.bytes / count, "bytes"),
        ("opened by a worker", 1e3 * opening, "ms"),
        ("opened to be changed", opened - begun, "s"),
        ("one change published", published - opened, "s"),
    ):
        session.record_runs(name, "the index", value, unit, subscriptions=count)


def _opened(session: SparkBenchSession) -> Shard:
    """Return the index's only shard, opened as a worker opens it."""
    reader = IndexReader(session.inputs.index().folder)
    return reader.shard(reader.current(), 0)
