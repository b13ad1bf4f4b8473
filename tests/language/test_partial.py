"""Clauses that are distributed in part: true for exactly the same events, and no text is lost."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.contract.evaluator import holds
from tests.strategies import conditions, crowded, events, tested
from tocsin.language import condition_text, parse_condition, to_cnf
from tocsin.language.json_form import predicate_from_json, predicate_to_json
from tocsin.language.normal import partly_distributed
from tocsin.language.semantics import truth
from tocsin.model import Condition, Event
from tocsin.model.conditions import alternatives_of


@given(st.one_of(conditions(), crowded, tested), st.lists(events, max_size=4), st.integers(1, 8))
def test_conjunctions_hold_where_the_condition_does(
    condition: Condition, some: list[Event], most: int
) -> None:
    clauses = to_cnf(condition).clauses
    if not all(clauses):
        return
    conjunctions = partly_distributed(clauses, most).conjunctions
    for event in some:
        found = any(all(truth(p, event.attributes) is True for p in one) for one in conjunctions)
        assert found == holds(condition, event.attributes)
    for predicate in {p for one in conjunctions for p in one}:
        assert predicate_from_json(predicate_to_json(predicate)) == predicate


def test_clauses_of_few_equalities_are_distributed_first() -> None:
    text = "(p > 1 or q > 1) and (a = 1 or b = 1 or c = 1) and (s like 'x%' or t = 'y') and (e = 1 or f = 1) and u = 0"
    clauses = to_cnf(parse_condition(text)).clauses
    for most, whole in ((1, 3), (2, 3), (6, 2), (12, 1), (24, 0)):
        conjunctions = partly_distributed(clauses, most).conjunctions
        assert len(conjunctions) == max(most, 2)
        assert {sum(len(alternatives_of(p)) > 1 for p in one) for one in conjunctions} == {whole}
    first = partly_distributed(clauses, 2).conjunctions[0]
    assert [condition_text(predicate) for predicate in first] == [
        "u = 0",
        "e = 1",
        "(a = 1 or b = 1 or c = 1)",
        "(s starts with 'x' or t = 'y')",
        "(p > 1 or q > 1)",
    ]
