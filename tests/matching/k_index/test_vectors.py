"""k-index's worked examples: conjunctions, clauses and rankings, with the paper's semantics of absence and with ours."""

from __future__ import annotations

import pytest

from tocsin.language import Cnf, Dnf, parse_condition, to_cnf, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch
from tocsin.matching.k_index.matcher import KIndex
from tocsin.matching.k_index.state import Total
from tocsin.model import read_event
from tocsin.model.errors import MatcherError

CONJUNCTIONS = [
    "age = 3 and state = 'NY'",
    "age = 3 and gender = 'F'",
    "age = 3 and gender = 'M' and state not in ('CA')",
    "state = 'CA' and gender = 'M'",
    "age in (3, 4)",
    "state not in ('CA', 'NY')",
]
CLAUSES = [
    "(A = 1 or B = 1) and (C = 1 or D = 1)",
    "(A = 1 or C = 2) and (B = 1 or D = 1)",
    "(A = 1 or B = 1) and (C = 2 or D = 1)",
    "(A = 1 or B = 1) and (A in (1, 2) or D = 1)",
    "(A = 1 or B = 1) and (C not in (1, 2) or D != 1 or E = 1)",
    "A != 1 or B = 1",
]
# The brief prints the outcome, not the weights: these give it, and the two bounds that it tells of.
WEIGHTS = {
    1: {"age": 0.1, "state": 4.0},
    2: {"age": 1.0, "gender": 2.0},
    3: {"age": 0.5, "gender": 1.0},
    4: {"state": 1.5, "gender": 0.9},
    5: {"age": 1.0},
}


def filled(texts: list[str], *, clauses: bool = False, absence: str = "satisfies") -> KIndex:
    matcher = KIndex(absence=absence)
    forms: list[tuple[int, Dnf | Cnf]] = [
        (i, (to_cnf if clauses else to_dnf)(parse_condition(text))) for i, text in enumerate(texts, 1)
    ]
    batch = ConjunctionBatch.of(forms)
    matcher.add(ConjunctionBatch(batch.groups, batch.clauses, {} if clauses else WEIGHTS))
    return matcher


def match(matcher: KIndex, *events: dict[str, object]) -> list[list[int]]:
    return matcher.match(EventBatch.of_dicts(events)).to_lists()


def ranked(
    matcher: KIndex, events: EventBatch, top: int, weights: dict[str, float]
) -> list[tuple[int, float]]:
    return [(id_, round(score, 9)) for id_, score in matcher.rank(events, top, weights).to_lists()[0]]


def test_conjunctions() -> None:
    matcher = filled(CONJUNCTIONS)
    assert match(matcher, {"age": 3, "state": "CA", "gender": "M"}) == [[4, 5]]


@pytest.mark.parametrize(
    ("absence", "wanted"), [("satisfies", [[3, 5, 6], [6], [1, 5], []]), ("fails", [[5], [], [1, 5], []])]
)
def test_an_absent_attribute_satisfies_a_negation_only_where_it_is_said(
    absence: str, wanted: list[list[int]]
) -> None:
    matcher = filled(CONJUNCTIONS, absence=absence)
    events: list[dict[str, object]] = [
        {"age": 3, "gender": "M"},
        {},
        {"age": 3, "state": "NY"},
        {"state": "CA"},
    ]
    assert match(matcher, *events) == wanted
    for event, ids in zip(events, wanted, strict=True):
        matched = [id_ for id_ in range(1, 7) if matcher.explain(read_event(event), id_).matched]
        assert matched == ids


def test_clauses() -> None:
    matcher = filled(CLAUSES, clauses=True)
    event: dict[str, object] = {"A": 1, "C": 2}
    assert match(matcher, event) == [[3, 4, 5]]
    assert [id_ for id_ in range(1, 7) if matcher.explain(read_event(event), id_).matched] == [3, 4, 5]


def test_clauses_with_our_absence() -> None:
    matcher = filled(CLAUSES, clauses=True, absence="fails")
    # `D != 1` holds of no absent D, so that nothing satisfies the second clause of the fifth.
    assert match(matcher, {"A": 1, "C": 2}, {"A": 1, "C": 2, "D": 2}, {"A": 1, "C": 3}, {"A": 2}) == [
        [3, 4],
        [3, 4, 5],
        [4, 5],
        [6],
    ]


def test_the_best_are_found_and_other_lists_are_skipped() -> None:
    matcher = filled(CONJUNCTIONS)
    events = EventBatch.of_dicts([{"age": 3, "state": "NY", "gender": "F"}])
    weights = {"age": 0.8, "state": 1.0, "gender": 0.9}
    assert ranked(matcher, events, 1, weights) == [(1, 4.08)]
    # The second by its bound of 2.6, the size 1 by 0.8, and the size 0, which scores nothing.
    assert matcher._state.totals[Total.PRUNED] == 3
    assert ranked(matcher, events, 9, weights) == [(1, 4.08), (2, 2.6), (5, 0.8)]


def test_a_form_that_several_subscriptions_have_is_kept_once() -> None:
    matcher = KIndex()
    normal = to_dnf(parse_condition("a = 1 and b > 2"))
    for id_ in (5, 7, 6):
        matcher.add(ConjunctionBatch.of([(id_, normal)]))
    assert matcher.stats().conjunctions == 3
    assert matcher.stats().details["distinct expressions"] == 1
    matcher.add(ConjunctionBatch(ConjunctionBatch.of([(8, normal)]).groups, (), {8: 2.0}))
    assert matcher.stats().details["distinct expressions"] == 2  # another weight is another expression
    assert match(matcher, {"a": 1, "b": 3}) == [[5, 6, 7, 8]]


def test_ranges_of_whole_numbers_are_expanded_over_a_domain_that_grows() -> None:
    matcher = KIndex()

    def entries(text: str, id_: int) -> int:
        before = matcher.stats().details["entries"]
        matcher.add(ConjunctionBatch.of([(id_, to_dnf(parse_condition(text)))]))
        return int(matcher.stats().details["entries"] - before)

    assert entries("a = 1", 0) == 1
    assert entries("a between 3 and 7", 1) == 6  # five values, and its own key
    assert entries("a >= 5", 2) == 4  # 5 to 7, and its own key
    assert entries("a = 20", 3) == 1 + 13  # and 8 to 20 for the one before
    assert entries("a <= 4", 4) == 5  # 1 to 4, and its own key
    assert match(matcher, {"a": 1}, {"a": 5}, {"a": 20}, {"a": 21}, {"a": 5.5}, {"a": -7}, {"a": 4.5}) == [
        [0, 4],
        [1, 2],
        [2, 3],
        [2],
        [1, 2],
        [4],
        [1],
    ]


@pytest.mark.parametrize("texts", [["a > 0", "a < 9000"], ["a > 1.5", "a > 2"], ["a > 'x'", "a < 'z'"]])
def test_a_range_that_cannot_be_expanded_is_a_key_of_its_own(texts: list[str]) -> None:
    matcher = KIndex()
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    assert matcher.stats().details["entries"] == 2


def test_options_are_checked() -> None:
    with pytest.raises(MatcherError, match="`absence` is 'fails' or 'satisfies', not 'maybe'"):
        KIndex(absence="maybe")
    with pytest.raises(MatcherError, match="0 or more, not -1"):
        KIndex(expansion=-1)
