"""The worked examples, put to the oracle."""

from __future__ import annotations

from itertools import permutations

import pytest

from tests.sequences.outcomes import compiled, found, shown, values
from tests.sequences.stocks import TRADES
from tests.sequences.vectors import VECTORS
from tocsin.model import Attribute, Operator, Predicate
from tocsin.sequences.algebra import Iterate, Next, Rename, Select, Stream, Union
from tocsin.sequences.oracle import occurrences


@pytest.mark.parametrize("name", VECTORS)
def test_the_oracle_finds_the_matches_of_the_example(name: str) -> None:
    text, events, expected = VECTORS[name]
    assert shown(found(text, events)) == sorted(expected.split())


@pytest.mark.parametrize("name", VECTORS)
def test_the_order_of_simultaneous_events_changes_nothing(name: str) -> None:
    text, events, expected = VECTORS[name]
    for pair in permutations(range(len(events)), 2):
        order = list(events)
        if events[pair[0]].end == events[pair[1]].end:
            order[pair[0]], order[pair[1]] = order[pair[1]], order[pair[0]]
            assert shown(found(text, order)) == sorted(expected.split())


def test_computed_values_are_returned() -> None:
    text, events, _ = VECTORS["a fall from a large trade on"]
    assert values(found(text, events)) == [{"cnt": 2}, {"cnt": 3}]


def test_selected_values_are_returned() -> None:
    text, events, _ = VECTORS["AutQ"]
    assert values(found(text, events)) == [{"highest": 100, "lowest": 90, "final": 99}]


def test_the_algebra_agrees_with_its_text() -> None:
    """The second example, and iteration, written in the algebra itself."""
    same = Predicate(Attribute("name", "b"), Operator.EQ, (Attribute("name", "a"),))
    left, right = Rename(Stream("stock"), "a"), Rename(Stream("stock"), "b")
    assert compiled("from stock a next stock b on b.name = a.name").expression == Next(left, right, same)
    iterated = Iterate(left, right, "b", ("a",), same)
    assert compiled("from stock a fold stock b on b.name = a.name").expression == iterated
    assert len(occurrences(iterated, TRADES)) == 5 + 4 + 3 + 2 + 1 + 2 + 1


def test_a_union_is_a_bag() -> None:
    dear = Select(Stream("stock"), Predicate(Attribute("price"), Operator.GE, (Attribute("price"),)))
    assert len(occurrences(Union((Stream("stock"), dear)), TRADES)) == 18
