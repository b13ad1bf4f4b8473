"""What is true of the adaptive matcher's state between two calls."""

from __future__ import annotations

from collections import Counter

import numpy as np

from tocsin.matching.adaptive.matcher import Adaptive
from tocsin.matching.adaptive.state import (
    ABSENT,
    ALWAYS,
    BOUNDS,
    BOUNDS_BIT,
    CELL,
    CODE_BITS,
    LARGE_BIT,
    NO_CODE,
    OP_BITS,
    PRESENCE,
    SIZE_BITS,
    SIZE_MASK,
    SLOT_MASK,
    Access,
    Code,
    Large,
    Posting,
    Section,
    Slot,
    State,
    Stored,
    Top,
    Value,
)
from tocsin.matching.conjunction_store.state import numbers_in_use
from tocsin.matching.encoding.codes import Op
from tocsin.structures import hash_index
from tocsin.structures.array_types import Int64s
from tocsin.structures.hash_index import HashIndex


def check_invariants(matcher: Adaptive) -> None:
    """Check that clusters, codes, access paths and numbers agree with one another."""
    state = matcher._state
    uses: Counter[int] = Counter()
    placed: dict[int, tuple[int, int]] = {}
    live = _entries(state.access)
    assert ALWAYS in live
    in_tables = 0
    for entry in live:
        keys = _codes_of(state, entry)
        in_tables += len(keys) > 1
        uses.update(keys)
        _check_way(state, entry, keys)
        members = _check_cluster(state, entry, placed, uses)
        assert members or entry == ALWAYS
    for number in numbers_in_use(state.store).tolist():
        path, offset = state.store.rows[number, [Stored.PATH, Stored.OFFSET]].tolist()
        assert placed.pop(number) == (path, offset)
    assert not placed
    _check_codes(state, uses)
    assert state.tables.members.sum() == in_tables
    assert not state.tables.members[state.tables.width == 0].any()
    values = state.slots.values[: state.tops[Top.SLOTS]]
    assert (values[:, Value.CODE] == ABSENT).all()


def _entries(index: HashIndex) -> set[int]:
    """Return the entries in use."""
    found: set[int] = set()
    buckets = int(index.counters[3] + 1 + index.counters[4])
    for head in index.heads[:buckets].tolist():
        entry = head
        while entry >= 0:
            found.add(entry)
            entry = int(index.chain[entry])
    assert len(found) == hash_index.live_entries(index)
    return found


def _codes_of(state: State, entry: int) -> list[int]:
    """Return the codes in the key of an access path."""
    first, second = state.access.keys[entry, [Access.FIRST, Access.SECOND]].tolist()
    if first < 0 or first & 0xFFFFFFFF == PRESENCE:
        return []
    halves = [first] if second < 0 else [first, second]
    parts = [part for half in halves for part in (half >> CODE_BITS, half & 0xFFFFFFFF)]
    return [part for part in parts if part != NO_CODE]


def _check_way(state: State, entry: int, keys: list[int]) -> None:
    """Check that events find an access path by one code, or by presence."""
    first = int(state.access.keys[entry, Access.FIRST])
    if first >= 0 and first & 0xFFFFFFFF == PRESENCE:
        assert state.slots.rows[first >> CODE_BITS, Slot.CLUSTER] == entry + 1
    elif len(keys) == 1:
        assert state.predicates.entries.keys[keys[0], Code.USE] & 0xFFFFFFFF == entry + 1


def _check_cluster(state: State, entry: int, placed: dict[int, tuple[int, int]], uses: Counter[int]) -> int:
    """Note the conjunctions of a cluster, and what codes they use; return how many there are."""
    place, gone = state.access.keys[entry, [Access.PLACE, Access.WORK]].tolist()
    start, words = place >> 32, place & (LARGE_BIT - 1)
    at, dead, count = 0, 0, 0
    firsts: dict[int, tuple[int, int]] = {}
    sections: list[list[int]] = []
    if place & LARGE_BIT:
        row = state.large.rows[gone & 0xFFFFFFFF]
        assert row[Large.ENTRY] == entry
        gone = int(row[Large.GONE])
        sections, firsts = _sections_of(state, row), _first_checks_of(state, row)
    else:
        assert words < state.tops[Top.LARGE]
    while at < words:
        first, head, number = state.words.rows[start + at : start + at + 3].tolist()
        size, checks = head & SIZE_MASK, (head >> SIZE_BITS) & SIZE_MASK
        bounds = BOUNDS * checks * ((head >> BOUNDS_BIT) & 1)
        length = size + 3 - (checks > 0) + bounds
        if number < 0:
            dead += length
            firsts.pop(at, None)
        else:
            assert number not in placed
            placed[number] = (entry, at)
            rest = state.words.rows[start + at + 3 + bounds : start + at + length].tolist()
            codes = [code if code >= 0 else -1 - code for code in ([first] if checks else []) + rest]
            uses.update(codes)
            if place & LARGE_BIT:
                which, word = firsts.pop(at)
                assert word == (first if checks else 0)
                _check_sections(state, sections, which, codes[:checks])
            count += 1
        at += length
    assert at == words
    assert not firsts
    assert dead == gone & 0xFFFFFFFF
    return count


