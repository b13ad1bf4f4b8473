"""What must hold of OpIndex's arrays between any two calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.opindex.matcher import OpIndex
from tocsin.matching.opindex.state import (
    ASKED,
    CLASS,
    COUNTERS,
    ENTRIES,
    EQ,
    EXTRA_NEXT,
    EXTRA_PIVOT,
    EXTRA_SLOT,
    FREE,
    KINDS,
    LIVE_FORMS,
    MEMBERS,
    MORE,
    PIVOT,
    SLOT,
    STRIKE,
    TOP,
    TOP_FORM,
    TOP_PIVOT,
    State,
)

SIZES = [1, 2, 3, 4, *(size for log in range(2, 40) for size in (6 << (log - 2), 8 << (log - 2)))]


def check_invariants(matcher: OpIndex) -> None:
    state = matcher._state
    blocks = list(_check_lists(state, signed=matcher.signatures))
    _check_disjoint(blocks, state.entries.free, state.entries.rows[:, 0], int(state.entries.top[0]))
    _check_counters(state)


def _check_lists(state: State, *, signed: bool) -> Iterator[tuple[int, int]]:
    """Check every segment; return the blocks of entries in use."""
    living = 0
    uses = np.zeros(len(state.fields.uses), dtype=np.int64)
    for pivot in range(int(state.tops[TOP_PIVOT])):
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
                    place = equal_place(field, key) if kind in (EQ, STRIKE) else field // 8
                    assert row == first + place % count
                    bits = signature(field, key if kind in (EQ, STRIKE) else None)
                    assert not signed or int(state.signatures[row]) & bits == bits
                    uses[field] += not is_dead
                size += total - int(np.count_nonzero(dead))
                yield offset, SIZES[meta & 0xFF]
            assert size == state.sizes[pivot, kind] > 0
            living += size
    assert living == state.tops[ENTRIES]
    assert (uses == state.fields.uses).all()


def signature(field: int, key: int | None) -> int:
    """Return the three bits that a predicate sets."""
    mixed = (field + 1) * 0x9E3779B97F4A7C15 % 2**64
    if key is not None:
        mixed = (mixed ^ key % 2**64) * 0xD6E8FEB86659FD93 % 2**64
    spread = (mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 % 2**64
    return 1 << (spread >> 58) | 1 << (spread >> 52 & 63) | 1 << (spread >> 46 & 63)


def equal_place(field: int, key: int) -> int:
    """Return the place of predicates that ask for a key."""
    mixed = (field + 1) * 0xD6E8FEB86659FD93 % 2**64
    mixed = (mixed ^ key % 2**64) * 0x9E3779B97F4A7C15 % 2**64
    return ((mixed ^ mixed >> 32) * 0xD6E8FEB86659FD93 % 2**64) >> 32


def _check_disjoint(blocks: list[tuple[int, int]], free: NDArray[Any], links: NDArray[Any], top: int) -> None:
    """Check that blocks in use and free ones fill the memory, and that none overlaps another."""
    for class_, head in enumerate(free.tolist()):
        at = head
        while at >= 0:
            blocks.append((at, SIZES[class_]))
            at = int(links[at])
    end = 0
    for first, size in sorted(blocks):
        assert first == end
        end += size
    assert end == top


def _check_counters(state: State) -> None:
    """Check that every counter in use has a form that says so, and the other way round."""
    used: dict[tuple[int, int], int] = {}
    living = 0
    for number in range(int(state.tops[TOP_FORM])):
        if state.owner[number] < 0:
            continue
        living += 1
        used[int(state.forms[number, PIVOT]), int(state.forms[number, SLOT])] = number
        more = int(state.forms[number, MORE])
        while more >= 0:
            used[int(state.extras[more, EXTRA_PIVOT]), int(state.extras[more, EXTRA_SLOT])] = number
            more = int(state.extras[more, EXTRA_NEXT])
    assert living == state.tops[LIVE_FORMS]
    blocks = []
    for pivot in range(int(state.tops[TOP_PIVOT])):
        row = state.pivots[pivot]
        members = [slot for at, slot in used if at == pivot]
        assert len(members) == row[MEMBERS]
        if row[COUNTERS] < 0:
            continue
        blocks.append((int(row[COUNTERS]), SIZES[int(row[CLASS])]))
        for slot in members:
            assert state.holders[row[COUNTERS] + slot] & ~ASKED == used[pivot, slot]
        free, slot = set(), int(row[FREE])
        while slot >= 0:
            free.add(slot)
            slot = int(state.holders[row[COUNTERS] + slot])
        assert free.isdisjoint(members)
        assert len(free) + len(members) == row[TOP]
    _check_disjoint(blocks, state.counters.free, state.counters.rows[:, 0], int(state.counters.top[0]))
