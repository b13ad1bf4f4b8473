"""The invariants of OpIndex's arrays between any two calls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tests.matching.block_memory import SIZES, check_disjoint
from tocsin.matching.conjunction_store.state import StoreCounter, numbers_in_use
from tocsin.matching.opindex.matcher import OpIndex
from tocsin.matching.opindex.state import (
    EQ,
    HAS_RESIDUAL,
    KINDS,
    REFUTATION,
    Pivot,
    Placement,
    State,
    StoredColumn,
    Top,
)


def check_invariants(matcher: OpIndex) -> None:
    state = matcher._state
    blocks = list(_check_lists(state, signed=matcher.signatures))
    check_disjoint(blocks, state.entries.free, state.entries.rows[:, 0], int(state.entries.top[0]))
    _check_counters(state)


def _check_lists(state: State, *, signed: bool) -> Iterator[tuple[int, int]]:
    """Check every segment; return the blocks of entries in use."""
    living = 0
    uses = np.zeros(len(state.fields.uses), dtype=np.int64)
    for pivot in range(int(state.tops[Top.PIVOTS])):
        for kind in range(KINDS):
            list_ = int(state.lists[pivot, kind])
            if list_ < 0:
                continue
            size = 0
            first, count = list_ >> 8, 1 << (list_ & 0xFF)
            for row in range(first, first + count):
                offset, total, ordered, meta = state.segments[row].tolist()
                if offset < 0:
                    assert total == 0
                    continue
                entries = state.entries.rows[offset : offset + total]
                dead = entries[:, 1] < 0
                assert np.count_nonzero(dead) == meta >> 8
                assert total <= SIZES[meta & 0xFF]
                words = entries[:, 1] & 0x7FFFFFFFFFFFFFFF
                keys = list(
                    zip(
                        (words >> 32).tolist(),
                        entries[:, 0].tolist(),
                        (words & 0xFFFFFFFF).tolist(),
                        strict=True,
                    )
                )
                assert keys[:ordered] == sorted(keys[:ordered])
                assert total <= 256 or ordered >= total - 64 - total // 256
                for (field, key, _), is_dead in zip(keys, dead.tolist(), strict=True):
                    place = key_hash(field, key) if kind in (EQ, REFUTATION) else field // 8
                    assert row == first + place % count
                    bits = signature(field, key if kind in (EQ, REFUTATION) else None)
                    assert not signed or int(state.signatures[row]) & bits == bits
                    uses[field] += not is_dead
                size += total - int(np.count_nonzero(dead))
                yield offset, SIZES[meta & 0xFF]
            assert size == state.sizes[pivot, kind] > 0
            living += size
    assert living == state.tops[Top.ENTRIES]
    assert (uses == state.fields.uses).all()


def signature(field: int, key: int | None) -> int:
    """Return the three bits that a predicate sets."""
    mixed = (field + 1) * 0x9E3779B97F4A7C15 % 2**64
    if key is not None:
        mixed = (mixed ^ key % 2**64) * 0xD6E8FEB86659FD93 % 2**64
    spread = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 % 2**64
    return 1 << (spread >> 58) | 1 << (spread >> 52 & 63) | 1 << (spread >> 46 & 63)


def key_hash(field: int, key: int) -> int:
    """Return the hash of predicates that ask for a key."""
    mixed = (field + 1) * 0xD6E8FEB86659FD93 % 2**64
    mixed = (mixed ^ key % 2**64) * 0x9E3779B97F4A7C15 % 2**64
    return ((mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 % 2**64) >> 32


def _check_counters(state: State) -> None:
    """Check that every counter in use has an expression that names it, and the other way round."""
    used: dict[tuple[int, int], int] = {}
    living = 0
    for number in numbers_in_use(state.store).tolist():
        living += 1
        placement = int(state.store.rows[number, StoredColumn.PLACEMENT])
        assert placement >= 0
        while placement >= 0:
            row = state.placements[placement]
            used[int(row[Placement.PIVOT]), int(row[Placement.SLOT])] = number
            placement = int(row[Placement.NEXT])
    assert living == state.store.counters[StoreCounter.LIVE]
    assert len(used) == sum(state.pivots[: state.tops[Top.PIVOTS], Pivot.MEMBERS])
    blocks = []
    for pivot in range(int(state.tops[Top.PIVOTS])):
        row = state.pivots[pivot]
        members = [slot for at, slot in used if at == pivot]
        assert len(members) == row[Pivot.MEMBERS]
        if row[Pivot.COUNTERS] < 0:
            continue
        blocks.append((int(row[Pivot.COUNTERS]), SIZES[int(row[Pivot.CLASS])]))
        for slot in members:
            assert state.holders[row[Pivot.COUNTERS] + slot] & ~HAS_RESIDUAL == used[pivot, slot]
        free, slot = set(), int(row[Pivot.FREE])
        while slot >= 0:
            free.add(slot)
            slot = int(state.holders[row[Pivot.COUNTERS] + slot])
        assert free.isdisjoint(members)
        assert len(free) + len(members) == row[Pivot.TOP]
    check_disjoint(blocks, state.counters.free, state.counters.rows[:, 0], int(state.counters.top[0]))
