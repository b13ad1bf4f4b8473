from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tocsin.structures.interning import InterningTable


def codes(*numbers: int) -> NDArray[np.int64]:
    return np.array(numbers, dtype=np.int64)


class TableBesideCounter:
    """A table whose every answer is compared with a count of the uses."""

    def __init__(self) -> None:
        self.table: InterningTable[str] = InterningTable()
        self.known: dict[str, int] = {}
        self.uses: Counter[str] = Counter()

    def give(self, symbol: str) -> None:
        before, held = self.table.version, dict(self.known)
        code = self.table.code(symbol)
        assert held.get(symbol, code) == code
        assert code not in held.values() or symbol in held
        assert (self.table.version == before) is (symbol in held)
        self.known[symbol] = code

    def hold(self, symbols: list[str]) -> None:
        for symbol in symbols:
            self.give(symbol)
        self.table.retain(codes(*(self.known[symbol] for symbol in symbols)))
        self.uses.update(symbols)

    def release(self, symbols: list[str]) -> None:
        """Take back as many uses as there are."""
        taken = [s for s, count in (Counter(symbols) & self.uses).items() for _ in range(count)]
        before = self.table.version
        forgotten = self.table.release(codes(*(self.known[symbol] for symbol in taken)))
        self.uses.subtract(taken)
        ended = {symbol for symbol in taken if not self.uses[symbol]}
        assert sorted(forgotten) == sorted(ended)
        assert (self.table.version != before) is bool(ended)
        for symbol in ended:
            del self.known[symbol]

    def forget_unused(self) -> None:
        self.table.forget_unused()
        self.known = {symbol: code for symbol, code in self.known.items() if self.uses[symbol]}

    def check(self) -> None:
        assert dict(self.table.codes) == self.known
        assert len(self.table) == len(self.known)
        assert sorted(self.table) == sorted((code, symbol) for symbol, code in self.known.items())
        assert [code for code in range(self.table.top + 3) if self.table.is_known(code)] == sorted(
            self.known.values()
        )
        for symbol, code in self.known.items():
            assert self.table.value(code) == symbol


several = st.lists(st.sampled_from("abcdefgh"), max_size=6)
steps = st.lists(
    st.tuples(st.sampled_from(["give", "hold", "hold", "release", "release", "forget", "restore"]), several),
    max_size=40,
)


@given(steps)
def test_a_table_keeps_only_codes_in_use(steps: list[tuple[str, list[str]]]) -> None:
    both = TableBesideCounter()
    for step, symbols in steps:
        match step:
            case "give":
                for symbol in symbols:
                    both.give(symbol)
            case "hold":
                both.hold(symbols)
            case "release":
                both.release(symbols)
            case "forget":
                both.forget_unused()
            case _:
                both.forget_unused()
                contents = both.table.contents()
                both.table = InterningTable()
                both.table.restore(*contents)
        both.check()


def test_codes_are_given_again_so_that_the_table_stays_small() -> None:
    table: InterningTable[int] = InterningTable()
    for number in range(1000):
        code = table.code(number)
        table.retain(codes(code, code))
        assert table.release(codes(code)) == []
        assert table.release(codes(code)) == [number]
    assert table.top == 1
    assert len(table) == 0


def test_a_table_grows_to_any_size() -> None:
    table: InterningTable[int] = InterningTable()
    given = [table.code(number) for number in range(1000)]
    table.retain(codes(*given))
    assert given == list(range(1000))
    table.release(codes(*given[::2]))
    assert sorted(table) == [(number, number) for number in range(1, 1000, 2)]


def test_all_uses_may_be_taken_back_at_once() -> None:
    table: InterningTable[str] = InterningTable()
    first, second = table.code("a"), table.code("b")
    table.retain(codes(first, second, first))
    assert table.release(codes(first, first)) == ["a"]
    assert dict(table.codes) == {"b": second}


def test_holding_and_releasing_nothing_changes_nothing() -> None:
    table: InterningTable[str] = InterningTable()
    table.retain(codes())
    assert table.release(codes()) == []
    assert table.version == 0


def test_a_code_that_stands_for_nothing_is_an_error() -> None:
    table: InterningTable[str] = InterningTable()
    table.code("a")
    table.forget_unused()
    with pytest.raises(KeyError):
        table.value(0)


def test_single_uses_are_counted_with_uses_in_bulk() -> None:
    table: InterningTable[str] = InterningTable()
    code = table.code("a")
    assert table.acquire("a", 2) == code
    table.retain(codes(code))
    table.forget_unused()
    assert table.release(codes(code)) == []
    assert [table.release_one(code), table.release_one(code)] == [False, True]
    assert table.values == [None]
    assert table.acquire("b") == code


def test_values_that_are_no_longer_alive_are_forgotten_together() -> None:
    table: InterningTable[str] = InterningTable()
    given = {letter: table.code(letter) for letter in "abcd"}
    table.forget_except({given["b"], given["d"]})
    assert dict(table.codes) == {"b": given["b"], "d": given["d"]}
    assert {table.code("e"), table.code("f")} == {given["a"], given["c"]}
    table.forget_unused()
    assert len(table) == 0
