"""`contains` finds a constant once in a string, whatever is gone through beside it."""

from __future__ import annotations

import numpy as np
import pytest

from tests.matching.operators.test_indexes import CheckedIndex
from tocsin.matching.operators._kernels import automata
from tocsin.matching.operators._kernels.automata import find_contained
from tocsin.matching.operators.index import Texts
from tocsin.model import Operator


def found(checked: CheckedIndex, *strings: str) -> list[int]:
    """Return what the only automaton finds, as the number of a string above 32 bits and the code below."""
    (static,) = checked.index._automata  # type: ignore[attr-defined]
    passed: list[int] = static.passed(Texts(np.ones(len(strings), dtype=np.int64), strings)).tolist()
    return passed


@pytest.mark.parametrize("strings", [1, 2, 16, 40])
def test_a_constant_found_several_times_is_returned_once(strings: int) -> None:
    checked = CheckedIndex(Operator.CONTAINS)
    checked.insert(*((1, "a" * size) for size in range(1, 20)), (1, "b"), (1, ""))
    asked = ["a" * (100 + 7 * (i % 5)) + "b" * (i % 3) for i in range(strings)]
    passed = found(checked, *asked)
    assert len(set(passed)) == len(passed) == sum(20 + ("b" in string) for string in asked)
    checked.check(*((1, string) for string in asked))


def test_removed_constants_are_not_found() -> None:
    checked = CheckedIndex(Operator.CONTAINS)
    checked.insert(*((1, "a" * size) for size in range(1, 20)))
    checked.remove(*((1, "a" * size) for size in range(2, 20, 3)))
    assert len(found(checked, *["a" * 300] * 20)) == 20 * len(checked.tests)
    checked.check(*[(1, "a" * 300), (1, "aa"), (1, "b")] * 20)


def test_a_search_that_is_cut_short_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    checked = CheckedIndex(Operator.CONTAINS)
    checked.insert(*((1, "ab" * size) for size in range(1, 200)))
    asked = [(1, "ab" * 500)] * 20
    rooms = []

    def interrupted(*arguments: object) -> bool:
        rooms.append(find_contained(*arguments))  # type: ignore[arg-type]
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(automata, "find_contained", interrupted)
        with pytest.raises(KeyboardInterrupt):
            checked.check(*asked)
    assert rooms == [False]  # it was in the middle
    checked.check(*asked)
