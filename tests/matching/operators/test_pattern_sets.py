"""Sets of regular expressions lose no answer, whatever RE2 makes of them."""

from __future__ import annotations

import numpy as np
import pytest
import re2

from tests.matching.operators.test_indexes import CheckedIndex
from tocsin.matching.operators import pattern_sets
from tocsin.model import Operator

GREEDY = [f"{a}.{{0,50}}{b}" for a in "abcdefghij" for b in "klmnopqrst"]  # of which an automaton never ends


def texts(size: int, count: int) -> list[tuple[int, str]]:
    random = np.random.default_rng(3)
    return [(1, "".join(random.choice(list("abcdefghijklmnopqrstuvwxyz"), size))) for _ in range(count)]


def test_patterns_with_large_automata_match_as_one_by_one() -> None:
    checked = CheckedIndex(Operator.REGEX)
    checked.insert(*((1, pattern) for pattern in GREEDY))
    checked.check(*texts(300, 4), (1, "a" * 1000 + "k"), (1, ""))


@pytest.mark.parametrize("memory", [2_000, 20_000, 60_000, 200_000, 600_000])
def test_too_little_memory_divides_a_set_and_loses_nothing(
    memory: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern_sets, "_MEMORY", memory)
    monkeypatch.setattr(pattern_sets, "_EACH", 0)
    checked = CheckedIndex(Operator.REGEX)
    checked.insert(*((1, pattern) for pattern in GREEDY[:40]))
    checked.check(*texts(300, 3), (1, "bm"))
    checked.insert((1, "zz"), (2, "zz"))
    checked.remove(*[(1, pattern) for pattern in GREEDY[:40:3]])
    checked.check(*texts(300, 3), (1, "zzz"), (2, "zzz"))


def test_a_text_that_re2_gives_up_on_is_matched_again_in_halves(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = re2.Set.Match
    given_up: list[int] = []

    def forgetful(self: object, text: bytes) -> object:
        found = answered(self, text)
        if len(found) <= 3:
            return found
        given_up.append(len(found))
        return None

    monkeypatch.setattr(re2.Set, "Match", forgetful)
    checked = CheckedIndex(Operator.REGEX)
    checked.insert(*((1, f"x{i}?") for i in range(20)))
    checked.check((1, "x"), (1, "x5"), (1, "y"))
    assert given_up


def test_a_pattern_that_re2_cannot_match_in_a_set_is_matched_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(re2.Set, "Match", lambda *_: None)
    checked = CheckedIndex(Operator.LIKE)
    checked.insert((1, "a_c"), (1, "_b_"), (1, "%b_d%"))
    checked.check((1, "abc"), (1, "xbx"), (1, "abcd"))


def test_a_set_that_stays_slow_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern_sets, "_SPELL", 0)
    monkeypatch.setattr(pattern_sets, "_SLOW", 0)
    checked = CheckedIndex(Operator.REGEX)
    checked.insert(*((1, f"x{i}+y?") for i in range(100)))
    checked.insert(*((1, f"z{i}+y?") for i in range(10)))
    for _ in range(12):
        checked.check((1, "x5z6"), (1, "x55y"), (1, ""))
    sizes = [len(one.members) for one in checked.index._shelves[1].sets]  # type: ignore[attr-defined]
    assert max(sizes) <= pattern_sets._FEW
    assert sum(sizes) == 110
    checked.insert((1, "new"))
    checked.remove(*[(1, f"x{i}+y?") for i in range(0, 100, 2)])
    checked.check((1, "x5z6new"), (1, "x44y"))


def test_two_ways_to_write_a_pattern_are_two_tests() -> None:
    checked = CheckedIndex(Operator.LIKE)
    checked.insert((1, "a_b"), (1, "\\a_b"), (1, "a_\\b"))
    checked.check((1, "axb"), (1, "ab"))
    checked.remove((1, "\\a_b"))
    checked.check((1, "axb"))


def test_a_hostile_pattern_is_answered_like_any_other() -> None:
    checked = CheckedIndex(Operator.REGEX)
    checked.insert((1, "(a+)+$"), (1, "(a|a)*b"), (1, "(.*a){20}!"), (1, "a!"))
    checked.check((1, "a" * 100_000 + "!"), (1, "a" * 100_000))


def test_sets_that_cannot_be_made_are_tried_seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    tried: list[int] = []
    compiled = re2.Set.Compile

    def counted(self: object) -> object:
        tried.append(1)
        return compiled(self)

    monkeypatch.setattr(re2.Set, "Compile", counted)
    monkeypatch.setattr(pattern_sets, "_MEMORY", 2_000)
    monkeypatch.setattr(pattern_sets, "_EACH", 0)
    checked = CheckedIndex(Operator.REGEX)
    checked.insert(*((1, f"(\\pL{{{i}}}x){{3}}") for i in range(1, 65)))
    assert len(checked.index._shelves[1].sets) == 64  # type: ignore[attr-defined]
    assert len(tried) == 1 + 8
    checked.check((1, "axbxcx"), (1, "abxabxabx"), (1, "x"))
