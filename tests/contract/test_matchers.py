"""The contract of matchers. It tests every registered matcher; no test is copied."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings

from tests.contract.evaluator import holds
from tests.contract.workloads import Add, Match, Operation, Remove, workloads
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.matching import (
    ConjunctionBatch,
    EventBatch,
    Matcher,
    Oracle,
    PredicateTruth,
    create_matcher,
    registered_matchers,
)
from tocsin.model import Condition, Operator, read_event
from tocsin.model.errors import MatcherError

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
MATCHERS = sorted(registered_matchers())


def add(matcher: Matcher, *subscriptions: tuple[int, Condition]) -> None:
    matcher.add(ConjunctionBatch.of((id_, to_dnf(condition)) for id_, condition in subscriptions))


def remove(matcher: Matcher, *ids: int) -> None:
    matcher.remove(np.array(ids, dtype=np.int64))


def match(matcher: Matcher, *events: dict[str, object]) -> list[list[int]]:
    return matcher.match(EventBatch.of(read_event(event) for event in events)).to_lists()


@settings(max_examples=20_000 if LONG else 1_000)
@given(workloads())
def test_the_oracle_on_normal_forms_agrees_with_an_independent_evaluator_of_the_tree(
    workload: list[Operation],
) -> None:
    oracle = Oracle()
    held: dict[int, list[Condition]] = {}
    for operation in workload:
        match operation:
            case Add(subscriptions):
                oracle.add(operation.batch())
                for id_, condition in subscriptions:
                    held.setdefault(id_, []).append(condition)
            case Remove(ids):
                remove(oracle, *ids)
                for id_ in ids:
                    held.pop(id_, None)
            case Match(events):
                found = oracle.match(EventBatch.of(events)).to_lists()
                wanted = [
                    sorted(
                        i for i, conditions in held.items() if any(holds(c, e.attributes) for c in conditions)
                    )
                    for e in events
                ]
                assert found == wanted


@pytest.mark.parametrize("name", [name for name in MATCHERS if name != "oracle"])
@given(workload=workloads())
def test_every_matcher_agrees_with_the_oracle(name: str, workload: list[Operation]) -> None:
    matcher, oracle = create_matcher(name), Oracle()
    for operation in workload:
        match operation:
            case Add():
                for each in (matcher, oracle):
                    each.add(operation.batch())
            case Remove(ids):
                for each in (matcher, oracle):
                    remove(each, *ids)
            case Match(events):
                batch = EventBatch.of(events)
                assert matcher.match(batch).to_lists() == oracle.match(batch).to_lists()
                one_by_one = [matcher.match_one(event.attributes).tolist() for event in events]
                assert one_by_one == oracle.match(batch).to_lists()


@pytest.fixture(params=MATCHERS)
def matcher(request: pytest.FixtureRequest) -> Matcher:
    return create_matcher(request.param)


def test_an_empty_matcher_matches_nothing(matcher: Matcher) -> None:
    assert match(matcher, {"a": 1}, {}) == [[], []]
    assert matcher.match(EventBatch.of([])).to_lists() == []


def test_a_removed_subscription_no_longer_matches(matcher: Matcher) -> None:
    add(matcher, (1, parse_condition("a = 1")), (2, parse_condition("a = 1")))
    remove(matcher, 1, 99)
    assert match(matcher, {"a": 1}) == [[2]]


def test_a_batch_is_read_again_when_other_attributes_are_compared_with_timestamps(matcher: Matcher) -> None:
    batch = EventBatch.of_dicts([{"a": "2026-02-01T00:00:00Z", "b": "2026-02-01T00:00:00Z"}])
    add(matcher, (1, parse_condition("a > timestamp '2026-01-01T00:00:00Z'")))
    add(matcher, (2, parse_condition("a is present")), (3, parse_condition("b is present")))
    assert matcher.match(batch).to_lists() == [[1, 2, 3]]
    remove(matcher, 1)
    add(matcher, (4, parse_condition("b > timestamp '2026-01-01T00:00:00Z'")))
    assert matcher.match(batch).to_lists() == [[2, 3, 4]]


def test_an_id_can_be_added_again_after_removal(matcher: Matcher) -> None:
    add(matcher, (1, parse_condition("a = 1")))
    remove(matcher, 1)
    add(matcher, (1, parse_condition("a = 2")))
    assert match(matcher, {"a": 1}, {"a": 2}) == [[], [1]]


def test_a_subscription_matches_once_however_many_disjuncts_hold(matcher: Matcher) -> None:
    add(matcher, (5, parse_condition("a = 1 or b = 2 or c > 0")))
    assert match(matcher, {"a": 1, "b": 2, "c": 3}) == [[5]]


def test_the_empty_conjunction_matches_every_event(matcher: Matcher) -> None:
    add(matcher, (3, parse_condition("true")))
    assert match(matcher, {}, {"a": 1}) == [[3], [3]]


def test_a_subscription_that_can_never_match_costs_nothing(matcher: Matcher) -> None:
    add(matcher, (3, parse_condition("a = 1 and a = 2")))
    assert match(matcher, {"a": 1}) == [[]]
    assert matcher.stats().conjunctions == 0


def test_ids_come_ascending(matcher: Matcher) -> None:
    add(matcher, *((id_, parse_condition("a > 0")) for id_ in (30, 2**40, 1, 20)))
    assert match(matcher, {"a": 1}) == [[1, 20, 30, 2**40]]


def test_the_rows_of_a_template_match_like_subscriptions_of_their_own(matcher: Matcher) -> None:
    template = Template("symbol = :s and (price > :p or name like :n) and size in :sizes")
    rows = [
        {"s": s, "p": p, "n": n, "sizes": sizes}
        for s in ("IBM", "MSFT")
        for p in (1, 2.5)
        for n in ("I%", "%x_")
        for sizes in ([1, 2], ["L"])
    ]
    ids = np.arange(len(rows), dtype=np.int64)
    matcher.add(ConjunctionBatch.of_rows(ids, template.bind_many(rows)))
    one_by_one = Oracle()
    add(one_by_one, *((i, template.bind(row).condition) for i, row in enumerate(rows)))  # type: ignore[union-attr]
    events: list[dict[str, object]] = [
        {"symbol": s, "price": p, "name": n, "size": size}
        for s in ("IBM", "X")
        for p in (0, 2, 3)
        for n in ("Ix", "xy", "")
        for size in (1, "L")
    ]
    assert match(matcher, *events) == match(one_by_one, *events)
    assert any(match(matcher, *events))


def test_explain_returns_the_value_of_each_predicate_and_the_failed_ones(matcher: Matcher) -> None:
    add(matcher, (7, parse_condition("a = 1 and b > 2 and c is present or d = 4")))
    explanation = matcher.explain(read_event({"a": 1, "b": 1}), 7)
    assert not explanation.matched
    assert [[(str(t.predicate.operator), t.value, t.truth) for t in c] for c in explanation.conjunctions] == [
        [("=", 1, True), (">", 1, False), ("is present", None, False)],
        [("=", None, None)],
    ]
    assert [str(t.predicate.operator) for t in explanation.failed] == ["="]
    assert matcher.explain(read_event({"d": 4}), 7).matched


EVERY_OPERATOR: dict[str, tuple[dict[str, object], dict[str, object]]] = {
    "a = 1": ({"a": 1}, {"a": 2}),
    "a != 1": ({"a": 2}, {"a": 1}),
    "a < 1": ({"a": 0}, {"a": 1}),
    "a <= 1": ({"a": 1}, {"a": 2}),
    "a > 1": ({"a": 2}, {"a": 1}),
    "a >= 1": ({"a": 1}, {"a": 0}),
    "a between 1 and 3": ({"a": 3}, {"a": 4}),
    "a not between 1 and 3": ({"a": 4}, {"a": 3}),
    "a in (1, 'x')": ({"a": "x"}, {"a": "y"}),
    "a not in (1, 'x')": ({"a": 2}, {"a": "x"}),
    "a like 'x_z'": ({"a": "xyz"}, {"a": "xz"}),
    "a not like 'x_z'": ({"a": "xz"}, {"a": "xyz"}),
    "a starts with 'x'": ({"a": "xy"}, {"a": "yx"}),
    "a not starts with 'x'": ({"a": "yx"}, {"a": "xy"}),
    "a ends with 'x'": ({"a": "yx"}, {"a": "xy"}),
    "a not ends with 'x'": ({"a": "xy"}, {"a": "yx"}),
    "a contains 'x'": ({"a": "yxy"}, {"a": "yy"}),
    "a not contains 'x'": ({"a": "yy"}, {"a": "yxy"}),
    "a ~ 'x+y'": ({"a": "zxxy"}, {"a": "xzy"}),
    "a !~ 'x+y'": ({"a": "xzy"}, {"a": "zxxy"}),
    "a is missing": ({"b": 1}, {"a": 1}),
    "a is present": ({"a": 2**60 + 1}, {"b": 1}),
}


def test_every_operator_has_an_example() -> None:
    operators = {parse_condition(text).operator for text in EVERY_OPERATOR}  # type: ignore[union-attr]
    assert operators == set(Operator)


@pytest.mark.parametrize("text", EVERY_OPERATOR)
def test_match_and_explain_know_every_operator(matcher: Matcher, text: str) -> None:
    predicate = parse_condition(text)
    add(matcher, (7, predicate), (8, parse_condition(f"b = 1 and {text}")))
    for event, satisfied in zip(EVERY_OPERATOR[text], (True, False), strict=True):
        assert match(matcher, event) == [([7, 8] if event.get("b") == 1 else [7]) if satisfied else []]
        explanation = matcher.explain(read_event(event), 7)
        assert explanation.matched is satisfied
        assert explanation.conjunctions == (
            (PredicateTruth(predicate, event.get("a"), satisfied),),  # type: ignore[arg-type]
        )
    remove(matcher, 7, 8)
    assert match(matcher, *EVERY_OPERATOR[text]) == [[], []]


def test_missing_is_right_beside_other_predicates_on_the_attribute(matcher: Matcher) -> None:
    add(matcher, (1, parse_condition("a is missing")), (2, parse_condition("a is missing and b is missing")))
    add(matcher, (3, parse_condition("a > 3")), (4, parse_condition("b starts with 'x'")))
    add(
        matcher, (5, parse_condition("c = 1 and a is missing")), (6, parse_condition("a is missing or a = 1"))
    )
    events: list[dict[str, object]] = [
        {},
        {"a": 1},
        {"a": 2**60 + 1},
        {"a": "text"},
        {"a": True},
        {"b": "xy"},
        {"c": 1},
        {"c": 1, "a": 5},
    ]
    assert match(matcher, *events) == [
        [1, 2, 6],
        [6],
        [3],
        [],
        [],
        [1, 4, 6],
        [1, 2, 5, 6],
        [3],
    ]
    absent = EventBatch.of_dicts([{"a": float("nan")}])
    assert matcher.match(absent).to_lists() == [[1, 2, 6]]


def test_tests_on_one_attribute_are_not_evaluated_for_another(matcher: Matcher) -> None:
    add(matcher, (1, parse_condition("a contains 'x'")), (2, parse_condition("b not contains 'x'")))
    assert match(matcher, {"a": "x", "b": "x"}, {"b": "y"}, {"a": 1, "b": 2}, {"a": "y"}) == [
        [1],
        [2],
        [],
        [],
    ]
    add(matcher, (3, parse_condition("b contains 'x' and a ends with 'y'")))
    assert match(matcher, {"a": "x", "b": "x"}, {"a": "y", "b": "zx"}) == [[1], [3]]


def test_a_string_may_satisfy_several_tests_that_are_access_predicates(matcher: Matcher) -> None:
    words = [f"{i:03}" for i in range(300)]
    add(matcher, *((i, parse_condition(f"a contains '{word}'")) for i, word in enumerate(words)))
    add(
        matcher,
        *(
            (1000 + i, parse_condition(f"a contains '{word}' and n = {i % 2}"))
            for i, word in enumerate(words)
        ),
    )
    add(
        matcher,
        *(
            (2000 + i, parse_condition(f"a contains '{word}' and a starts with '{word[0]}'"))
            for i, word in enumerate(words)
        ),
    )
    found = match(matcher, {"a": "0123450", "n": 1})[0]
    assert found == [12, 123, 234, *(1000 + i for i in (123,)), 2012]


def test_a_hostile_regex_is_answered_like_any_other(matcher: Matcher) -> None:
    add(matcher, (1, parse_condition("a ~ '(a+)+$'")), (2, parse_condition("a ~ 'a!'")))
    assert match(matcher, {"a": "a" * 100_000 + "!"}, {"a": "a" * 100_000}) == [[2], [1]]


def test_explaining_an_unknown_id_is_an_error(matcher: Matcher) -> None:
    with pytest.raises(MatcherError, match="no subscription has the id 8"):
        matcher.explain(read_event({}), 8)


def test_stats_count_stored_conjunctions(matcher: Matcher) -> None:
    add(matcher, (1, parse_condition("a = 1 or b = 2 and c = 3")), (2, parse_condition("a = 1")))
    stats = matcher.stats()
    assert (stats.subscriptions, stats.conjunctions, stats.predicates) == (2, 3, 4)
    assert stats.bytes > 0
    remove(matcher, 1)
    assert matcher.stats().subscriptions == 1


def test_a_matcher_keeps_to_the_interface(matcher: Matcher) -> None:
    assert isinstance(matcher, Matcher)


def test_a_template_may_test_one_attribute_twice(matcher: Matcher) -> None:
    template = Template("a = :x and a = :y and b > 0")
    values = [f"s{i % 3}" for i in range(300)]
    rows = {"x": values, "y": values[::-1]}
    bound = template.bind_many(rows)
    matcher.add(ConjunctionBatch.of_rows(np.arange(len(bound), dtype=np.int64), bound))
    wanted = [i for i, (x, y) in enumerate(zip(values, values[::-1], strict=True)) if x == y == "s1"]
    assert wanted
    assert match(matcher, {"a": "s1", "b": 1}) == [wanted]
    remove(matcher, *range(300))
    assert match(matcher, {"a": "s1", "b": 1}) == [[]]
    assert (matcher.stats().conjunctions, matcher.stats().predicates) == (0, 0)
