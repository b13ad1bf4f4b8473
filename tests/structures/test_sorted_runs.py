from __future__ import annotations

from bisect import bisect_left, bisect_right

from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.sorted_runs import (
    LEAF,
    SortedRuns,
    _Counter,
    delete,
    has_room,
    insert,
    leaf_for,
    new_run,
    new_sorted_runs,
    position_in,
    with_room,
)

LOWEST, HIGHEST = -(2**63), 2**63 - 1


class RunsBesideDicts:
    """Runs whose every content is compared with that of a sorted dict."""

    def __init__(self) -> None:
        self.runs = new_sorted_runs()
        self.held: list[dict[int, int]] = []

    def new(self) -> int:
        self._make_room(-1)
        run = int(new_run(self.runs))
        assert run == len(self.held)
        self.held.append({})
        return run

    def insert(self, run: int, key: int) -> None:
        if key not in self.held[run]:
            self._make_room(run)
            self.held[run][key] = hash((run, key)) % 2**31
            insert(self.runs, run, key, self.held[run][key])

    def delete(self, run: int, key: int) -> None:
        assert delete(self.runs, run, key) is (self.held[run].pop(key, None) is not None)

    def check(self) -> None:
        for run, wanted in enumerate(self.held):
            assert elements_of(self.runs, run) == sorted(wanted.items())
            assert self.runs.size[run] == len(wanted)
        every = [leaf for run in range(len(self.held)) for leaf in leaves_of(self.runs, run)]
        assert len(set(every)) == len(every)
        self._check_directories()

    def _make_room(self, run: int) -> None:
        if not has_room(self.runs, run):
            self.runs = with_room(self.runs, 1)
            assert has_room(self.runs, run)

    def _check_directories(self) -> None:
        ends = [0]
        for shelf, room in sorted(
            (int(self.runs.shelf[run]), int(self.runs.room[run])) for run in range(len(self.held))
        ):
            assert shelf >= ends[-1]
            ends.append(shelf + room)
        assert ends[-1] <= self.runs.counters[_Counter.TOP_SHELF] <= len(self.runs.words)


def leaves_of(runs: SortedRuns, run: int) -> list[int]:
    """Return a run's leaves in the order of its directory."""
    begin, count = int(runs.shelf[run]), int(runs.leaves[run])
    assert 1 <= count <= runs.room[run]
    return [int(leaf) for leaf in runs.words[begin : begin + count]]


def elements_of(runs: SortedRuns, run: int) -> list[tuple[int, int]]:
    """Return a run's elements as they lie; only a run of one leaf may have an empty one."""
    found: list[tuple[int, int]] = []
    leaves = leaves_of(runs, run)
    for leaf in leaves:
        count = int(runs.count[leaf])
        assert 0 < count <= LEAF or (count == 0 and len(leaves) == 1)
        found += zip(runs.keys[leaf, :count].tolist(), runs.values[leaf, :count].tolist(), strict=True)
    return found


keys = st.one_of(
    st.integers(-100, 100),
    st.sampled_from([LOWEST, LOWEST + 1, HIGHEST - 1, HIGHEST]),
    st.integers(LOWEST, HIGHEST),
)
_which = st.integers(0, 3)
ones = st.tuples(st.sampled_from(["insert", "delete"]), _which, keys, st.just(1), st.just(1))
stretches = st.tuples(
    st.sampled_from(["insert", "insert", "delete"]),
    _which,
    st.integers(-300, 300),
    st.sampled_from([1, -1, 2, 7]),
    st.integers(1, 150),
)
steps = st.lists(st.one_of(ones, stretches), min_size=1, max_size=25)


def carried_out(steps: list[tuple[str, int, int, int, int]]) -> RunsBesideDicts:
    """Return the runs that these steps lead to: each a number of keys in a row, into or out of one run."""
    both = RunsBesideDicts()
    for step, which, begin, stride, count in steps:
        run = which if which < len(both.held) else both.new()
        change = both.insert if step == "insert" else both.delete
        for turn in range(count):
            change(run, begin + turn * stride)
    return both


@given(steps)
def test_a_run_behaves_like_a_sorted_dict(steps: list[tuple[str, int, int, int, int]]) -> None:
    carried_out(steps).check()


@given(steps, st.lists(keys, max_size=10))
def test_a_search_finds_how_many_keys_lie_below(
    steps: list[tuple[str, int, int, int, int]], sought: list[int]
) -> None:
    both = carried_out(steps)
    for run, held in enumerate(both.held):
        leaves = leaves_of(both.runs, run)
        inside = sorted(held)
        firsts = [int(both.runs.keys[leaf, 0]) for leaf in leaves[1:]]
        for key in [*sought, *inside[:: LEAF // 2]]:
            at = int(leaf_for(both.runs, run, key))
            assert at == bisect_right(firsts, key)
            before = sum(int(both.runs.count[leaf]) for leaf in leaves[:at])
            assert before + position_in(both.runs, leaves[at], key) == bisect_left(inside, key)


def test_a_full_leaf_is_split_into_two_halves() -> None:
    both = RunsBesideDicts()
    run = both.new()
    for key in range(LEAF):
        both.insert(run, 2 * key)
    assert len(leaves_of(both.runs, run)) == 1
    both.insert(run, 1)
    assert both.runs.count[leaves_of(both.runs, run)].tolist() == [LEAF // 2 + 1, LEAF // 2]
    both.check()


def test_an_emptied_leaf_is_reused_next() -> None:
    both = RunsBesideDicts()
    first, second = both.new(), both.new()
    for key in range(10 * LEAF):
        both.insert(first, key)
    used = int(both.runs.counters[_Counter.TOP_LEAF])
    for key in range(10 * LEAF):
        both.delete(first, key)
        if key % LEAF == 0:
            both.check()
    assert len(leaves_of(both.runs, first)) == 1
    for key in range(10 * LEAF, 0, -1):
        both.insert(second, key)
    both.check()
    assert both.runs.counters[_Counter.TOP_LEAF] == used


def test_an_outgrown_directory_goes_to_a_new_run() -> None:
    both = RunsBesideDicts()
    runs = [both.new() for _ in range(3)]
    outgrown = both.runs.shelf[runs].tolist()
    for run in runs:
        for key in range(9 * LEAF):
            both.insert(run, key)
    assert not set(outgrown) & set(both.runs.shelf[runs].tolist())
    used = int(both.runs.counters[_Counter.TOP_SHELF])
    heirs = [both.new() for _ in range(3)]
    assert sorted(both.runs.shelf[heirs].tolist()) == outgrown
    assert both.runs.counters[_Counter.TOP_SHELF] == used
    for heir in heirs:
        both.insert(heir, HIGHEST)
    both.check()


def test_keys_descending_ascending_and_from_both_ends_make_the_same_run() -> None:
    both = RunsBesideDicts()
    count = 5 * LEAF
    orders = [range(count), range(count - 1, -1, -1), [k for i in range(count) for k in (i, count - 1 - i)]]
    for order in orders:
        run = both.new()
        for key in order:
            both.insert(run, key)
    both.check()
    assert both.held[0].keys() == both.held[1].keys() == both.held[2].keys()


@given(st.integers(1, 1000))
def test_after_making_room_there_is_room_for_an_element_in_any_run(elements: int) -> None:
    both = RunsBesideDicts()
    run = both.new()
    for key in range(elements):
        both.insert(run, key)
    runs = with_room(both.runs, elements)
    assert has_room(runs, run)
    assert has_room(runs, -1)
