"""The registry of subscriptions: their ids, numbers and validity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heapify, heappop, heappush
from operator import eq
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.matching import IdArray
from tocsin.model.errors import SubscriptionError
from tocsin.model.options import ALWAYS, FOREVER, Validity, is_valid_at
from tocsin.structures.batch_rows import BatchRows
from tocsin.structures.growth import grown, roomier
from tocsin.structures.hash_table import HashTable
from tocsin.structures.packed_strings import LazyStrings, PackedStrings
from tocsin.structures.slots import Slots

_FEW: Final = 64  # ids up to which each is kept as a string, and looked up by itself
_RECENT: Final = 1 << 17  # ids that are at hand


class _Columns(NamedTuple):
    arrival: NDArray[np.int64]  # [number] -1 if it is free


class _Validities(NamedTuple):
    valid_from: NDArray[np.int64]  # [number]
    valid_until: NDArray[np.int64]  # [number]
    is_dated: NDArray[np.bool_]  # [number] whether both count microseconds since 1970


class _Expiry(NamedTuple):
    """Subscriptions that came one after another, and expire together."""

    valid_until: int
    first: int  # the arrival of the first: no two entries have the same
    numbers: IdArray


class SubscriptionRegistry:
    """Subscriptions by id and by number, and when each applies.

    Runtimes and matchers know a subscription by its number, which is given again after the subscription is removed. A
    caller reserves numbers, adds to a runtime under them, and enters the ids last, so that a refused subscription leaves
    no trace here. The validity, which every match needs, is in arrays by number. The registry has one writer at a time.

    A single id is kept as a string. The ids of many are kept as one `LazyStrings`: the pattern over the columns of a
    template, or a block of characters. A number is found by its id's hash, and verified by making the id again.
    """

    def __init__(self) -> None:
        self._names: list[str | None] = []  # [number] ids that came one by one; it may be shorter
        self._made: BatchRows[LazyStrings] = BatchRows()  # the others
        self._recent = np.empty(0, dtype=object)  # [number] ids that were asked for of late, None for others
        self._recent_count = 0
        self._by_hash = HashTable()
        self._slots = Slots()
        self._arrivals = 0  # subscriptions ever entered
        self._expiries: list[_Expiry] = []  # a heap; some are stale
        self._expiring = 0  # numbers in it
        self.has_validity = False  # whether the validity of any subscription was ever limited
        self._columns = _Columns(np.empty(0, dtype=np.int64))
        # While all are unlimited, these are empty.
        self._validities = _Validities(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.bool_))

    @classmethod
    def restore(
        cls, ids: list[str | None], valid_from: NDArray[np.int64], valid_until: NDArray[np.int64]
    ) -> SubscriptionRegistry:
        """Return the registry with these ids and validities by number; a free number has no id."""
        registry = cls()
        free = [number for number, id_ in enumerate(ids) if id_ is None]
        registry._slots = Slots(len(ids), free)
        registry._grow(len(ids))
        used = np.delete(np.arange(len(ids)), free)
        registry.enter(used, [id_ for id_ in ids if id_ is not None], Validity())
        if ((valid_from[used] != ALWAYS) | (valid_until[used] != FOREVER)).any():
            registry._limit()
            limits = registry._validities
            limits.valid_from[used], limits.valid_until[used] = valid_from[used], valid_until[used]
        registry._expiries = registry._expiries_of(used[valid_until[used] != FOREVER])
        registry._expiring = len(registry._expiries)
        return registry

    def __len__(self) -> int:
        return len(self._by_hash)

    def __contains__(self, id_: object) -> bool:
        return isinstance(id_, str) and self._find(id_) is not None

    def __iter__(self) -> Iterator[str]:
        return (id_ for id_, _ in self.items())

    def numbers(self) -> IdArray:
        """Return the numbers of all subscriptions, in the order they came."""
        return self.in_order(np.flatnonzero(self._columns.arrival[: self.capacity] >= 0))

    def items(self) -> Iterator[tuple[str, int]]:
        """Return the ids and numbers of all subscriptions as they are now, in the order they came."""
        numbers = self.numbers()
        return zip(self.ids_of(numbers), numbers.tolist(), strict=True)

    def in_order(self, numbers: IdArray) -> IdArray:
        """Return the numbers of subscriptions in the order they came."""
        arrival = self._columns.arrival[numbers]
        return numbers if (arrival[1:] > arrival[:-1]).all() else numbers[np.argsort(arrival)]

    @property
    def capacity(self) -> int:
        """Return one more than the largest number that was ever given."""
        return self._slots.top

    @property
    def valid_from(self) -> NDArray[np.int64]:
        """Return from when each subscription applies, by number."""
        if self.has_validity:
            return self._validities.valid_from[: self.capacity]
        return np.broadcast_to(np.int64(ALWAYS), self.capacity)

    @property
    def valid_until(self) -> NDArray[np.int64]:
        """Return until when each subscription applies, by number."""
        if self.has_validity:
            return self._validities.valid_until[: self.capacity]
        return np.broadcast_to(np.int64(FOREVER), self.capacity)

    def number(self, id_: str) -> int:
        """Return a subscription's number, or raise `SubscriptionError` if there is none."""
        number = self._find(id_)
        if number is None:
            raise SubscriptionError("it is not subscribed", id_)
        return number

    def present(self, ids: Sequence[str], hashes: NDArray[np.int64] | None = None) -> list[str]:
        """Return those of these ids that are subscribed; `hashes` are theirs, if they are known."""
        if len(ids) <= _FEW:
            return [id_ for id_ in ids if id_ in self]
        return [id_ for _, id_, _ in self._find_all(ids, _hashes(ids) if hashes is None else hashes)]

    def find(self, ids: Sequence[str], hashes: NDArray[np.int64]) -> tuple[IdArray, IdArray]:
        """Return the positions of those of these ids that are subscribed, ascending, and their numbers."""
        found = self._find_all(ids, hashes)
        columns = np.array([(position, number) for position, _, number in found], dtype=np.int64)
        return (columns[:, 0], columns[:, 1]) if found else (columns, columns)

    def id(self, number: int) -> str:
        """Return the id of the subscription with this number."""
        name = self._names[number] if number < len(self._names) else None
        if name is not None:
            return name
        if number not in self._made:
            raise SubscriptionError(f"no subscription has the number {number}")
        ids, row = self._made.find(number)
        return ids.at(row)

    def ids_of(self, numbers: IdArray) -> list[str]:
        """Return the ids of subscriptions; those of late, which are notified again and again, are at hand."""
        if len(self._recent) < self.capacity:
            grown_to = np.full(roomier(len(self._recent), self.capacity), None, dtype=object)
            grown_to[: len(self._recent)] = self._recent
            self._recent = grown_to
        recent = self._recent
        found: list[str] = recent[numbers].tolist()
        if all(found):
            return found
        missing = np.unique(numbers[[id_ is None for id_ in found]])
        recent[missing] = self._make_ids(missing)
        self._recent_count += len(missing)
        found = recent[numbers].tolist()
        if self._recent_count > _RECENT:
            self._forget_recent()
        return found

    def _forget_recent(self) -> None:
        self._recent, self._recent_count = np.empty(0, dtype=object), 0

    def _make_ids(self, numbers: IdArray) -> list[str]:
        """Return the ids of subscriptions, made anew where they are not kept as strings."""
        if len(numbers) <= _FEW:
            return list(map(self.id, numbers.tolist()))
        found = np.empty(len(numbers), dtype=object)
        is_made = self._made.has(numbers)
        found[~is_made] = list(map(self._names.__getitem__, numbers[~is_made].tolist()))
        made = np.flatnonzero(is_made)
        for ids, positions, rows in self._made.group(numbers[made]):
            found[made[positions]] = ids.at_all(rows)
        listed: list[str] = found.tolist()
        return listed

    def find_numbers(self, ids: LazyStrings) -> IdArray:
        """Return the number of each of these ids, -1 for one that is not subscribed."""
        found = np.full(len(ids), -1, dtype=np.int64)
        positions, numbers = self._by_hash.find(_hashes(ids))
        same = np.fromiter(map(eq, ids.at_all(positions), self._make_ids(numbers)), np.bool_, len(positions))
        found[positions[same]] = numbers[same]
        return found

    def lazy_ids(self, numbers: IdArray) -> LazyStrings:
        """Return the ids of subscriptions, at least one, as they are stored if they came together."""
        codes = self._made.codes(numbers)
        if codes[0] >= 0 and (codes == codes[0]).all():
            return self._made.rows_of(numbers)
        return PackedStrings(self.ids_of(numbers))

    def ids(self) -> NDArray[Any]:
        """Return all ids by number; None for a free number."""
        found = np.full(self.capacity, None, dtype=object)
        used = np.flatnonzero(self._columns.arrival[: self.capacity] >= 0)
        found[used] = self.ids_of(used)
        return found

    def validity(self, number: int) -> Validity:
        """Return when the subscription with this number applies."""
        if not self.has_validity:
            return Validity()
        valid_from, valid_until, is_dated = self._validities
        return Validity(valid_from.item(number), valid_until.item(number), is_dated.item(number))

    @property
    def is_dated(self) -> NDArray[np.bool_]:
        """Return by number whether a subscription's bounds count microseconds since 1970, not ticks."""
        if self.has_validity:
            return self._validities.is_dated[: self.capacity]
        return np.broadcast_to(np.False_, self.capacity)

    def is_any_limited(self) -> bool:
        """Tell whether any subscription that is there now has a limited validity."""
        is_there = self._columns.arrival[: self.capacity] >= 0
        is_limited = (self.valid_from != ALWAYS) | (self.valid_until != FOREVER)
        return self.has_validity and bool((is_there & is_limited).any())

    def is_valid(
        self,
        numbers: IdArray,
        times: NDArray[np.int64] | int,
        microseconds: NDArray[np.int64] | int | None = None,
    ) -> NDArray[np.bool_]:
        """Return a mask of the subscriptions that apply to events that ended at these times.

        `microseconds` are the same times since 1970, if their streams have ticks of other lengths.
        """
        if microseconds is not None:
            times = np.where(self.is_dated[numbers], microseconds, times)
        return is_valid_at(self.valid_from[numbers], self.valid_until[numbers], times)

    def reserve(self, count: int) -> list[int]:
        """Return numbers that no subscription has; the caller enters or releases them."""
        numbers = self._slots.take_many(count)
        self._grow(self._slots.top)
        return numbers

    @property
    def free(self) -> IdArray:
        """Return the numbers that were given and are free again; the last one is reserved first."""
        return np.array(self._slots.free, dtype=np.int64)

    def plan(self, numbers: IdArray, free: IdArray) -> None:
        """Have these numbers, in this order, reserved next, and `free` ones after them; raise `ValueError` if they do not fit.

        The registry must be empty.
        """
        every = np.concatenate([free, numbers[::-1]])
        if not np.array_equal(np.sort(every), np.arange(len(every))):
            raise ValueError("the numbers of subscriptions do not fit")
        self._slots = Slots(len(every), every.tolist())
        self._grow(len(every))

    def release(self, numbers: Sequence[int]) -> None:
        """Free numbers that were reserved and not entered."""
        self._slots.give_many(reversed(numbers))

    def enter(
        self,
        numbers: Sequence[int] | IdArray,
        ids: Sequence[str],
        validity: Validity,
        hashes: NDArray[np.int64] | None = None,
    ) -> None:
        """Enter subscriptions under reserved numbers; `hashes` are those of the ids, if they are known."""
        if len(ids) == 1 and validity.valid_until == FOREVER:
            self._enter_one(int(numbers[0]), ids[0], validity)
            return
        at = np.asarray(numbers, dtype=np.int64)
        if len(ids) > _FEW or isinstance(ids, LazyStrings):
            self._made.add(at, ids if isinstance(ids, LazyStrings) else PackedStrings(ids))
        else:
            self._names.extend([None] * (int(at.max(initial=-1)) + 1 - len(self._names)))
            for number, id_ in zip(at.tolist(), ids, strict=True):
                self._names[number] = id_
        self._by_hash.insert(at, _hashes(ids) if hashes is None else hashes)
        first, self._arrivals = self._arrivals, self._arrivals + len(at)
        self._columns.arrival[at] = np.arange(first, self._arrivals)
        self._set_validity(at, validity)
        if validity.valid_until != FOREVER and len(at):
            heappush(self._expiries, _Expiry(validity.valid_until, first, at))
            self._expiring += len(at)

    def _enter_one(self, number: int, id_: str, validity: Validity) -> None:
        """Enter one subscription that does not expire: with so few, handling arrays would cost most."""
        self._names.extend([None] * (number + 1 - len(self._names)))
        self._names[number] = id_
        self._by_hash.insert_one(number, hash(id_))
        self._columns.arrival[number] = self._arrivals
        self._arrivals += 1
        self._set_validity(number, validity)

    def remove(self, id_: str) -> int:
        """Remove a subscription and return the number it had."""
        number = self.number(id_)
        self._recent[number : number + 1] = None
        self._by_hash.remove(number)
        if number in self._made:
            self._made.remove(number)
        else:
            self._names[number] = None
        self._columns.arrival[number] = -1
        self._slots.give(number)
        if self._expiring > 64 and self._expiring > 4 * len(self):
            self._drop_stale()
        return number

    def remove_all(self, ids: Sequence[str]) -> IdArray:
        """Remove subscriptions, and return the numbers they had."""
        if len(ids) <= _FEW:
            return np.array([self.remove(id_) for id_ in ids], dtype=np.int64)
        numbers = np.array([number for _, _, number in self._find_all(ids, _hashes(ids))], dtype=np.int64)
        if len(numbers) < len(ids):
            known = set(self.ids_of(numbers))
            raise SubscriptionError("it is not subscribed", next(id_ for id_ in ids if id_ not in known))
        self._by_hash.remove_all(numbers)
        is_made = self._made.has(numbers)
        self._made.remove_all(numbers[is_made])
        self._forget_recent()
        for number in numbers[~is_made].tolist():
            self._names[number] = None
        self._columns.arrival[numbers] = -1
        self._slots.give_many(numbers.tolist())
        if self._expiring > 64 and self._expiring > 4 * len(self):
            self._drop_stale()
        return numbers

    def expired(self, now: int) -> list[str]:
        """Return the ids of the subscriptions that have expired by `now`; each is returned once."""
        found: list[str] = []
        while self._expiries and self._expiries[0].valid_until <= now:
            entry = heappop(self._expiries)
            self._expiring -= len(entry.numbers)
            found += self.ids_of(self._current(entry))
        return found

    def _find_all(self, ids: Sequence[str], hashes: NDArray[np.int64]) -> list[tuple[int, str, int]]:
        """Return the position, id and number of each of these ids that is subscribed, in the order given."""
        positions, numbers = self._by_hash.find(hashes)
        asked = (
            ids.at_all(positions) if isinstance(ids, LazyStrings) else [ids[i] for i in positions.tolist()]
        )
        found = zip(positions.tolist(), asked, self.ids_of(numbers), numbers.tolist(), strict=True)
        return sorted((position, id_, number) for position, id_, other, number in found if id_ == other)

    def _find(self, id_: str) -> int | None:
        for number in self._by_hash.numbers_of(hash(id_)):
            if self.id(number) == id_:
                return number
        return None

    def _current(self, entry: _Expiry) -> IdArray:
        """Return the numbers that still have the subscription that came with the entry."""
        came = np.arange(entry.first, entry.first + len(entry.numbers))
        is_current: NDArray[np.bool_] = self._columns.arrival[entry.numbers] == came
        return entry.numbers[is_current]

    def _drop_stale(self) -> None:
        """Keep the entries of which a quarter is still there; the others are divided into those that are."""
        kept: list[_Expiry] = []
        for entry in self._expiries:
            current = self._current(entry)
            is_current = 4 * len(current) >= len(entry.numbers)
            kept += [entry] if is_current else self._expiries_of(current)
        heapify(kept)
        self._expiries = kept
        self._expiring = sum(len(entry.numbers) for entry in kept)

    def _expiries_of(self, numbers: IdArray) -> list[_Expiry]:
        """Return an entry for each of these subscriptions, in the order of the heap."""
        valid_until, arrival = self._validities.valid_until, self._columns.arrival
        return sorted(
            _Expiry(valid_until.item(number), arrival.item(number), numbers[i : i + 1].copy())
            for i, number in enumerate(numbers.tolist())
        )

    def _grow(self, size: int) -> None:
        known = len(self._columns.arrival)
        self._columns = grown(self._columns, _Columns._fields, size)
        self._columns.arrival[known:] = -1
        if self.has_validity:
            self._validities = grown(self._validities, _Validities._fields, size)

    def _set_validity(self, numbers: IdArray | int, validity: Validity) -> None:
        if validity.is_limited:
            self._limit()
        if self.has_validity:
            self._validities.valid_from[numbers] = validity.valid_from
            self._validities.valid_until[numbers] = validity.valid_until
            self._validities.is_dated[numbers] = validity.is_dated

    def _limit(self) -> None:
        """Make the columns of validities, now that they are not all unlimited."""
        if not self.has_validity:
            size = len(self._columns.arrival)
            self._validities = _Validities(
                np.full(size, ALWAYS), np.full(size, FOREVER), np.zeros(size, dtype=np.bool_)
            )
            self.has_validity = True


def _hashes(ids: Sequence[str]) -> NDArray[np.int64]:
    return np.fromiter(map(hash, ids), dtype=np.int64, count=len(ids))
