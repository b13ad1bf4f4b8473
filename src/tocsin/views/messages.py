"""What a change is reformulated into: messages that tell by themselves which ranges they concern."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.views.changes import Floats


class Messages(Struct, frozen=True):
    """Messages in the order of the changes that they come of, as columns of equal length.

    One concerns the subscriptions of a range [x1, x2], both ends included, with outer_l < x1 <= inner_l and
    inner_r <= x2 < outer_r. Those of one change are disjoint, and together they reach each subscription whose
    answer changes. `payload` is what a kind tells beside, by name.
    """

    change: IdArray  # int64[messages] the place of the change
    inner_l: Floats
    inner_r: Floats
    outer_l: Floats  # -inf if no row limits it
    outer_r: Floats  # inf if no row limits it
    payload: Mapping[str, NDArray[Any]] = {}

    def __len__(self) -> int:
        return len(self.change)

    def take(self, places: NDArray[np.int64] | NDArray[np.bool_]) -> Messages:
        """Return only these, given by their places or by a mask."""
        return Messages(
            self.change[places],
            self.inner_l[places],
            self.inner_r[places],
            self.outer_l[places],
            self.outer_r[places],
            {name: column[places] for name, column in self.payload.items()},
        )

    def renumbered(self, change: IdArray) -> Messages:
        """Return the same messages of changes with other places."""
        return Messages(change, self.inner_l, self.inner_r, self.outer_l, self.outer_r, self.payload)

    @classmethod
    def together(cls, parts: Sequence[Messages]) -> Messages:
        """Return all messages of several, at least one, which have the same payload, one after another."""
        change, inner_l, inner_r, outer_l, outer_r = (
            np.concatenate([getattr(part, name) for part in parts]) for name in _COLUMNS
        )
        payload = {name: np.concatenate([part.payload[name] for part in parts]) for name in parts[0].payload}
        return cls(change, inner_l, inner_r, outer_l, outer_r, payload)


_COLUMNS = ("change", "inner_l", "inner_r", "outer_l", "outer_r")
