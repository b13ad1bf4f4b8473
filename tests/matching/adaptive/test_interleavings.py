"""Long interleavings of adds, removals and events, also with thresholds at which everything is done at once."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.adaptive.invariants import check_invariants
from tests.matching.interleaving import TESTS, Step, play, predicates, steps
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle, Statistics
from tocsin.matching.adaptive.matcher import DEFAULT, EAGER, Adaptive, Thresholds

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
NAMES = "abcdefgh"

_TESTS = [
    *TESTS,
    "in (1, 2, 7, 9, 11, 12, 13, 14, 15, 16)",
    "in ('x', 'xy')",
    "< ''",
    ">= ''",
    "> 'xxxxxxxxxx'",
    f"< {2**60 + 2**9}",
]
_predicates = st.one_of(
    predicates(NAMES, st.integers(0, 9), _TESTS),
    st.builds("{} between {} and {}".format, st.sampled_from(NAMES), st.integers(0, 9), st.integers(0, 9)),
)
_VALUES = [*range(10), 2.5, "x", "xy", "z", "", "xxxxxxxxxxx", True, 2**60 + 1, 2**60]
_events = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(_VALUES), max_size=8)
_steps = steps(st.lists(_predicates, min_size=1, max_size=5).map(" and ".join), _events)


def play_checked(matcher: Adaptive, played: list[Step], seed: int) -> None:
    """Play steps on a matcher and the oracle, and check the matcher's invariants after each."""
    play(
        matcher,
        played,
        seed,
        normal=lambda condition, _: to_dnf(condition),
        own=lambda *_: None,
        check=lambda: check_invariants(matcher),
    )


_HISTORY = Statistics.of(
    {
        name: value
        for name, value in zip(NAMES, _VALUES[i:] + _VALUES[:i], strict=False)
        if (i + ord(name)) % 3
    }
    for i in range(len(_VALUES))
)


@pytest.mark.parametrize(
    ("thresholds", "statistics"),
    [(DEFAULT, None), (EAGER, None), (EAGER, _HISTORY)],
    ids=["usual", "eager", "informed"],
)
@settings(max_examples=1_000 if LONG else 60)
@given(played=st.lists(_steps, min_size=3, max_size=25), seed=st.integers(0, 2**32 - 1))
def test_matches_and_invariants_survive_any_interleaving(
    thresholds: Thresholds, statistics: Statistics | None, played: list[Step], seed: int
) -> None:
    matcher = Adaptive(thresholds=thresholds, statistics=statistics)
    play_checked(matcher, played, seed)
    assert matcher.stats().conjunctions == 0
    assert len(matcher.vocabulary.names) == 0


@settings(max_examples=200 if LONG else 20)
@given(
    texts=st.lists(
        st.lists(_predicates, min_size=1, max_size=4).map(" and ".join), min_size=70, max_size=120
    ),
    rows=st.lists(_events, min_size=1, max_size=20),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_batch_of_many_events_satisfies_what_each_satisfies_alone(
    texts: list[str], rows: list[dict[str, object]], seed: int
) -> None:
    matcher, oracle = Adaptive(thresholds=EAGER), Oracle()
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts))
    matcher.add(batch)
    oracle.add(batch)
    alone = dict(enumerate(oracle.match(EventBatch.of_dicts(rows)).to_lists()))
    random = np.random.default_rng(seed)
    for size in (30, 700, 1_100):
        drawn = random.integers(0, len(rows), size).tolist()
        found = matcher.match(EventBatch.of_dicts([rows[i] for i in drawn])).to_lists()
        assert found == [alone[i] for i in drawn]
        check_invariants(matcher)
