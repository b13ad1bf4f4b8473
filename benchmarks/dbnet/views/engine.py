"""The same subscriptions and updates through an engine, as its users have it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

import pyarrow as pa
from msgspec import Struct

from benchmarks.dbnet.views.session import Processed, ViewSession
from tocsin.dissemination.scenarios.walks import KEY, TABLE, Updates, X, Y
from tocsin.engine import Engine

TEMPLATE: Final = f"select min({Y}) from table {TABLE} where {X} between :low and :high"  # noqa: S608 - the language's own


class _Way(Struct, frozen=True):
    """A way of publishing, which returns the number of notifications: rows at a time, and rows at most."""

    label: str
    publish: Callable[[Engine, pa.Table], int]
    size: int
    most: int


def engine(session: ViewSession) -> None:
    """Load rows and subscriptions by the column, and update rows by the column, in batches of events and one by one."""
    scale = session.scale
    ranges = session.ranges(scale.compared)
    points, updates = session.updates(scale.rows)
    held, at = Engine(), scale.compared
    held.table(TABLE, key=KEY)
    label = "loading"
    session.tell(label, f"{len(points):,} rows, {len(ranges):,} subscriptions")
    begun = time.perf_counter()
    for _ in held.publish_many(points.to_arrow(), stream=TABLE):
        pass
    between = time.perf_counter()
    held.subscribe_many(TEMPLATE, ranges.to_arrow(), id="id")
    seconds = time.perf_counter() - between
    session.record("rows", label, at, len(points) / max(between - begun, 1e-9), "rows/s")
    session.record("subscriptions", label, at, len(ranges) / max(seconds, 1e-9), "subscriptions/s")
    done = 0
    for way in (
        _Way("Engine.upsert", _by_the_column, scale.batch, len(updates) // 2),
        _Way("Engine.publish_many", _in_batches, scale.batch, len(updates) // 3),
        _Way("Engine.publish", _one_by_one, 1, scale.single),
    ):
        done += _published(session, held, way, updates.take(done, done + way.most))
        after = updates.take(0, done).applied_to(points)
        session.check_answers(lambda number: held.answer(str(number)), after, ranges)


def _published(session: ViewSession, held: Engine, way: _Way, updates: Updates) -> int:
    """Publish updates, as many as the time allows, and return how many."""
    label, at = way.label, session.scale.compared
    session.tell(label, f"{len(updates):,} updates")
    rows = updates.to_arrow()
    seconds, done, told = 0.0, 0, 0
    while done < rows.num_rows and seconds < session.scale.seconds:
        part = rows.slice(done, way.size)
        begun = time.perf_counter()
        told += way.publish(held, part)
        seconds += time.perf_counter() - begun
        done += part.num_rows
    taken = Processed(done, told, seconds, seconds, 0)
    session.record_rates(label, at, taken, "notifications/s")
    return done


def _by_the_column(held: Engine, rows: pa.Table) -> int:
    return len(held.upsert(rows, stream=TABLE))


def _in_batches(held: Engine, rows: pa.Table) -> int:
    return sum(1 for _ in held.publish_many(rows, stream=TABLE))


def _one_by_one(held: Engine, rows: pa.Table) -> int:
    return sum(len(held.publish(row, stream=TABLE)) for row in rows.to_pylist())
