from __future__ import annotations

import numpy as np
import pytest

from tocsin.model.errors import SubscriptionError
from tocsin.model.options import FOREVER, Validity
from tocsin.subscriptions.registry import SubscriptionRegistry


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
    assert (restored.numbers, restored.has_validity) == ({"a": 0, "c": 2}, True)
    assert restored.reserve(2) == [1, 3]
    assert restored.expired(10) == ["a", "c"]
    assert restored.ids_of(np.array([2, 0])) == ["c", "a"]
