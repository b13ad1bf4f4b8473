"""One simulation as a task: its scenario, its figures, and its encoding for another process."""

from __future__ import annotations

import traceback
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from benchmarks.dbnet.network.figures import DECREASING, DISTRIBUTION, decreasing, distribution, figures_of
from benchmarks.runner.report import Measurement
from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.scenarios.joins import PreparedJoin, prepare_any
from tocsin.dissemination.scenarios.recomputation import answer_of, definition_of, is_same, sampled
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario
from tocsin.dissemination.scenarios.walks import in_batches
from tocsin.dissemination.simulator import simulate
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.dissemination.traffic import MessageRole
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats

PERFORM: Final = f"{__name__}:perform_encoded"
"""The function that another process calls with an encoded task."""


class Task(Struct, frozen=True):
    """A simulation of one strategy, for one place of an experiment."""

    experiment: str
    strategy: str
    at: int | float | str  # a whole number stays one on its way
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


def perform_encoded(payload: bytes) -> bytes:
    """Simulate an encoded task and return the encoded result."""
    return encoded(perform(decoded(payload, Task)))


def encoded(one: Task | Done) -> bytes:
    """Return a task or its result as JSON."""
    return msgspec.json.encode(one, enc_hook=str)


def decoded(payload: bytes, kind: type[Any]) -> Any:
    """Return a decoded task or result."""
    return msgspec.json.decode(payload, type=kind, dec_hook=_path)


def _path(kind: type[Any], text: object) -> Path:
    assert issubclass(kind, Path)  # noqa: S101 - there is nothing else that JSON does not know
    return Path(str(text))


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

    changes: Changes = prepared.changes
    result = simulate(strategy, in_batches(changes, task.batch), watch)
    check_answers(strategy, prepared, task.sample)
    if task.beside == DECREASING:
        return (*figures_of(result), *decreasing(result, np.concatenate(spread), changes))
    if task.beside == DISTRIBUTION:
        return (*figures_of(result), *distribution(result))
    return figures_of(result)


@lru_cache(maxsize=1)  # a million subscriptions and their network are hundreds of megabytes
def _prepared(scenario: Scenario) -> Prepared | PreparedJoin:
    return prepare_any(scenario)


def check_answers(strategy: Strategy, prepared: Prepared | PreparedJoin, sample: int) -> None:
    """Raise `MatcherError` if a subscription of a sample has another answer than recomputing gives after all changes."""
    asked = prepared.queries
    now = definition_of(prepared)
    now.change_all(prepared.changes)
    for number in sampled(len(asked), sample).tolist():
        if not is_same(found := answer_of(strategy, number), meant := now.answer(number)):
            raise MatcherError(
                f"{strategy.name}: subscription {number}, [{asked.lows[number]}, {asked.highs[number]}], "
                f"knows {found}, and recomputing gives {meant}"
            )
