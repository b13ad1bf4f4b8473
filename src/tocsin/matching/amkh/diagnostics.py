"""Diagnostics of AMKH: the cost of events, and the buckets of one event."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from tocsin.matching._kernels.gathering import NEEDS_RESIDUAL
from tocsin.matching.amkh.state import SIZE_BITS, Bucket, Index, State
from tocsin.matching.encoding.codes import Keys
from tocsin.structures import hash_index


class Examined(Struct, frozen=True):
    """The cost of events since the counts were last reset."""

    events: int
    schemas: int  # visited
    probed: int  # buckets
    examined: int  # subscriptions found there, whether they match or not
    matched: int

    @property
    def unmatched(self) -> int:
        """Return how many examined subscriptions did not match."""
        return self.examined - self.matched


class Lookup(Struct, frozen=True):
    """The buckets that an event probes.

    A schema with fewer buckets than the event has coordinates for it is scanned bucket by bucket. For an event with more
    than 1,024 probes only the buckets that are not empty are listed: it is not `is_complete`.
    """

    buckets: tuple[int, ...]  # ascending; empty ones included, if it is complete
    examined: tuple[int, ...]  # ids of the subscriptions there, ascending
    is_complete: bool


def filled_buckets(index: Index) -> Keys:
    """Return the rows of all buckets that are not empty."""
    keys = index.buckets.keys[: hash_index.top_entry(index.buckets)]
    return np.asarray(keys[keys[:, Bucket.SIZE] >> SIZE_BITS > 0])


def members_of(state: State, index: Index, bucket: Keys) -> list[int]:
    """Return the ids of the subscriptions in a bucket, given by its row."""
    first = int(bucket[Bucket.MEMBERS])
    words = index.members.rows[first : first + int(bucket[Bucket.SIZE] >> SIZE_BITS), 1]
    numbers = state.records.rows[words >> 32, 0] % NEEDS_RESIDUAL
    return [int(id_) for id_ in state.store.ids.keys[state.store.owner[numbers], 0]]
