"""Plans and costs of an engine's filters, by their ids."""

from __future__ import annotations

import pyarrow as pa
import pytest

from tocsin import Engine
from tocsin.formats import Fault
from tocsin.matching.plans import PathKind
from tocsin.model.errors import MatcherError, SubscriptionError


@pytest.fixture
def engine() -> Engine:
    made = Engine(matcher="adaptive")
    made.table("stock", key="symbol")
    made.subscribe_all({
        "ibm": "symbol = 'IBM' and price > 100",
        "dear": "price != 7",
        "none": "price is missing",
        "never": "price > 3 and price < 3",
        "steps": "from stock a next stock b where a.price > 3",
        "lowest": "select min(price) from table stock",
    })  # fmt: skip
    return made


EVENTS = [{"symbol": "IBM" if i * 7_919 % 1_009 < 101 else "HP", "price": i} for i in range(2_000)]


def test_a_filter_is_explained_by_its_id(engine: Engine) -> None:
    assert engine.explain_plan("ibm").counted == 0
    assert engine.adapt(EVENTS) == 2_000
    plan = engine.explain_plan("ibm")
    assert plan.subscription == "ibm"
    assert plan.counted == 2_000
    (one,) = plan.conjunctions
    assert one.kind is PathKind.EQUALITY
    assert one.share == pytest.approx(0.1, rel=0.4)
    assert engine.stats().published == 0


def test_a_filter_that_never_matches_has_no_conjunctions(engine: Engine) -> None:
    assert engine.explain_plan("never").conjunctions == ()
    assert engine.explain_plan("never").why == "it has no conjunction: it never matches"


@pytest.mark.parametrize(("id_", "kind"), [("steps", "sequence"), ("lowest", "view")])
def test_sequences_and_views_have_no_plan_and_say_where_to_look(engine: Engine, id_: str, kind: str) -> None:
    with pytest.raises(
        SubscriptionError, match=f"`{id_}`: it is a {kind}, and plans are of filters; `explain` shows"
    ):
        engine.explain_plan(id_)


def test_an_unknown_id_is_an_error(engine: Engine) -> None:
    with pytest.raises(SubscriptionError, match="nobody"):
        engine.explain_plan("nobody")


def test_costs_name_filters_by_their_ids(engine: Engine) -> None:
    engine.adapt(EVENTS)
    costs = engine.explain_costs(2)
    assert {one.subscription for one in costs} == {"dear", "none"}
    assert (len(costs.by_rank), costs.conjunctions) == (3, 3)
    engine.unsubscribe("dear")
    assert engine.explain_costs(1).filters[0].subscription == "none"


def test_matchers_without_plans_name_one_that_has() -> None:
    few = Engine()
    few.subscribe("price > 3", id="it")
    with pytest.raises(
        MatcherError, match=r'so few that each is tried by itself; Engine\(matcher="adaptive"\)'
    ):
        few.explain_plan("it")
    other = Engine(matcher="opindex")
    other.subscribe("price > 3", id="it")
    for call in (lambda: other.explain_plan("it"), other.explain_costs):
        with pytest.raises(
            MatcherError, match=r'`opindex` has no plans to show; Engine\(matcher="adaptive"\) has'
        ):
            call()
    assert other.adapt(EVENTS) == 2_000  # its own statistics count them


def test_events_come_from_tables_too_and_faults_are_reported(engine: Engine) -> None:
    faults: list[Fault] = []
    assert engine.adapt(pa.Table.from_pylist(EVENTS), stream="stock", on_error=faults.append) == 2_000
    assert (
        engine.adapt([{"price": 3}, {"$stream": "x"}, {"price": 3, "$delete": True}], on_error=faults.append)
        == 1
    )
    assert len(faults) == 1
    assert engine.adapt() == 0
