"""One simulation as a task: its scenario, and its figures."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.runner.report import Measurement
from tocsin.dissemination.scenarios.answer_oracle import definition_of, first_difference, sample_numbers
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario, prepare
from tocsin.dissemination.scenarios.walks import in_batches
from tocsin.dissemination.simulator import SimulationResult, simulate
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.dissemination.traffic import MessageRole
from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.changes import Floats, PointChanges

DECREASING: Final = "decreasing updates"
DISTRIBUTION: Final = "distribution"
QUANTILES: Final = "traffic by quantile"

_MEANS: Final = {  # a column of costs: the name of its mean, and its unit
    "overlay_hops": ("overlay hops", "an event"),
    "ip_hops": ("IP hops", "an event"),
    "size": ("traffic", "bytes an event"),
    "stress": ("stress", "an event"),
    "steps": ("steps", "an event"),
}
SHARES: Final[Mapping[str, Callable[[IdArray], Any]]] = {
    "no traffic": lambda size: size == 0,
    "below 100 B": lambda size: size < 100,
    "at least 320 B": lambda size: size >= 320,
    "below 1 kB": lambda size: size < 1_000,
}
"""Which events a share counts, by their traffic."""
_LEVELS: Final = (*range(100), 99.5, 99.9, 100)  # %


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
    beside: Iterable[Measurement] = ()
    if task.beside == DECREASING:
        beside = decreasing(result, np.concatenate(spread), prepared.changes)
    elif task.beside == DISTRIBUTION:
        beside = distribution(result)
    return (*figures_of(result), *beside)


@lru_cache(maxsize=1)  # a million subscriptions and their network are hundreds of megabytes
def _prepared(scenario: Scenario) -> Prepared:
    return prepare(scenario)


def check_answers(strategy: Strategy, prepared: Prepared, sample: int) -> None:
    """Raise `MatcherError` if a subscription of a sample has another answer than recomputing gives after all changes."""
    asked = prepared.queries
    now = definition_of(prepared)
    now.change_all(prepared.changes)
    meant = {number: now.answer(number) for number in sample_numbers(len(asked), sample).tolist()}
    if wrong := first_difference(strategy.answer, meant):
        number, found, right = wrong
        raise MatcherError(
            f"{strategy.name}: subscription {number}, [{asked.lows[number]}, {asked.highs[number]}], "
            f"knows {found}, and recomputing gives {right}"
        )


def _figure(name: str, value: float, unit: str, **details: float | str) -> Measurement:
    return Measurement(name, value, unit, None, details)


def figures_of(result: SimulationResult) -> Iterator[Measurement]:
    """Return the figures of every simulation."""
    events = max(result.events, 1)
    yield from _means(result, np.ones(result.events, dtype=np.bool_))
    costs = result.costs
    yield _figure("highest stress", float(costs.stress.max(initial=0)), "messages")
    yield _figure("highest traffic", float(costs.size.max(initial=0)), "bytes")
    yield _figure("outgoing", result.outgoing / events, "messages an event")
    yield _figure("server time", result.server_seconds / events * 1e6, "us an event")
    busiest = result.links.messages.max(initial=0) / events, result.links.size.max(initial=0) / events
    yield _figure("busiest link", float(busiest[1]), "bytes an event", messages=float(busiest[0]))
    changed, kept = result.changed_answers, result.stored_state
    yield _figure("told", changed / events, "answers an event", **{"in all": float(changed)})
    for where in ("server", "network", "subscribers"):
        yield _figure(f"state, {where}", getattr(kept, where) / 1e6, "MB")
    roles = {role.name.lower(): float(size) / events for role, size in result.size_by_role.items()}
    details: dict[str, float | str] = {"events": float(result.events), **roles, "state": kept.words}
    yield _figure("simulation", result.seconds, "s", **details)


def _means(result: SimulationResult, chosen: NDArray[np.bool_], of: str = "") -> Iterator[Measurement]:
    """Return the mean costs of some events."""
    count = max(int(np.count_nonzero(chosen)), 1)
    for column, (name, unit) in _MEANS.items():
        yield _figure(f"{name}{of}", float(getattr(result.costs, column)[chosen].sum()) / count, unit)


def decreasing(result: SimulationResult, spread: Floats, changes: PointChanges) -> Iterator[Measurement]:
    """Return the mean costs of updates of y alone that lower it, and their share; `spread` is bytes by event."""
    falls = (changes.new_x == changes.old_x) & (changes.new_y < changes.old_y)
    count = int(np.count_nonzero(falls))
    yield from _means(result, falls, ", decreasing")
    yield _figure("spreading, decreasing", float(spread[falls].sum()) / max(count, 1), "bytes an event")
    yield _figure("decreasing", 100 * count / max(len(falls), 1), "%")


def distribution(result: SimulationResult) -> Iterator[Measurement]:
    """Return the shares of events by their cost."""
    size = result.costs.size
    if not len(size):
        return
    for name, is_so in SHARES.items():
        yield _figure(name, 100 * float(np.count_nonzero(is_so(size))) / len(size), "% of events")
    levels = np.quantile(size, np.array(_LEVELS) / 100, method="inverted_cdf").tolist()
    quantiles = {f"{share:g} %": float(level) for share, level in zip(_LEVELS, levels, strict=True)}
    yield _figure(QUANTILES, quantiles["50 %"], "bytes", **quantiles)
