"""When a subscription applies, and what else a subscriber gives beside the query."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from tocsin.model.timestamps import from_microseconds

ALWAYS: Final = -(2**63)
FOREVER: Final = 2**63 - 1


class Validity(Struct, frozen=True):
    """A subscription applies to an event iff `valid_from <= event.end < valid_until`, in ticks.

    The bounds of one that `is_dated` are microseconds since 1970, whatever a tick of the event's stream is.
    """

    valid_from: int = ALWAYS
    valid_until: int = FOREVER
    is_dated: bool = False

    @property
    def is_limited(self) -> bool:
        """Tell whether there is any event that the subscription does not apply to."""
        return self.valid_from != ALWAYS or self.valid_until != FOREVER

    def in_ticks(self, length: int) -> tuple[int, int]:
        """Return the bounds in ticks of so many microseconds, rounded up: no event ends between two ticks."""
        if not self.is_dated or length == 1:
            return self.valid_from, self.valid_until
        valid_from = ALWAYS if self.valid_from == ALWAYS else -(-self.valid_from // length)
        return valid_from, FOREVER if self.valid_until == FOREVER else -(-self.valid_until // length)

    def bounds(self) -> tuple[int | datetime | None, int | datetime | None]:
        """Return the bounds as they are given: datetimes if they are dated, and None where there is none."""
        read = _date if self.is_dated else int
        return (
            None if self.valid_from == ALWAYS else read(self.valid_from),
            None if self.valid_until == FOREVER else read(self.valid_until),
        )


class SubscriptionOptions(Struct, frozen=True):
    """The validity, owner and weight of a subscription, and whether a sequence reports every event of its steps."""

    validity: Validity = Validity()
    owner: str | None = None
    weight: float | Mapping[str, float] = 1.0
    witness: Literal["full"] | None = None


def _date(ticks: int) -> int | datetime:
    try:
        return from_microseconds(ticks)
    except OverflowError:
        return ticks


def saturated_product(ticks: NDArray[np.int64], lengths: NDArray[np.int64] | int) -> NDArray[np.int64]:
    """Return times in microseconds, from times in ticks of these lengths; those that do not fit become the extremes."""
    is_far = np.abs(ticks.astype(np.float64)) * lengths >= float(FOREVER)
    found = np.where(is_far, np.where(ticks < 0, ALWAYS, FOREVER - 1), ticks * np.where(is_far, 1, lengths))
    return np.asarray(found, dtype=np.int64)


def is_valid_at(
    starts: NDArray[np.int64], ends: NDArray[np.int64], times: NDArray[np.int64] | int
) -> NDArray[np.bool_]:
    """Return a mask of the subscriptions, given by `valid_from` and `valid_until`, that apply at these times."""
    # FOREVER is the largest integer, so an event that ends there must not be compared with it.
    return np.asarray((starts <= times) & ((ends == FOREVER) | (times < ends)))
