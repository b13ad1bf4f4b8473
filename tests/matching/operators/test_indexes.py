"""Every operator's index against the definition of its operator."""

from __future__ import annotations

from itertools import count

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.language.patterns import compile_like, compile_regex
from tocsin.language.semantics import text_truth
from tocsin.matching.operators.index import OperatorIndex, Patterns, Texts
from tocsin.matching.operators.registry import operator_index, operator_indexes
from tocsin.model import Operator
from tocsin.model.errors import MatcherError

OPERATORS = sorted(operator_indexes())

# Few characters, one of each width in UTF-8, two that begin with the same byte, and NUL: constants overlap.
LETTERS = "ab\0üÜ€😀"
texts = st.text(LETTERS, max_size=9)
likes = st.lists(st.sampled_from([*"ab%_ü\0", "\\%", "\\_", "\\\\", "\\a"]), max_size=6).map("".join)
regexes = st.recursive(
    st.sampled_from(
        ["a", "b", "ü", ".", "^", "$", "[ab]", "[^a]", "\\x00", "(?i)Ü", "\\b", "(?s).", "", "\\pL"]
    ),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map("|".join),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{1,3}"])).map(lambda two: f"(?:{two[0]}){two[1]}"),
    ),
    max_leaves=5,
)
CONSTANTS = {
    Operator.STARTS_WITH: texts,
    Operator.ENDS_WITH: texts,
    Operator.CONTAINS: texts,
    Operator.LIKE: likes,
    Operator.REGEX: regexes,
}


class CheckedIndex:
    """An index, and beside it the tests that it holds."""

    def __init__(self, operator: Operator) -> None:
        self.operator = operator
        self.index: OperatorIndex = operator_indexes()[operator]()
        self.tests: dict[tuple[int, str], int] = {}
        self._codes = count(5)

    def insert(self, *tests: tuple[int, str]) -> None:
        fresh = {test: next(self._codes) for test in dict.fromkeys(tests) if test not in self.tests}
        self.tests |= fresh
        self.index.insert(as_tests(fresh))

    def remove(self, *tests: tuple[int, str]) -> None:
        gone = {test: self.tests.pop(test) for test in dict.fromkeys(tests) if test in self.tests}
        self.index.remove(as_tests(gone))

    def check(self, *texts: tuple[int, str]) -> None:
        offsets, codes = self.index.passed(
            Texts(np.array([a for a, _ in texts], dtype=np.int64), [text for _, text in texts])
        )
        assert len(offsets) == len(texts) + 1
        assert offsets[-1] == len(codes)
        for i, (attribute, text) in enumerate(texts):
            wanted = [
                code
                for (of, constant), code in self.tests.items()
                if of == attribute and text_truth(self.operator, text, constant)
            ]
            assert sorted(codes[offsets[i] : offsets[i + 1]].tolist()) == sorted(wanted), (text, self.tests)


def as_tests(tests: dict[tuple[int, str], int]) -> Patterns:
    return Patterns(
        np.array([attribute for attribute, _ in tests], dtype=np.int64),
        np.array(list(tests.values()), dtype=np.int64),
        [constant for _, constant in tests],
    )


attributes = st.sampled_from([0, 1, 1, 1, 200])


@pytest.mark.parametrize("operator", OPERATORS)
@given(data=st.data())
def test_an_index_agrees_with_the_operators_meaning(operator: Operator, data: st.DataObject) -> None:
    checked = CheckedIndex(operator)
    compiled = {Operator.LIKE: compile_like, Operator.REGEX: compile_regex}.get(operator)
    several = st.lists(st.tuples(attributes, CONSTANTS[operator]), max_size=12)
    for _ in range(data.draw(st.integers(1, 4))):
        new = data.draw(several)
        if compiled is not None:
            for _, constant in new:
                compiled(constant)
        checked.insert(*new)
        checked.check(*data.draw(st.lists(st.tuples(attributes, texts), max_size=5)))
        if checked.tests:
            checked.remove(*data.draw(st.lists(st.sampled_from(sorted(checked.tests)), max_size=8)))
        checked.check(*data.draw(st.lists(st.tuples(attributes, texts), max_size=5)))
    checked.remove(*list(checked.tests))
    checked.check((1, "ab"), (0, ""), (200, "üa"))


@pytest.mark.parametrize("operator", [Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS])
def test_an_index_of_many_constants_shrinks_and_grows(operator: Operator) -> None:
    random = np.random.default_rng(7)
    words = ["".join(random.choice(list("abcd"), size)) for size in random.integers(0, 9, 4000)]
    checked = CheckedIndex(operator)
    checked.insert(*((i % 3, word) for i, word in enumerate(words)))
    asked = [(i % 3, "".join(random.choice(list("abcde"), 40))) for i in range(30)]
    checked.check(*asked, (0, ""), (7, "abc"))
    checked.remove(*((i % 3, word) for i, word in enumerate(words) if i % 4))
    checked.check(*asked)
    for i, word in enumerate(words[:300]):
        checked.insert((i % 3, word + "x"))
    checked.check(*asked, *((i % 3, word + "x" + word) for i, word in enumerate(words[:30])))
    checked.remove(*list(checked.tests)[::2])
    checked.check(*asked)


def test_constants_as_long_as_books_are_distinguished() -> None:
    book = "spam" * 20_000
    for operator in (Operator.STARTS_WITH, Operator.ENDS_WITH, Operator.CONTAINS):
        checked = CheckedIndex(operator)
        checked.insert((1, book), (1, book[1:]), (1, book[:-1]), (1, book[2:] + "x"), (1, ""))
        checked.check((1, book), (1, book[1:]), (1, book + "x"), (1, "x" + book), (1, "spam"))


def test_constants_that_are_gone_give_their_bytes_back() -> None:
    checked = CheckedIndex(Operator.STARTS_WITH)
    for round_ in range(40):
        checked.insert(*((1, f"{round_}-{i}-" + "x" * 300) for i in range(20)))
        checked.remove(*list(checked.tests)[:-1])
    checked.insert((1, "0-19-x"))
    checked.check((1, "39-19-" + "x" * 400), (1, "0-19-xyz"))
    assert len(checked.index._state.data) < 150_000  # type: ignore[attr-defined]


def test_an_operator_has_one_index() -> None:
    with pytest.raises(MatcherError, match="two indexes answer for the operator `contains`"):
        operator_index(Operator.CONTAINS)(operator_indexes()[Operator.CONTAINS])
