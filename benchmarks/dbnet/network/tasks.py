"""One simulation as a task: its scenario, and its figures."""

from __future__ import annotations

import traceback
from functools import lru_cache

import numpy as np
from msgspec import Struct

from benchmarks.dbnet.network.figures import DECREASING, DISTRIBUTION, decreasing, distribution, figures_of
from benchmarks.runner.report import Measurement
from tocsin.dissemination.scenarios.recomputation import definition_of, first_difference, sampled
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario, prepare
from tocsin.dissemination.scenarios.walks import in_batches
from tocsin.dissemination.simulator import simulate
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.dissemination.traffic import MessageRole
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats


class Task(Struct, frozen=True):
    """A simulation of one strategy, for one place of an experiment."""

    experiment: str
    strategy: str
    at: int | float | str
    scenario: Scenario
    batch: int  # events at a time
    sample: int  # subscriptions whose answers are recomputed
    beside: str = ""  # which figures are taken beside the usual ones

    @property
    def called(self) -> str:
        """Return the name of a task for people."""
        place = self.at if isinstance(self.at, str) else f"{self.at:,}"
        return f"{self.experiment}, {self.strategy}, {place}"


class Done(Struct, frozen=True):
    """A finished task: its figures, or the fault."""

    task: Task
    figures: tuple[Measurement, ...] = ()
    fault: str = ""  # in one line
    trace: str = ""


def perform(task: Task) -> Done:
    """Simulate; a fault is returned with its task, so that other tasks go on."""
    try:
        return Done(task, _simulated(task))
    except Exception as fault:  # noqa: BLE001 - any fault is this task's alone
        return Done(task, fault=f"{type(fault).__name__}: {fault}", trace=traceback.format_exc())


def _simulated(task: Task) -> tuple[Measurement, ...]:
    prepared = _prepared(task.scenario)
    strategy = strategy_named(task.strategy)(prepared.setting, prepared.queries)
    spread: list[Floats] = []  # bytes by event, without the way to where the spreading begins

    def watch(outcome: Outcome, events: int) -> None:
        if task.beside != DECREASING:
            return
        sent = outcome.traffic
        spreads = sent.role == MessageRole.SPREAD
        sizes = np.bincount(sent.event[spreads], weights=sent.size[spreads], minlength=events)
        spread.append(sizes.astype(np.float64))

    result = simulate(strategy, in_batches(prepared.changes, task.batch), watch)
    check_answers(strategy, prepared, task.sample)
    if task.beside == DECREASING:
        return (*figures_of(result), *decreasing(result, np.concatenate(spread), prepared.changes))
    if task.beside == DISTRIBUTION:
        return (*figures_of(result), *distribution(result))
    return figures_of(result)


@lru_cache(maxsize=1)  # a million subscriptions and their network are hundreds of megabytes
def _prepared(scenario: Scenario) -> Prepared:
    return prepare(scenario)


def check_answers(strategy: Strategy, prepared: Prepared, sample: int) -> None:
    """Raise `MatcherError` if a subscription of a sample has another answer than recomputing gives after all changes."""
    asked = prepared.queries
    now = definition_of(prepared)
    now.change_all(prepared.changes)
    meant = {number: now.answer(number) for number in sampled(len(asked), sample).tolist()}
    if wrong := first_difference(strategy.answer, meant):
        number, found, right = wrong
        raise MatcherError(
            f"{strategy.name}: subscription {number}, [{asked.lows[number]}, {asked.highs[number]}], "
            f"knows {found}, and recomputing gives {right}"
        )
