from __future__ import annotations

from collections import Counter
from itertools import pairwise
from random import Random

import numpy as np
import pytest

from tocsin.structures import order_labels
from tocsin.structures.order_labels import OrderLabels


class Kept:
    """Labels, and beside them what a caller stores: the label of each value that it has retained."""

    def __init__(self) -> None:
        self.labels = OrderLabels[str]()
        self.uses: Counter[str] = Counter()
        self.stored: dict[str, float] = {}
        self.relabelled = 0

    def retain(self, values: list[str]) -> None:
        changed = self.labels.retain(values)
        if changed is not None:
            self.relabelled += 1
            moved = changed.apply(np.array([*self.stored.values(), np.nan])).tolist()
            assert np.isnan(moved.pop())
            self.stored = dict(zip(self.stored, moved, strict=True))
        self.uses.update(values)
        self.stored |= {value: self.labels.label(value) for value in values}

    def release(self, values: list[str]) -> None:
        self.labels.release(values)
        self.uses.subtract(values)
        for value in values:
            if not self.uses[value]:
                self.stored.pop(value, None)

    def check(self) -> None:
        assert len(self.labels) == len(self.stored)
        assert [self.labels.value(self.stored[value]) for value in self.stored] == list(self.stored)
        assert all(self.labels.label(value) == label for value, label in self.stored.items())
        ordered = [self.stored[value] for value in sorted(self.stored)]
        assert all(one < two for one, two in pairwise(ordered))


@pytest.mark.parametrize("seed", range(3))
def test_labels_are_in_the_order_of_the_values(seed: int) -> None:
    random, kept = Random(seed), Kept()  # noqa: S311 - a workload
    for _ in range(300):
        some = [
            "".join(random.choices("abz", k=random.randrange(1, 9))) for _ in range(random.randrange(1, 6))
        ]
        kept.retain(some)
        if random.random() < 0.6:
            each = [value for value, uses in kept.uses.items() for _ in range(uses)]
            kept.release(random.sample(each, min(len(each), random.randrange(6))))
        kept.check()


@pytest.mark.parametrize("begin", [["a", "z"], ["m"], []])
@pytest.mark.parametrize("order", [1, -1])
def test_values_that_come_in_order_seldom_relabel_the_others(begin: list[str], order: int) -> None:
    kept = Kept()
    kept.retain(begin)
    for number in range(5000)[::order]:
        kept.retain([f"n{number:05}"])
    kept.check()
    assert kept.relabelled <= 3


def test_values_without_room_between_them_are_relabelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order_labels, "_WIDEST", 64)
    monkeypatch.setattr(order_labels, "_STEP", 4)
    kept, random = Kept(), Random(5)  # noqa: S311 - a workload
    names = [f"n{number:02}" for number in range(30)]
    random.shuffle(names)
    for name in names:
        kept.retain([name, name])
        kept.check()
    assert 2 <= kept.relabelled <= 30
    kept.release(names)
    kept.check()
    kept.release(names)
    assert len(kept.labels) == 0
