"""Range-min subscriptions beside databases with fitting indexes that query again the answers that may change."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, Final

import numpy as np
import pyarrow as pa
from msgspec import Struct

from benchmarks.dbnet.views.session import Processed, ViewSession, process_updates
from tocsin.dissemination.scenarios.ranges import Ranges
from tocsin.dissemination.scenarios.walks import SPIKES, TablePoints, Updates, in_batches
from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.range_family import RangeFamily

_OURS: Final = "Tocsin"
_SPIKED: Final = 2 * SPIKES  # the share of updates that are a spike or its return
_ASKED: Final = {", all ranges around x": False, ", only answers that may change": True}
_LEAST: Final = 2  # updates, however long they take: a spike and its return

Changed = tuple[IdArray, Floats]
"""The subscriptions that an update changes, ascending, and their new answers."""


class _Times(Struct, frozen=True):
    """Seconds of an update, by its sort."""

    ordinary: float
    spikes: float
    counts: tuple[int, int]

    @property
    def average(self) -> float:
        """Return the seconds of an update of Table 1."""
        return (1 - _SPIKED) * self.ordinary + _SPIKED * self.spikes


def databases(session: ViewSession) -> None:
    """Follow the same updates in databases; they must tell the same.

    Spikes take a database seconds each, so that few updates fit into the time: spikes and others are measured apart, and
    weighed as Table 1 has them.
    """
    for rows in session.scale.rivalled:
        points, ordinary = session.updates(rows, spikes=0.0)
        _, spikes = session.updates(rows, spikes=0.5)
        ranges = session.ranges(session.scale.compared)
        batched = _batched(session, points, ranges, (spikes, ordinary))
        _record(session, _OURS, rows, batched)
        family = session.family((points.x, points.y), ranges)
        begun = family.server.present(ranges.lows, ranges.highs)["value"]
        alone, told = _replayed(session, (spikes, ordinary), _by_family(family))
        _record(session, f"{_OURS}, one by one", rows, alone)
        for name, (package, make) in RIVALS.items():
            if session.lacks(package, name):
                continue
            for variant, filtered in _ASKED.items():
                label = f"{name}{variant}"
                session.tell(label, f"{rows:,} rows")
                rival = make(points, ranges, begun, filtered=filtered)
                found, changed = _replayed(session, (spikes, ordinary), rival.update)
                rival.close()
                _check(label, told, changed)
                _record(session, label, rows, found)
                for what, ours in (("times as fast", batched), ("times as fast, one by one", alone)):
                    session.record(what, label, rows, found.average / ours.average, "times")


def _batched(
    session: ViewSession, points: TablePoints, ranges: Ranges, given: tuple[Updates, Updates]
) -> _Times:
    """Return Tocsin's seconds of updates in batches."""
    held, (spikes, ordinary) = (points.x, points.y), given
    family, scale = session.family(held, ranges), session.scale
    session.check(family, held, ranges, spikes.take(0, 2).changes)
    many = process_updates(family, in_batches(spikes.changes, scale.crowded, 2), scale.seconds)
    if many.updates % 2:
        raise MatcherError("a spike was not restored; let the batches be of an even size")
    few = process_updates(family, in_batches(ordinary.changes, scale.batch), scale.seconds)
    return _Times(_each(few), _each(many), (few.updates, many.updates))


def _each(done: Processed) -> float:
    return done.seconds / max(done.updates, 1)


def _by_family(family: RangeFamily) -> Callable[[int, float, float, float], Changed]:
    """Return a function that processes one update, as a rival does."""

    def update(_: int, x: float, old: float, new: float) -> Changed:
        at = np.array([x])
        told = family.change_points(PointChanges(at, np.array([old]), at, np.array([new])))
        return told.numbers, told.new

    return update


