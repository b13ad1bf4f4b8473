"""When a subscription applies, and what else a subscriber gives beside the query."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

ALWAYS: Final = -(2**63)
FOREVER: Final = 2**63 - 1


class Validity(Struct, frozen=True):
    """A subscription applies to an event iff `valid_from <= event.end < valid_until`, in ticks."""

    valid_from: int = ALWAYS
    valid_until: int = FOREVER

    @property
    def is_limited(self) -> bool:
        """Tell whether there is any event that the subscription does not apply to."""
        return self.valid_from != ALWAYS or self.valid_until != FOREVER


class SubscriptionOptions(Struct, frozen=True):
    """The validity, owner and weight of a subscription, and whether a sequence reports every event of its steps."""

    validity: Validity = Validity()
    owner: str | None = None
    weight: float | Mapping[str, float] = 1.0
    witness: Literal["full"] | None = None


def is_valid_at(
    starts: NDArray[np.int64], ends: NDArray[np.int64], times: NDArray[np.int64] | int
) -> NDArray[np.bool_]:
    """Return a mask of the subscriptions, given by `valid_from` and `valid_until`, that apply at these times."""
    # FOREVER is the largest integer, so an event that ends there must not be compared with it.
    return np.asarray((starts <= times) & ((ends == FOREVER) | (times < ends)))
