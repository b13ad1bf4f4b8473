"""Checks of a family's answers against recomputed ones, before a measurement counts."""

from __future__ import annotations

import math

from tocsin.dissemination.scenarios.ranges import Ranges
from tocsin.dissemination.scenarios.recomputation import (
    AlteredAnswer,
    Found,
    Recomputation,
    is_same,
    sampled_changes,
)
from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.aggregates.base import Reformulator
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.range_family import RangeFamily


def check_family(
    family: RangeFamily, now: Recomputation, ranges: Ranges, changes: PointChanges, numbers: IdArray
) -> None:
    """Apply changes to a family; raise `MatcherError` if some subscriptions' answers change otherwise than expected."""
    expected = now.follow(changes, ranges.lows[numbers], ranges.highs[numbers], numbers)
    told = sampled_changes(family.change_points(changes), numbers)
    wrong = [
        i for i, (one, two) in enumerate(zip(expected, told, strict=False)) if not _is_expected(one, two)
    ]
    if wrong or len(expected) != len(told):
        first = wrong[0] if wrong else min(len(expected), len(told))
        shown = [
            tuple(told[first]) if first < len(told) else None,
            tuple(expected[first]) if first < len(expected) else None,
        ]
        raise MatcherError(
            f"recomputing gives {len(expected):,} changes of {len(numbers):,} answers, {len(told):,} were told;"
            f" the first that differs is {shown[0]}, and should be {shown[1]} (change, subscription, old, new)"
        )


def check_answers(family: RangeFamily, now: Recomputation, ranges: Ranges, numbers: IdArray) -> None:
    """Raise `MatcherError` if some subscriptions' answers differ from the recomputed ones."""
    for number in numbers.tolist():
        answer = family.answers.answer(number)
        found: Found = math.nan if answer is None else answer
        if not is_same(found, meant := now.answer(ranges.lows[number], ranges.highs[number])):
            raise MatcherError(f"subscription {number} was told {found}, and recomputing gives {meant}")


def check_server(server: Reformulator, now: Recomputation, lows: Floats, highs: Floats) -> None:
    """Raise `MatcherError` if the server's answers for ranges differ from the recomputed ones."""
    present = server.present(lows, highs)["value"]
    for low, high, found in zip(lows.tolist(), highs.tolist(), present.tolist(), strict=True):
        if not is_same(found, meant := now.answer(low, high)):
            raise MatcherError(
                f"the server answers {found} for [{low}, {high}], and recomputing gives {meant}"
            )


def _is_expected(one: AlteredAnswer, two: AlteredAnswer) -> bool:
    return one[:2] == two[:2] and is_same(one.old, two.old) and is_same(one.new, two.new)
