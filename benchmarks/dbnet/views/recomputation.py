"""Checks of a family's answers against recomputed ones, before a measurement counts."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from typing import Any

from tocsin.dissemination.scenarios.recomputation import (
    AlteredAnswer,
    Recomputation,
    first_difference,
    is_same,
    sampled_changes,
)
from tocsin.matching import IdArray
from tocsin.model.errors import MatcherError
from tocsin.views.changes import PointChanges
from tocsin.views.range_family import RangeFamily


def check_family(family: RangeFamily, now: Recomputation, changes: PointChanges, numbers: IdArray) -> None:
    """Apply changes to a family; raise `MatcherError` if some subscriptions' answers change otherwise than expected."""
    expected = now.follow(changes, numbers)
    told = sampled_changes(family.change_points(changes), numbers)
    pairs = zip_longest(expected, told)
    wrong = next((pair for pair in pairs if None in pair or not _is_expected(*pair)), None)
    if wrong is not None:
        shown = [None if one is None else tuple(one) for one in wrong]
        raise MatcherError(
            f"recomputing gives {len(expected):,} changes of {len(numbers):,} answers, {len(told):,} were told;"
            f" the first that differs is {shown[1]}, and should be {shown[0]} (change, subscription, old, new)"
        )


def check_answers(
    answer: Callable[[int], Any], now: Recomputation, numbers: IdArray, whose: str = ""
) -> None:
    """Raise `MatcherError` if some subscriptions' answers differ from the recomputed ones; `whose` names who answers."""
    if wrong := first_difference(answer, {number: now.answer(number) for number in numbers.tolist()}):
        number, found, meant = wrong
        told = (
            f"{whose} answers {found} to subscription {number}"
            if whose
            else f"subscription {number} was told {found}"
        )
        raise MatcherError(f"{told}, and recomputing gives {meant}")


def _is_expected(one: AlteredAnswer, two: AlteredAnswer) -> bool:
    return one[:2] == two[:2] and is_same(one.old, two.old) and is_same(one.new, two.new)
