"""All stored tests are evaluated for every string, whatever happens while their indexes are built."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.matching.operators.test_indexes import CheckedIndex
from tocsin.language.semantics import text_truth
from tocsin.matching.operators import contains, pattern_sets, prefixes, text_tests
from tocsin.matching.operators.text_tests import IS_TEXT, TextTests, pattern_of, pattern_symbol
from tocsin.model import Operator
from tocsin.structures.interning import InterningTable

ATTRIBUTE = 1
TESTS = [
    (Operator.STARTS_WITH, "a"),
    (Operator.STARTS_WITH, "ab"),
    (Operator.ENDS_WITH, "c"),
    (Operator.CONTAINS, "b"),
    (Operator.CONTAINS, "bc"),
    (Operator.LIKE, "a_c"),
    (Operator.REGEX, "b+c"),
]
STRINGS = ["abc", "bbc", "a", "", "xab"]
# Each of them is called while tests go into an index, or come out of one.
CALLED = [(contains, "_automaton"), (contains, "_merged"), (pattern_sets, "_Set"), (prefixes, "insert")]


class CheckedTests:
    """Tests, and a plain model of them."""

    def __init__(self) -> None:
        self.patterns: InterningTable[str] = InterningTable()
        self.tests = TextTests(self.patterns)
        self.held: dict[int, int] = {}

    def hold(self, *tests: tuple[Operator, str]) -> None:
        codes = [self.patterns.code(pattern_symbol(*one)) for one in tests]
        self.tests.retain(*as_rows(codes))
        for code in codes:
            self.held[code] = self.held.get(code, 0) + 1

    def release(self, *tests: tuple[Operator, str]) -> None:
        codes = [self.patterns.code(pattern_symbol(*one)) for one in tests]
        for code in codes:
            self.held[code] -= 1
        self.tests.release(*as_rows(codes))

    def match(self) -> None:
        self.tests.passed(np.full(len(STRINGS), ATTRIBUTE, dtype=np.int64), STRINGS)

    def check(self) -> None:
        offsets, codes = self.tests.passed(np.full(len(STRINGS), ATTRIBUTE, dtype=np.int64), STRINGS)
        for i, string in enumerate(STRINGS):
            wanted = sorted(code for code, uses in self.held.items() if uses and self._is_true(code, string))
            assert codes[offsets[i] : offsets[i + 1]].tolist() == [*wanted, IS_TEXT], string
        count = sum(uses > 0 for uses in self.held.values())
        assert self.tests.attributes == ({ATTRIBUTE: count} if count else {})

    def _is_true(self, code: int, string: str) -> bool:
        operator, constant = pattern_of(self.patterns.value(code))
        return bool(text_truth(operator, string, constant))


def as_rows(codes: list[int]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    return np.full(len(codes), ATTRIBUTE, dtype=np.int64), np.array(codes, dtype=np.int64)


def interrupted(monkeypatch: pytest.MonkeyPatch, module: object, name: str) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, name, interrupt)


@pytest.mark.parametrize(("module", "name"), CALLED)
def test_an_interrupt_while_tests_are_entered_loses_none(
    module: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = CheckedTests()
    tests.hold(*TESTS[::2])
    tests.check()
    tests.hold(*TESTS)
    with monkeypatch.context() as patch:
        interrupted(patch, module, name)
        with pytest.raises(KeyboardInterrupt):
            tests.match()
    tests.check()


@pytest.mark.parametrize(("module", "name"), CALLED)
def test_tests_are_released_after_an_interrupt(
    module: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tests = CheckedTests()
    tests.hold(*TESTS[::2])
    tests.match()
    tests.hold(*TESTS)
    with monkeypatch.context() as patch:
        interrupted(patch, module, name)
        with pytest.raises(KeyboardInterrupt):
            tests.match()
    tests.release(*TESTS[::2], *TESTS[1:4])
    tests.check()
    tests.release(*TESTS[4:], TESTS[0])
    tests.check()


def test_an_interrupt_while_tests_are_taken_out_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = CheckedTests()
    tests.hold(*TESTS, *((Operator.CONTAINS, "b" * i) for i in range(2, 5)))
    tests.check()
    with monkeypatch.context() as patch:
        interrupted(patch, contains, "_Static")
        with pytest.raises(KeyboardInterrupt):
            tests.release((Operator.CONTAINS, "b"), *((Operator.CONTAINS, "b" * i) for i in range(2, 5)))
    tests.check()


def test_an_interrupt_while_tests_are_counted_loses_none(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = CheckedTests()
    tests.hold(*TESTS[:3])
    tests.check()
    with monkeypatch.context() as patch:
        interrupted(patch, text_tests.TextTests, "_count")
        with pytest.raises(KeyboardInterrupt):
            tests.hold(*TESTS[3:])
    tests.held |= dict.fromkeys([tests.patterns.code(pattern_symbol(*one)) for one in TESTS[3:]], 1)
    tests.check()


@pytest.mark.parametrize(
    ("operator", "module", "name"),
    [(Operator.CONTAINS, contains, "_Static"), (Operator.REGEX, pattern_sets, "_Set")],
)
def test_an_index_gives_nothing_up_before_there_is_something_instead(
    operator: Operator, module: object, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked = CheckedIndex(operator)
    checked.insert(*((1, letter) for letter in "abcdefgh"))
    with monkeypatch.context() as patch:
        interrupted(patch, module, name)
        with pytest.raises(KeyboardInterrupt):
            checked.insert((1, "x"), (1, "y"), (1, "z"))
    checked.tests = {test: code for test, code in checked.tests.items() if test[1] not in "xyz"}
    checked.check((1, "abcxyz"), (1, "h"))
    with monkeypatch.context() as patch:
        interrupted(patch, module, name)
        with pytest.raises(KeyboardInterrupt):
            checked.remove(*((1, letter) for letter in "abcdef"))
    checked.check((1, "abcxyz"), (1, "gh"))


def waiting(tests: CheckedTests) -> int:
    return sum(len(codes) for _, codes in tests.tests._uses._waiting)


def test_tests_removed_before_the_first_lookup_are_forgotten() -> None:
    tests = CheckedTests()
    tests.hold(*TESTS[:4])
    tests.match()
    tests.hold(TESTS[4])
    for _ in range(3000):
        tests.hold(TESTS[5])
        tests.release(TESTS[5])
    assert waiting(tests) < 1100
    tests.check()
    tests.hold(TESTS[6])
    tests.release(*TESTS[:5], TESTS[6])
    assert waiting(tests) == 0
    tests.check()
