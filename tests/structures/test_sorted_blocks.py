from __future__ import annotations

from bisect import bisect_left, insort

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.structures.sorted_blocks import (
    BLOCK,
    SortedBlocks,
    lower_bound,
    new_sorted_blocks,
    with_changes,
)

Pair = tuple[float, float]


def changed(blocks: SortedBlocks, changes: list[tuple[Pair | None, Pair | None]]) -> SortedBlocks:
    none = (np.nan, np.nan)
    rows = np.array([[*(old or none), *(new or none)] for old, new in changes], dtype=float).reshape(-1, 4)
    columns = rows.T.copy()
    reached = 0
    while reached < len(changes):
        blocks, reached = with_changes(blocks, columns, reached)
        if reached < 0:
            raise LookupError(f"change {-1 - reached}")
    return blocks


def pairs_of(blocks: SortedBlocks) -> list[Pair]:
    pairs: list[Pair] = []
    for entry in range(blocks.used[0]):
        block, size = blocks.block[entry], blocks.size[entry]
        assert size > 0 or blocks.used[0] == 1
        here = list(
            zip(blocks.first[block, :size].tolist(), blocks.second[block, :size].tolist(), strict=True)
        )
        if here:
            assert here[0] == (blocks.low_first[entry], blocks.low_second[entry])
        pairs += here
    assert sorted(blocks.block.tolist()) == list(range(len(blocks.block)))
    return pairs


@settings(max_examples=20)
@given(st.integers(0, 2**32 - 1), st.sampled_from([3, 40, 10_000]))
def test_pairs_are_kept_in_order_while_they_come_and_go(seed: int, domain: int) -> None:
    rng = np.random.default_rng(seed)
    blocks, model = new_sorted_blocks(), list[Pair]()
    for wanted in (3 * BLOCK, BLOCK // 4, 2 * BLOCK, 0, 5):
        changes: list[tuple[Pair | None, Pair | None]] = []
        for _ in range(abs(wanted - len(model))):
            old = (
                model.pop(rng.integers(len(model)))
                if len(model) > wanted or (model and rng.random() < 0.2)
                else None
            )
            new = (
                (float(rng.integers(domain)), float(rng.integers(3)))
                if old is None or rng.random() < 0.1
                else None
            )
            if new is not None:
                insort(model, new)
            changes.append((old, new))
        blocks = changed(blocks, changes)
        assert pairs_of(blocks) == model
        for probe in range(0, domain, 1 + domain // 20):
            at = lower_bound(blocks, float(probe), 1.0)
            before = int(blocks.size[: at // BLOCK].sum()) + at % BLOCK
            assert before == bisect_left(model, (float(probe), 1.0))


def test_ordered_insertions_fill_their_blocks() -> None:
    blocks = changed(new_sorted_blocks(), [(None, (float(i), 0.0)) for i in range(20 * BLOCK)])
    assert blocks.used[0] <= 20 * 4 // 3 + 1
    thinned = changed(blocks, [((float(i), 0.0), None) for i in range(20 * BLOCK) if i % 20])
    assert thinned.used[0] <= 4
    assert pairs_of(thinned) == [(float(i), 0.0) for i in range(0, 20 * BLOCK, 20)]


def test_the_place_after_the_last_pair_is_in_the_last_block() -> None:
    blocks = changed(new_sorted_blocks(), [(None, (float(i), 0.0)) for i in range(600)])
    blocks = changed(blocks, [((float(i), 0.0), None) for i in range(300, 600)])  # blocks merge
    for i in range(300, 300 + 2 * BLOCK):
        blocks = changed(blocks, [(None, (float(i), 0.0))])
        entry, place = divmod(lower_bound(blocks, 1000.0, 0.0), BLOCK)
        assert (entry, place) == (blocks.used[0] - 1, blocks.size[entry])


def test_a_pair_that_is_not_there_cannot_be_taken_out() -> None:
    blocks = changed(new_sorted_blocks(), [(None, (1.0, 2.0))])
    with pytest.raises(LookupError, match="change 1"):
        changed(blocks, [((1.0, 2.0), None), ((1.0, 2.0), None)])
