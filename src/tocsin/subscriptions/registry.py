"""The registry of subscriptions: their ids, numbers and validity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.model.errors import SubscriptionError
from tocsin.model.options import ALWAYS, FOREVER, Validity, is_valid_at
from tocsin.structures.growth import grown
from tocsin.structures.slots import Slots


class _Columns(NamedTuple):
    valid_from: NDArray[np.int64]
    valid_until: NDArray[np.int64]


class SubscriptionRegistry:
    """Subscriptions by id and by number, and when each applies.

    Runtimes and matchers know a subscription by its number, which is given again after the subscription is removed. A
    caller reserves numbers, adds to a runtime under them, and enters the ids last, so that a refused subscription leaves
    no trace here. The validity, which every match needs, is in arrays by number. The registry has one writer at a time.
    """

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._ids: list[str | None] = []
        self._slots = Slots()
        self._expiries: list[tuple[int, int, str]] = []  # a heap of (valid_until, number, id); some are stale
        self.has_validity = False  # whether the validity of any subscription was ever limited
        self.valid_from: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # [number]
        self.valid_until: NDArray[np.int64] = np.empty(0, dtype=np.int64)  # [number]

    @classmethod
    def restore(
        cls, ids: list[str | None], valid_from: NDArray[np.int64], valid_until: NDArray[np.int64]
    ) -> SubscriptionRegistry:
        """Return the registry with these ids and validities by number; a free number has no id."""
        registry = cls()
        registry._ids = ids
        registry.numbers = {id_: number for number, id_ in enumerate(ids) if id_ is not None}
        registry._slots = Slots(len(ids), [number for number, id_ in enumerate(ids) if id_ is None])
        registry.valid_from, registry.valid_until = valid_from.copy(), valid_until.copy()
        registry.has_validity = registry.is_any_limited()
        used = np.array(list(registry.numbers.values()), dtype=np.int64)
        ending = used[valid_until[used] != FOREVER]
        registry._expiries = [(int(valid_until[n]), n, str(ids[n])) for n in ending.tolist()]
        heapify(registry._expiries)
        return registry

    def __len__(self) -> int:
        return len(self.numbers)

    def __contains__(self, id_: object) -> bool:
        return id_ in self.numbers

    def __iter__(self) -> Iterator[str]:
        return iter(list(self.numbers))

    @property
    def capacity(self) -> int:
        """Return one more than the largest number that was ever given."""
        return len(self._ids)

    def number(self, id_: str) -> int:
        """Return a subscription's number, or raise `SubscriptionError` if there is none."""
        try:
            return self.numbers[id_]
        except KeyError:
            raise SubscriptionError("it is not subscribed", id_) from None

    def id(self, number: int) -> str:
        """Return the id of the subscription with this number."""
        found = self._ids[number]
        if found is None:
            raise SubscriptionError(f"no subscription has the number {number}")
        return found

    def ids_of(self, numbers: IdArray) -> list[str]:
        """Return the ids of subscriptions."""
        return list(map(cast("list[str]", self._ids).__getitem__, numbers.tolist()))

    def ids(self) -> NDArray[Any]:
        """Return all ids by number; None for a free number."""
        return np.fromiter(self._ids, dtype=object, count=len(self._ids))

    def validity(self, number: int) -> Validity:
        """Return when the subscription with this number applies."""
        return Validity(int(self.valid_from[number]), int(self.valid_until[number]))

    def is_any_limited(self) -> bool:
        """Tell whether any subscription that is there now has a limited validity."""
        used = np.array(list(self.numbers.values()), dtype=np.int64)
        return bool(((self.valid_from[used] != ALWAYS) | (self.valid_until[used] != FOREVER)).any())

    def is_valid(self, numbers: IdArray, times: NDArray[np.int64] | int) -> NDArray[np.bool_]:
        """Return a mask of the subscriptions that apply to events that ended at these times."""
        return is_valid_at(self.valid_from[numbers], self.valid_until[numbers], times)

    def reserve(self, count: int) -> list[int]:
        """Return numbers that no subscription has; the caller enters or releases them."""
        numbers = self._slots.take_many(count)
        self._ids.extend([None] * (self._slots.top - len(self._ids)))
        self._grow(len(self._ids))
        return numbers

    def release(self, numbers: Sequence[int]) -> None:
        """Free numbers that were reserved and not entered."""
        self._slots.give_many(reversed(numbers))

    def enter(self, numbers: Sequence[int], ids: Sequence[str], validity: Validity) -> None:
        """Enter subscriptions under reserved numbers."""
        for id_, number in zip(ids, numbers, strict=True):
            self._ids[number] = id_
        self.numbers.update(zip(ids, numbers, strict=True))
        self.has_validity |= validity.is_limited
        self.valid_from[numbers] = validity.valid_from
        self.valid_until[numbers] = validity.valid_until
        if validity.valid_until != FOREVER:
            entries = [(validity.valid_until, number, id_) for id_, number in zip(ids, numbers, strict=True)]
            if len(entries) < 16:  # below that, pushing costs less than ordering the whole heap anew
                for entry in entries:
                    heappush(self._expiries, entry)
            else:
                self._expiries += entries
                heapify(self._expiries)

    def remove(self, id_: str) -> int:
        """Remove a subscription and return the number it had."""
        number = self.numbers.pop(id_)
        self._ids[number] = None
        self._slots.give(number)
        if len(self._expiries) > 64 and len(self._expiries) > 4 * len(self.numbers):
            self._expiries = [entry for entry in self._expiries if self._is_current(*entry)]
            heapify(self._expiries)
        return number

    def expired(self, now: int) -> list[str]:
        """Return the ids of the subscriptions that have expired by `now`; each is returned once."""
        found: dict[str, None] = {}
        while self._expiries and self._expiries[0][0] <= now:
            until, number, id_ = heappop(self._expiries)
            if self._is_current(until, number, id_):
                found[id_] = None
        return list(found)

    def _is_current(self, until: int, number: int, id_: str) -> bool:
        """Tell whether an entry of the expiry heap is not stale."""
        return self.numbers.get(id_) == number and bool(self.valid_until[number] == until)

    def _grow(self, size: int) -> None:
        columns = _Columns(self.valid_from, self.valid_until)
        self.valid_from, self.valid_until = grown(columns, _Columns._fields, size)
