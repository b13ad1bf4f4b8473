"""Times may be as far apart as 64 bits let them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from tests.sequences.outcomes import table_rows
from tests.sequences.running.test_graph import compiled
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event
from tocsin.sequences.running import garbage_collection
from tocsin.sequences.running.matcher import AutomatonMatcher

_FIRST, _LAST = -(2**63) + 1, 2**63 - 1
_TEXTS = [
    "from s a next s b",
    "from s a next s b where duration > 5",
    "from s a next s b on duration < 5",
    "from s a next s b within 5",
]


def _runner(*texts: str) -> AutomatonMatcher:
    runner = AutomatonMatcher(matcher="oracle")
    for number, text in enumerate(texts):
        runner.add(np.array([number]), compiled(text), {})
    return runner


def test_durations_beyond_64_bits_are_too_long() -> None:
    runner = _runner(*_TEXTS)
    found = runner.process(
        TimedBatch([Event("e1", {}, "s", _FIRST, _FIRST), Event("e2", {}, "s", _LAST, _LAST)])
    )
    assert found.subscriptions.tolist() == [0, 1]


def test_one_event_may_last_as_long() -> None:
    runner = _runner("from s a where duration > 5 compute n = 1", "from s a where duration < 5 compute n = 1")
    found = runner.process(TimedBatch([Event("e1", {}, "s", _FIRST, _LAST)]))
    assert found.subscriptions.tolist() == [0]


def test_instances_of_such_durations_are_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(garbage_collection, "_FEWEST", 0)
    runner = AutomatonMatcher(matcher="oracle")
    runner.add(np.array([0]), compiled("from s a next t b within 5"), {})
    runner.process(TimedBatch([Event("e1", {}, "s", _FIRST, _FIRST), Event("e2", {}, "s", _LAST, _LAST)]))
    runner.process(TimedBatch([]))
    assert runner.stats().instances == 1  # the second


def test_rows_of_a_table_may_be_as_far_apart() -> None:
    runner = _runner(*_TEXTS)
    table = pa.table({"t": [_LAST, _FIRST], "n": [2, 1]})
    found = runner.process(table_rows(table.sort_by("t")))
    assert found.subscriptions.tolist() == [0, 1]
    assert found.starts.tolist() == [_FIRST, _FIRST]
