"""Families of rows and of pairs of rows tell exactly what recomputing every answer finds, each change by itself."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.following import Play

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
MATCHERS = [None, "opindex", "dynamic"]
JOINS = {
    "rows": "",
    "pairs": "from table t l join table u r on l.a = r.a",
    "pairs by two": "from table t l join table u r on l.a = r.a and r.b = l.y and l.b != r.b",
    "pairs with itself": "from table t l join table t r on l.a = r.b",
    "pairs by one attribute with itself": "from table t l join table t r on l.a = r.a",
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
@settings(max_examples=400 if LONG else 10)
@given(seed=st.integers(0, 2**32 - 1), matcher=st.sampled_from(MATCHERS))
def test_each_changed_answer_is_told_once_and_no_other(join: str, seed: int, matcher: str | None) -> None:
    Play(seed, join, matcher).run(30)
