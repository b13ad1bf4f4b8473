from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.opindex.workloads.table3 import Parameters, Workload
from tocsin.matching.encoding.codes import Op
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions

COUNT = 20_000
SKEWED = Parameters(attributes=2_000, zipf=1.0)


def whole(parameters: Parameters, count: int = COUNT, seed: int = 1) -> NumberedSubscriptions:
    (batch,) = Workload(parameters, seed).subscriptions(0, count, batch=count)
    return batch


def whole_events(parameters: Parameters, count: int = 3_000) -> NumberedEvents:
    (batch,) = Workload(parameters).events(0, count, batch=count)
    return batch


def rows(offsets: np.ndarray[tuple[int], np.dtype[np.int64]], cells: list[int]) -> list[list[int]]:
    return [cells[begin:end] for begin, end in pairwise(offsets.tolist())]


@pytest.mark.parametrize("parameters", [Parameters(), SKEWED], ids=["uniform", "Zipf"])
def test_subscriptions_have_one_to_so_many_predicates_on_different_attributes(parameters: Parameters) -> None:
    found = whole(parameters)
    sizes = np.diff(found.offsets)
    assert np.bincount(sizes)[1:] / COUNT == pytest.approx(np.full(8, 1 / 8), abs=0.01)
    assert all(len(set(row)) == len(row) for row in rows(found.offsets, found.attributes.tolist()))
    assert found.attributes.max() < parameters.attributes
    assert (found.lows >= 1).all()
    assert (found.highs <= parameters.values).all()


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_the_operators_have_their_shares(share: float) -> None:
    ops = whole(Parameters(equal_share=share)).ops
    for op, expected in ((Op.EQ, share), (Op.LE, (1 - share) / 2), (Op.GE, (1 - share) / 2)):
        assert np.mean(ops == op) == pytest.approx(expected, abs=0.01)


def test_a_predicate_agrees_with_its_operator() -> None:
    found = whole(Parameters())
    at_most, at_least = found.ops == Op.LE, found.ops == Op.GE
    assert (found.lows[at_most] == 1).all()
    assert (found.highs[at_least] == 50).all()
    assert (found.lows[found.ops == Op.EQ] == found.highs[found.ops == Op.EQ]).all()
    assert set(found.highs[at_most].tolist()) == set(found.lows[at_least].tolist()) == set(range(1, 51))


def test_events_have_up_to_so_many_pairs_or_just_so_many() -> None:
    sizes = np.diff(whole_events(Parameters()).offsets)
    assert set(sizes.tolist()) == set(range(1, 41))
    full = whole_events(replace(SKEWED, full_events=True))
    assert (np.diff(full.offsets) == 40).all()
    assert all(len(set(row)) == 40 for row in rows(full.offsets, full.attributes.tolist()))
    assert set(full.values.tolist()) == set(range(1, 51))


def test_under_zipf_attributes_and_values_are_as_frequent_as_their_rank_on_both_sides() -> None:
    parameters = Parameters(attributes=1_000, most_predicates=1, most_pairs=1, equal_share=1.0, zipf=1.0)
    found, events = whole(parameters), whole_events(parameters, 20_000)
    for attributes, values in ((found.attributes, found.lows), (events.attributes, events.values)):
        often = np.bincount(attributes, minlength=1_000)
        assert often[0] / often[9] == pytest.approx(10, rel=0.2)
        often = np.bincount(values, minlength=51)
        assert often[1] / often[5] == pytest.approx(5, rel=0.2)


def test_batches_of_any_size_make_the_same_whole() -> None:
    workload = Workload(SKEWED, seed=3)
    (expected,) = workload.subscriptions(0, 70_000, batch=70_000)
    for size in (9_999, 65_536):
        parts = list(workload.subscriptions(0, 70_000, batch=size))
        for name in ("ids", "attributes", "ops", "lows", "highs"):
            joined = np.concatenate([getattr(part, name) for part in parts])
            assert np.array_equal(joined, getattr(expected, name))
    (all_events,) = workload.events(0, 6_000, batch=6_000)
    (later,) = workload.events(3_000, 6_000, batch=3_000)
    assert np.array_equal(later.values, all_events.slice(3_000, 6_000).values)
    assert np.array_equal(later.offsets, all_events.slice(3_000, 6_000).offsets)


def test_the_same_seed_draws_the_same_and_another_seed_does_not() -> None:
    one, same, other = (whole(Parameters(), 500, seed) for seed in (7, 7, 8))
    for name in one._fields:
        assert np.array_equal(getattr(one, name), getattr(same, name))
    assert not np.array_equal(one.attributes, other.attributes)
    (shifted,) = Workload(Parameters(), 7, first_id=100).subscriptions(0, 500)
    assert shifted.ids.tolist() == list(range(100, 600))


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"attributes": 7}, "more predicates than there are attributes"),
        ({"attributes": 39}, "more pairs than there are attributes"),
        ({"most_predicates": 0}, "needs a predicate"),
        ({"equal_share": 1.1}, "a share is from 0 to 1"),
        ({"zipf": -1.0}, "exponent is not negative"),
    ],
)
def test_parameters_that_cannot_be_met_are_refused(changes: dict[str, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        Parameters(**changes)  # type: ignore[arg-type]