def _replayed(
    session: ViewSession,
    given: tuple[Updates, Updates],
    update: Callable[[int, float, float, float], Changed],
) -> tuple[_Times, tuple[list[Changed], list[Changed]]]:
    """Return the seconds of updates one by one, and their changed answers: spikes first, which restore every value."""
    times, changed = [], []
    for updates in given:
        seconds, found = 0.0, list[Changed]()
        columns = (updates.rows, updates.x, updates.old_y, updates.new_y)
        for one in zip(*(column[: session.scale.single].tolist() for column in columns), strict=True):
            begun = time.perf_counter()
            numbers, answers = update(*one)
            seconds += time.perf_counter() - begun
            order = np.argsort(numbers)
            found.append((numbers[order], answers[order]))
            if seconds > session.scale.seconds and len(found) >= _LEAST and len(found) % 2 == 0:
                break
        times.append(seconds / len(found))
        changed.append(found)
    spikes, ordinary = changed
    return _Times(times[1], times[0], (len(ordinary), len(spikes))), (spikes, ordinary)


def _check(
    label: str, ours: tuple[list[Changed], list[Changed]], theirs: tuple[list[Changed], list[Changed]]
) -> None:
    """Raise `MatcherError` if a database changed other answers at an update that both were given."""
    for sort, one, two in zip(("spikes", "ordinary updates"), ours, theirs, strict=True):
        for place, (mine, other) in enumerate(zip(one, two, strict=False)):
            if not all(map(np.array_equal, mine, other)):
                raise MatcherError(
                    f"`{_OURS}` and `{label}` disagree on update {place} of the {sort}:"
                    f" they change {len(mine[0]):,} and {len(other[0]):,} answers"
                )


def _record(session: ViewSession, label: str, rows: int, times: _Times) -> None:
    for name, seconds, count in (
        ("ordinary", times.ordinary, times.counts[0]),
        ("spikes", times.spikes, times.counts[1]),
    ):
        session.record(name, label, rows, seconds * 1e6, "us an update", updates=float(count))
    session.record("average", label, rows, times.average * 1e6, "us an update")


class Database:
    """A database that follows updates of points."""

    _connection: Any

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


class Sqlite(Database):
    """SQLite in memory: an index over points by x that covers y, and an index over the ranges.

    `filtered` asks only for ranges whose answer is not below the update's lower y, by an index over answers; without it
    all ranges that x is within are asked for, by an R-tree of them in hundredths.
    """

    def __init__(self, points: TablePoints, ranges: Ranges, answers: Floats, *, filtered: bool) -> None:
        self._sql = _SQLITE_FILTERED if filtered else _SQLITE
        self._connection = connection = sqlite3.connect(":memory:", isolation_level=None)
        connection.executescript(_SQLITE_TABLES)
        connection.execute("begin")
        numbers = range(len(points))
        rows = zip(numbers, points.x.tolist(), points.y.tolist(), strict=True)
        connection.executemany("insert into points values (?, ?, ?)", rows)
        columns = [ranges.numbers, ranges.lows, ranges.highs, answers]
        connection.executemany(
            "insert into ranges values (?, ?, ?, ?)", zip(*(c.tolist() for c in columns), strict=True)
        )
        connection.execute("create index by_x on points (x, y)")
        if filtered:
            connection.execute("create index by_answer on ranges (answer, low, high)")
        else:
            connection.execute("create virtual table spans using rtree_i32 (id, low, high)")
            places = (np.rint(100 * c).astype(np.int64) for c in (ranges.lows, ranges.highs))
            spans = [ranges.numbers, *places]
            connection.executemany(
                "insert into spans values (?, ?, ?)", zip(*(c.tolist() for c in spans), strict=True)
            )
        connection.execute("commit")
        connection.execute("analyze")

    def update(self, row: int, x: float, old: float, new: float) -> tuple[IdArray, Floats]:
        """Make an update in a transaction, and return the changed answers."""
        connection = self._connection
        connection.execute("begin")
        connection.execute("update points set y = ? where id = ?", (new, row))
        given = {"x": x, "place": round(100 * x), "least": min(old, new)}
        found = connection.execute(self._sql, given).fetchall()
        if found:
            connection.executemany("update ranges set answer = ? where id = ?", ((y, n) for n, y in found))
        connection.execute("commit")
        numbers, answers = zip(*found, strict=True) if found else ((), ())
        return np.array(numbers, dtype=np.int64), np.array(answers, dtype=np.float64)


