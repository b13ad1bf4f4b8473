from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tocsin.structures.marks import clear, mark, new_marks, set_rest, touch, with_room

steps = st.lists(
    st.tuples(
        st.sampled_from(["mark", "mark", "mark", "mark", "clear", "rest", "grow"]),
        st.integers(0, 300),
        st.integers(0, 255),
    ),
    max_size=80,
)


@given(steps)
def test_marks_behave_like_a_list(steps: list[tuple[str, int, int]]) -> None:
    marks, size = new_marks(4), 4
    rest, touched = [0] * size, dict[int, int]()
    for step, place, value in steps:
        at = place % size
        if step == "mark" and value != rest[at]:
            assert mark(marks, at, value) is (at not in touched)
            touched.setdefault(at, value)
        elif step == "clear":
            clear(marks)
            touched.clear()
        elif step == "rest" and not touched:
            set_rest(marks, at, value)
            rest[at] = value
        elif step == "grow" and place > size:
            marks = with_room(marks, place)
            rest += [0] * (len(marks.value) - size)
            size = len(marks.value)
            assert size >= place
        assert marks.value.tolist() == [touched.get(i, resting) for i, resting in enumerate(rest)]
        assert marks.touched[: marks.count[0]].tolist() == list(touched)


def test_marks_set_one_by_one_are_cleared_all_at_once() -> None:
    marks = new_marks(8)
    set_rest(marks, 3, 2)
    count = 0
    for place in (5, 3, 0):
        count = int(touch(marks, place, 1, count))
    marks.count[0] = count
    assert marks.value.tolist() == [1, 0, 0, 1, 0, 1, 0, 0]
    clear(marks)
    assert marks.value.tolist() == [0, 0, 0, 2, 0, 0, 0, 0]
    assert marks.count[0] == 0


def test_every_byte_can_be_touched() -> None:
    marks = new_marks(64)
    assert all(mark(marks, place, 255) for place in range(64))
    assert not any(mark(marks, place, 1) for place in range(64))
    clear(marks)
    assert not marks.value.any()
