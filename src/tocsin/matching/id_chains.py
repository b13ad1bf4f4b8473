"""Taking what belongs to subscriptions from them, however much that is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.matching._kernels.id_chains import take_from
from tocsin.matching.batches import IdArray
from tocsin.matching.encoding.codes import Keys
from tocsin.structures.hash_index import HashIndex

_SLICE: Final = 1 << 16  # numbers at a time

Links: TypeAlias = tuple[HashIndex, NDArray[np.int32], NDArray[np.int32]]
"""The index of ids, by its entries the first number of each, and the rows of numbers."""


def taken_from(
    ids: IdArray, links: Callable[[], Links], beforehand: Callable[[Keys], None] = lambda _: None
) -> Iterator[Keys]:
    """Return the numbers that belong to ids, a part at a time, and take them from the ids as they are returned.

    `links` is asked anew for each part, because what is done with a part may make arrays grow. `beforehand` is given
    the array that a part will be written to, with -1 in it, for who wants to know of it should there be an interrupt.
    """
    # Kernels are compiled once more for an array that they may not write to.
    wanted = np.require(ids, dtype=np.int64, requirements=["C", "W"])
    size, done = max(64, min(len(wanted), _SLICE)), 0
    while done < len(wanted):
        numbers = np.full(size, -1, dtype=np.int64)
        beforehand(numbers)
        done, found = take_from(*links(), wanted, done, numbers)
        if found:
            yield numbers[:found]
        else:  # one id has more than there is room for, or none has any
            size *= 2
