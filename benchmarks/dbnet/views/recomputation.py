"""A family's answers against those that are recomputed: all is compared before a figure counts."""

from __future__ import annotations

import math

import numpy as np

from tocsin.dissemination.scenarios.ranges import Ranges
from tocsin.dissemination.scenarios.recomputation import AlteredAnswer, Found, Recomputation, is_same
from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.aggregates.base import Reformulator
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.range_family import RangeFamily


def check_family(
    family: RangeFamily, now: Recomputation, ranges: Ranges, changes: PointChanges, numbers: IdArray
) -> None:
    """Let a family follow changes, and raise `MatcherError` if some subscriptions are not told just what they should."""
    expected = now.follow(changes, ranges.lows[numbers], ranges.highs[numbers], numbers)
    told = _of(family.change_points(changes), numbers)
    wrong = [i for i, (one, two) in enumerate(zip(expected, told, strict=False)) if not _is_told(one, two)]
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
    """Raise `MatcherError` if some subscriptions' answers are not those that are recomputed."""
    for number in numbers.tolist():
        answer = family.answers.answer(number)
        found: Found = math.nan if answer is None else answer
        if not is_same(found, meant := now.answer(ranges.lows[number], ranges.highs[number])):
            raise MatcherError(f"subscription {number} was told {found}, and recomputing gives {meant}")


def check_server(server: Reformulator, now: Recomputation, lows: Floats, highs: Floats) -> None:
    """Raise `MatcherError` if what new subscribers of these ranges would begin with is not what is recomputed."""
    present = server.present(lows, highs)["value"]
    for low, high, found in zip(lows.tolist(), highs.tolist(), present.tolist(), strict=True):
        if not is_same(found, meant := now.answer(low, high)):
            raise MatcherError(
                f"the server answers {found} for [{low}, {high}], and recomputing gives {meant}"
            )


def _of(told: AnswerChanges, numbers: IdArray) -> list[AlteredAnswer]:
    """Return what some subscriptions are told, by change and then by subscription."""
    kept = np.flatnonzero(np.isin(told.numbers, numbers))
    kept = kept[np.lexsort((told.numbers[kept], told.rows[kept]))]
    columns = (told.rows, told.numbers, told.old, told.new)
    return [AlteredAnswer(*one) for one in zip(*(column[kept].tolist() for column in columns), strict=True)]


def _is_told(one: AlteredAnswer, two: AlteredAnswer) -> bool:
    return one[:2] == two[:2] and is_same(one.old, two.old) and is_same(one.new, two.new)
