"""Taking what belongs to subscriptions from them, however much that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.belonging import take_from
from tocsin.matching.batches import IdArray
from tocsin.matching.encoding.codes import Keys
from tocsin.structures.hash_index import HashIndex

__all__ = ["Links", "taken_from"]

_SLICE: Final = 1 << 16  # numbers at a time

Links: TypeAlias = tuple[HashIndex, NDArray[np.int32], NDArray[np.int32]]
"""The index of ids, by its entries the first number of each, and the rows of numbers."""


def taken_from(ids: IdArray, links: Callable[[], Links]) -> Iterator[Keys]:
    """Return the numbers that belong to ids, a part at a time, and take them from the ids as they are returned.

    `links` is asked anew for each part, because what is done with a part may make arrays grow.
    """
    # Kernels are compiled once more for an array that they may not write to.
    wanted = np.require(ids, dtype=np.int64, requirements=["C", "W"])
    numbers = np.empty(max(64, min(len(wanted), _SLICE)), dtype=np.int64)
    done = 0
    while done < len(wanted):
        done, found = take_from(*links(), wanted, done, numbers)
        if found:
            yield numbers[:found]
        elif done < len(wanted):  # one id has more than there is room for
            numbers = np.empty(2 * len(numbers), dtype=np.int64)
