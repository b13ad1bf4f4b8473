from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from benchmarks.opindex.workloads.table3 import ClauseParameters, ClauseWorkload, Parameters
from tocsin.matching import create_matcher
from tocsin.replay.numbered import add_to, prepared_for

COUNT = 4_000


def test_subscriptions_have_one_to_so_many_clauses_of_one_to_so_many_predicates() -> None:
    (found,) = ClauseWorkload(ClauseParameters()).subscriptions(0, COUNT)
    clauses, predicates = np.diff(found.offsets), np.diff(found.clauses.offsets)
    assert np.bincount(clauses)[1:] / COUNT == pytest.approx(np.full(5, 1 / 5), abs=0.02)
    assert np.bincount(predicates)[1:] / len(predicates) == pytest.approx(np.full(4, 1 / 4), abs=0.02)
    assert (found.offsets[-1], found.clauses.offsets[-1]) == (len(predicates), len(found.clauses.attributes))
    for begin, end in pairwise(found.clauses.offsets[found.offsets].tolist()):
        assert len(set(found.clauses.attributes[begin:end].tolist())) == end - begin


def test_a_disjunction_has_each_clause_as_a_conjunction_of_its_own() -> None:
    (found,) = ClauseWorkload(ClauseParameters()).subscriptions(0, 100)
    disjunctive = found.any_of_all()
    assert np.bincount(disjunctive.ids).tolist() == np.diff(found.offsets).tolist()
    assert np.array_equal(disjunctive.offsets, found.clauses.offsets)


def test_the_conjunctive_form_is_the_same_in_arrays_and_in_predicates() -> None:
    parameters = ClauseParameters(2, 3, Parameters(attributes=60, most_pairs=40, values=3))
    workload = ClauseWorkload(parameters)
    (batch,) = workload.subscriptions(0, 300)
    (events,) = workload.events(0, 60)
    oracle = create_matcher("oracle")
    oracle.add(batch.to_batch())
    expected = oracle.match(prepared_for(oracle, events)).to_lists()
    assert sum(map(len, expected)) > 0
    for name in ("counting", "opindex"):  # without clauses, and with them
        matcher = create_matcher(name)
        add_to(matcher, batch)
        assert matcher.match(prepared_for(matcher, events)).to_lists() == expected


def test_batches_of_any_size_make_the_same_whole() -> None:
    workload = ClauseWorkload(ClauseParameters(predicates=Parameters(zipf=0.6)), seed=2)
    (whole,) = workload.subscriptions(0, 40_000, batch=40_000)
    parts = list(workload.subscriptions(0, 40_000, batch=15_000))
    assert np.array_equal(np.concatenate([part.ids for part in parts]), whole.ids)
    for name in ("attributes", "ops", "lows", "highs"):
        found = np.concatenate([getattr(part.clauses, name) for part in parts])
        assert np.array_equal(found, getattr(whole.clauses, name))
    sizes = np.concatenate([np.diff(part.clauses.offsets) for part in parts])
    assert np.array_equal(sizes, np.diff(whole.clauses.offsets))


def test_parameters_that_cannot_be_met_are_refused() -> None:
    with pytest.raises(ValueError, match="a clause a predicate"):
        ClauseParameters(clause_predicates=0)
    with pytest.raises(ValueError, match="more predicates than there are attributes"):
        ClauseParameters(predicates=Parameters(attributes=40), most_clauses=11)
