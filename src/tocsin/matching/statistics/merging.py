"""Statistics of several histories as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tocsin.matching.statistics.distribution import Distribution, distribution, most_frequent
from tocsin.matching.statistics.estimates import AttributeStatistics
from tocsin.matching.statistics.joint import Joint
from tocsin.model.values import Kind

__all__ = ["merged_attribute", "merged_joint"]


def merged_attribute(parts: Sequence[AttributeStatistics], *, top: int, bins: int) -> AttributeStatistics:
    """Return what several histories say of one attribute."""
    kinds = [kind for kind in Kind if any(part.of(kind).count for part in parts)]
    return AttributeStatistics(
        sum(part.count for part in parts),
        {kind: _merged([part.of(kind) for part in parts], kind, top=top, bins=bins) for kind in kinds},
        sum(part.texts for part in parts),
    )


def merged_joint(parts: Sequence[Joint], *, top: int) -> Joint:
    """Return what several histories say of one group."""
    names = {combination for part in parts for combination in part.frequent}
    counts = [
        (combination, round(sum(part.equal_to(combination) for part in parts))) for combination in names
    ]
    counts.sort(key=lambda one: (-one[1], str(one[0])))
    rests = [(part.count - sum(part.frequent.values()), part.distinct - len(part.frequent)) for part in parts]
    return Joint(
        sum(part.count for part in parts),
        len(names) + _distinct(rests),
        dict(counts[:top]),
    )


def _merged(parts: Sequence[Distribution], kind: Kind, *, top: int, bins: int) -> Distribution:
    count = sum(part.count for part in parts)
    names: dict[Any, None] = dict.fromkeys(value for part in parts for value in part.frequent)
    counts = [(value, round(sum(part.equal_to(value) for part in parts))) for value in names]
    frequent, left = most_frequent(counts, top)
    rest = _scaled([*left, *_points(parts)], count - sum(frequent.values()))
    rests = [(part.rest, part.distinct - len(part.frequent)) for part in parts]
    return distribution(
        kind,
        frequent.items(),
        top=top,
        bins=bins,
        rest=rest,
        distinct=len(names) + _distinct(rests),
    )


def _points(parts: Sequence[Distribution]) -> list[tuple[Any, int]]:
    """Return the bins of several distributions as values that stand for those before them."""
    return [
        point for part in parts if part.depths for point in zip(part.bounds, (0, *part.depths), strict=True)
    ]


def _scaled(points: Sequence[tuple[Any, int]], total: int) -> list[tuple[Any, int]]:
    """Return the points with counts that add up to `total`: some of what they stand for is counted elsewhere."""
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


def _distinct(rests: Sequence[tuple[int, int]]) -> int:
    """Return how many different values are in several rests together, each given as its events and its values.

    Every rest is taken to be drawn evenly from the same values, as many as make its own number of different ones
    the likely one: what hardly repeats within a rest hardly repeats between two.
    """
    held = [(events, distinct) for events, distinct in rests if distinct > 0]
    if not held:
        return 0
    events, most = sum(one[0] for one in held), sum(one[1] for one in held)
    population = max(_population(*one) for one in held)
    likely = most if math.isinf(population) else population * -math.expm1(-events / population)
    return min(max(round(likely), *(one[1] for one in held)), most)


def _population(events: int, distinct: int) -> float:
    """Return from how many equally likely values so many events would draw so many different ones."""
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
