"""One simulation: what it is given, what is taken down of it, and how it travels to where it is done."""

from __future__ import annotations

import traceback
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from benchmarks.dbnet.network.checking import check_answers
from benchmarks.dbnet.network.figures import (
    DECREASING,
    DISTRIBUTION,
    Figure,
    decreasing,
    distribution,
    figures_of,
)
from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.scenarios.joins import PreparedJoin, prepare_any
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario
from tocsin.dissemination.scenarios.walks import in_batches
from tocsin.dissemination.simulator import simulate
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome
from tocsin.dissemination.traffic import MessageRole
from tocsin.views.changes import Floats

PERFORM: Final = f"{__name__}:perform_encoded"
"""Where a process that is given an encoded task finds what does it."""


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
        """Return what a task is called where people read of it."""
        place = self.at if isinstance(self.at, str) else f"{self.at:,}"
        return f"{self.experiment}, {self.strategy}, {place}"


class Done(Struct, frozen=True):
    """What came of a task: figures, or why there are none."""

    task: Task
    figures: tuple[Figure, ...] = ()
    fault: str = ""  # in one line,
    trace: str = ""  # and where that was


def perform(task: Task) -> Done:
    """Simulate; a fault is told with its task, so that other tasks go on."""
    try:
        return Done(task, _simulated(task))
    except Exception as fault:  # noqa: BLE001 - whatever it is, it is this task's
        return Done(task, fault=f"{type(fault).__name__}: {fault}", trace=traceback.format_exc())


def perform_encoded(payload: bytes) -> bytes:
    """Simulate where only bytes get to and come from."""
    return encoded(perform(decoded(payload, Task)))


def encoded(one: Task | Done) -> bytes:
    """Return a task, or what came of it, as JSON."""
    return msgspec.json.encode(one, enc_hook=str)


def decoded(payload: bytes, kind: type[Any]) -> Any:
    """Return what was encoded, of this type."""
    return msgspec.json.decode(payload, type=kind, dec_hook=_path)


def _path(kind: type[Any], text: object) -> Path:
    assert issubclass(kind, Path)  # noqa: S101 - there is nothing else that JSON does not know
    return Path(str(text))


def _simulated(task: Task) -> tuple[Figure, ...]:
    prepared = _prepared(task.scenario)
    strategy = strategy_named(task.strategy)(prepared.setting, prepared.queries)
    spread: list[Floats] = []  # bytes by event, without what is on its way to where it spreads from

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
