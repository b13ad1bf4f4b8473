"""Families of rows and of pairs of rows report exactly the recomputed changes, each change by itself."""

from __future__ import annotations

import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.views.following import Play, view_of
from tocsin.language import Template
from tocsin.model import View
from tocsin.model.errors import NormalFormError
from tocsin.model.subscription import Answer
from tocsin.views.changes import Row, RowChange
from tocsin.views.compilation import compile_view
from tocsin.views.compiled import CompiledRowView
from tocsin.views.row_family import RowFamily

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
MATCHERS = [None, "opindex", "dynamic"]
JOINS = {
    "rows": "",
    "pairs": "from table t l join table u r on l.a = r.a",
    "pairs by two": "from table t l join table u r on l.a = r.a and r.b = l.y and l.b != r.b",
    "pairs with itself": "from table t l join table t r on l.a = r.b",
    "pairs by one attribute with itself": "from table t l join table t r on l.a = r.a",
}


@pytest.mark.parametrize("join", JOINS.values(), ids=JOINS)
@settings(max_examples=500 if LONG else 10)
@given(seed=st.integers(0, 2**32 - 1), matcher=st.sampled_from(MATCHERS))
def test_each_changed_answer_is_reported_once_and_no_other(join: str, seed: int, matcher: str | None) -> None:
    Play(seed, join, matcher).run(30)


class Following:
    """One family with its rows, changed one at a time."""

    def __init__(self, *texts: str, **tables: list[Row]) -> None:
        plans = [compile_view(view_of(text), text) for text in texts]
        assert isinstance(plans[0], CompiledRowView)
        self.family = RowFamily(plans[0].tables, plans[0].equal)
        self.rows = {name: dict(enumerate(rows)) for name, rows in tables.items()}
        self.family.load({name: rows.items() for name, rows in self.rows.items()})
        for number, plan in enumerate(plans):
            self.family.add(np.array([number]), plan, {})

    def put(self, table: str, slot: int, row: Row | None) -> dict[int, tuple[Answer, Answer]]:
        """Change a row; return, by number, the answers that this altered."""
        self.rows[table].pop(slot, None)
        if row is not None:
            self.rows[table][slot] = row
        changed = self.family.change([RowChange(table, slot, row)])
        return {
            number: (changed.old_answer(place), changed.new_answer(place))
            for place, number in enumerate(changed.numbers.tolist())
        }


ORDERS: list[Row] = [{"id": 1, "product": "ink", "qty": 150}, {"id": 2, "product": "pen", "qty": 300}]
PRODUCTS: list[Row] = [{"id": "ink", "price": 8}, {"id": "pen", "price": 12}]
JOIN = "from table orders o join table products p on o.product = p.id where p.price < 10 and o.qty > 100"


def test_a_product_that_becomes_cheap_brings_its_orders() -> None:
    following = Following(f"select * {JOIN}", f"select sum(o.qty) {JOIN}", orders=ORDERS, products=PRODUCTS)
    ink = {"o.id": 1, "o.product": "ink", "o.qty": 150, "p.id": "ink", "p.price": 8}
    pen = {"o.id": 2, "o.product": "pen", "o.qty": 300, "p.id": "pen", "p.price": 9}
    assert following.family.answer(0) == (ink,)
    changed = following.put("products", 1, {"id": "pen", "price": 9})
    assert changed == {0: ((ink,), (ink, pen)), 1: (150, 450)}
    assert following.put("orders", 0, None) == {0: ((ink, pen), (pen,)), 1: (450, 300)}
    assert following.put("orders", 1, {"id": 2, "product": "paper", "qty": 300}) == {
        0: ((pen,), ()),
        1: (300, None),
    }


def test_a_row_with_the_same_selected_values_is_no_change() -> None:
    text = "select symbol, price from table t where price > 1 and risk > 1"
    following = Following(text, t=[{"symbol": "A", "price": 2, "risk": 2}])
    assert following.put("t", 0, {"symbol": "A", "price": 2.0, "risk": 3, "note": "x"}) == {}
    assert following.put("t", 0, {"symbol": True, "price": 2, "risk": 3}) == {
        0: (({"symbol": "A", "price": 2},), ({"symbol": True, "price": 2},))
    }
    assert following.put("t", 0, {"symbol": 1, "price": 2, "risk": 3}) != {}  # true is not 1


def test_rows_that_exchange_their_selected_values_are_no_change() -> None:
    text = "select r.v from table t l join table u r on l.k = r.k where l.a >= 0 and r.a >= 0 and l.pick = r.pick"
    one: Row
    other: Row
    one, other = {"k": 1, "a": 0, "pick": 1, "v": "x"}, {"k": 1, "a": 0, "pick": 2, "v": "x"}
    following = Following(text, t=[{"k": 1, "a": 0, "pick": 1}], u=[one, other])
    assert following.put("t", 0, {"k": 1, "a": 0, "pick": 2}) == {}
    assert following.family.answer(0) == ({"v": "x"},)


def test_a_row_joined_with_itself_is_one_pair() -> None:
    text = "select count(*) from table t l join table t r on l.k = r.k where l.a > 0 and r.a > 0"
    following = Following(text, t=[])
    assert following.put("t", 0, {"k": 1, "a": 1}) == {0: (0, 1)}
    assert following.put("t", 1, {"k": 1.0, "a": 1}) == {0: (1, 4)}
    assert following.put("t", 2, {"k": True, "a": 1}) == {0: (4, 5)}
    assert following.put("t", 0, {"k": 2, "a": 1}) == {0: (5, 3)}
    assert following.put("t", 1, {"a": 1}) == {0: (3, 2)}  # what is absent joins nothing


