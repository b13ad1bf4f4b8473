"""A matcher with statistics chooses its tables before the first event."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.matching.le_subscribe.invariants import check_invariants
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.matching import (
    ConjunctionBatch,
    EventBatch,
    Oracle,
    Statistics,
    create_matcher,
    open_matcher,
    save_matcher,
)
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.le_subscribe.dynamic import Dynamic
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher, PropagationWithPrefetch
from tocsin.matching.le_subscribe.state import ClusterTotal
from tocsin.matching.le_subscribe.static import Static
from tocsin.matching.statistics import candidate_groups
from tocsin.structures import hash_index

CITIES, COUNTRIES, KINDS = 100, 10, 10
PAIRS = [("city", "country"), ("city", "kind"), ("country", "kind")]


def events(count: int, seed: int) -> list[dict[str, Any]]:
    """Return events in which the city decides the country, and the kind is anything."""
    random = np.random.default_rng(seed)
    cities, kinds, prices = (random.integers(most, size=count).tolist() for most in (CITIES, KINDS, 100))
    return [
        {"city": f"c{city}", "country": city % COUNTRIES, "kind": f"k{kind}", "price": price}
        for city, kind, price in zip(cities, kinds, prices, strict=True)
    ]


def subscriptions(count: int) -> ConjunctionBatch:
    """Return subscriptions that ask for a city, its country, a kind and a price."""
    numbers = np.arange(count)
    rows = Template("city = :city and country = :country and kind = :kind and price < :price").bind_many(
        {
            "city": [f"c{number % CITIES}" for number in numbers],
            "country": numbers % CITIES % COUNTRIES,
            "kind": [f"k{number // CITIES % KINDS}" for number in numbers],
            "price": numbers % 7,
        }
    )
    return ConjunctionBatch.of_rows(numbers, rows)


def history(*groups: tuple[str, ...]) -> Statistics:
    return Statistics.of(events(5_000, seed=1), groups=groups)


def tables(matcher: ClusteredMatcher) -> set[tuple[str, ...]]:
    """Return the attributes of each table."""
    held = matcher._state.tables
    names = matcher.vocabulary.names
    return {
        tuple(sorted(names.value(field // FIELDS) for field in held.fields[t, : held.width[t]].tolist()))
        for t in range(int(held.used[0]))
        if held.width[t] > 0
    }


def checks_per_event(matcher: ClusteredMatcher) -> float:
    matcher.match(EventBatch.of_dicts(events(400, seed=2)))
    return float(matcher.stats().details["checks per event"])


def test_static_makes_tables_for_independent_attributes_and_checks_less() -> None:
    batch = subscriptions(60_000)
    plain, informed = Static(max_attributes=2), Static(max_attributes=2, statistics=history(*PAIRS))
    for matcher in (plain, informed):
        matcher.add(batch)
        matcher.cluster()
    assert tables(plain) == {("city", "country")}  # as good as any, by the number of constants
    assert tables(informed) == {("city", "kind")}  # the city tells the country already
    assert checks_per_event(plain) > 4 * checks_per_event(informed)
    check_invariants(informed)


def test_dynamic_makes_them_at_once_too() -> None:
    batch = subscriptions(60_000)
    plain, informed = Dynamic(max_attributes=2), Dynamic(max_attributes=2, statistics=history(*PAIRS))
    for matcher in (plain, informed):
        matcher.add(batch)
        matcher.maintain()
    assert tables(plain) == {("city", "country")}
    assert tables(informed) == {("city", "kind")}
    assert checks_per_event(plain) > 4 * checks_per_event(informed)
    check_invariants(informed)


@pytest.mark.parametrize("name", ["static", "dynamic", "propagation-wp"])
def test_statistics_change_no_answer(name: str) -> None:
    batch, oracle = subscriptions(700), Oracle()
    matcher = create_matcher(name, statistics=history(*PAIRS))
    late = ConjunctionBatch.of(
        (i, to_dnf(parse_condition(f"city = 'c{i % 7}' and unheard = {i % 2} or kind = 'k9'")))
        for i in range(1000, 1040)
    )
    arriving = EventBatch.of_dicts(events(60, seed=3))
    for each in (matcher, oracle):
        each.add(batch)
    assert isinstance(matcher, ClusteredMatcher)
    if isinstance(matcher, Static):
        matcher.cluster()
    assert matcher.match(arriving).to_lists() == oracle.match(arriving).to_lists()
    for each in (matcher, oracle):
        each.add(late)
        each.remove(np.arange(0, 700, 3))
    matcher.use_statistics(history())
    assert matcher.match(arriving).to_lists() == oracle.match(arriving).to_lists()
    check_invariants(matcher)


def slot_of(matcher: ClusteredMatcher, text: str) -> int:
    predicate = parse_condition(text)
    encoded = matcher.vocabulary.encode(predicate)  # type: ignore[arg-type]
    return int(hash_index.find(matcher._state.predicates.entries, *encoded))


def expectation(matcher: ClusteredMatcher, text: str) -> float:
    """Return how probable a matcher takes an equality to be, but for its initial doubt."""
    return float(
        matcher._state.predicates.hits[slot_of(matcher, text)] / matcher._state.totals[ClusterTotal.EVENTS]
    )


def test_equalities_are_expected_as_often_as_the_statistics_say_whenever_they_come() -> None:
    rows: list[dict[str, Any]] = [
        {"n": i % 4, "s": "x" if i % 8 else "y", "b": i % 2 == 0, "big": 2**60 + 1} for i in range(800)
    ]
    texts = {
        "n = 1": 0.25,
        "s = 'y'": 0.125,
        "b = true": 0.5,
        f"big = {2**60 + 1}": 1.0,
        "n = 9": 0.0,
        "q = 1": 0.0,
    }
    before, after = PropagationWithPrefetch(statistics=Statistics.of(rows)), PropagationWithPrefetch()
    for matcher in (before, after):
        matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(t))) for i, t in enumerate(texts)))
    after.use_statistics(Statistics.of(rows))
    for text, probability in texts.items():
        for matcher in (before, after):
            assert expectation(matcher, text) == pytest.approx(probability), text
    assert after._state.totals[ClusterTotal.EVENTS] == 800


def test_real_events_outweigh_statistics() -> None:
    matcher = PropagationWithPrefetch(statistics=Statistics.of([{"a": 1}] * 500))
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))]))
    matcher.match(EventBatch.of_dicts([{"a": 2}] * 4_500))
    assert expectation(matcher, "a = 1") == pytest.approx(0.1, rel=0.05)
    matcher.use_statistics(Statistics.of([{"a": 1}] * 500), weight=5_000)
    assert expectation(matcher, "a = 1") == pytest.approx(0.55, rel=0.05)


@pytest.mark.parametrize("told_at", ["the beginning", "the end"])
def test_access_predicates_of_a_table_are_expected_as_often_as_their_combinations(told_at: str) -> None:
    statistics = Statistics.of(events(5_000, seed=1), groups=PAIRS, top=2_000)
    matcher = Static(max_attributes=2, statistics=statistics if told_at == "the beginning" else None)
    matcher.add(subscriptions(60_000))
    matcher.cluster()
    if told_at == "the end":
        matcher.use_statistics(statistics)
    access = matcher._state.access
    entries = [e for e in range(1, int(access.entries.counters[1])) if access.members[e] > 0]
    assert all(access.table[entry] >= 0 for entry in entries)
    for entry in entries[::40]:
        keys = matcher._state.predicates.entries.keys[_slots_of_key(matcher, entry)].tolist()
        asked = [matcher.vocabulary.decode(*key) for key in keys]
        counted = float(access.hits[entry] / matcher._state.totals[ClusterTotal.EVENTS])
        assert counted == pytest.approx(statistics.joint_probability(asked))


def _slots_of_key(matcher: ClusteredMatcher, entry: int) -> list[int]:
    a, b = matcher._state.access.entries.keys[entry, :2].tolist()
    assert b == -1
    return [a >> 32, a & 0xFFFFFFFF]


def test_a_wider_schema_uses_the_factors_of_its_parts() -> None:
    matcher = Static(max_attributes=3, statistics=history(("city", "country")))
    matcher.add(subscriptions(60_000))
    matcher.cluster()
    assert tables(matcher) == {("city", "kind")}  # with the country it would cost more and save nothing


def test_an_opened_matcher_needs_no_statistics_and_still_goes_by_them(tmp_path: Path) -> None:
    matcher = Static(max_attributes=2, statistics=history(*PAIRS))
    matcher.add(subscriptions(600))
    save_matcher(matcher, tmp_path / "saved")
    opened = open_matcher(tmp_path / "saved")
    assert isinstance(opened, Static)
    opened.add(subscriptions(60_000))
    opened.cluster()
    assert tables(opened) == {("city", "kind")}
    assert expectation(opened, "country = 3") == pytest.approx(0.1, rel=0.1)


def test_candidate_groups_are_the_attributes_of_tables() -> None:
    found = candidate_groups(subscriptions(10))
    assert found.groups == (*PAIRS, ("city", "country", "kind"))


def test_tests_on_strings_are_expected_as_often_as_the_frequent_strings_pass_them() -> None:
    statistics = history(("city", "country"))
    matcher = PropagationWithPrefetch(statistics=statistics)
    texts = ["city starts with 'c1'", "city ends with '7'", "kind ~ 'k[0-4]'", "unheard contains 'x'"]
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    expected = matcher._state.predicates.hits[: len(texts)] / matcher._state.totals[ClusterTotal.EVENTS]
    assert expected.tolist() == pytest.approx(
        [statistics.probability(parse_condition(text)) for text in texts]  # type: ignore[arg-type]
    )
    assert expected.tolist()[0] == pytest.approx(0.11, abs=0.02)


@pytest.mark.parametrize("name", ["static", "dynamic"])
def test_no_table_is_made_of_tests_on_strings(name: str) -> None:
    matcher = create_matcher(name, costs={"table": 0.02, "attribute": 0.02, "misses": 0.0})
    assert isinstance(matcher, ClusteredMatcher)
    oracle = Oracle()
    conditions = [
        f"city starts with 'c{i % 10}' and kind contains '{i // 10 % 10}' and price = {i % 13}"
        for i in range(1_000)
    ]
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(conditions))
    for each in (matcher, oracle):
        each.add(batch)
    for seed in range(3):
        asked = EventBatch.of_dicts(events(200, seed=seed))
        assert matcher.match(asked).to_lists() == oracle.match(asked).to_lists()
        check_invariants(matcher)
    held = matcher._state.tables
    assert not np.any(held.fields[held.width != 0] % FIELDS == Field.TEXT)
    matcher.remove(np.arange(1_000))
    check_invariants(matcher)
