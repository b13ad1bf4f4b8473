from __future__ import annotations

import numpy as np

from benchmarks.workloads.pooled import Pool, PooledSubscriptions, PoolEncoding, RecordEvents
from tocsin.matching import create_matcher
from tocsin.matching.encoding.conjunctions import encode_conjunctions
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.terms import Attribute, literal
from tocsin.replay.numbered import add_to, prepared_for


def predicate(code: int) -> Predicate:
    operator = (Operator.EQ, Operator.STARTS_WITH, Operator.NE)[code % 3]
    return Predicate(Attribute(f"s{code % 5}"), operator, (literal("abcd"[: 1 + code % 4]),))


def pooled(pool: Pool, first: int, codes: list[list[int]]) -> PooledSubscriptions:
    places = pool.places(np.array([code for row in codes for code in row], dtype=np.int64))
    offsets = np.cumsum([0, *map(len, codes)])
    return PooledSubscriptions(np.arange(first, first + len(codes)), offsets, places, pool)


def test_a_predicate_is_made_once_and_found_again() -> None:
    made: list[int] = []

    def make(code: int) -> Predicate:
        made.append(code)
        return predicate(code)

    pool = Pool(make)
    first = pool.places(np.array([30, 10, 30, 20]))
    again = pool.places(np.array([20, 15, 10]))
    assert made == [10, 20, 30, 15]
    assert [pool.predicates[place] for place in first] == [predicate(code) for code in (30, 10, 30, 20)]
    assert [pool.predicates[place] for place in again] == [predicate(code) for code in (20, 15, 10)]


def test_encoding_a_pool_once_is_the_same_as_encoding_each_subscription() -> None:
    pool, vocabulary = Pool(predicate), Vocabulary()
    encoding = PoolEncoding(pool, vocabulary)
    for first, codes in ((0, [[1, 2, 3], [], [7]]), (3, [[3, 9], [1, 14, 2]])):
        batch = pooled(pool, first, codes)
        expected = encode_conjunctions(batch.to_batch(), vocabulary)
        for found, wanted in zip(encoding.encode(batch), expected, strict=True):
            assert np.array_equal(found, wanted)


def test_a_matcher_that_takes_arrays_and_one_that_does_not_answer_alike() -> None:
    random = np.random.default_rng(1)
    codes = [random.integers(0, 60, size).tolist() for size in random.integers(1, 4, 200)]
    batch = pooled(Pool(predicate), 0, codes)
    rows = [
        {f"s{i}": "abcde"[: random.integers(1, 6)] for i in range(5) if random.random() < 0.8}
        for _ in range(50)
    ]
    events = RecordEvents(rows)
    found = []
    for name in ("oracle", "counting"):
        matcher = create_matcher(name)
        add_to(matcher, batch)
        found.append(matcher.match(prepared_for(matcher, events)).to_lists())
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 0
