"""Conjunctions that come in an order, or that nothing cuts: how deep the tree gets, and how often a leaf is gone through."""

from __future__ import annotations

import numpy as np
import pytest

from tests.matching.be_tree.invariants import check_invariants
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, create_matcher
from tocsin.matching.be_tree.matcher import BeTree
from tocsin.matching.be_tree.state import Top

COUNT = 12_000
ORDER = np.arange(COUNT)


def filled(text: str, **columns: object) -> ConjunctionBatch:
    return ConjunctionBatch.of_rows(ORDER, Template(text).bind_many(columns))


@pytest.mark.parametrize(
    "values",
    [
        ORDER,
        -ORDER,
        ORDER // 10,
        -(ORDER // 10) / 10,
        ORDER // 100 * 1e9 + ORDER % 100 * 1e-3,
        np.where(ORDER % 2, ORDER, 2 * COUNT - ORDER),
        np.concatenate([[1e300, -1e300], ORDER[2:]]),
        np.geomspace(1e-300, 1e300, COUNT),
        [f"s{i}" for i in range(COUNT)],
        [f"s{i // 10}" for i in range(COUNT)],
    ],
    ids=["up", "down", "tens", "tenths", "clusters", "inwards", "far", "powers", "strings", "ten strings"],
)
def test_values_that_come_in_order_make_no_deep_tree(values: list[object] | np.ndarray) -> None:
    matcher, other = BeTree(), create_matcher("counting")
    for each in (matcher, other):
        each.add(filled("a = :x", x=values))
    check_invariants(matcher)
    asked = list(values)[:: COUNT // 50]
    events = EventBatch.of_dicts([{"a": one if isinstance(one, str) else float(str(one))} for one in asked])
    assert matcher.match(events).to_lists() == other.match(events).to_lists()
    details = matcher.stats().details
    assert details["depth"] <= 100
    assert details["nodes per event"] <= 100
    assert details["checks per event"] <= 20
    assert details["nodes"] <= 2 * COUNT
    matcher.remove(ORDER[::-1])
    check_invariants(matcher)
    assert matcher.stats().details["nodes"] == 1


@pytest.mark.parametrize("text", ["a >= :x", "a <= :x", "a < -:x", "a between :x and :y"])
def test_ranges_that_come_in_order_make_no_deep_tree(text: str) -> None:
    matcher, other = BeTree(), create_matcher("counting")
    text = text.replace("-:x", ":z")
    columns = {"x": ORDER, "y": ORDER + 10, "z": -ORDER}
    named = {name: values for name, values in columns.items() if f":{name}" in text}
    for each in (matcher, other):
        each.add(filled(text, **named))
    check_invariants(matcher)
    events = EventBatch.of_dicts([{"a": one} for one in range(-COUNT, COUNT + 20, 997)])
    assert matcher.match(events).to_lists() == other.match(events).to_lists()
    assert matcher.stats().details["depth"] <= 100


def test_a_window_of_ordered_values_makes_no_deep_tree() -> None:
    matcher = BeTree()
    template = Template("a = :x")
    for start in range(0, 40_000, 1_000):
        ids = np.arange(start, start + 1_000)
        matcher.add(ConjunctionBatch.of_rows(ids, template.bind_many({"x": ids // 8})))
        matcher.remove(ids - 2_000)
    check_invariants(matcher)
    assert matcher.stats().details["depth"] <= 100
    assert matcher.match(EventBatch.of_dicts([{"a": 4_900}])).to_lists() == [list(range(39_200, 39_208))]


@pytest.mark.parametrize(("alike", "then"), [("a = 0", "a = 0 and b{} = 1"), ("x > 2 * y", "c{} = 1")])
def test_a_leaf_that_nothing_cuts_is_gone_through_few_times(alike: str, then: str) -> None:
    matcher = BeTree()
    held = to_dnf(parse_condition(alike))
    matcher.add(ConjunctionBatch.of((i, held) for i in range(4_000)))
    before = int(matcher._state.tops[Top.STAMP])
    more = [(4_000 + k, to_dnf(parse_condition(then.format(k)))) for k in range(3_000)]
    matcher.add(ConjunctionBatch.of(more))
    check_invariants(matcher)
    passes = int(matcher._state.tops[Top.STAMP]) - before - len(more)  # each that is placed has a stamp, too
    assert passes <= 100
    assert matcher.stats().details["partitions"] >= 2_000
    found = matcher.match(EventBatch.of_dicts([{"a": 0, "b7": 1, "c9": 1}])).to_lists()[0]
    wanted = [*range(4_000)] if alike == "a = 0" else []
    assert found == [*wanted, 4_007 if "b" in then else 4_009]
