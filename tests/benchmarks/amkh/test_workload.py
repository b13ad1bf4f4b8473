"""AMKH's generator: what figure 1 is drawn with, and what the studies vary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.amkh.workload import FIGURE_1, Parameters, Workload
from tocsin.matching import Oracle, create_matcher
from tocsin.matching.encoding.codes import Op
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions, add_to, prepared_for

MANY = 20_000


def drawn(parameters: Parameters, seed: int = 1) -> NumberedSubscriptions:
    (batch,) = Workload(parameters, seed).subscriptions(0, MANY, batch=MANY)
    return batch


def drawn_events(parameters: Parameters) -> NumberedEvents:
    (batch,) = Workload(parameters).events(0, MANY, batch=MANY)
    return batch


def table(batch: NumberedSubscriptions, parameters: Parameters) -> tuple[Any, Any, Any]:
    shape = (MANY, parameters.clauses)
    return batch.attributes.reshape(shape), batch.ops.reshape(shape), batch.lows.reshape(shape)


def test_a_subscription_of_figure_1_has_three_clauses() -> None:
    attributes, ops, constants = table(drawn(FIGURE_1), FIGURE_1)
    assert set(attributes[:, 0].tolist()) == {0}
    assert set(attributes[:, 1].tolist()) == set(range(1, 10))
    assert set(attributes[:, 2].tolist()) == {10}
    assert set(ops[:, :2].ravel().tolist()) == {Op.EQ}
    shares = [np.mean(ops[:, 2] == op) for op in (Op.EQ, Op.LT, Op.GT)]
    assert shares == pytest.approx([0.5, 0.25, 0.25], abs=0.02)
    assert (constants.min(), constants.max()) == (6, 95)


def test_constants_reach_as_far_as_x() -> None:
    parameters = replace(FIGURE_1, highest=15)
    assert drawn(parameters).lows.max() == 15
    assert drawn_events(parameters).values.max() == 95


def test_an_event_has_all_attributes() -> None:
    events = drawn_events(FIGURE_1)
    assert (events.attributes.reshape(MANY, 20) == np.arange(20)).all()
    assert (events.values.min(), events.values.max()) == (6, 95)


@pytest.mark.parametrize("share", [0.02, 0.1, 0.5, 0.8, 1.0])
def test_inequalities_hold_with_the_given_probability(share: float) -> None:
    parameters = replace(FIGURE_1, equal_share=0.0, selectivity=share)
    _, ops, constants = table(drawn(parameters), parameters)
    reach = np.where(ops == Op.LT, constants - 6, 95 - constants)[:, 2]
    assert reach.mean() / 90 == pytest.approx(share, abs=0.012)


def test_clauses_are_as_many_and_where_they_should_be() -> None:
    parameters = replace(
        FIGURE_1, equality_clauses=3, equality_set=4, general_clauses=2, fixed_general=0, fixed_equality=1
    )
    attributes, _, _ = table(drawn(parameters), parameters)
    assert set(attributes[:, 1:3].ravel().tolist()) == {1, 2, 3}
    assert set(attributes[:, 3:].ravel().tolist()) == set(range(10, 20))
    assert all(len(set(row)) == 5 for row in attributes[:500].tolist())
    none = replace(FIGURE_1, equality_clauses=0, fixed_equality=0)
    assert set(drawn(none).attributes.tolist()) == {10}


def test_predicates_are_the_same_from_arrays_and_as_objects() -> None:
    workload = Workload(replace(FIGURE_1, equality_clauses=1))
    (batch,) = workload.subscriptions(0, 300)
    (events,) = workload.events(0, 50)
    one, two = create_matcher("counting"), Oracle()
    add_to(one, batch)
    two.add(batch.to_batch())
    found = [matcher.match(prepared_for(matcher, events)) for matcher in (one, two)]
    assert len(found[0].ids)
    assert found[0].ids.tolist() == found[1].ids.tolist()


def test_the_same_seed_draws_the_same_and_another_seed_does_not() -> None:
    one, same, other = (drawn(FIGURE_1, seed) for seed in (7, 7, 8))
    assert np.array_equal(one.lows, same.lows)
    assert not np.array_equal(one.lows, other.lows)


@pytest.mark.parametrize(
    "wrong",
    [
        {"equality_clauses": 0, "fixed_equality": 0, "general_clauses": 0, "fixed_general": 0},
        {"fixed_equality": 3},
        {"equality_set": 1},
        {"general_clauses": 11},
        {"equal_share": 1.5},
        {"selectivity": 0.0},
        {"highest": 5},
    ],
)
def test_parameters_that_make_no_workload_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r".+"):
        Parameters(**wrong)
