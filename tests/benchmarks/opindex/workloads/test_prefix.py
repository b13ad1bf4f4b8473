from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.opindex.workloads.prefix import PrefixParameters, PrefixWorkload
from tocsin.matching import EventBatch, create_matcher
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.terms import Attribute

COUNT = 5_000
FEW = PrefixParameters(numbers=400, texts=40, words=2_000)
WORDS = ("station", "statue", "sum", "at", "statute")


def predicates(workload: PrefixWorkload, count: int = COUNT) -> list[list[Predicate]]:
    (batch,) = workload.subscriptions(0, count, batch=count)
    found = [workload.pool.predicates[place] for place in batch.places]
    return [found[begin:end] for begin, end in pairwise(batch.offsets.tolist())]


def test_predicates_are_prefixes_by_their_share_and_on_different_attributes() -> None:
    subscriptions = predicates(PrefixWorkload(FEW))
    every = [one for row in subscriptions for one in row]
    assert np.mean([one.operator is Operator.STARTS_WITH for one in every]) == pytest.approx(0.4, abs=0.02)
    texts = [one for one in every if one.operator is Operator.EQ and isinstance(one.operands[0].value, str)]  # type: ignore[union-attr]
    assert len(texts) / len(every) == pytest.approx(0.6 * 40 / 440, abs=0.01)
    for row in subscriptions:
        assert len({one.subject for one in row}) == len(row)
    assert {len(row) for row in subscriptions} == set(range(1, 9))


def test_a_prefix_begins_a_word_and_has_its_length_unless_the_word_is_shorter() -> None:
    workload = PrefixWorkload(replace(FEW, prefix_share=1.0, prefix_length=5), words=WORDS)
    asked = {one.operands[0].value for row in predicates(workload) for one in row}  # type: ignore[union-attr]
    assert asked == {"stati", "statu", "sum", "at"}
    assert all(
        isinstance(one.subject, Attribute) and one.subject.path.startswith("s")
        for row in predicates(workload, 100)
        for one in row
    )


@pytest.mark.parametrize(("share", "expected"), [(None, 40 / 440), (0.9, 0.9)])
def test_events_hold_words_as_often_as_is_said(share: float | None, expected: float) -> None:
    workload = PrefixWorkload(replace(FEW, word_share=share))
    values = [value for batch in workload.events(0, 2_000) for row in batch.rows for value in row.values()]
    assert np.mean([isinstance(value, str) for value in values]) == pytest.approx(expected, abs=0.01)
    assert {value for value in values if isinstance(value, str)} <= set(workload.words)


def test_batches_of_any_size_have_the_same_queries() -> None:
    whole = predicates(PrefixWorkload(FEW, seed=5), 40_000)
    workload = PrefixWorkload(FEW, seed=5)
    parts = [
        [workload.pool.predicates[place] for place in batch.places[begin:end]]
        for batch in workload.subscriptions(0, 40_000, batch=7_000)
        for begin, end in pairwise(batch.offsets.tolist())
    ]
    assert parts == whole


def test_matchers_agree_on_the_workload() -> None:
    workload = PrefixWorkload(
        replace(FEW, texts=10, numbers=12, most_predicates=3, most_pairs=10, word_share=0.8)
    )
    (batch,) = workload.subscriptions(0, 300)
    (events,) = workload.events(0, 40)
    found = []
    for name in ("oracle", "counting"):
        matcher = create_matcher(name)
        matcher.add(batch.to_batch())
        found.append(matcher.match(EventBatch.of_dicts(events.to_dicts())).to_lists())
    assert found[0] == found[1]
    assert sum(map(len, found[0])) > 0


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"prefix_length": 0}, "a prefix a letter"),
        ({"texts": 30}, "more attributes of a kind"),
        ({"word_share": 2.0}, "a share is from 0 to 1"),
    ],
)
def test_parameters_that_cannot_be_met_are_refused(changes: dict[str, float], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        replace(FEW, **changes)
