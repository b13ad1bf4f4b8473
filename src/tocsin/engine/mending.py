"""Families that a call was broken off in, which may no longer agree with their tables, and are built anew."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tocsin.model import View
from tocsin.model.subscription import Answer
from tocsin.views.answers import same_answer
from tocsin.views.family import Family
from tocsin.views.plan import RangePlan
from tocsin.views.planning import plan_of
from tocsin.views.range_family import RangeFamily


def move(views: Mapping[int, View], old: Family, new: Family) -> dict[int, Answer]:
    """Add subscriptions of one family to another, which has the rows of the tables already.

    Return what those were told last whose answer is another now, as far as the old family still knows.
    """
    told: dict[int, Answer] = {}
    for number, view in views.items():
        alone = np.array([number], dtype=np.int64)
        plan = plan_of(view, "", by_rows=not isinstance(new, RangeFamily))
        if isinstance(new, RangeFamily) and not isinstance(plan, RangePlan):
            new.add_ranges(alone, np.ones(1), np.zeros(1))  # a row of a template whose range is empty
        else:
            new.add(alone, plan, {})
        try:
            before = old.answer(number)
        except Exception:  # noqa: BLE001, S112 - it may be broken anywhere
            continue
        if not same_answer(before, new.answer(number)):
            told[number] = before
    return told
