"""A run of the experiments: how calls and processes are timed, in turns, on one core."""

from __future__ import annotations

import asyncio
import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.json
import pyarrow.parquet as pq

from benchmarks.engine.workload import Alerts, draw_alerts, flights
from benchmarks.runner.session import Progress, Session, Targets, silent
from tocsin import Engine
from tocsin.cli.flights import TABLE

ENGINE: Final = "Engine"
MATCH: Final = "tocsin match"
LAMBDAS: Final = "loop of lambdas"
DUCKDB: Final = "DuckDB"

PER_EVENT: Final = "µs an event"


class EngineSession(Session):
    """Times calls of an engine and of its rivals in turns, and takes the best run of each."""

    targets: ClassVar[Targets] = {
        ("one event", PER_EVENT, "alerts, 3.3 matches", 100_000): 25.0,
        ("one event", PER_EVENT, "Le Subscribe's W0", 1_000_000): 20.0,
        ("one event", PER_EVENT, "one sequence", 1): 30.0,
        ("one event", PER_EVENT, "one view", 1): 25.0,
        ("one event", PER_EVENT, "apublish over publish", ""): 15.0,
        ("many events", PER_EVENT, "publish_many, dicts to objects", ""): 12.0,
        ("many events", PER_EVENT, "publish_many, Arrow to columns", ""): 6.0,
        ("flights", "events/s", ENGINE, ""): 200_000.0,
        ("files", "events/s", MATCH, ".jsonl"): 150_000.0,
        ("files", "events/s", MATCH, ".csv"): 150_000.0,
        ("files", "events/s", MATCH, ".parquet"): 400_000.0,
        ("start", "seconds", "from tocsin import Engine", ""): 0.25,
        ("start", "processor seconds", "compiling, from an empty cache", ""): 20.0,
        ("subscribing", "µs each", "a text", ""): 120.0,
        ("subscribing", "µs each", "texts at once", ""): 60.0,
        ("subscribing", "µs each", "a sequence", ""): 500.0,
        ("memory", "bytes beyond the matcher", "template", ""): 120.0,
        ("memory", "bytes beyond the matcher", "text", ""): 400.0,
    }

    def __init__(self, scale: Any, *, progress: Progress = silent) -> None:
        super().__init__(scale, progress)
        self._temporary = TemporaryDirectory(prefix="tocsin-benchmark-")
        self.folder = Path(self._temporary.name)
        self._answers: dict[str, int] = {}
        self._cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {max(self._cores)})  # and with it every process that is started here

    def close(self) -> None:
        """Remove the files, and use all cores again."""
        os.sched_setaffinity(0, self._cores)
        self._temporary.cleanup()

    def compile(self, measures: Sequence[Callable[[Any], None]]) -> None:  # noqa: ARG002 - all need the engine
        """Use filters, a sequence and a view once."""
        engine = self.engine(draw_alerts(2_000))
        engine.table("t", key="k")
        engine.subscribe("from s a next s b on b.k = a.k where b.v > a.v")
        engine.subscribe("select min(v) from table t where k between 1 and 5")
        events = [{"k": i, "v": i * 7 % 5} for i in range(50)]
        for stream in ("s", "t", "other"):
            engine.publish_many(events, stream=stream)
            for event in events:
                engine.publish(event, stream=stream)
        engine.publish_many(flights().slice(0, 2_000), stream="flights", time="time").to_arrow()

    def engine(self, alerts: Sequence[Alerts]) -> Engine:
        """Return an engine with these alerts, in an index."""
        engine = Engine()
        for one in alerts:
            engine.subscribe_many(one.kind.text, one.rows, id=f"{'-'.join(one.kind.columns)}-{{row}}")
        return engine

    def best(self, works: Mapping[str, Callable[[], object]], events: int) -> dict[str, float]:
        """Return the least processor seconds an event of each work, over several rounds in which they take turns."""
        found = dict.fromkeys(works, float("inf"))
        for _ in range(self.scale.rounds):
            for label, work in works.items():
                self.tell(label)
                gc.collect()
                begun = time.process_time()  # other processes do not add to it
                work()
                found[label] = min(found[label], (time.process_time() - begun) / events)
        return found

    def record_calls(
        self, works: Mapping[str, Callable[[], object]], events: int, at: float | str
    ) -> dict[str, float]:
        """Record and return the microseconds an event of each work."""
        found = {label: seconds * 1e6 for label, seconds in self.best(works, events).items()}
        for label, value in found.items():
            self.record(PER_EVENT, label, at, value, "µs")
        return found

    def read(self, file: Path) -> pa.Table:
        """Return the table of a Parquet file."""
        return pq.read_table(file)

    def agree(self, what: str, answers: int) -> None:
        """Raise `RuntimeError` if contenders or runs give different numbers of notifications."""
        if self._answers.setdefault(what, answers) != answers:
            raise RuntimeError(f"{what}: {answers:,} notifications, and {self._answers[what]:,} before")

    def run(self, *command: str | Path, cache: Path | None = None) -> tuple[float, float, str]:
        """Run a command of this Python; return its seconds, its processor seconds and its standard output."""
        environment = os.environ | ({} if cache is None else {"TOCSIN_CACHE_DIR": str(cache)})
        before, begun = os.times(), time.perf_counter()
        done = subprocess.run(  # noqa: S603 - our own commands
            [sys.executable, *map(str, command)], env=environment, check=False, capture_output=True, text=True
        )
        seconds, after = time.perf_counter() - begun, os.times()
        if done.returncode:
            raise RuntimeError(f"{command} failed: {done.stderr}")
        processor = (
            after.children_user + after.children_system - before.children_user - before.children_system
        )
        return seconds, processor, done.stdout

    @cached_property
    def events(self) -> pa.Table:
        """Return the flights, with ISO texts for the time in files that have no timestamps."""
        return flights().slice(0, self.scale.flights)

    def event_file(self, suffix: str, count: int | None = None) -> Path:
        """Return a file of the flights, or of the first `count`, in the format that its suffix names."""
        file = self.folder / f"flights-{count or 'all'}{suffix}"
        if file.exists():
            return file
        table = self.events.slice(0, count)
        if suffix == ".parquet":
            pq.write_table(table, file)
            return file
        texts = pc.strftime(table.column("time"), format="%Y-%m-%dT%H:%M:%SZ")
        table = table.set_column(table.schema.get_field_index("time"), "time", texts)
        if suffix == ".csv":
            pa.csv.write_csv(table, file, pa.csv.WriteOptions(quoting_style="none"))
            return file
        with file.open("w") as out:
            for row in table.to_pylist():
                present = {name: value for name, value in row.items() if value is not None}
                out.write(json.dumps(present) + "\n")
        return file


def flights_engine(queries: Mapping[str, str]) -> Engine:
    """Return an engine with the table of flights and these queries."""
    engine = Engine()
    engine.table("flights", key=TABLE)
    for name, text in queries.items():
        engine.subscribe(text, id=name)
    return engine


async def publish_all(engine: Engine, events: Sequence[Mapping[str, Any]]) -> None:
    """Publish events one after another, from the event loop."""
    for event in events:
        await engine.apublish(event)


def run_async(engine: Engine, events: Sequence[Mapping[str, Any]]) -> None:
    """Publish events one after another, in an event loop of their own."""
    asyncio.run(publish_all(engine, events))
