"""The subscriptions that a state knows: their ids and fingerprints, and their numbers in another engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from msgspec import Struct

from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.matching import IdArray
from tocsin.model.errors import SavedError
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import UInt64s
from tocsin.structures.packed_strings import LazyStrings
from tocsin.subscriptions.fingerprints import fingerprints_of
from tocsin.subscriptions.saved_columns import ColumnReader, ColumnWriter
from tocsin.subscriptions.template_ids import PatternIds


def write_identities(store: SubscriptionStore, numbers: IdArray) -> Parts:
    """Return the ids and fingerprints of subscriptions, in the order of their numbers."""
    writer = ColumnWriter()
    runs = [writer.strings(store.registry.lazy_ids(part)) for part in _runs(store, numbers)]
    prints = fingerprints_of(store.registry, store.queries, numbers)
    return Parts({"ids": runs}, {**writer.members, "fingerprints": prints})


def _runs(store: SubscriptionStore, numbers: IdArray) -> Iterator[IdArray]:
    """Yield numbers of subscriptions that came with one template, or without one."""
    if not len(numbers):
        return
    codes = store.queries.template_codes(numbers)
    begins = np.flatnonzero(np.diff(codes, prepend=codes[:1] - 1)).tolist()
    for begin, end in zip(begins, [*begins[1:], len(numbers)], strict=True):
        yield numbers[begin:end]


class Identities(Struct, frozen=True):
    """Ids and fingerprints that were written, read and checked."""

    runs: list[LazyStrings]
    fingerprints: UInt64s

    @classmethod
    def read(cls, parts: Parts) -> Identities:
        """Return ids and fingerprints, or raise `SavedError`."""
        try:
            reader = ColumnReader(parts)
            runs = [reader.strings(written) for written in parts.about["ids"]]
            prints = parts.array("fingerprints")
            if prints.dtype != np.uint64 or prints.shape != (sum(map(len, runs)),):
                raise ValueError("there are not as many fingerprints as ids")
        except SavedError:
            raise
        except Exception as fault:  # what readers of damaged contents may raise
            raise SavedError(f"its ids are damaged: {type(fault).__name__}: {fault}") from fault
        return cls(runs, prints)

    def find(self, store: SubscriptionStore, own: IdArray) -> IdArray:
        """Return the number of each subscription, -1 if it is none of `own`, or asks something else here."""
        found = np.full(len(self.fingerprints), -1, dtype=np.int64)
        begin = 0
        for ids in self.runs:
            # Mostly the same templates were added in the same order.
            same = own[begin : begin + len(ids)]
            is_same = len(same) == len(ids) and _are_same(ids, store.registry.lazy_ids(same))
            found[begin : begin + len(ids)] = same if is_same else store.registry.find_numbers(ids)
            begin += len(ids)
        found[~np.isin(found, own)] = -1
        known = np.flatnonzero(found >= 0)
        prints = fingerprints_of(store.registry, store.queries, found[known])
        found[known[prints != self.fingerprints[known]]] = -1
        return found


def _are_same(ids: LazyStrings, others: LazyStrings) -> bool:
    """Tell whether ids are by the same pattern over the same columns."""
    if not isinstance(ids, PatternIds) or not isinstance(others, PatternIds):
        return False
    if len(ids.parts) != len(others.parts):
        return False
    return all(_is_same_part(one, other) for one, other in zip(ids.parts, others.parts, strict=True))


def _is_same_part(one: Any, other: Any) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return type(one) is type(other) and bool(one == other)
    return one.dtype == other.dtype and np.array_equal(one, other)