def _first_checks_of(state: State, row: Int64s) -> dict[int, tuple[int, int]]:
    """Return the first checks of a large cluster, by where their conjunctions are: their own place, and the word."""
    first, count = row[[Large.FIRST, Large.COUNT]].tolist()
    packed = state.large.checks.rows[first : first + count, 0]
    words = packed.astype(np.int32).tolist()
    return {
        offset: (i, word) for i, (offset, word) in enumerate(zip((packed >> 32).tolist(), words, strict=True))
    }


def _sections_of(state: State, row: Int64s) -> list[list[int]]:
    """Return the sections of a large cluster; they hold its first conjunctions, each once, and lead to one another."""
    first, count = row[[Large.SECTION, Large.SECTIONS]].tolist()
    sections: list[list[int]] = state.large.sections[first : first + count].tolist()
    end = 0
    for number, section in enumerate(sections):
        assert number < section[Section.NEXT] <= count
        if section[Section.END] > section[Section.BEGIN]:
            assert section[Section.BEGIN] == end
            end = section[Section.END]
            assert section[Section.NEXT] == number + 1
    assert end == row[Large.DIVIDED]
    return sections


def _check_sections(state: State, sections: list[list[int]], at: int, checks: list[int]) -> None:
    """Check that all sections around a conjunction have its bounds."""
    leaf = next(
        (i for i, section in enumerate(sections) if section[Section.BEGIN] <= at < section[Section.END]), -1
    )
    for section in (
        s for i, s in enumerate(sections) if i <= leaf < s[Section.NEXT] and s[Section.SLOTS] != -1
    ):
        slots = section[Section.SLOTS]
        bounds = [(slots & 0xFFFFFFFF, section[Section.LOW], section[Section.HIGH])]
        if slots >= 0:
            bounds.append((slots >> 32, section[Section.SECOND_LOW], section[Section.SECOND_HIGH]))
        for slot, low, high in bounds:
            assert any(
                int(row[Code.TAG]) & SLOT_MASK == slot and low <= row[Code.LOW] and row[Code.HIGH] <= high
                for row in state.predicates.entries.keys[checks]
            )


def _check_codes(state: State, uses: Counter[int]) -> None:
    """Check that each code is used as often as is counted, and each slot has as many equalities."""
    entries, equalities = state.predicates.entries, Counter[int]()
    for code in _entries(entries) - {0}:
        tag = int(entries.keys[code, Code.TAG])
        if tag >> OP_BITS == Op.IN and entries.keys[code, Code.USE] & 0xFFFFFFFF:
            uses.update(_points(state, code))
        if tag >> OP_BITS in (Op.EQ, CELL):
            equalities[tag & SLOT_MASK] += 1
    for code in _entries(entries) - {0}:
        assert state.predicates.uses[code] == uses.pop(code)
    assert not uses
    used = state.slots.rows[: state.tops[Top.SLOTS], Slot.EQUALITIES]
    assert {slot: int(used[slot]) for slot in np.flatnonzero(used).tolist()} == dict(equalities)


def _points(state: State, code: int) -> list[int]:
    """Return the codes of the members of a list that is an access path, by its links."""
    first, count, links = state.lists[state.predicates.entries.keys[code, Code.LOW]].tolist()
    assert first >= 0
    entry = (int(state.predicates.entries.keys[code, Code.USE]) & 0xFFFFFFFF) - 1
    points = []
    for link in range(links, links + count):
        point, position = state.links.rows[link].tolist()
        begin = int(state.predicates.linked[point]) - 1
        assert 0 < position <= state.postings.rows[begin, Posting.ENTRY]
        assert state.postings.rows[begin + position].tolist() == [entry, link]
        points.append(point)
    return points
