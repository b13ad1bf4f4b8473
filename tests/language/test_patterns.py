"""Patterns are made as simple as they can be before anything is compiled."""

from __future__ import annotations

import pytest

from tocsin.language import patterns
from tocsin.language.patterns import like
from tocsin.model import Operator
from tocsin.model.terms import Attribute


@pytest.mark.parametrize("pattern", ["ab%", "%ab", "%ab%", "ab", "%", "", "a\\%b%"])
def test_patterns_that_need_no_like_are_not_compiled(pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns, "compile_like", None)
    assert like(Attribute("a"), pattern, negated=False).operator is not Operator.LIKE


@pytest.mark.parametrize("pattern", ["ab%\\", "\\", "a_c\\"])
def test_a_pattern_that_ends_within_an_escape_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="lone backslash"):
        like(Attribute("a"), pattern, negated=True)


def test_a_pattern_that_is_too_large_is_refused() -> None:
    with pytest.raises(ValueError, match="too large"):
        like(Attribute("a"), "_" * 1_000_000, negated=False)
