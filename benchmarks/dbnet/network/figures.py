"""The figures of a simulation: means over events, maxima, state, and the distribution of costs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from benchmarks.runner.report import Measurement
from tocsin.dissemination.simulator import SimulationResult
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
_SHARES: Final = (*range(100), 99.5, 99.9, 100)  # %


def _figure(name: str, value: float, unit: str, **details: float | str) -> Measurement:
    return Measurement(name, value, unit, None, details)


def figures_of(result: SimulationResult) -> tuple[Measurement, ...]:
    """Return the figures of every simulation."""
    return tuple(_usual(result))


def _usual(result: SimulationResult) -> Iterator[Measurement]:
    events = max(result.events, 1)
    yield from _means(result, np.ones(result.events, dtype=np.bool_))
    costs = result.costs
    yield _figure("highest stress", float(costs.stress.max(initial=0)), "messages")
    yield _figure("highest traffic", float(costs.size.max(initial=0)), "bytes")
    yield _figure("outgoing", result.outgoing / events, "messages an event")
    yield _figure("server time", result.server_seconds / events * 1e6, "us an event")
    busiest = result.links.messages.max(initial=0) / events, result.links.size.max(initial=0) / events
    yield _figure("busiest link", float(busiest[1]), "bytes an event", messages=float(busiest[0]))
    yield _figure(
        "told",
        result.changed_answers / events,
        "answers an event",
        **{"in all": float(result.changed_answers)},
    )
    kept = result.stored_state
    for where, size in (
        ("server", kept.server),
        ("network", kept.network),
        ("subscribers", kept.subscribers),
    ):
        yield _figure(f"state, {where}", size / 1e6, "MB")
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
    for name, is_so in (
        ("no traffic", size == 0),
        ("below 100 B", size < 100),
        ("at least 320 B", size >= 320),
        ("below 1 kB", size < 1_000),
    ):
        yield _figure(name, 100 * float(np.count_nonzero(is_so)) / len(size), "% of events")
    levels = np.quantile(size, np.array(_SHARES) / 100, method="inverted_cdf").tolist()
    quantiles = {f"{share:g} %": float(level) for share, level in zip(_SHARES, levels, strict=True)}
    yield _figure(QUANTILES, quantiles["50 %"], "bytes", **quantiles)
