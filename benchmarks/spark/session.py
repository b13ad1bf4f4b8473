"""A run of the experiments: its inputs, and the Spark processes that take part."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar, Final

from benchmarks.runner.session import PAPER, Progress, Session, Targets, silent
from benchmarks.spark.inputs import Inputs
from benchmarks.spark.process import SparkProcess, require_spark

EFFECT: Final = "micro-batches to the effect"


class SparkBenchSession(Session):
    """Spark on one core and on two, in processes of their own unless `processes` are given."""

    targets: ClassVar[Targets] = {
        ("joins", "faster than the join", "nested loop; texts", ""): 100.0,
        ("overhead", "share of the engine's rate", "memory", ""): 60.0,
        ("overhead", "share of the engine's rate", "Parquet", ""): 60.0,
        ("overhead", "gain of a second core", "memory", ""): 1.4,
        ("overhead", "gain of a second core", "Parquet", ""): 1.4,
        ("changes", EFFECT, "stream", ""): 2.0,
        ("stateful", "events a second", "Filter, 8 shards", ""): 20_000.0,
        ("stateful", "events a second", "LinearStat, 8 shards", ""): 20_000.0,
        ("snapshots", "snapshot", "", ""): 2.0,
        ("snapshots", "restore", "", ""): 2.0,
    }

    def __init__(
        self,
        scale: Any,
        *,
        folder: Path | None = None,
        processes: Sequence[SparkProcess] = (),
        progress: Progress = silent,
    ) -> None:
        super().__init__(scale, progress)
        require_spark()
        self._resources = ExitStack()
        self.folder = folder or Path(
            self._resources.enter_context(TemporaryDirectory(prefix="tocsin-bench-"))
        )
        self.inputs = Inputs(scale, self.folder)
        self._version = ""
        self._started = [] if processes else [SparkProcess(cores, self.folder) for cores in (1, 2)]
        for process in self._started:
            self._resources.callback(process.close)
        self.one, self.two = processes or self._started
        self._processes = processes

    def compile(self, measures: Any) -> None:  # noqa: ARG002 - Spark itself has to start
        """Wait until Spark has started; each measurement has a first round that does not count."""
        self.progress("starting Spark")
        for process in self._started:
            self._version = process.ready().version

    def bound(self) -> SparkProcess:
        """Start a session with one task at a time, bound to one processor; given processes stand in for it."""
        if self._processes:
            return self._processes[0]
        process = SparkProcess(1, self.folder, bound_to=0)
        self._resources.callback(process.close)
        process.ready()
        return process

    def target(self, name: str, label: str, at: float | str) -> float | None:
        """Return the target, or None; a change is to take effect within so many micro-batches at any scale."""
        if name == EFFECT and self.scale.name != PAPER:
            return self.targets[self.experiment, name, label, at]
        return super().target(name, label, at)

    def rounds(self, what: str) -> Iterator[bool]:
        """Return, for each round of a measurement, whether it counts; the first one is to warm up."""
        for turn in range(self.scale.rounds + 1):
            self.tell(f"{what}, round {turn} of {self.scale.rounds}")
            yield turn > 0

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names, with Spark's version."""
        return {**super().parameters(), "spark": self._version}

    def close(self) -> None:
        """Stop Spark and remove the temporary folder."""
        self._resources.close()
