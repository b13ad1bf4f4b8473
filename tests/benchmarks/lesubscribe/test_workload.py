from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.lesubscribe.workload import WORKLOADS, Churn, Parameters, Workload
from tocsin.matching.encoding.codes import Op
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions

W0, W0_RANGES, W3, W4, W6 = (WORKLOADS[name] for name in ("W0", "W0 with ranges", "W3", "W4", "W6"))

SMALL = 500


def whole(workload: Workload, count: int = SMALL) -> NumberedSubscriptions:
    (batch,) = workload.subscriptions(0, count, batch=count)
    return batch


def whole_events(workload: Workload, count: int = SMALL) -> NumberedEvents:
    (batch,) = workload.events(0, count, batch=count)
    return batch


@pytest.mark.parametrize("name", WORKLOADS)
def test_subscriptions_keep_to_their_parameters(name: str) -> None:
    parameters = WORKLOADS[name]
    found = whole(Workload(parameters))
    attributes = found.attributes.reshape(SMALL, parameters.predicates)
    last = parameters.first_name + parameters.usable_names
    assert attributes.min() >= parameters.first_name
    assert attributes.max() < last
    assert (attributes[:, : parameters.fixed] == attributes[0, : parameters.fixed]).all()
    assert all(len(set(row)) == parameters.predicates for row in attributes.tolist())
    assert found.lows.min() == parameters.lowest
    assert found.highs.max() == parameters.highest
    ops = found.ops.reshape(SMALL, parameters.predicates)
    assert ((ops != Op.EQ).sum(axis=1) == parameters.free_ranges).all()


@pytest.mark.parametrize("name", WORKLOADS)
def test_events_keep_to_their_parameters(name: str) -> None:
    parameters = WORKLOADS[name]
    found = whole_events(Workload(parameters))
    assert found.values.min() == parameters.event_lowest
    assert found.values.max() == parameters.event_highest
    assert (np.diff(found.offsets) == parameters.pairs).all()


def test_the_same_seed_draws_the_same_and_another_seed_does_not() -> None:
    one, same, other = (whole(Workload(W0, seed)) for seed in (7, 7, 8))
    for name in one._fields:
        assert np.array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.lows, other.lows)


def test_batches_of_any_size_make_the_same_whole() -> None:
    # More than one block, so that a batch lies across two.
    count, workload = 70_000, Workload(W0_RANGES, seed=3)
    for size in (9_999, 65_536):
        parts = list(workload.subscriptions(0, count, batch=size))
        assert [len(part.ids) for part in parts[:-1]] == [size] * (len(parts) - 1)
        expected = whole(workload, count)
        for name in ("ids", "attributes", "ops", "lows", "highs"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert np.array_equal(joined, getattr(expected, name))
    (later,) = workload.events(100, 200, batch=100)
    assert np.array_equal(later.values, whole_events(workload, 200).slice(100, 200).values)


def test_a_drift_goes_from_one_half_of_the_names_to_the_other() -> None:
    before, after = (set(whole(Workload(parameters)).attributes.tolist()) for parameters in (W3, W4))
    assert before == set(range(16))
    assert after == set(range(16, 32))


def test_a_skew_leaves_few_values_on_the_fixed_attributes_alone() -> None:
    subscriptions, events = whole(Workload(W6)), whole_events(Workload(W6))
    is_fixed = subscriptions.attributes < W6.fixed
    assert set(subscriptions.lows[is_fixed].tolist()) == {1, 2}
    assert len(set(subscriptions.lows[~is_fixed].tolist())) == W6.domain
    assert set(events.values[events.attributes < W6.fixed].tolist()) == {1, 2}
    assert len(set(events.values[events.attributes >= W6.fixed].tolist())) == W6.domain


def test_events_with_fewer_pairs_than_names_have_the_fixed_ones_and_no_name_twice() -> None:
    found = whole_events(Workload(replace(W0, pairs=10, fixed_pairs=3)))
    rows = found.attributes.reshape(SMALL, 10)
    assert (rows[:, :3] == [0, 1, 2]).all()
    assert all(len(set(row)) == 10 for row in rows.tolist())
    assert len(set(rows.reshape(-1).tolist())) == 32


def test_fixed_predicates_may_be_ranges() -> None:
    parameters = replace(W0, fixed_equal=1, fixed_at_most=1, fixed_at_least=1)
    ops = whole(Workload(parameters)).ops.reshape(SMALL, 5)
    assert (ops == [Op.EQ, Op.LE, Op.GE, Op.EQ, Op.EQ]).all()


def test_each_second_the_oldest_go_and_as_many_come() -> None:
    incoming = Workload(W4, first_id=1_000)
    seconds = list(Churn(changes=20, events=5).seconds(incoming, 5, 9))
    assert [gone.tolist()[0] for gone, _, _ in seconds] == [100, 120, 140, 160]
    assert [new.ids.tolist()[0] for _, new, _ in seconds] == [1_100, 1_120, 1_140, 1_160]
    assert all(len(gone) == len(new.ids) == 20 for gone, new, _ in seconds)
    assert all(len(events.offsets) == 6 for _, _, events in seconds)
    assert all(not np.array_equal(a[2].values, b[2].values) for a, b in pairwise(seconds))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"fixed_equal": 6}, "at least the fixed ones"),
        ({"free_ranges": 4}, "at most the predicates that are not fixed"),
        ({"names": 4, "pairs": 4}, "more predicates than there are names"),
        ({"pairs": 33}, "more pairs than there are names"),
        ({"lowest": 36}, "range of values is empty"),
        ({"last_name": 33}, "must be among all"),
    ],
)
def test_parameters_that_cannot_be_met_are_refused(changes: dict[str, int], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Parameters(**changes)
