from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.hash_index import (
    NONE,
    HashCounter,
    HashIndex,
    find,
    insert,
    live_entries,
    new_hash_index,
    remove,
    top_entry,
    with_room,
)

LOWEST, HIGHEST = -(2**63), 2**63 - 1

Key: TypeAlias = tuple[int, ...]


def padded(key: Key) -> tuple[int, int, int]:
    a, b, c = (*key, 0, 0)[:3]
    return a, b, c


class IndexBesideDict:
    """An index whose every answer is compared with that of a dict."""

    def __init__(self, width: int) -> None:
        self.index = new_hash_index(width, extra=1, capacity=1)
        self.width = width
        self.entries: dict[Key, int] = {}
        self.freed: list[int] = []
        self.most = 0

    def insert(self, key: Key) -> None:
        self.index = with_room(self.index, 1)
        entry = insert(self.index, *padded(key))
        assert entry == (self.freed.pop() if self.freed else self.most)
        self.entries[key] = entry
        self.index.keys[entry, self.width] = hash(key)
        self.most = max(self.most, len(self.entries))

    def remove(self, key: Key) -> None:
        entry = self.entries.pop(key)
        remove(self.index, entry)
        self.freed.append(entry)
        assert find(self.index, *padded(key)) == NONE

    def check(self) -> None:
        assert live_entries(self.index) == len(self.entries)
        assert top_entry(self.index) == self.most
        for key, entry in self.entries.items():
            assert find(self.index, *padded(key)) == entry
            assert self.index.keys[entry].tolist() == [*key, hash(key)]
        held = [entry for chain in chains(self.index) for entry in chain]
        assert sorted(held) == sorted(self.entries.values())
        assert free_entries(self.index) == self.freed[::-1]


def chains(index: HashIndex) -> list[list[int]]:
    """Return the entries of each bucket."""
    buckets = int(index.counters[HashCounter.MASK]) + 1 + int(index.counters[HashCounter.SPLIT])
    return [_followed(index, int(index.heads[bucket])) for bucket in range(buckets)]


def free_entries(index: HashIndex) -> list[int]:
    """Return the entries to be used again, the next one first."""
    return _followed(index, int(index.counters[HashCounter.FREE]))


def _followed(index: HashIndex, entry: int) -> list[int]:
    found = []
    while entry != NONE:
        found.append(entry)
        entry = int(index.chain[entry])
    return found


integers = st.one_of(
    st.integers(-2, 2),
    st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]),
    st.integers(LOWEST, HIGHEST),
)
steps = st.lists(st.tuples(st.booleans(), integers, integers, integers), min_size=1, max_size=120)


@pytest.mark.parametrize("width", [1, 2, 3])
@given(steps=steps)
def test_an_index_answers_like_a_dict(width: int, steps: list[tuple[bool, int, int, int]]) -> None:
    both = IndexBesideDict(width)
    for removing, *integers in steps:
        key = tuple(integers[:width])
        if key in both.entries:
            both.remove(key)
        elif removing and both.entries:
            both.remove(list(both.entries)[integers[0] % len(both.entries)])
        else:
            assert find(both.index, *padded(key)) == NONE
            both.insert(key)
    both.check()


def test_an_index_that_grows_shrinks_and_grows_answers_like_a_dict() -> None:
    both = IndexBesideDict(2)
    for number in range(1500):
        both.insert((number, -number))
    both.check()
    for number in range(0, 1500, 2):
        both.remove((number, -number))
    both.check()
    for number in range(1000):
        both.insert((HIGHEST - number, LOWEST + number))
    both.check()


@given(st.integers(0, 300), st.integers(1, 300))
def test_room_for_so_many_more_is_room_for_all_of_them(before: int, more: int) -> None:
    index = with_room(new_hash_index(1, capacity=1), before)
    for number in range(before):
        insert(index, number, 0, 0)
    index = with_room(index, more)
    assert [insert(index, -number, 0, 0) for number in range(1, more + 1)] == [*range(before, before + more)]
    assert all(find(index, number, 0, 0) == number for number in range(before))


def test_keys_that_resemble_each_other_do_not_meet_in_one_bucket() -> None:
    index = with_room(new_hash_index(3), 4096)
    for number in range(1024):
        for key in ((number, 0, 0), (0, 1 + number, 0), (0, 0, 1 + number), (1 + number << 32, 1, 0)):
            insert(index, *key)
    assert max(map(len, chains(index))) < 12


def test_extra_columns_beside_a_key_are_no_part_of_it() -> None:
    index = new_hash_index(1, extra=2)
    entry = insert(index, 7, 0, 0)
    index.keys[entry, 1:] = 5, 6
    assert find(index, 7, 0, 0) == entry
    assert find(index, 5, 0, 0) == NONE
