"""Whether an index is out of date: what events cost, beside what they would cost in one that is hashed anew."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.amkh.choice import Cost
from tocsin.matching.amkh.state import HashTotal

COUNTS: Final = [HashTotal.SEEN, HashTotal.LOOKED_AT, HashTotal.PROBED, HashTotal.EXAMINED, HashTotal.MATCHED]
"""The places in `State.totals` of what events cost."""

_ENOUGH: Final = 256  # events by which an index is judged
_STALE: Final = 2.0  # times the cost that is expected
# To hash a subscription anew costs about 2,000 comparisons of signatures, and should be worth it in a million events.
_MARGIN: Final = 100.0
_MARGIN_EACH: Final = 1 / 500
_FORGOTTEN: Final = 0.98


class Staleness:
    """What events have cost since an index was last judged.

    Attributes are not as independent as the model of the cost takes them to be, so that an index may cost more than
    the model says from its first day on, and would be hashed anew for ever. So the first judgement after all were
    hashed by what events are like only finds out by how much: that is the `excess`, None until then. It is
    slowly forgotten, should those events have been unusual.
    """

    def __init__(self) -> None:
        self.excess: float | None = 1.0
        self._mark = np.zeros(len(COUNTS), dtype=np.float64)
        self._population = 0

    def begin(self, totals: NDArray[np.float64], population: int) -> None:
        """Count from now on."""
        self._mark = totals[COUNTS]
        self._population = population

    def forget(self, totals: NDArray[np.float64]) -> None:
        """Let `totals` count from 0 again."""
        self._mark -= totals[COUNTS]
        totals[COUNTS] = 0.0

    def judge(self, totals: NDArray[np.float64], population: int, expected: Cost) -> bool:
        """Tell whether events have cost far more than is expected of an index that is hashed anew.

        Then, or if not, counting begins anew; while there are too few events, nothing is told and it goes on.
        """
        events, schemas, probed, examined, matched = (totals[COUNTS] - self._mark).tolist()
        if events < _ENOUGH:
            return False
        measured = Cost(schemas / events, probed / events, examined / events).total
        # No index examines fewer than match; and there were more to examine, if many have gone since.
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
