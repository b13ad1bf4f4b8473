"""The choice of a scheme: the paper's rules, and the cheapest by the cost model."""

from __future__ import annotations

import pytest

from tocsin.matching.amkh.choice import (
    Coordinate,
    Cost,
    Figures,
    choose,
    cost_of,
    general_attributes,
    is_better,
    rule_of_thumb,
)
from tocsin.matching.amkh.scheme import ALL_CLASSES, Hashing, Scheme
from tocsin.model.errors import MatcherError


def subscriptions(equalities: int, general: int = 1) -> list[list[Coordinate]]:
    equal = [Coordinate(f"e{i}", is_equality=True) for i in range(equalities)]
    return [
        [*equal, *(Coordinate(f"g{i}", is_equality=odd) for i in range(general))] for odd in (True, False)
    ]


def figures(
    equalities: int, general: int = 1, selectivity: float = 0.5, more: int = 0
) -> dict[object, Figures]:
    equal: dict[object, Figures] = {f"e{i}": Figures(10, 0, equal=0.1) for i in range(equalities + more)}
    return equal | {f"g{i}": Figures(10, 10, 1.0, 0.1, selectivity) for i in range(general)}


@pytest.mark.parametrize(
    ("equalities", "more", "count"), [(4, 0, 0), (3, 0, 1), (2, 8, 1), (2, 0, 2), (1, 0, 2), (0, 0, 1)]
)
def test_fewer_general_attributes_are_hashed_the_more_equalities_there_are(
    equalities: int, more: int, count: int
) -> None:
    scheme = rule_of_thumb(figures(equalities, 3, more=more), subscriptions(equalities, 3))
    assert (len(scheme.general or ()), scheme.classes) == (count, 2)


def test_clauses_are_folded_unless_they_are_selective() -> None:
    assert rule_of_thumb(figures(2, 1, 0.4), subscriptions(2)).classes == 2
    assert rule_of_thumb(figures(2, 1, 0.01), subscriptions(2)).classes == ALL_CLASSES


def test_the_most_selective_general_attributes_come_first() -> None:
    known: dict[object, Figures] = {
        "e": Figures(5, 0),
        "a": Figures(1, 9, selectivity=0.3),
        "b": Figures(1, 9, selectivity=0.2),
    }
    assert general_attributes(known) == ["b", "a"]
    known["a"] = Figures(9, 1, equal=0.01, selectivity=0.3)  # whose clauses are equalities
    assert general_attributes(known) == ["a", "b"]


def test_the_hashed_clauses_of_an_attribute() -> None:
    scheme = Scheme(("price",), 2)
    assert scheme.hashing("price", equality_only=False) is Hashing.EVERYTHING
    assert scheme.hashing("symbol", equality_only=True) is Hashing.EQUALITIES
    assert scheme.hashing("size", equality_only=False) is Hashing.NOTHING
    assert Scheme((), 2, equalities=True).hashing("size", equality_only=False) is Hashing.EQUALITIES
    assert Scheme(None, ALL_CLASSES).hashing("size", equality_only=False) is Hashing.EVERYTHING


@pytest.mark.parametrize("wrong", [{"classes": 1}, {"classes": -2}, {"width": 0}])
def test_a_scheme_that_makes_no_sense_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(MatcherError, match=f"not {next(iter(wrong.values()))}"):
        Scheme(**wrong)  # type: ignore[arg-type]


def test_hashing_a_general_attribute_pays_where_there_are_few_equalities() -> None:
    known, sample = figures(1), subscriptions(1)
    with_, without = Scheme(("g0",), 2), Scheme((), 2)
    assert cost_of(with_, known, sample, 100_000).total < cost_of(without, known, sample, 100_000).total
    known, sample = figures(5), subscriptions(5)  # one bucket would hold one of them
    assert cost_of(with_, known, sample, 100_000).total > cost_of(without, known, sample, 100_000).total


def test_few_clauses_are_hashed_where_schemas_are_as_many_as_subscriptions() -> None:
    known: dict[object, Figures] = {i: Figures(50, 100, 0.001, 0.02) for i in range(3000)}
    sample = [
        [Coordinate((7 * i + 13 * k) % 3000, is_equality=(i + k) % 9 == 0) for k in range(7)]
        for i in range(500)
    ]
    chosen = choose(known, sample, 1_000_000)
    assert chosen.general is None
    assert chosen.width == 1


def test_there_are_no_more_classes_than_clauses_justify() -> None:
    sample = [[Coordinate("a", is_equality=False)]] * 100
    many, few = Figures(0, 10_000, selectivity=0.01), Figures(0, 8, selectivity=0.01)
    assert choose({"a": few}, sample, 100_000).classes <= 4
    assert choose({"a": many}, sample, 100_000).classes >= 16


def test_all_clauses_are_hashed_where_all_subscriptions_are_alike() -> None:
    assert choose(figures(3), subscriptions(3) * 100, 1_000_000).width is None


def test_a_scheme_wins_by_a_fifth() -> None:
    assert is_better(Cost(0, 0, 79), Cost(0, 0, 100))
    assert not is_better(Cost(0, 0, 81), Cost(0, 0, 100))


def test_classes_are_no_finer_than_clauses_are_many() -> None:
    # Each class takes memory on each attribute, of which there may be tens of thousands.
    sample = [[Coordinate("g", is_equality=False)]]
    assert choose({"g": Figures(0, 5, selectivity=0.02)}, sample, 100_000).classes == 4
    assert choose({"g": Figures(0, 500, selectivity=0.02)}, sample, 100_000).classes >= 16
