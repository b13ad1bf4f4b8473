from __future__ import annotations

import tracemalloc
from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tocsin.model.errors import SubscriptionError
from tocsin.model.options import FOREVER, Validity
from tocsin.subscriptions import registry as registry_module
from tocsin.subscriptions.registry import SubscriptionRegistry
from tocsin.subscriptions.template_ids import PatternIds


def entered(*ids: str, validity: Validity = Validity()) -> SubscriptionRegistry:  # noqa: B008 - it is frozen
    registry = SubscriptionRegistry()
    registry.enter(registry.reserve(len(ids)), ids, validity)
    return registry


def test_a_removed_subscriptions_number_is_given_again() -> None:
    registry = entered("a", "b", "c")
    assert registry.remove("b") == 1
    assert registry.reserve(2) == [1, 3]
    assert (list(registry), "b" in registry, registry.capacity) == (["a", "c"], False, 4)


def test_released_numbers_leave_no_trace() -> None:
    registry = entered("a")
    numbers = registry.reserve(3)
    registry.release(numbers)
    assert (len(registry), registry.reserve(3)) == (1, numbers)
    with pytest.raises(SubscriptionError, match="no subscription has the number 1"):
        registry.id(1)


def test_an_expired_subscription_is_returned_once() -> None:
    registry = entered("a", "b", validity=Validity(0, 10))
    registry.enter(registry.reserve(1), ["c"], Validity())
    assert registry.expired(9) == []
    assert registry.expired(10) == ["a", "b"]
    assert registry.expired(11) == []


def test_an_entry_of_a_number_that_was_given_again_does_not_expire_its_new_subscription() -> None:
    registry = entered("a", validity=Validity(0, 10))
    registry.remove("a")
    registry.enter(registry.reserve(1), ["b"], Validity(0, 20))
    assert (registry.expired(15), registry.expired(20)) == ([], ["b"])


def test_the_last_tick_is_within_an_unlimited_validity() -> None:
    registry = entered("a")
    registry.enter(registry.reserve(1), ["b"], Validity(5, FOREVER - 1))
    assert registry.is_valid(np.array([0, 1]), FOREVER).tolist() == [True, False]
    assert registry.is_valid(np.array([0, 1, 1]), np.array([4, 4, 5])).tolist() == [True, False, True]


def test_a_restored_registry_goes_on_where_the_other_ended() -> None:
    registry = entered("a", "b", "c", validity=Validity(0, 10))
    registry.remove("b")
    ids, size = registry.ids().tolist(), registry.capacity
    restored = SubscriptionRegistry.restore(ids, registry.valid_from[:size], registry.valid_until[:size])
    assert (dict(restored.items()), restored.has_validity) == ({"a": 0, "c": 2}, True)
    assert restored.reserve(2) == [1, 3]
    assert restored.expired(10) == ["a", "c"]
    assert restored.ids_of(np.array([2, 0])) == ["c", "a"]


IDS = st.sampled_from([f"a-{i}" for i in range(40)] + ["größe", "x"])


class RegistryMachine(RuleBasedStateMachine):
    """A registry does what dicts of ids, numbers and ends would do."""

    def __init__(self) -> None:
        super().__init__()
        self.registry = SubscriptionRegistry()
        self.expected: dict[str, tuple[int, int]] = {}  # id -> number and end, in the order they came

    def enter(self, ids: Sequence[str], until: int) -> None:
        numbers = self.registry.reserve(len(ids))
        self.registry.enter(numbers, ids, Validity(0, until))
        self.expected.update({id_: (n, until) for id_, n in zip(ids, numbers, strict=True)})

    @rule(ids=st.lists(IDS, unique=True), until=st.sampled_from([5, 9, FOREVER]))
    def enter_strings(self, ids: list[str], until: int) -> None:
        self.enter([id_ for id_ in ids if id_ not in self.expected], until)

    @rule(first=st.integers(0, 10**6), count=st.integers(0, 700), until=st.sampled_from([7, FOREVER]))
    def enter_a_pattern(self, first: int, count: int, until: int) -> None:
        rows = [row for row in range(first, first + count) if f"row-{row}" not in self.expected]
        self.enter(PatternIds(["row-", np.array(rows, dtype=np.int64)]), until)

    @rule(id_=IDS)
    def remove_a_string(self, id_: str) -> None:
        if id_ in self.expected:
            assert self.registry.remove(id_) == self.expected.pop(id_)[0]
        else:
            with pytest.raises(SubscriptionError, match="not subscribed"):
                self.registry.remove(id_)

    @rule(random=st.randoms(), share=st.sampled_from([0.1, 0.9, 1.0]), at_once=st.booleans())
    def remove_many(self, random: Random, share: float, at_once: bool) -> None:
        gone = [id_ for id_ in self.expected if random.random() < share]
        numbers = [self.expected.pop(id_)[0] for id_ in gone]
        if at_once:
            assert self.registry.remove_all(gone).tolist() == numbers
        else:
            assert list(map(self.registry.remove, gone)) == numbers

    @rule(now=st.integers(4, 10))
    def expire(self, now: int) -> None:
        found = self.registry.expired(now)
        ended = {id_: until for id_, (_, until) in self.expected.items() if until <= now}
        # The registry returns them once; here they are removed at once, as its users do.
        assert sorted(found) == sorted(ended)
        assert [ended[id_] for id_ in found] == sorted(ended.values())
        for id_ in found:
            assert self.registry.remove(id_) == self.expected.pop(id_)[0]

    @invariant()
    def says_the_same(self) -> None:
        registry, numbers = self.registry, {id_: n for id_, (n, _) in self.expected.items()}
        assert list(registry.items()) == list(numbers.items())
        assert len(registry) == len(numbers)
        asked = ["a-1", "x", "nobody", *numbers]
        assert registry.present(asked) == [id_ for id_ in asked if id_ in numbers]
        assert registry.present(asked[:5]) == [id_ for id_ in asked[:5] if id_ in numbers]
        by_number = np.full(registry.capacity, None, dtype=object)
        for id_, (number, until) in self.expected.items():
            by_number[number] = id_
            assert registry.validity(number) == Validity(0, until)
        assert registry.ids().tolist() == by_number.tolist()
        for id_, number in list(numbers.items())[:3]:
            assert (registry.number(id_), registry.id(number)) == (number, id_)


TestRegistry = RegistryMachine.TestCase
TestRegistry.settings = settings(max_examples=settings().max_examples // 8)


def test_of_many_ids_none_is_removed_if_one_is_not_subscribed() -> None:
    registry = entered(*(f"a{i}" for i in range(100)))
    with pytest.raises(SubscriptionError, match="subscription `a100`: it is not subscribed"):
        registry.remove_all([f"a{i}" for i in range(1, 101)])
    assert len(registry) == 100


def test_ids_with_the_same_hash_are_told_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry_module, "hash", lambda _: 7, raising=False)
    registry = entered("a", "b")
    registry.enter(registry.reserve(70), [f"c{i}" for i in range(70)], Validity())
    assert registry.number("b") == 1
    assert registry.remove("a") == 0
    assert registry.present([f"c{i}" for i in range(60, 140)]) == [f"c{i}" for i in range(60, 70)]
    assert "a" not in registry


def test_ids_by_a_pattern_take_a_few_dozen_bytes_each() -> None:
    tracemalloc.start()
    registry, rows = SubscriptionRegistry(), np.arange(100_000)
    registry.enter(registry.reserve(len(rows)), PatternIds(["alert-", rows]), Validity())
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used / len(rows) < 60
    assert registry.number("alert-99999") == 99_999
