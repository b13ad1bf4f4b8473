"""Every registered matcher stores CNFs, or expands them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from tests.contract.evaluator import holds
from tests.contract.test_matchers import MATCHERS, add, match, remove
from tocsin.language import Cnf, Template, condition_text, parse_condition, to_cnf
from tocsin.matching import (
    ConjunctionBatch,
    Matcher,
    create_matcher,
    open_matcher,
    save_matcher,
    takes_clauses,
)
from tocsin.matching.encoding.arrow import arrow_events
from tocsin.model import read_event

CONDITIONS = [
    "(a = 1 or b = 2) and (c = 3 or d = 4)",
    "(a = 1 or a > 5 or b = 2) and c = 3",
    "(a is missing or b = 2) and (c = 3 or d is present)",
    "(a is missing or b is missing) and (c is present or d = 4)",
    "not (a = 1 and b = 2) and not (c = 3 and d = 4)",
    "(a not in (1, 2) or b in (2, 3)) and (c != 3 or d >= 4)",
    "(a between 1 and 4 or b not between 1 and 4) and (c < 3 or d <= 4)",
    "(a like 'x%' or b not like '%y' or c ~ 'x.z') and (a = 'xyz' or d = 4)",
    "(a contains 'y' or b > 2 * c) and (c = 3 or d = 4)",
    "(a = 1 or b = 2) and (a = 1 or c = 3) and (b = 2 or c = 3)",
]
VALUES: list[object] = [None, 1, 2, 3, 4, 6, "xyz", "y"]
EVENTS: list[dict[str, object]] = [
    {name: value for name, value in zip("abcd", values, strict=True) if value is not None}
    for values in (
        [VALUES[(i * step + shift) % len(VALUES)] for i, shift in zip((1, 3, 5, 7), shifts, strict=True)]
        for step in range(8)
        for shifts in ((0, 0, 0, 0), (1, 0, 2, 5), (2, 2, 3, 4), (1, 2, 3, 4), (6, 7, 3, 4))
    )
]


@pytest.fixture(params=MATCHERS)
def matcher(request: pytest.FixtureRequest) -> Matcher:
    return create_matcher(request.param)


def add_clauses(matcher: Matcher, *subscriptions: tuple[int, str]) -> None:
    matcher.add(ConjunctionBatch.of((id_, to_cnf(parse_condition(text))) for id_, text in subscriptions))


def test_clauses_of_every_operator_hold_where_the_condition_does(matcher: Matcher) -> None:
    add_clauses(matcher, *enumerate(CONDITIONS))
    asked = list(map(parse_condition, CONDITIONS))
    wanted = [
        [i for i, condition in enumerate(asked) if holds(condition, read_event(event).attributes)]
        for event in EVENTS
    ]
    assert {i for ids in wanted for i in ids} == set(range(len(CONDITIONS)))
    assert match(matcher, *EVENTS) == wanted
    remove(matcher, *range(0, len(CONDITIONS), 2))
    assert match(matcher, *EVENTS) == [[i for i in ids if i % 2] for ids in wanted]
    remove(matcher, *range(len(CONDITIONS)))
    assert match(matcher, *EVENTS) == [[]] * len(EVENTS)
    assert (matcher.stats().conjunctions, matcher.stats().predicates) == (0, 0)


def test_a_clause_form_matches_once_in_however_many_ways_it_is_satisfied(matcher: Matcher) -> None:
    add_clauses(matcher, (5, "(a = 1 or b = 2 or c > 0) and (d = 4 or a > 0)"))
    add_clauses(matcher, (5, "(a = 1 or b = 7) and (c = 3 or b = 8)"))
    add(matcher, (5, parse_condition("a = 1")))
    assert match(matcher, {"a": 1, "b": 2, "c": 3, "d": 4}, {"b": 7, "c": 3}, {"b": 2}) == [[5], [5], []]


def test_predicates_of_one_clause_do_not_stand_for_another(matcher: Matcher) -> None:
    add_clauses(matcher, (1, "(a = 1 or b = 1) and (c = 2 or d = 1)"))
    events: list[dict[str, object]] = [
        {"a": 1, "c": 2},
        {"a": 1, "b": 1},
        {"a": 1, "b": 1, "d": 1},
        {"c": 2, "d": 1},
    ]
    assert match(matcher, *events) == [[1], [], [1], []]


def test_clause_forms_and_conjunctions_come_and_go_side_by_side(matcher: Matcher) -> None:
    add_clauses(matcher, (1, "(a = 1 or b = 1) and (c = 1 or d = 1)"), (2, "a = 1 and c = 1"))
    add(matcher, (3, parse_condition("a = 1 and c = 1")), (1, parse_condition("e = 1")))
    event: dict[str, object] = {"a": 1, "c": 1}
    assert match(matcher, event, {"e": 1}) == [[1, 2, 3], [1]]
    remove(matcher, 1)
    assert match(matcher, event, {"e": 1}) == [[2, 3], []]
    add_clauses(matcher, (1, "(a = 2 or b = 1) and (c = 1 or d = 1)"))
    assert match(matcher, event, {"a": 2, "d": 1}, {"e": 1}) == [[2, 3], [1], []]


@pytest.mark.parametrize("clauses", [63, 64, 65, 130])
def test_forms_of_many_clauses_are_satisfied_only_as_a_whole(matcher: Matcher, clauses: int) -> None:
    pairs = clauses if takes_clauses(matcher) else 3  # in conjunctions, each pair doubles what is held
    texts = [f"(a{i} = 1 or b{i} > 5)" if i < pairs else f"a{i} = 1" for i in range(clauses)]
    add_clauses(matcher, (1, " and ".join(texts)))
    event: dict[str, object] = {**{f"a{i}": 1 for i in range(clauses)}, "a0": 0, "b0": 6, "b1": 6}
    lacking = [{name: value for name, value in event.items() if name != f"a{i}"} for i in range(clauses)]
    assert match(matcher, event, *lacking) == [[1]] + [[1] if i < 2 else [] for i in range(clauses)]


def test_a_form_too_large_for_conjunctions_is_stored(matcher: Matcher) -> None:
    huge = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(20))
    event: dict[str, object] = {f"{'ab'[i % 2]}{i}": 1 for i in range(20)}
    add_clauses(matcher, (1, "(a0 = 1 or b0 = 2) and (b1 = 1 or c = 1)"))
    add_clauses(matcher, (2, "a0 = 1"), (3, huge))
    lacking = [{name: value for name, value in event.items() if name != one} for one in event]
    assert match(matcher, event, *lacking) == [[1, 2, 3], [], [2], *[[1, 2]] * 18]
    explanation = matcher.explain(read_event(lacking[9]), 3)
    assert (explanation.matched, matcher.explain(read_event(event), 3).matched) == (False, True)
    assert [condition_text(one.predicate) for one in explanation.failed] == ["a9 = 1", "b9 = 1"]
    remove(matcher, 3)
    assert match(matcher, event) == [[1, 2]]


ALTERNATIVES = " and ".join(
    f"({' or '.join(f'{name}{i} = {i}' for i in range(6))})" for name in "abcd"
)  # 1,296 conjunctions


def test_a_rule_of_many_alternatives_is_removed_saved_and_opened(matcher: Matcher, tmp_path: Path) -> None:
    event: dict[str, object] = {"a0": 0, "b1": 1, "c2": 2, "d5": 5}
    missed = [event | {name: -1} for name in event]
    add_clauses(matcher, (7, ALTERNATIVES), (8, f"e = 1 and {ALTERNATIVES}"))
    add(matcher, (7, parse_condition("f = 1")), (9, parse_condition("a0 = 0")))
    wanted = [[7, 9], [7, 8, 9], [], *[[9]] * 3, [7]]
    events: list[dict[str, object]] = [event, event | {"e": 1}, *missed, {"f": 1}]
    assert match(matcher, *events) == wanted
    assert [matcher.match_one(read_event(one).attributes).tolist() for one in events] == wanted
    save_matcher(matcher, tmp_path / "saved")
    opened = open_matcher(tmp_path / "saved")
    assert match(opened, *events) == wanted
    for one in (matcher, opened):
        remove(one, 7)
        assert match(one, *events) == [[i for i in ids if i != 7] for ids in wanted]
        remove(one, 8, 9)
        assert match(one, *events) == [[]] * len(events)
        assert (one.stats().conjunctions, one.stats().predicates) == (0, 0)


def test_a_row_of_a_table_decides_the_clauses_that_stay_whole(matcher: Matcher) -> None:
    add_clauses(matcher, *((i, ALTERNATIVES.replace("d5 = 5", f"d5 > {i}")) for i in range(3)))
    rows = [{"a0": 0, "b1": 1, "c2": 2, "d5": i % 4} for i in range(200)]
    found = matcher.match(arrow_events(pa.Table.from_pylist(rows))).to_lists()
    assert found == [[k for k in range(3) if row["d5"] > k] for row in rows]


def test_the_rows_of_a_template_too_large_for_conjunctions(matcher: Matcher) -> None:
    template = Template(ALTERNATIVES.replace("a0 = 0", "a0 in :many").replace("d5 = 5", "d5 like :d"))
    rows = [{"many": many, "d": d} for many in ([0, 8], [], ["z"]) for d in ("x%", "%y_")]
    bound = template.bind_many(rows)
    assert isinstance(bound.normal, Cnf)
    matcher.add(ConjunctionBatch.of_rows(np.arange(len(rows), dtype=np.int64), bound))
    events: list[dict[str, object]] = [
        {"a0": a, "b1": 1, "c2": 2, "d5": d} for a in (8, "z", 1) for d in ("xyz", "x", "y")
    ]
    asked = [template.bind(row).condition for row in rows]  # type: ignore[union-attr]
    wanted = [[i for i, c in enumerate(asked) if holds(c, read_event(event).attributes)] for event in events]
    assert match(matcher, *events) == wanted
    assert sum(map(len, wanted)) == 6


def test_the_rows_of_a_template_in_clauses_match_like_subscriptions_of_their_own(matcher: Matcher) -> None:
    template = Template("(a = :x or b in :many) and (c > :x or d like :n) and e is present")
    rows = [
        {"x": x, "many": many, "n": n}
        for x in (1, 2.5, "s")
        for many in ([1, 2], ["L"], [])
        for n in ("I%", "%x_")
    ]
    bound = template.bind_many(rows, clauses=True)
    batch = ConjunctionBatch.of_rows(np.arange(len(rows), dtype=np.int64), bound)
    assert (len(batch.groups), len(batch.clauses), len(batch)) == (0, 1, len(rows))
    matcher.add(batch)
    asked = [template.bind(row).condition for row in rows]  # type: ignore[union-attr]
    events: list[dict[str, object]] = [
        {"a": a, "b": b, "c": c, "d": d, "e": 0}
        for a in (1, "s")
        for b in (2, "L")
        for c in (0, 2, "t")
        for d in ("Ix", "xy")
    ]
    wanted = [[i for i, c in enumerate(asked) if holds(c, read_event(event).attributes)] for event in events]
    assert match(matcher, *events) == wanted
    assert any(wanted)


def test_explain_returns_the_failed_clauses(matcher: Matcher) -> None:
    add_clauses(matcher, (7, "(a = 1 or b = 2) and (c = 3 or d = 4) and e = 5"))
    explanation = matcher.explain(read_event({"a": 1, "c": 4, "e": 5}), 7)
    assert not explanation.matched
    assert matcher.explain(read_event({"a": 1, "d": 4, "e": 5}), 7).matched
    assert matcher.explain(read_event({"a": 1, "d": 4, "e": 5}), 7).failed == ()
    if takes_clauses(matcher):
        truths = [[[t.truth for t in clause] for clause in form] for form in explanation.clauses]
        assert sorted(truths[0], key=str) == sorted([[True], [True, None], [False, None]], key=str)
        blamed = {condition_text(t.predicate): t.value for t in explanation.failed}
        assert blamed == {"c = 3": 4, "d = 4": None}
    else:
        assert (len(explanation.conjunctions), explanation.clauses) == (4, ())


def test_a_clause_form_counts_as_one_conjunction_with_all_its_predicates(matcher: Matcher) -> None:
    add_clauses(matcher, (1, "(a = 1 or b = 2) and (c = 3 or d = 4)"), (2, "a = 1"))
    stats = matcher.stats()
    expected = (2, 2, 5) if takes_clauses(matcher) else (2, 5, 9)
    assert (stats.subscriptions, stats.conjunctions, stats.predicates) == expected


def test_a_cnf_that_can_never_match_costs_nothing(matcher: Matcher) -> None:
    add_clauses(
        matcher, (1, "a = 1 and a = 2 and (b = 1 or c = 1)"), (2, "(a between 5 and 3 or b in ()) and c = 1")
    )
    assert match(matcher, {"a": 1, "b": 1, "c": 1}) == [[]]
    assert matcher.stats().conjunctions == 0


def test_a_clause_form_that_everything_satisfies_matches_every_event(matcher: Matcher) -> None:
    add_clauses(matcher, (3, "a is missing or a is present"))
    assert match(matcher, {}, {"a": 1}) == [[3], [3]]
