"""Long interleavings of adds, removals, events and maintenance, with tables made and given up at the least cause."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.interleaving import Step, play
from tests.matching.le_subscribe.invariants import check_invariants
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, create_matcher
from tocsin.matching.le_subscribe.dynamic import Dynamic
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.matching.le_subscribe.static import Static
from tocsin.matching.le_subscribe.tables import EAGER, Costs
from tocsin.model import read_event

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
NAMES = "abcde"

_texts = st.lists(
    st.tuples(
        st.sampled_from(NAMES), st.sampled_from(["=", "=", "=", "=", "<", ">=", "!="]), st.integers(0, 3)
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda part: part[0],
).map(lambda parts: " and ".join(f"{name} {operator} {value}" for name, operator, value in parts))
_events = st.dictionaries(st.sampled_from(NAMES), st.integers(0, 4), max_size=5)
_steps = st.one_of(
    st.tuples(st.just("add"), st.lists(_texts, min_size=1, max_size=60)),
    st.tuples(st.just("remove"), st.integers(1, 50)),
    st.tuples(st.just("match"), st.lists(_events, min_size=1, max_size=12)),
    st.tuples(st.just("maintain"), st.one_of(st.none(), st.integers(1, 40))),
)


def matchers() -> dict[str, ClusteredMatcher]:
    return {
        "dynamic": Dynamic(costs=EAGER, tolerance=0.05),
        "pairs": Dynamic(costs=EAGER, tolerance=0.05, max_attributes=2),
        "static": Static(costs=EAGER),
        "propagation": create_matcher("propagation"),  # type: ignore[dict-item]
    }


@pytest.mark.parametrize("name", sorted(matchers()))
@settings(max_examples=400 if LONG else 25)
@given(steps=st.lists(_steps, min_size=3, max_size=25), seed=st.integers(0, 2**32 - 1))
def test_matches_and_invariants_survive_any_interleaving(name: str, steps: list[Step], seed: int) -> None:
    matcher = matchers()[name]

    def maintain(step: str, argument: object) -> None:
        if step == "maintain" and isinstance(matcher, Dynamic):
            matcher.maintain(argument) if argument else matcher.sweep()  # type: ignore[arg-type]
        elif step == "maintain" and isinstance(matcher, Static):
            matcher.cluster()

    play(
        matcher,
        steps,
        seed,
        normal=lambda condition, _: to_dnf(condition),
        own=maintain,
        check=lambda: check_invariants(matcher),
    )


def test_eager_maintenance_makes_tables_and_gives_them_up_again() -> None:
    matcher = Dynamic(costs=Costs(table=5, attribute=5), tolerance=0.05)
    texts = [f"a = {i % 4} and b = {i // 4 % 4} and c > {i % 3}" for i in range(400)]
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    matcher.maintain()
    assert matcher.stats().details["tables"] >= 1
    check_invariants(matcher)
    matcher.remove(np.arange(1, 400))
    matcher.sweep()
    matcher.sweep()
    assert matcher.stats().details["tables"] == 0
    assert matcher.stats().details["tables deleted"] >= 1
    check_invariants(matcher)
    assert matcher.match(EventBatch.of([read_event({"a": 0, "b": 0, "c": 1})])).to_lists() == [[0]]
