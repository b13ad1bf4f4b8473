"""A run of the experiments: simulations as tasks, their agreement, and the closing table."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from benchmarks.dbnet.network.tasks import Done, Task, perform
from benchmarks.dbnet.network.workers import RunTasks, one_by_one, over_spark
from benchmarks.dbnet.views.session import ADVICE, QUOTES
from benchmarks.runner.report import Measurement, of_experiment
from benchmarks.runner.session import STARTING, Progress, Session, find_data, silent
from tocsin.cli.terminal import complain
from tocsin.dissemination.scenarios.scenario import Scenario
from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named
from tocsin.model.errors import TocsinError

FULL: Final = "full"
CLOSING: Final = "closing table"
_STATES: Final = ("state, subscribers", "state, network")
COLUMNS: Final = ("traffic", "highest stress", *_STATES, "server time", "state, server")
"""The paper calls them traffic, MNS, state (subs), processing and state; it has no column for the network's state."""

_IN_WORDS: Final = {  # by strategy: the paper's words for each column
    "S-UN": ("very high", "high", "none", "", "medium", "high"),
    "S-MN": ("very high", "low", "none", "", "medium", "high"),
    "CN": ("high", "low", "high", "", "none", "none"),
    "CN+": ("medium", "low", "medium", "", "none", "none"),
    "S-CN": ("low", "low", "low", "", "low", "low"),
    "DS-CN": ("low", "low", "low", "", "none", "none"),
}
_NO_WORDS: Final = ("",) * len(COLUMNS)  # of a strategy that the paper does not have
_TRIED: Final = Scenario(nodes=20, physical=200, subscriptions=100, rows=100, events=60)


def _complain(done: Done) -> None:
    complain(f"{done.task.called}: {done.trace or done.fault}")


class NetworkSession(Session):
    """Collects the simulations of all experiments, and runs them at the end: here, or spread over Spark.

    A simulation that fails is given to `on_failure`, is named in the report, and does not stop the others.
    """

    def __init__(
        self,
        scale: Any,
        strategy: Sequence[str] = (),
        *,
        data: Path | None = None,
        quotes: Path | None = None,
        spark: bool = False,
        master: str | None = None,
        run_tasks: RunTasks | None = None,
        on_failure: Callable[[Done], None] = _complain,
        progress: Progress = silent,
    ) -> None:
        super().__init__(scale, progress)
        if master is not None and not spark:
            raise TocsinError("--master says where Spark runs, and goes with --spark")
        self.strategies = {strategy_named(name).name for name in strategy} or set(STRATEGIES)
        self.quotes = find_data(QUOTES, data, ADVICE, quotes=quotes)["quotes"]
        self.tasks: list[Task] = []
        self._chosen: set[str] = set()
        self._named = strategy
        self._run_tasks = run_tasks or (over_spark(master) if spark else one_by_one)
        self._on_failure = on_failure
        self._failed: list[str] = []
        self._seconds = self._compile_s = 0.0

    def begin(self, experiment: str) -> None:
        """Assign the following simulations to an experiment."""
        super().begin(experiment)
        self._chosen.add(experiment)

    def plan(self, at: float | str, scenario: Scenario, strategies: Sequence[str], beside: str) -> None:
        """Add a simulation for each of some strategies that takes part."""
        self.tasks += [
            Task(self.experiment, strategy, at, scenario, self.scale.batch, self.scale.sample, beside)
            for strategy in strategies
            if strategy in self.strategies
        ]

    def finish(self) -> None:
        """Run all simulations and keep their figures; raise `TocsinError` if there are none."""
        if not self.tasks:
            raise TocsinError(
                f"{', '.join(self._named)} take no part in {', '.join(self._chosen - {STARTING})}; "
                "name another strategy or experiment"
            )
        begun = time.perf_counter()
        self._try_out()
        compiled = time.perf_counter()
        done = {one.task: one for one in self._run_tasks(self.tasks, self.progress)}
        self._seconds, self._compile_s = time.perf_counter() - compiled, compiled - begun
        for one in _without_contradiction([done[task] for task in self.tasks]):
            if one.fault:
                self._failed.append(f"{one.task.called}: {one.fault}")
                self._on_failure(one)
            where = {"experiment": one.task.experiment, "matcher": one.task.strategy, "at": one.task.at}
            placed = (replace(figure, details={**where, **figure.details}) for figure in one.figures)
            self.measurements += placed
        self.measurements += closing_table(self.measurements)

    def _try_out(self) -> None:
        """Simulate every strategy and kind in small, so that nothing is compiled while it is timed.

        A fault here comes again in the simulations that count, and is reported there.
        """
        for strategy, kind in dict.fromkeys((task.strategy, task.scenario.kind) for task in self.tasks):
            self.progress(f"{STARTING}: {strategy}, {kind}")
            perform(Task(STARTING, strategy, kind, replace(_TRIED, kind=kind), batch=60, sample=5))

    def parameters(self) -> dict[str, Any]:
        """Return the parameters that the report names."""
        scale, usual = self.scale, Scenario()
        left_out = self._chosen - {STARTING, *(task.experiment for task in self.tasks)}
        return {
            "scale": scale.name,
            "nodes": scale.nodes,
            "physical_nodes": scale.physical,
            "field_bytes": usual.field,
            "header_bytes": usual.header,
            "events": scale.events,
            "events_of_figures_with_many_points": scale.several,
            "events_of_kinds": scale.few,
            "events_of_joins": scale.paired,
            "events_at_a_time": scale.batch,
            "answers_recomputed": scale.sample,
            "quotes": "none given" if self.quotes is None else self.quotes.name,
            "simulations": len(self.tasks),
            "seconds": self._seconds,
            "compile_s": self._compile_s,
            "failed": "; ".join(self._failed) or "nothing",
            "failures": len(self._failed),
            "left_out": ", ".join(sorted(left_out)) or "nothing",
        }


def _without_contradiction(done: Sequence[Done]) -> Iterator[Done]:
    """Return the finished tasks; strategies that report different numbers of changed answers in one scenario have failed."""
    told: dict[Scenario, dict[str, float]] = {}
    for one in done:
        for figure in one.figures:
            if figure.name == "told":
                told.setdefault(one.task.scenario, {})[one.task.strategy] = float(figure.details["in all"])
    for one in done:
        counts = told.get(one.task.scenario, {})
        if one.fault or len(set(counts.values())) <= 1:
            yield one
        else:
            listed = ", ".join(f"{strategy} {count:,.0f}" for strategy, count in counts.items())
            yield Done(one.task, fault=f"strategies have different numbers of changed answers: {listed}")


def closing_table(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the cells of the paper's closing table (7), from the largest simulations, with the paper's words."""
    full = [one for one in of_experiment(measurements, FULL) if one.name in COLUMNS]
    cells = []
    for one in sorted(full, key=lambda one: COLUMNS.index(one.name)):
        strategy = str(one.details["matcher"])
        words = _IN_WORDS.get(strategy, _NO_WORDS)[COLUMNS.index(one.name)]
        details = {"experiment": CLOSING, "matcher": strategy, "at": one.details["at"], "paper": words}
        cells.append(Measurement(one.name, one.value, one.unit, None, details))
    return cells
