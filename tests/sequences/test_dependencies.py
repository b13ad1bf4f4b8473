"""Streams that are made of streams."""

from __future__ import annotations

import pytest

from tocsin.model.errors import SubscriptionError
from tocsin.sequences.dependencies import Dependencies


def test_a_stream_ranks_above_all_that_it_is_made_of() -> None:
    dependencies = Dependencies()
    dependencies.add({"c"}, "d")
    dependencies.add({"a", "b"}, "c")
    dependencies.add({"a"}, "b")
    dependencies.add({"a", "d"}, None)
    assert dependencies.ranks() == {"a": 0, "b": 1, "c": 2, "d": 3}


def test_a_cycle_is_refused_and_leaves_nothing_behind() -> None:
    dependencies = Dependencies()
    dependencies.add({"a"}, "b")
    dependencies.add({"b"}, "c")
    before = dependencies.ranks()
    with pytest.raises(SubscriptionError, match="a -> b -> c -> a; publish under another name"):
        dependencies.add({"c", "x"}, "a")
    assert dependencies.ranks() == before


def test_a_sequence_cannot_read_its_own_output() -> None:
    with pytest.raises(SubscriptionError, match="a -> a"):
        Dependencies().add({"a"}, "a")


def test_a_removed_sequence_closes_no_cycle() -> None:
    dependencies = Dependencies()
    dependencies.add({"a"}, "b", 3)
    dependencies.remove({"a"}, "b", 2)
    with pytest.raises(SubscriptionError):
        dependencies.add({"b"}, "a")
    dependencies.remove({"a"}, "b")
    dependencies.add({"b"}, "a")
    assert dependencies.ranks() == {"b": 0, "a": 1}


def test_who_publishes_nothing_closes_no_cycle() -> None:
    dependencies = Dependencies()
    dependencies.add({"a"}, "b")
    dependencies.add({"b"}, None)
    assert dependencies.ranks() == {"a": 0, "b": 1}
