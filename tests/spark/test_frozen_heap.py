"""What a worker keeps is out of the garbage collector's sight; what it lets go is collected."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from collections.abc import Iterator

import pytest
from pyspark import TaskContext

from tocsin.spark.frozen_heap import freeze_heap


class Kept:
    """Something that refers to itself, so that only the collector frees it."""

    def __init__(self) -> None:
        self.own = self


@pytest.fixture
def _in_a_task(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(TaskContext, "_taskContext", object.__new__(TaskContext))
    gc.unfreeze()
    yield
    gc.unfreeze()


def is_seen(one: object) -> bool:
    """Tell whether collections look at an object."""
    return any(other is one for other in gc.get_objects())


@pytest.mark.usefixtures("_in_a_task")
def test_what_came_to_stay_is_frozen_once() -> None:
    first = Kept()
    freeze_heap("first")
    assert not is_seen(first)
    later = Kept()
    freeze_heap("first")
    assert is_seen(later)
    freeze_heap("first", "later")
    assert not is_seen(later)


@pytest.mark.usefixtures("_in_a_task")
def test_what_was_frozen_and_let_go_is_collected_when_something_else_stays() -> None:
    one = Kept()
    gone = weakref.ref(one)
    freeze_heap("one")
    del one
    gc.collect()
    assert gone() is not None
    freeze_heap("another")
    assert gone() is None


def test_nothing_is_frozen_in_other_processes() -> None:
    before = gc.get_freeze_count()
    freeze_heap("elsewhere")
    assert gc.get_freeze_count() == before


def test_a_daemon_freezes_what_it_loads() -> None:
    code = "import gc; from tocsin.spark.daemon import load; load(); print(gc.get_freeze_count())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 50_000
