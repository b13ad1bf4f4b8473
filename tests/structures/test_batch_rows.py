from __future__ import annotations

import numpy as np

from tocsin.structures.batch_rows import BatchRows
from tocsin.structures.packed_strings import PackedStrings


def test_a_batch_loses_the_rows_that_are_removed_and_the_others_keep_their_strings() -> None:
    rows: BatchRows[PackedStrings] = BatchRows()
    numbers = np.random.default_rng(1).permutation(2000)
    rows.add(numbers, PackedStrings([f"s{number}" for number in numbers]))
    rows.add(np.array([3000, 2500]), PackedStrings(["x", "y"]))
    for number in range(1900):
        rows.remove(number)
    for number in range(1900, 2000):
        batch, row = rows.find(number)
        assert batch[row] == f"s{number}"
    assert len(rows.find(1950)[0]) < 500
    assert rows.has(np.array([5, 1950, 2500, 4000, 2999])).tolist() == [False, True, True, False, False]
    found = {
        position: batch[row]
        for batch, positions, at in rows.group(np.array([3000, 1999, 2500, 1999]))
        for position, row in zip(positions.tolist(), at.tolist(), strict=True)
    }
    assert found == {0: "x", 1: "s1999", 2: "y", 3: "s1999"}


def test_the_code_of_a_batch_without_rows_is_used_again() -> None:
    rows: BatchRows[PackedStrings] = BatchRows()
    for _ in range(100):
        rows.add(np.array([0, 1]), PackedStrings(["a", "b"]))
        rows.remove(1)
        rows.remove(0)
    assert len(rows._batches) == 1
    assert 0 not in rows
