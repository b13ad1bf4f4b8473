"""AMKH's worked examples: where six subscriptions go, and which of them three events lead to."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch
from tocsin.matching.amkh.matcher import Amkh, Mkh
from tocsin.model import read_event
from tocsin.model.errors import MatcherError

WEIGHTS = {"A1": 7, "A2": 11, "A3": 13}
SUBSCRIPTIONS = {  # in the order that gives each clause its id: =100 is 1, >50 is 2, <80 is 3, >90 is 4
    2: "A1 = 'IBM' and A3 = 100",
    1: "A1 = 'IBM' and A3 > 50",
    3: "A1 = 'IBM' and A2 = 'NYSE' and A3 < 80",
    4: "A1 = 'MSFT' and A3 > 90",
    5: "A2 = 'NYSE'",
    6: "A1 = 'IBM'",
}
EVENTS: list[dict[str, object]] = [
    {"A1": "IBM", "A2": "NYSE", "A3": 95},
    {"A1": "IBM", "A2": "NYSE", "A3": 100},
    {"A1": "MSFT", "A3": 95},
]
MATCHED = [[1, 5, 6], [1, 2, 5, 6], [4]]
# By matcher: the buckets of its subscriptions; and of each event, the buckets of all products and who is examined.
EXPECTED: dict[str, tuple[dict[int, list[int]], list[tuple[set[int], list[int]]]]] = {
    "AMKH(0,-)": (
        {7: [1, 2, 6], 18: [3], 14: [4], 11: [5]},
        [({0, 7, 11, 18}, [1, 2, 3, 5, 6]), ({0, 7, 11, 18}, [1, 2, 3, 5, 6]), ({0, 14}, [4])],
    ),
    "AMKH(1,2)": (
        {7: [1, 6], 20: [2], 31: [3], 14: [4], 11: [5]},
        [({0, 7, 11, 18}, [1, 5, 6]), ({0, 7, 11, 13, 18, 20, 24, 31}, [1, 2, 3, 5, 6]), ({0, 14}, [4])],
    ),
    "MKH": (
        {33: [1], 20: [2], 57: [3], 66: [4], 11: [5], 7: [6]},
        [
            ({0, 7, 11, 18, 26, 33, 37, 44, 52, 59, 63, 70}, [1, 5, 6]),
            (set(), [1, 2, 5, 6]),  # sixteen, which the products below tell
            ({0, 14, 26, 40, 52, 66}, [4]),
        ],
    ),
}
# Of each attribute, what the clauses that an event satisfies add to a coordinate; the first adds nothing: no clause.
ADDENDS: dict[str, list[list[tuple[int, ...]]]] = {
    "AMKH(0,-)": [[(0, 7), (0, 11), (0,)], [(0, 7), (0, 11), (0,)], [(0, 14), (0,), (0,)]],
    "AMKH(1,2)": [[(0, 7), (0, 11), (0, 0)], [(0, 7), (0, 11), (0, 0, 13)], [(0, 14), (0,), (0, 0)]],
    "MKH": [[(0, 7), (0, 11), (0, 26, 52)], [(0, 7), (0, 11), (0, 13, 26, 52)], [(0, 14), (0,), (0, 26, 52)]],
}


def matcher(name: str) -> Amkh:
    options = {"buckets": 101, "split_weights": False, "weights": WEIGHTS}
    if name == "MKH":
        made: Amkh = Mkh(**options)  # type: ignore[arg-type]
    else:
        general = 0 if name == "AMKH(0,-)" else 1
        made = Amkh(general=general, classes=2, ranked_classes=False, **options)  # type: ignore[arg-type]
    made.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in SUBSCRIPTIONS.items()))
    return made


def schemas(name: str) -> list[tuple[str, ...]]:
    """Return the sets of hashed attributes that subscriptions have."""
    hashed = ("A1", "A2") if name == "AMKH(0,-)" else ("A1", "A2", "A3")
    return sorted({tuple(a for a in hashed if a in text) for text in SUBSCRIPTIONS.values()})


@pytest.mark.parametrize("name", EXPECTED)
def test_subscriptions_are_in_the_buckets_of_the_paper(name: str) -> None:
    made = matcher(name)
    assert made.scheme.name == name
    assert {b: sorted(ids) for b, ids in made.contents().items()} == EXPECTED[name][0]


@pytest.mark.parametrize("place", range(len(EVENTS)))
@pytest.mark.parametrize("name", EXPECTED)
def test_an_event_leads_to_the_buckets_of_the_paper(name: str, place: int) -> None:
    made = matcher(name)
    every, examined = EXPECTED[name][1][place]
    products = {sum(one) % 101 for one in product(*ADDENDS[name][place])}
    assert len(products) == 16 if not every else products == every
    # Of all products, those remain whose attributes are the schema of some subscription.
    wanted: set[int] = set()
    for schema in schemas(name):
        parts = [ADDENDS[name][place][int(a[1]) - 1][1:] for a in schema]
        wanted |= {sum(one) % 101 for one in product(*parts)}
    found = made.lookup(read_event(EVENTS[place]))
    assert set(found.buckets) == wanted <= products
    assert list(found.examined) == examined


@pytest.mark.parametrize("name", EXPECTED)
def test_matched_and_unmatched_are_counted(name: str) -> None:
    made = matcher(name)
    for event, matched, (_, examined) in zip(EVENTS, MATCHED, EXPECTED[name][1], strict=True):
        made.forget_examined()
        assert made.match(EventBatch.of_dicts([event])).to_lists() == [matched]
        cost = made.examined()
        assert (cost.events, cost.examined, cost.matched) == (1, len(examined), len(matched))
        assert cost.unmatched == len(examined) - len(matched)
        assert made.stats().details["of those unmatched per event"] == cost.unmatched


def test_ids_of_clauses_are_given_again() -> None:
    made = matcher("MKH")
    made.remove(np.array([3]))  # <80 was 3
    made.add(ConjunctionBatch.of([(7, to_dnf(parse_condition("A3 < 70")))]))
    assert made.contents()[39] == [7]
    made.remove(np.array([1, 2, 4, 5, 6, 7]))
    assert made.contents() == {}
    made.add(ConjunctionBatch.of([(8, to_dnf(parse_condition("A3 < 71")))]))
    assert made.contents() == {13: [8]}


def test_without_aliases_classes_and_equalities_are_apart() -> None:
    made = Amkh(general=1, classes=2, ranked_classes=False)
    texts = {**SUBSCRIPTIONS, 7: "A1 = 'IBM' and A2 = 'NYSE' and A3 = 100"}
    made.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in texts.items()))
    assert all(len(ids) == 1 for ids in made.contents().values())
    assert made.lookup(read_event(EVENTS[1])).examined == (1, 2, 5, 6, 7)


def test_no_more_buckets_are_probed_than_a_schema_has() -> None:
    made = Amkh(general=1, classes=math.inf)
    texts = ["a = 1 and b > 100", *(f"b > {i}" for i in range(50))]
    made.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    made.match(EventBatch.of_dicts([{"a": 1, "b": 60}]))
    assert made.examined().probed == 51  # 50 for `b` alone, and the one that there is for both


@pytest.mark.parametrize(
    "wrong", [{"general": -1}, {"buckets": 1}, {"classes": 1}, {"general": 0, "classes": -3}]
)
def test_options_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(MatcherError, match=f"not {list(wrong.values())[-1]}"):
        Amkh(**wrong)  # type: ignore[arg-type]
