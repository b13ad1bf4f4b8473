"""What a batch of rows alters, as columns."""

from __future__ import annotations

from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.engine.answers import ViewChange
from tocsin.matching import IdArray
from tocsin.model.subscription import Answer
from tocsin.views.answer_changes import number_answer


class Altering(Struct, frozen=True):
    """Answers that rows of a batch altered, as columns, in the order of the rows."""

    rows: IdArray
    numbers: IdArray
    old: NDArray[Any]  # floats with NaN for null, or objects
    new: NDArray[Any]

    def take(self, kept: NDArray[np.bool_]) -> Altering:
        """Return only some."""
        return Altering(self.rows[kept], self.numbers[kept], self.old[kept], self.new[kept])

    def change(self, place: int) -> ViewChange:
        """Return one of them."""
        return ViewChange(
            place, int(self.numbers[place]), self._answer(self.old[place]), self._answer(self.new[place])
        )

    def give_old(self, place: int, old: Answer) -> None:
        """Let one of them begin with another answer."""
        self.old[place] = np.nan if old is None and self.old.dtype != object else old

    def _answer(self, held: Any) -> Answer:
        return held if self.old.dtype == object else number_answer(float(held))
