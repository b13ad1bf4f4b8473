"""All experiments in one run."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from benchmarks.dbnet.network.closing import closing_table
from benchmarks.dbnet.network.experiments import EXPERIMENTS
from benchmarks.dbnet.network.scales import SMALL, Scale
from benchmarks.dbnet.network.spreading import Doing, one_by_one
from benchmarks.dbnet.network.tasks import Done, Task, perform
from benchmarks.dbnet.views.inputs import Data
from benchmarks.runner.report import Measurement, Report
from tocsin.dissemination.scenarios.scenario import Scenario
from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named
from tocsin.model.errors import TocsinError

_TRIED: Final = Scenario(nodes=20, physical=200, subscriptions=100, rows=100, events=60)


def run(
    scale: Scale = SMALL,
    strategies: Sequence[str] = (),
    data: Data | None = None,
    *,
    experiments: Sequence[str] = (),
    doing: Doing = one_by_one,
    progress: Callable[[str], None] = lambda _: None,
    complain: Callable[[Done], None] = lambda _: None,
) -> Report:
    """Run these experiments, or all, with these strategies, or all; `doing` says who simulates.

    Raise `TocsinError` if there is no such experiment or strategy, or if there is nothing to simulate. A simulation that fails is told to `complain`, is
    named in the report, and does not keep others from being done.
    """
    data = data or Data()
    chosen = experiments or tuple(EXPERIMENTS)
    tasks = tasks_of(scale, strategies, data, experiments)
    if not tasks:
        raise TocsinError(
            f"{', '.join(strategies)} take no part in {', '.join(experiments)}; name another strategy or experiment"
        )
    compiling = _compile_all(tasks, progress)
    begun = time.perf_counter()
    done = {done.task: done for done in doing(tasks, progress)}
    seconds = time.perf_counter() - begun
    failed = []
    for one in _without_contradiction([done[task] for task in tasks]):
        done[one.task] = one
        if one.fault:
            failed.append(f"{one.task.called}: {one.fault}")
            complain(one)
    measurements = [one for task in tasks for one in _measurements(done[task])]
    usual = Scenario()
    return Report.of(
        "dbnet",
        [*measurements, *closing_table(measurements)],
        scale=scale.name,
        nodes=scale.nodes,
        physical_nodes=scale.physical,
        field_bytes=usual.field,
        header_bytes=usual.header,
        events=scale.events,
        events_of_figures_with_many_points=scale.several,
        events_of_kinds=scale.few,
        events_of_joins=scale.paired,
        events_at_a_time=scale.batch,
        answers_recomputed=scale.sample,
        quotes="none given" if data.quotes is None else data.quotes.name,
        simulations=len(tasks),
        seconds=seconds,
        compile_s=compiling,
        failed="; ".join(failed) or "nothing",
        left_out=", ".join(sorted(set(chosen) - {task.experiment for task in tasks})) or "nothing",
    )


def tasks_of(
    scale: Scale, strategies: Sequence[str], data: Data, experiments: Sequence[str] = ()
) -> list[Task]:
    """Return the simulations of some experiments, or of all; raise `TocsinError` for a name that there is not."""
    for name in experiments:
        if name not in EXPERIMENTS:
            raise TocsinError(f"there is no experiment `{name}`; there are: {', '.join(EXPERIMENTS)}")
    wanted = {strategy_named(name).name for name in strategies} or set(STRATEGIES)
    return [
        Task(name, strategy, place.at, place.scenario, scale.batch, scale.sample, experiment.beside)
        for name, experiment in EXPERIMENTS.items()
        if not experiments or name in experiments
        for place in experiment.places(scale, data)
        for strategy in experiment.strategies
        if strategy in wanted
    ]


def _without_contradiction(done: Sequence[Done]) -> Iterator[Done]:
    """Return what was done; where strategies told different numbers of answers in one scenario, that is a fault."""
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
            yield Done(one.task, fault=f"strategies have told different numbers of changed answers: {listed}")


def _measurements(done: Done) -> Iterator[Measurement]:
    task = done.task
    where = {"experiment": task.experiment, "matcher": task.strategy, "at": task.at}
    for one in done.figures:
        yield Measurement(one.name, one.value, one.unit, None, {**where, **one.details})


def _compile_all(tasks: Sequence[Task], progress: Callable[[str], None]) -> float:
    """Let every strategy and kind simulate next to nothing, so that nothing is compiled while it is timed; return the seconds.

    What goes wrong here goes wrong again in the simulations that count, and is told there.
    """
    begun = time.perf_counter()
    for strategy, kind in dict.fromkeys((task.strategy, task.scenario.kind) for task in tasks):
        progress(f"starting: {strategy}, {kind}")
        perform(Task("starting", strategy, kind, replace(_TRIED, kind=kind), batch=60, sample=5))
    return time.perf_counter() - begun
