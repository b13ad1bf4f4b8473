from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.slots import SlotMap, Slots

steps = st.lists(st.integers(-8, 8), max_size=60)  # how many to take; how many to give back, if negative


@given(steps)
def test_slots_are_distinct_and_given_again(steps: list[int]) -> None:
    slots, taken, most = Slots(), set[int](), 0
    for step in steps:
        if step >= 0:
            fresh = [slots.take()] if step == 1 else slots.take_many(step)
            assert len(set(fresh)) == step
            assert taken.isdisjoint(fresh)
            taken.update(fresh)
            most = max(most, len(taken))
        else:
            given_back = sorted(taken)[:-step]
            slots.give_many(given_back)
            taken.difference_update(given_back)
        assert len(slots) == len(taken)
        assert slots.top == most


def test_reserved_slots_that_are_given_back_in_reverse_come_again_in_order() -> None:
    slots = Slots(6, free=[4, 1])
    first = slots.take_many(4)
    assert first == [1, 4, 6, 7]
    slots.give_many(reversed(first))
    assert slots.take_many(4) == first


@given(st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 50), max_size=6)), max_size=30))
def test_a_map_finds_the_slot_of_a_key_and_the_key_of_a_slot(steps: list[tuple[bool, set[int]]]) -> None:
    slots, known = SlotMap(), dict[int, int]()
    for is_added, keys in steps:
        if is_added:
            new = np.array(sorted(keys - known.keys()), dtype=np.int64)
            known |= zip(new.tolist(), slots.take(new).tolist(), strict=True)
        else:
            gone = [key for key in sorted(keys) if key in known]
            assert slots.give(sorted(keys)).tolist() == [known.pop(key) for key in gone]
        assert len(slots) == len(known) == len(set(known.values()))
        assert all(slots.find(key) == slot and key in slots for key, slot in known.items())
        assert slots.keys(np.array(list(known.values()), dtype=np.int64)).tolist() == list(known)