def test_pairs_that_go_and_come_are_in_the_order_of_their_rows() -> None:
    text = "select r.n as n from table t l join table u r on l.k = r.k"
    following = Following(text, t=[{"k": 1, "n": 0}], u=[{"k": k, "n": n} for n, k in enumerate((2, 1, 1))])
    following.put("u", 0, {"k": 1, "n": 0})  # the first row of the table, and the last one to join
    removed, _ = following.family.change([RowChange("t", 0, None)]).differences(0)
    assert [row["n"] for row in removed if isinstance(row, dict)] == [0, 1, 2]


def test_the_least_is_found_again_among_equal_ones() -> None:
    text = "select min(y) from table t where a between 0 and 1 and b between 0 and 1"
    following = Following(text, t=[{"a": 0, "b": 1, "y": y} for y in (3, 3, 5, 7)])
    assert following.put("t", 0, {"a": 0, "b": 1, "y": 9}) == {}
    assert following.put("t", 1, {"a": 0, "b": 2, "y": 3}) == {0: (3, 5)}
    assert following.put("t", 2, {"a": 0, "b": 1, "y": float("inf")}) == {0: (5, 7)}
    assert following.put("t", 3, None) == {0: (7, 9)}
    assert following.put("t", 0, {"a": 0, "b": 1, "y": "dear"}) == {0: (9, "dear")}


def test_a_row_that_only_a_removed_subscription_had_is_forgotten() -> None:
    wide, narrow = (f"select min(y) from table t where a >= {a} and b >= {a}" for a in (0, 5))
    following = Following(wide, narrow, t=[{"a": 1, "b": 1, "y": 3}])
    following.family.remove(np.array([0]))
    assert following.put("t", 0, {"a": 1, "b": 1, "y": 4}) == {}
    following.family.add(np.array([0]), compile_view(view_of(wide), "wide"), {})
    assert following.family.answer(0) == 4
    assert following.put("t", 0, None) == {0: (4, None)}


def test_a_value_that_changes_its_kind_is_matched_again() -> None:
    following = Following("select count(*) from table t where a = 1 and b = 1", t=[{"a": 1, "b": 1}])
    assert following.put("t", 0, {"a": 1, "b": True}) == {0: (1, 0)}
    assert following.put("t", 0, {"a": 1.0, "b": 1.0}) == {0: (0, 1)}


def test_sums_are_exact_whatever_has_come_and_gone() -> None:
    text = "select sum(y) from table t where a > 0 and b > 0"
    following = Following(text, t=[{"a": 1, "b": 1, "y": 0.1}])
    assert following.put("t", 1, {"a": 1, "b": 1, "y": 1e300}) == {0: (0.1, 1e300)}
    assert following.put("t", 2, {"a": 1, "b": 1, "y": 0.2}) == {}  # too small beside it to change the answer
    assert following.put("t", 1, None) == {0: (1e300, 0.30000000000000004)}
    assert following.put("t", 2, {"a": 1, "b": 1, "y": 10**400}) == {0: (0.30000000000000004, float("inf"))}


def test_state_does_not_grow_with_changes() -> None:
    kinds = ["min(y)", "max(y)", "sum(y)", "distinct y", "*"]
    following = Following(*(f"select {kind} from table t where a > 0 and b > 0" for kind in kinds), t=[])
    for slot in range(20):
        following.put("t", slot, {"a": 1, "b": 1, "y": slot})
    held = following.family.stats().answer_bytes
    for step in range(2_000):
        following.put("t", step % 20, {"a": 1, "b": 1, "y": step * 7 % 20, "c": step})
        following.put("t", step % 20, None)
        following.put("t", step % 20, {"a": 1, "b": 1, "y": step * 3 % 20})
    assert following.family.stats().answer_bytes < 2 * held


def test_a_template_enters_by_the_column_and_numbers_may_come_again() -> None:
    query = Template("select count(*) from table t where a between :low and :high and b = :b").query
    assert isinstance(query, View)
    columns = {"low": np.array([0, 1, 5]), "high": np.array([2, 2, 3]), "b": np.array([1, 1, 1])}
    following = Following("select count(*) from table t where a = 1 and b = 1", t=[{"a": 1, "b": 1}])
    family = following.family
    family.add(np.array([5, 6, 7]), compile_view(query, "template", columns), columns)
    assert [family.answer(number) for number in (0, 5, 6, 7)] == [1, 1, 1, 0]
    family.remove(np.array([5, 99]))
    assert following.put("t", 1, {"a": 1, "b": 1}) == {0: (1, 2), 6: (1, 2)}
    family.add(np.array([5]), compile_view(view_of("select max(a) from table t where a + b > 0"), "max"), {})
    assert family.answer(5) == 1
    assert following.put("t", 1, {"a": 7, "b": 1}) == {0: (2, 1), 5: (1, 7), 6: (2, 1)}
    family.remove(np.array([0, 5, 6, 7]))
    assert family.stats().subscriptions == 0
    assert following.put("t", 0, None) == {}


def test_a_condition_that_is_too_large_is_refused_and_nothing_is_stored() -> None:
    clauses = " and ".join(f"(a{i} = 1 or b{i} = 2)" for i in range(11))
    clauses += " and (" + " or ".join(f"c{i} = 1 and d{i} = 2" for i in range(11)) + ")"
    following = Following("select count(*) from table t where a = 1 and b = 1", t=[])
    large = compile_view(view_of(f"select * from table t where {clauses}"), "large")
    with pytest.raises(NormalFormError, match="split the subscription"):
        following.family.add(np.array([1]), large, {})
    assert following.family.stats().subscriptions == 1
    assert following.put("t", 0, {"a": 1, "b": 1}) == {0: (0, 1)}
