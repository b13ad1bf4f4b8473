"""All experiments in one run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from msgspec import Struct

from benchmarks.runner.report import Report
from benchmarks.spark import experiments
from benchmarks.spark.costs import costs
from benchmarks.spark.joins import joins
from benchmarks.spark.process import SparkProcess, require_spark
from benchmarks.spark.scales import SMALL, Scale
from benchmarks.spark.session import Session


class Experiment(Struct, frozen=True):
    """What is compared, and how that is measured."""

    title: str
    work: Callable[[Session], None]


EXPERIMENTS: Final[Mapping[str, Experiment]] = {
    "joins": Experiment("instead of a join, end to end", joins),
    "overhead": Experiment("Spark and the embedded engine", experiments.overhead),
    "shards": Experiment("the index in shards", experiments.shards),
    "changes": Experiment("from a subscription's change to its effect", experiments.changes),
    "costs": Experiment("what the parts cost, on one core", costs),
}


def run(scale: Scale = SMALL, progress: Callable[[str], None] = lambda _: None) -> Report:
    """Run every experiment, with Spark on one core and on two; raise `SparkError` if it is not installed."""
    require_spark()
    with TemporaryDirectory(prefix="tocsin-bench-") as name:
        folder = Path(name)
        progress("starting Spark")
        with SparkProcess(1, folder) as one, SparkProcess(2, folder) as two:
            versions = {process.ready().version for process in (one, two)}
            session = Session(scale, folder, (one, two), progress)
            for title, experiment in EXPERIMENTS.items():
                session.begin(title)
                experiment.work(session)
    return Report.of("spark", session.measurements, scale=scale.name, spark=versions.pop())
