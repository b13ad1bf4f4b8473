"""Schemas: as few as pay for themselves, and each conjunction by the one that leaves the fewest to be checked."""

from __future__ import annotations

from itertools import combinations

from tocsin.spark.join.schemas import EMPTY, Schema, choose_schemas


def test_few_subscriptions_are_not_hashed_at_all() -> None:
    assert choose_schemas({(0, 1): 1}, {0: 10, 1: 10}) == {(0, 1): EMPTY}


def test_subscriptions_without_an_equality_are_in_the_empty_schema() -> None:
    assert choose_schemas({EMPTY: 1000, (3,): 1000}, {3: 50}) == {EMPTY: EMPTY, (3,): (3,)}
    assert choose_schemas({EMPTY: 5}, {}) == {EMPTY: EMPTY}
    assert choose_schemas({}, {}) == {}


def test_fixed_attributes_are_hashed_with_one_of_the_free_ones() -> None:
    sets: dict[Schema, int] = {(0, 1, *free): 250 for free in combinations(range(2, 32), 3)}
    chosen = choose_schemas(sets, dict.fromkeys(range(32), 35))
    used = set(chosen.values())
    assert len(used) <= 30
    assert all({0, 1} <= set(schema) and len(schema) <= 3 for schema in used)
    assert all(set(schema) <= set(held) for held, schema in chosen.items())


def test_a_schema_that_saves_less_than_it_costs_is_not_chosen() -> None:
    many, few = choose_schemas({(0, 1): 100_000, (0, 2): 3}, {0: 100, 1: 100, 2: 100}).values()
    assert many == (0, 1)
    assert few == (0,)  # three of a hundred are not worth a row for each event


def test_an_attribute_of_few_values_is_not_preferred() -> None:
    chosen = choose_schemas({(0, 1): 50}, {0: 2, 1: 1000})
    assert chosen == {(0, 1): (1,)}
