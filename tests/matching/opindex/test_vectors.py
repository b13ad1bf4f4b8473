"""OpIndex's worked examples: table 1 of the paper, negations, clauses, with answers found by trying all."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.language import parse_condition, to_cnf, to_dnf
from tocsin.matching import (
    ConjunctionBatch,
    EventBatch,
    Matcher,
    Statistics,
    create_matcher,
    registered_matchers,
)
from tocsin.matching.opindex.matcher import OpIndex
from tocsin.matching.opindex.state import COUNT_BITS, Pivot, Placement, StoredColumn
from tocsin.model.errors import MatcherError

TABLE_1 = [
    "A = 2 and B in (3, 6, 9)",
    "A <= 8 and C >= 2",
    "C = 6 and B <= 4 and E between 3 and 12",
    "A = 2",
    "D >= 12 and E <= 9",
    "B in (3, 6) and C <= 4 and D >= 10 and E <= 7",
]
NEGATIONS = ["A != 2 and B = 1", "A not in (2, 3)", "A not between 2 and 5"]
MATCHERS = sorted(registered_matchers())


def add(matcher: Matcher, *texts: str) -> None:
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts, 1)))


def match(matcher: Matcher, *events: dict[str, object]) -> list[list[int]]:
    return matcher.match(EventBatch.of_dicts(events)).to_lists()


def figures(matcher: OpIndex, event: dict[str, object]) -> tuple[list[int], float]:
    """Return what an event satisfies, and how many pivots it has."""
    seen = matcher._state.totals[3]
    return match(matcher, event)[0], float(matcher._state.totals[3] - seen)


@pytest.mark.parametrize("name", ["opindex", "opindex-bs"])
def test_pivots_are_the_least_frequent_attributes_and_ties_go_to_the_first(name: str) -> None:
    matcher = create_matcher(name)
    assert isinstance(matcher, OpIndex)
    add(matcher, *TABLE_1)
    assert [matcher.pivots(i) for i in range(1, 7)] == [
        [("A",)],
        [("A",)],
        [("C",)],
        [("A",)],
        [("D",)],
        [("D",)],
    ]


def test_a_counter_begins_with_a_unit_for_each_predicate_and_two_for_a_range() -> None:
    matcher = OpIndex()
    add(matcher, *TABLE_1)
    state = matcher._state
    placements = state.placements[state.store.rows[:6, StoredColumn.PLACEMENT]]
    at = state.pivots[placements[:, Placement.PIVOT], Pivot.COUNTERS] + placements[:, Placement.SLOT]
    assert (state.counters.rows[at, 0] >> COUNT_BITS).tolist() == [2, 2, 4, 1, 2, 4]


@pytest.mark.parametrize("name", MATCHERS)
@pytest.mark.parametrize(
    ("event", "wanted"),
    [
        ({"A": 2, "B": 6}, [1, 4]),
        ({"B": 6, "C": 3, "E": 9}, []),
        ({"A": 2, "B": 3, "C": 6, "D": 12, "E": 7}, [1, 2, 3, 4, 5]),
        ({"B": 6, "C": 4, "D": 10, "E": 7}, [6]),
        ({"A": 8, "C": 2}, [2]),
        ({"A": 9, "C": 2}, []),
        ({"C": 6, "B": 4, "E": 12}, [3]),
        ({"C": 6, "B": 4, "E": 13}, []),
    ],
)
def test_table_1(name: str, event: dict[str, object], wanted: list[int]) -> None:
    matcher = create_matcher(name)
    add(matcher, *TABLE_1)
    assert match(matcher, event) == [wanted]


def test_only_the_lists_of_an_events_pivots_are_searched() -> None:
    matcher = OpIndex()
    add(matcher, *TABLE_1)
    assert figures(matcher, {"A": 2, "B": 6}) == ([1, 4], 1)
    assert figures(matcher, {"B": 6, "C": 3, "E": 9}) == ([], 1)


@pytest.mark.parametrize("name", MATCHERS)
@pytest.mark.parametrize(
    ("event", "wanted"),
    [({"A": 2, "B": 1}, []), ({"A": 4, "B": 1}, [1, 2]), ({"A": 6}, [2, 3]), ({"B": 1}, [])],
)
def test_negations_need_the_attribute(name: str, event: dict[str, object], wanted: list[int]) -> None:
    matcher = create_matcher(name)
    add(matcher, *NEGATIONS)
    assert match(matcher, event) == [wanted]


def test_a_clause_form_is_kept_under_all_attributes_of_its_least_frequent_clause() -> None:
    matcher = OpIndex()
    add(matcher, "A = 7", "B = 7", "A = 8 and X = 1")
    clauses = to_cnf(parse_condition("(A = 1 or B = 1) and (C = 2 or D = 1)"))
    matcher.add(ConjunctionBatch.of([(9, clauses)]))
    assert matcher.pivots(9) == [("C", "D")] or matcher.pivots(9) == [("D", "C")]
    assert match(matcher, {"A": 1, "C": 2}, {"A": 1, "B": 1}, {"B": 1, "D": 1, "A": 1}) == [[9], [], [9]]
    assert match(matcher, {"A": 1, "B": 1, "C": 2, "D": 1}) == [[9]]  # found under two pivots, returned once


def test_the_clause_with_the_fewest_predicates_comes_first() -> None:
    matcher = OpIndex()
    add(matcher, "C = 1", "C = 2")
    matcher.add(ConjunctionBatch.of([(9, to_cnf(parse_condition("(A = 1 or B = 1) and C = 2")))]))
    assert matcher.pivots(9) == [("C",)]


def test_an_attribute_tested_for_absence_is_never_a_pivot() -> None:
    matcher = OpIndex()
    add(matcher, "A is missing and B = 1", "A is missing", "A is missing and B is missing", "B = 2 and B = 2")
    assert [matcher.pivots(i) for i in (1, 2, 3)] == [[("B",)], [(None,)], [(None,)]]
    assert match(matcher, {}, {"B": 1}, {"A": 0, "B": 1}, {"A": "x"}) == [[2, 3], [1, 2], [], []]


def test_statistics_choose_the_pivot() -> None:
    events = [{"A": 1, "B": 1, "rare": 1} if i % 100 == 0 else {"A": 1, "B": i} for i in range(2000)]
    matcher = OpIndex(statistics=Statistics.of(events))
    add(matcher, "A = 1 and rare = 1", "rare = 2 and B = 1", "A = 3 and B = 4")
    assert [matcher.pivots(i) for i in (1, 2, 3)] == [[("rare",)], [("rare",)], [("A",)]]


def test_an_unknown_id_has_no_pivots() -> None:
    with pytest.raises(MatcherError, match="no subscription has the id 5"):
        OpIndex().pivots(5)


@pytest.mark.parametrize("segments", [0, 3, 512])
def test_segments_are_a_power_of_two(segments: int) -> None:
    with pytest.raises(MatcherError, match=f"not {segments}"):
        OpIndex(segments=segments)


def test_the_share_of_predicates_that_match_is_as_analysed() -> None:
    # With `=`, `<=` and `>=` equally likely, a third and a little more: 0.3466 at 50 values (lemma 6).
    random = np.random.default_rng(0)
    matcher = OpIndex()
    add(matcher, *(f"A {op} {value}" for op in ("=", "<=", ">=") for value in range(1, 51)))
    events: list[dict[str, object]] = [{"A": int(value)} for value in random.integers(1, 51, 2000)]
    found = sum(len(ids) for ids in match(matcher, *events)) / (150 * 2000)
    assert found == pytest.approx((1 + 2 / 50) / 3, rel=0.01)
