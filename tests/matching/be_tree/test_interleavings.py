"""Long interleavings of adds, removals and events; streams that drift; many conjunctions in one leaf."""

from __future__ import annotations

import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.be_tree.invariants import check_invariants
from tests.matching.interleaving import TESTS, Step, play, predicates, steps
from tocsin.language import to_dnf
from tocsin.matching import EventBatch
from tocsin.matching.be_tree.matcher import BeTree

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
NAMES = "abcdefgh"

_predicates = st.one_of(
    predicates(NAMES, st.integers(0, 9), TESTS),
    st.builds("{} between {} and {}".format, st.sampled_from(NAMES), st.integers(0, 9), st.integers(0, 9)),
)
_VALUES = [*range(10), 2.5, "x", "xy", "z", True, 2**60 + 1]
_steps = steps(
    st.lists(_predicates, min_size=1, max_size=5).map(" and ".join),
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(_VALUES), max_size=8),
    st.tuples(st.just("drift"), st.sampled_from(NAMES)),
)


@pytest.mark.parametrize("capacity", [1, 3])
@pytest.mark.parametrize("min_partition", [1, 2])
@settings(max_examples=400 if LONG else 25)
@given(played=st.lists(_steps, min_size=3, max_size=25), seed=st.integers(0, 2**32 - 1))
def test_matches_and_invariants_survive_any_interleaving(
    capacity: int, min_partition: int, played: list[Step], seed: int
) -> None:
    matcher = BeTree(capacity=capacity, min_partition=min_partition, window=50)

    def drift(step: str, argument: object) -> None:
        if step == "drift":
            for _ in range(8):
                matcher.match(EventBatch.of_dicts([{str(argument): 5}] * 50))

    play(
        matcher,
        played,
        seed,
        normal=lambda condition, _: to_dnf(condition),
        own=drift,
        check=lambda: check_invariants(matcher),
    )
    stats = matcher.stats()
    assert (stats.conjunctions, stats.predicates) == (0, 0)
    assert (stats.details["nodes"], stats.details["partitions"], stats.details["raised leaves"]) == (1, 0, 0)
    assert len(matcher.vocabulary.names) == 0
