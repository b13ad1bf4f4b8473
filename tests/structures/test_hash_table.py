from __future__ import annotations

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.hash_table import HashTable

# Few different hashes, so that many keys share one, and some that differ in their upper bits only.
HASHES = st.sampled_from([0, 1, -1, 5, 64, 128, 5 + 2**40, -(2**63), 2**63 - 1])


@given(st.lists(st.tuples(st.booleans(), st.lists(HASHES, max_size=40)), max_size=12), st.randoms())
def test_a_table_finds_what_a_dict_of_hashes_would(
    steps: list[tuple[bool, list[int]]], random: Random
) -> None:
    table, expected, top = HashTable(), dict[int, int](), 0
    for is_batch, hashes in steps:
        numbers = np.arange(top, top + len(hashes))
        top += len(hashes)
        if is_batch:
            table.insert(numbers, np.array(hashes, dtype=np.int64))
        else:
            for number, hashed in zip(numbers.tolist(), hashes, strict=True):
                table.insert_one(number, hashed)
        expected.update(zip(numbers.tolist(), hashes, strict=True))
        gone = [number for number in expected if random.random() < 0.3]
        if is_batch:
            table.remove_all(np.array(gone, dtype=np.int64))
        for number in gone:
            if not is_batch:
                table.remove(number)
            del expected[number]
        assert len(table) == len(expected)
        asked = np.array([*{*expected.values()}, 7, 99], dtype=np.int64)
        for hashed in asked.tolist():
            assert sorted(table.numbers_of(hashed)) == sorted(n for n, h in expected.items() if h == hashed)
        positions, found = table.find(asked)
        pairs = zip(asked[positions].tolist(), found.tolist(), strict=True)
        assert sorted(pairs) == sorted((hashed, number) for number, hashed in expected.items())


def test_a_table_that_is_filled_and_emptied_again_and_again_stays_small() -> None:
    table = HashTable()
    for _ in range(1000):
        table.insert(np.arange(20), np.arange(20) * 31)
        for number in range(20):
            table.remove(number)
    assert (len(table), len(table._table)) == (0, 64)