class DuckDb(Database):
    """DuckDB in memory, on one thread: points in the order of x with an index over it, ranges in the order of their ends."""

    def __init__(self, points: TablePoints, ranges: Ranges, answers: Floats, *, filtered: bool) -> None:
        duckdb: Any = import_module("duckdb")
        self._sql = _DUCKDB_FILTERED if filtered else _DUCKDB
        self._connection = connection = duckdb.connect(config={"threads": 1})
        rows = pa.table({"id": np.arange(len(points)), "x": points.x, "y": points.y})
        held = pa.table({"id": ranges.numbers, "low": ranges.lows, "high": ranges.highs, "answer": answers})
        for name, given, order in (("points", rows, "x"), ("ranges", held, "low, high")):
            connection.register("given", given)
            connection.execute(f"create table {name} as select * from given order by {order}")  # noqa: S608
            connection.execute(f"create unique index {name}_by_id on {name} (id)")
            connection.unregister("given")
        connection.execute("create index by_x on points (x)")
        connection.execute("create index by_low on ranges (low)")

    def update(self, row: int, x: float, old: float, new: float) -> tuple[IdArray, Floats]:
        """Make an update in a transaction, and return the changed answers."""
        connection = self._connection
        connection.execute("begin")
        connection.execute("update points set y = $y where id = $row", {"y": new, "row": row})
        given = {"x": x, "least": min(old, new)} if self._sql is _DUCKDB_FILTERED else {"x": x}
        found = connection.execute(self._sql, given).fetchnumpy()
        changed = pa.table({"id": np.asarray(found["id"]), "answer": np.asarray(found["answer"])})
        if changed.num_rows:
            connection.register("changed", changed)
            connection.execute(
                "update ranges set answer = changed.answer from changed where ranges.id = changed.id"
            )
            connection.unregister("changed")
        connection.execute("commit")
        return changed["id"].to_numpy(), changed["answer"].to_numpy()


_SQLITE_TABLES: Final = """
    pragma journal_mode = off;
    pragma synchronous = off;
    create table points (id integer primary key, x real, y real);
    create table ranges (id integer primary key, low real, high real, answer real);
"""
# Without the hints SQLite computes each answer twice, and the answers of all ranges before it probes the R-tree.
_SQLITE_OF: Final = """
    with asked as materialized (
        select r.id as id, r.answer as answer,
            (select min(p.y) from points p where p.x between r.low and r.high) as now
        from {}
    )
    select id, now from asked where now is not answer
"""
_SQLITE: Final = _SQLITE_OF.format(
    "spans s cross join ranges r on r.id = s.id where s.low <= :place and s.high >= :place"
)
_SQLITE_FILTERED: Final = _SQLITE_OF.format(
    "ranges r indexed by by_answer where r.answer >= :least and r.low <= :x and r.high >= :x"
)
_DUCKDB_OF: Final = """
    select r.id as id, min(p.y) as answer from ranges r join points p on p.x between r.low and r.high
    where r.low <= $x and r.high >= $x {} group by r.id, r.answer having min(p.y) is distinct from r.answer
"""
_DUCKDB: Final = _DUCKDB_OF.format("")
_DUCKDB_FILTERED: Final = _DUCKDB_OF.format("and r.answer >= $least")

RIVALS: Final[Mapping[str, tuple[str, Callable[..., Sqlite | DuckDb]]]] = {
    "SQLite": ("sqlite3", Sqlite),
    "DuckDB": ("duckdb", DuckDb),
}
"""The databases by name: the package that each needs, and its class."""
