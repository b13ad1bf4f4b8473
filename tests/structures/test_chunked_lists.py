from __future__ import annotations

from typing import TypeAlias

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.chunked_lists import (
    LARGEST,
    Chunk,
    ChunkedLists,
    ListRow,
    _Counter,
    _stride,
    append,
    drop_list,
    has_room,
    new_chunked_lists,
    new_list,
    swap_remove,
    with_room,
)

WIDTHS = [1, 2, 3, 15, 16, 17, 20, 32, 33, 64, 65]

Record: TypeAlias = tuple[int, ...]


class ListsBesideLists:
    """Lists in chunks, whose every content is compared with that of Python's lists."""

    def __init__(self) -> None:
        self.lists = new_chunked_lists()
        self.held: dict[int, list[Record]] = {}
        self._written = 0

    def new(self, width: int) -> int:
        self._make_room(width)
        number = int(new_list(self.lists, width))
        assert number not in self.held
        self.held[number] = []
        return number

    def append(self, number: int, count: int = 1) -> None:
        width = int(self.lists.rows[number, ListRow.WIDTH])
        for _ in range(count):
            self._make_room(width)
            chunk, position = append(self.lists, number)
            offset, capacity = (
                self.lists.chunks[chunk, Chunk.OFFSET],
                self.lists.chunks[chunk, Chunk.CAPACITY],
            )
            record = tuple(range(self._written, self._written + width))
            self._written += width
            for column, word in enumerate(record):
                self.lists.words[offset + column * capacity + position] = word
            self.held[number].append(record)

    def remove(self, number: int, place: int) -> None:
        records = self.held[number]
        swap_remove(self.lists, *self._whereabouts(number, place))
        records[place] = records[-1]
        records.pop()

    def drop(self, number: int) -> None:
        while self.held[number]:
            self.remove(number, len(self.held[number]) // 2)
        drop_list(self.lists, number)
        del self.held[number]

    def check(self) -> None:
        for number, records in self.held.items():
            assert records_of(self.lists, number) == records
        assert self.lists.counters[_Counter.LIVE_LISTS] == len(self.held)
        self._check_stretches()

    def _make_room(self, width: int) -> None:
        if not has_room(self.lists, width):
            self.lists = with_room(self.lists, 1, width)
            assert has_room(self.lists, width)

    def _whereabouts(self, number: int, place: int) -> tuple[int, int]:
        for chunk in chunks_of(self.lists, number):
            if place < self.lists.chunks[chunk, Chunk.CAPACITY]:
                return chunk, place
            place -= int(self.lists.chunks[chunk, Chunk.CAPACITY])
        raise IndexError(place)

    def _check_stretches(self) -> None:
        """No two chunks have a word in common, and none reaches beyond those in use."""
        stretches = []
        for number in self.held:
            stride = int(_stride(int(self.lists.rows[number, ListRow.WIDTH])))
            for chunk in chunks_of(self.lists, number):
                begin = int(self.lists.chunks[chunk, Chunk.OFFSET])
                stretches.append((begin, begin + stride * int(self.lists.chunks[chunk, Chunk.CAPACITY])))
        ends = [0]
        for begin, end in sorted(stretches):
            assert begin >= ends[-1]
            ends.append(end)
        assert ends[-1] <= self.lists.counters[_Counter.TOP_WORD] <= len(self.lists.words)


def chunks_of(lists: ChunkedLists, number: int) -> list[int]:
    """Return a list's chunks, the oldest first."""
    found = []
    chunk = int(lists.rows[number, ListRow.HEAD])
    while chunk >= 0:
        assert lists.chunks[chunk, Chunk.OWNER] == number
        found.append(chunk)
        chunk = int(lists.chunks[chunk, Chunk.OLDER])
    return found[::-1]


def records_of(lists: ChunkedLists, number: int) -> list[Record]:
    """Return a list's records as they lie; only the newest chunk may be partly filled."""
    found: list[Record] = []
    width, fill = int(lists.rows[number, ListRow.WIDTH]), int(lists.rows[number, ListRow.FILL])
    chunks = chunks_of(lists, number)
    assert (fill > 0) is bool(chunks)
    for chunk in chunks:
        offset, capacity = int(lists.chunks[chunk, Chunk.OFFSET]), int(lists.chunks[chunk, Chunk.CAPACITY])
        count = fill if chunk == chunks[-1] else capacity
        assert count <= capacity
        columns = lists.words[offset : offset + width * capacity].reshape(width, capacity)
        found += map(tuple, columns[:, :count].T.tolist())
    assert lists.rows[number, ListRow.TOTAL] == len(found)
    return found


new_lists = st.tuples(st.just("new"), st.sampled_from(WIDTHS), st.just(0))
appends = st.tuples(st.just("append"), st.integers(0, 9), st.integers(1, 40))
removals = st.tuples(st.just("remove"), st.integers(0, 9), st.integers(0, 10**6))
drops = st.tuples(st.just("drop"), st.integers(0, 9), st.just(0))
steps = st.lists(st.one_of(new_lists, appends, appends, removals, removals, drops), max_size=60)


@given(steps)
def test_lists_behave_like_python_lists(steps: list[tuple[str, int, int]]) -> None:
    both = ListsBesideLists()
    for step, which, amount in steps:
        if step == "new" or not both.held:
            both.new(which if which in WIDTHS else 1)
            continue
        number = list(both.held)[which % len(both.held)]
        if step == "append":
            both.append(number, amount)
        elif step == "drop":
            both.drop(number)
        else:
            for turn in range(min(amount % 25, len(both.held[number]))):
                both.remove(number, (amount + 7 * turn) % len(both.held[number]))
    both.check()


@pytest.mark.parametrize("width", [1, 3, 20])
def test_a_chunk_is_as_large_as_all_before_it_up_to_a_limit(width: int) -> None:
    both = ListsBesideLists()
    number = both.new(width)
    both.append(number, 2 * LARGEST + 1)
    both.check()
    capacities = both.lists.chunks[chunks_of(both.lists, number), Chunk.CAPACITY].tolist()
    assert capacities == [4, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1024]
    for place in (0, 3, 4, 1000, 2 * LARGEST - 4):
        both.remove(number, place)
    both.check()


def test_a_list_that_is_emptied_has_no_chunk_and_can_be_filled_again() -> None:
    both = ListsBesideLists()
    number = both.new(2)
    both.append(number, 9)
    for _ in range(9):
        both.remove(number, 0)
        both.check()
    assert chunks_of(both.lists, number) == []
    both.append(number)
    both.check()


@pytest.mark.parametrize(("before", "after"), [(1, 1), (4, 4), (16, 16), (20, 20), (20, 31), (64, 33)])
def test_freed_chunks_are_used_again_for_records_of_the_same_stride(before: int, after: int) -> None:
    both = ListsBesideLists()
    first = [both.new(before) for _ in range(3)]
    for number in first:
        both.append(number, 100)
    used = both.lists.counters[[_Counter.TOP_WORD, _Counter.TOP_LIST, _Counter.TOP_CHUNK]].tolist()
    for number in first:
        both.drop(number)
    again = [both.new(after) for _ in range(3)]
    for number in again:
        both.append(number, 100)
    both.check()
    assert sorted(again) == sorted(first)
    assert both.lists.counters[[_Counter.TOP_WORD, _Counter.TOP_LIST, _Counter.TOP_CHUNK]].tolist() == used


@pytest.mark.parametrize(("before", "after", "stride"), [(2, 3, 3), (3, 2, 2), (16, 17, 32), (32, 33, 64)])
def test_freed_chunks_of_another_stride_are_left_alone(before: int, after: int, stride: int) -> None:
    both = ListsBesideLists()
    both.append(first := both.new(before), 4)
    used = int(both.lists.counters[_Counter.TOP_WORD])
    both.drop(first)
    both.append(both.new(after), 4)
    both.check()
    assert both.lists.counters[_Counter.TOP_WORD] == used + 4 * stride


@given(st.sampled_from(WIDTHS), st.integers(1, 5000))
def test_after_making_room_there_is_room_for_a_list_and_a_chunk(width: int, records: int) -> None:
    lists = with_room(new_chunked_lists(), records, width)
    assert has_room(lists, width)
    assert len(lists.words) >= records * min(width, 16)
