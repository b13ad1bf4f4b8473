"""The messages that concern a subscription at all: the server may know the ranges that are subscribed to, and not by whom.

The paper's optional check (section 4): a message that no active subscription's range lies in need not be sent.
"""

from __future__ import annotations

import numpy as np

from tocsin.structures import hash_index
from tocsin.structures.array_types import Bools, Int64s
from tocsin.structures.growth import bytes_of
from tocsin.views._kernels.covering import cover, uncover
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages
from tocsin.views.range_index import PointRangeIndex


class Coverage:
    """Ranges, and how many subscriptions have each."""

    def __init__(self) -> None:
        self._uses = hash_index.new_hash_index(2, extra=1)
        self._index = PointRangeIndex()

    def __len__(self) -> int:
        """Return how many different ranges there are."""
        return len(self._index)

    def add(self, lows: Floats, highs: Floats) -> None:
        """Add ranges, both ends included, each as often as it comes."""
        self._uses = hash_index.with_room(self._uses, len(lows))
        entries = np.empty((2, len(lows)), dtype=np.int64)
        fresh = cover(self._uses, _bits(lows, highs), entries.reshape(-1))
        new, positions = entries[:, :fresh]
        self._index.add(new, lows[positions], highs[positions])

    def remove(self, lows: Floats, highs: Floats) -> None:
        """Remove ranges, each once; unknown ones are skipped."""
        entries = np.empty(len(lows), dtype=np.int64)
        gone = uncover(self._uses, _bits(lows, highs), entries)
        self._index.remove(entries[:gone])

    def concerns(self, messages: Messages) -> Bools:
        """Tell of each message whether it concerns any range."""
        return self._index.any(messages)

    @property
    def nbytes(self) -> int:
        """Return the bytes of the index and the counts."""
        return bytes_of(self._uses) + self._index.nbytes


def _bits(lows: Floats, highs: Floats) -> Int64s:
    # -0.0 and 0.0 are one number, and must be one key.
    return np.stack([lows + 0.0, highs + 0.0], axis=1).view(np.int64)
