"""The alternative: a database that stores points, ranges and answers, and queries again the answers that may change."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa

from tocsin.dissemination.scenarios.ranges import Ranges
from tocsin.dissemination.scenarios.walks import TablePoints
from tocsin.matching import IdArray
from tocsin.views.changes import Floats


class Rival(Protocol):
    """A database that follows updates of points."""

    def update(self, row: int, x: float, old: float, new: float) -> tuple[IdArray, Floats]:
        """Make an update, and return the subscriptions whose answers change, in any order, and the new ones."""

    def close(self) -> None:
        """Release the database."""


class Sqlite:
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
            spans = [
                ranges.numbers,
                *(np.rint(100 * c).astype(np.int64) for c in (ranges.lows, ranges.highs)),
            ]
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
        return (
            np.array([number for number, _ in found], dtype=np.int64),
            np.array([answer for _, answer in found], dtype=np.float64),
        )

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


class DuckDb:
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

    def close(self) -> None:
        """Close the database."""
        self._connection.close()


def missing(package: str) -> str | None:
    """Return which package has to be installed for a rival, or None."""
    if find_spec(package) is not None:
        return None
    return f"{package} is not there; install it with: pip install 'tocsin[bench]'"


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

RIVALS: Final[Mapping[str, tuple[str, Callable[..., Rival]]]] = {
    "SQLite": ("sqlite3", Sqlite),
    "DuckDB": ("duckdb", DuckDb),
}
"""The databases by name: the package that each needs, and its class."""
