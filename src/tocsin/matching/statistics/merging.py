"""Merging the statistics of several histories."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tocsin.matching.statistics.distribution import Distribution, distribution, most_frequent
from tocsin.matching.statistics.estimates import AttributeStatistics
from tocsin.matching.statistics.joint import Joint
from tocsin.model.values import Kind


def merged_attribute(parts: Sequence[AttributeStatistics], *, top: int, bins: int) -> AttributeStatistics:
    """Return the merged statistics of one attribute."""
    kinds = [kind for kind in Kind if any(part.of(kind).count for part in parts)]
    return AttributeStatistics(
        sum(part.count for part in parts),
        {kind: _merged([part.of(kind) for part in parts], kind, top=top, bins=bins) for kind in kinds},
        sum(part.texts for part in parts),
    )


def merged_joint(parts: Sequence[Joint], *, top: int) -> Joint:
    """Return the merged joint counts of one group."""
    counts = _frequent(parts)
    frequent = dict(sorted(counts.items(), key=lambda one: (-one[1], str(one[0])))[:top])
    return Joint(
        sum(part.count for part in parts) - sum(frequent.values()), len(counts) + _distinct(parts), frequent
    )


def _merged(parts: Sequence[Distribution], kind: Kind, *, top: int, bins: int) -> Distribution:
    """Return one distribution of the values that these distributions count."""
    counts = _frequent(parts)
    frequent, left = most_frequent(list(counts.items()), top)
    total = sum(part.count for part in parts) - sum(frequent.values())
    return distribution(
        kind,
        frequent.items(),
        top=top,
        bins=bins,
        rest=_scaled([*left, *_points(parts)], total),
        distinct=len(counts) + _distinct(parts),
    )


def _frequent(parts: Sequence[Distribution] | Sequence[Joint]) -> dict[Any, int]:
    """Return the values that are frequent in some part, with their count in all parts.

    In a part where a value is not frequent, it is assumed to have the average count of the rest; all such values together
    have no more than the rest.
    """
    counts: dict[Any, int] = dict.fromkeys((name for part in parts for name in part.frequent), 0)
    for part in parts:
        for name, count in part.frequent.items():
            counts[name] += count
        rare = [name for name in counts if name not in part.frequent and part.equal_to(name) > 0]
        each = part.rest // max(part.distinct - len(part.frequent), len(rare), 1)
        for name in rare:
            counts[name] += each
    return counts


def _points(parts: Sequence[Distribution]) -> list[tuple[Any, int]]:
    """Return the bins of several distributions as values that represent those before them."""
    return [
        point for part in parts if part.depths for point in zip(part.bounds, (0, *part.depths), strict=True)
    ]


def _scaled(points: Sequence[tuple[Any, int]], total: int) -> list[tuple[Any, int]]:
    """Return the points with counts scaled to `total`: frequent values were taken out of them."""
    given = sum(count for _, count in points)
    if not given:
        return []
    scaled, seen, done = [], 0, 0
    for value, count in points:
        seen += count
        due = total * seen // given
        scaled.append((value, due - done))
        done = due
    return scaled


def _distinct(parts: Sequence[Distribution] | Sequence[Joint]) -> int:
    """Return the estimated number of distinct values in the rests of several parts together.

    Every rest is assumed to be drawn evenly from one population, whose size is the likeliest for the rest's own number of
    distinct values: values that hardly repeat within a rest hardly repeat between two.
    """
    rests = [(part.rest, part.distinct - len(part.frequent)) for part in parts]
    held = [(events, distinct) for events, distinct in rests if distinct > 0]
    if not held:
        return 0
    events, most = sum(one[0] for one in held), sum(one[1] for one in held)
    population = max(_population(*one) for one in held)
    likely = most if math.isinf(population) else population * -math.expm1(-events / population)
    return min(max(round(likely), *(one[1] for one in held)), most)


def _population(events: int, distinct: int) -> float:
    """Return the size of a population of which `events` even draws give `distinct` values."""
    if distinct >= events:
        return math.inf
    low, high = float(distinct), float(distinct)
    while high * -math.expm1(-events / high) < distinct:
        high *= 2
        if high > 1e18:
            return math.inf
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if middle * -math.expm1(-events / middle) < distinct else (low, middle)
    return high
