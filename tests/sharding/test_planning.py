"""Where subscriptions are placed: the same in every process, whatever was read before."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.index import StatefulSubscriptions
from tocsin.index.stateful import StatefulRun
from tocsin.language import sequence_shapes
from tocsin.model.options import SubscriptionOptions
from tocsin.sharding import ShardPlan
from tocsin.structures.packed_strings import PackedStrings
from tocsin.subscriptions.runs import Run

SHAPES = [
    "from s a where a.k = '{0}' next s b on b.k = '{1}' where b.x > {2}",
    "from s a where a.kind = 'x{0}' next s b on b.kind = 'x{0}' and b.k = a.k where b.x > {2}",
    "from s a where a.k = {2} next s b on b.k = {2} and b.j in ('{0}', '{1}')",
    "from s a next s b on b.x > {2}",
    "from s a where a.k = timestamp '2026-01-0{2}' next s b on b.k = timestamp '2026-01-0{2}'",
    "from s a where a.k = 'c' next s b on b.k = '{0}' where b.j = 'c'",
]
TEXTS = [
    shape.format(one, other, number)
    for number, (one, other) in enumerate(
        [("a", "b"), ("b", "b"), ("c", "c"), ("c", "d"), ("d", "d"), ("e", "a")], 1
    )
    for shape in SHAPES
]


def plan_of(texts: list[str], shards: int = 4) -> ShardPlan:
    count = len(texts)
    ids = PackedStrings(list(texts))
    run = Run(ids, [SubscriptionOptions()] * count, None, texts)
    numbers = np.arange(count)
    return ShardPlan.of(StatefulSubscriptions("", (StatefulRun(run, numbers, numbers),), (), {}, {}), shards)


def places(plan: ShardPlan) -> list[tuple[str, int]]:
    (placement,) = plan.placements
    names = [*(group.name for group in plan.groups), ""]
    return [
        (names[group], shard)
        for group, shard in zip(placement.groups.tolist(), placement.shards.tolist(), strict=True)
    ]


def test_texts_of_a_known_shape_are_placed_as_if_each_were_read_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("_places", "_shapes"):
        monkeypatch.setattr(sequence_shapes, name, {})
    alone = [places(plan_of([text])) for text in TEXTS]
    together = places(plan_of(TEXTS))
    again = places(plan_of(TEXTS))
    assert again == together == [one for (one,) in alone]
    assert {"s: k", "s: j", ""} & {name for name, _ in together} == {"s: k", ""}
    assert places(plan_of(TEXTS[::-1])) == together[::-1]


def test_a_place_among_more_shards_is_one_that_copies_it() -> None:
    few, many = places(plan_of(TEXTS, 3)), places(plan_of(TEXTS, 12))
    assert [(name, shard % 3 if shard >= 0 else shard) for name, shard in many] == few


def test_of_too_many_keys_the_most_frequent_are_used() -> None:
    texts = [f"from s a next s b on b.k{i} = a.k{i}" for i in range(45)] + [
        "from s a next s b on b.k44 = a.k44 and b.x > 0"
    ]
    plan = plan_of(texts)
    assert len(plan.groups) == 40
    assert plan.groups[0].name == "s: k44"
    assert "there are 45 keys, and only the 40 most frequent are used" in plan.describe()
