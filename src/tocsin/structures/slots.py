"""Slots: small integers for things that come and go, so that arrays and lists can be indexed by them.

There are two allocators, and each free list of the code base is one of them:

- `Slots` is for Python callers that hand out a few numbers at a time. Where the slots stand for sparse keys, `SlotMap`
  also finds a key's slot and a slot's key. Where they stand for values that are compared, counted and looked up, use
  `tocsin.structures.interning.InterningTable`.
- `tocsin.structures.free_lists` is for kernels: the free slots are linked through a column of the caller's own array, so
  that the list takes no memory and no allocation. It is a module of its own because it needs the compiler.

Both hand out the slot that was given back last, then new ones in ascending order: arrays indexed by slot stay as short as
the most slots that were ever in use at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from tocsin.structures.array_types import Int64s
from tocsin.structures.growth import roomier


class Slots:
    """An allocator of the integers from 0 on.

    `top` is the number of slots ever in use, the length that arrays indexed by slot need. The caller gives back only
    slots that are in use; nothing checks that.

    >>> slots = Slots()
    >>> slots.take_many(3), slots.give(1), slots.take(), slots.take(), slots.top, len(slots)
    ([0, 1, 2], None, 1, 3, 4, 4)
    """

    __slots__ = ("_free", "top")

    def __init__(self, top: int = 0, free: Iterable[int] = ()) -> None:
        self.top = top
        self._free: list[int] = list(free)

    def __len__(self) -> int:
        return self.top - len(self._free)

    @property
    def free(self) -> Sequence[int]:
        """Return the slots that were given back and not taken again; the last one is taken first."""
        return self._free

    def take(self) -> int:
        """Return a slot that is not in use."""
        if self._free:
            return self._free.pop()
        self.top += 1
        return self.top - 1

    def take_many(self, count: int) -> list[int]:
        """Return so many slots that are not in use."""
        free = self._free
        slots = [free.pop() for _ in range(min(len(free), count))]
        fresh = count - len(slots)
        slots += range(self.top, self.top + fresh)
        self.top += fresh
        return slots

    def give(self, slot: int) -> None:
        """Give back a slot."""
        self._free.append(slot)

    def give_many(self, slots: Iterable[int]) -> None:
        """Give back slots. The last of them is taken first: `reversed(take_many(n))` restores the earlier state."""
        self._free += slots


class SlotMap:
    """Slots by sparse integer keys, and keys by slot.

    Arrays indexed by slot are as long as there are keys, however large the keys are.

    >>> slots = SlotMap()
    >>> slots.take(np.array([900, 7])).tolist(), slots.give([900, 5]).tolist(), slots.take(np.array([3])).tolist()
    ([0, 1], [0], [0])
    >>> slots.keys(np.array([1, 0])).tolist(), slots.find(3), len(slots), 900 in slots
    ([7, 3], 0, 2, False)
    """

    def __init__(self) -> None:
        self._slot_of: dict[int, int] = {}
        self._keys: Int64s = np.zeros(0, dtype=np.int64)  # [slot]
        self._slots = Slots()
        self.is_identity = True  # every slot equals its key, so `keys` need not look anything up

    def __len__(self) -> int:
        return len(self._slot_of)

    def __contains__(self, key: int) -> bool:
        return key in self._slot_of

    @property
    def top(self) -> int:
        """Return the number of slots ever in use, the length that arrays indexed by slot need."""
        return self._slots.top

    def find(self, key: int) -> int:
        """Return the slot of a key that has one."""
        return self._slot_of[key]

    def keys(self, slots: Int64s) -> Int64s:
        """Return the keys of slots that are in use."""
        return slots if self.is_identity else self._keys[slots]

    def take(self, keys: Int64s) -> Int64s:
        """Return a slot for each of these keys, none of which has one."""
        slots = np.array(self._slots.take_many(len(keys)), dtype=np.int64)
        if self._slots.top > len(self._keys):
            longer = np.zeros(roomier(len(self._keys), self._slots.top), dtype=np.int64)
            longer[: len(self._keys)] = self._keys
            self._keys = longer
        self._keys[slots] = keys
        self.is_identity = self.is_identity and bool((slots == keys).all())
        self._slot_of.update(zip(keys.tolist(), slots.tolist(), strict=True))
        return slots

    def give(self, keys: Iterable[int]) -> Int64s:
        """Give back the slots of these keys and return them; keys without a slot are skipped."""
        found = [slot for key in keys if (slot := self._slot_of.pop(key, None)) is not None]
        self._slots.give_many(found)
        return np.array(found, dtype=np.int64)
