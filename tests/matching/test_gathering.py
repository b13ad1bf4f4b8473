from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tocsin.matching._kernels.gathering import DIGITS, gather_ids

IDS = st.integers(-(2**63), 2**63 - 1) | st.integers(-300, 300) | st.integers(0, 2**20)


@st.composite
def found(draw: st.DrawFn) -> tuple[list[int], list[int], list[list[int]]]:
    """Return ids, the entry of each conjunction's owner, and the conjunctions of each event, -1 for a refused one."""
    ids = draw(st.lists(IDS, min_size=1, max_size=400, unique=True))
    owners = draw(st.lists(st.integers(0, len(ids) - 1), min_size=1, max_size=400))
    of_event = st.lists(st.integers(-1, len(owners) - 1), max_size=300)
    return ids, owners, draw(st.lists(of_event, max_size=4))


@given(found())
def test_each_event_has_its_ids_in_order_and_once(case: tuple[list[int], list[int], list[list[int]]]) -> None:
    ids, owners, events = case
    offsets = np.cumsum([0, *map(len, events)])
    gathered = np.empty(offsets[-1], dtype=np.int64)
    ends = np.empty(len(offsets), dtype=np.int64)
    gather_ids(
        np.array(ids, dtype=np.int64).reshape(-1, 1),
        np.array(owners, dtype=np.int32),
        np.array([number for event in events for number in event], dtype=np.int64),
        offsets,
        gathered,
        ends,
        np.empty(DIGITS, dtype=np.int64),
    )
    expected = [sorted({ids[owners[number]] for number in event if number >= 0}) for event in events]
    assert [gathered[begin:end].tolist() for begin, end in pairwise(ends)] == expected
