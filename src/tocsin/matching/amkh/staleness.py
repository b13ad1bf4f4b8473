"""Staleness of an index: the cost of events, compared with the cost in a fresh index."""

from __future__ import annotations

from typing import Final

import numpy as np

from tocsin.matching.amkh.choice import Cost
from tocsin.matching.amkh.state import Total
from tocsin.structures.array_types import Float64s

COUNTS: Final = [Total.SEEN, Total.LOOKED_AT, Total.PROBED, Total.EXAMINED, Total.MATCHED]
"""The places in `State.totals` of the costs of events."""

_ENOUGH: Final = 256  # events by which an index is judged
_STALE: Final = 2.0  # times the cost that is expected
# Rehashing a subscription costs about 2,000 comparisons of signatures, which should pay off within a million events.
_MARGIN: Final = 100.0
_MARGIN_EACH: Final = 1 / 500
_FORGOTTEN: Final = 0.98


class Staleness:
    """The cost of events since an index was last judged.

    Attributes are less independent than the cost model assumes, so a fresh index may cost more than the model says, and
    would be rehashed for ever. Therefore the first judgement of a fresh index measures the `excess` over the model, which is
    None until then. The excess decays, in case those events were unusual.
    """

    def __init__(self) -> None:
        self.excess: float | None = 1.0
        self._mark = np.zeros(len(COUNTS), dtype=np.float64)
        self._population = 0

    def begin(self, totals: Float64s, population: int) -> None:
        """Count from now on."""
        self._mark = totals[COUNTS]
        self._population = population

    def forget(self, totals: Float64s) -> None:
        """Let `totals` count from 0 again."""
        self._mark -= totals[COUNTS]
        totals[COUNTS] = 0.0

    def judge(self, totals: Float64s, population: int, expected: Cost) -> bool:
        """Tell whether events have cost far more than in a fresh index, and count from 0 again.

        After too few events the answer is False, and the count goes on.
        """
        events, schemas, probed, examined, matched = (totals[COUNTS] - self._mark).tolist()
        if events < _ENOUGH:
            return False
        measured = Cost(schemas / events, probed / events, examined / events).total
        # No index examines fewer than match; and there were more to examine, if many were removed since.
        scale = max(self._population / max(population, 1), 1.0)
        least = max(scale * expected.examined, matched / events)
        wanted = expected._replace(examined=least).total + _MARGIN + _MARGIN_EACH * population
        ratio = measured / wanted
        self.begin(totals, population)
        if self.excess is None:
            self.excess = max(ratio, 1.0)
            return False
        stale = ratio > _STALE * self.excess
        self.excess = max(_FORGOTTEN * self.excess, 1.0)
        return stale
