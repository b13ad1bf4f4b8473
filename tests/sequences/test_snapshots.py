"""Snapshots of the runtime and the reorder buffer: another session goes on as if nothing had happened."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sequences.sessions import History, Session, bags, histories


@settings(max_examples=60)
@given(histories(), st.integers(0, 2**32))
def test_a_session_that_is_restored_at_every_step_goes_on_as_before(history: History, seed: int) -> None:
    random = Random(seed)  # noqa: S311 - nothing secret
    lasting, current = (Session(history.ticks, history.delay) for _ in range(2))
    for step in history.steps:
        lasting.unsubscribe(step.gone)
        for one in step.coming:
            lasting.subscribe(one, one.add.numbers)
        current._gone |= set(step.gone)
        saved = current.saved()
        current = current.successor(random, step.coming)
        current.restore(saved)
        assert current.counts() == lasting.counts()
        middle = len(step.events) // 2
        for events in (step.events[:middle], step.events[middle:]):
            current.restore(current.saved())
            expected, found = lasting.push(events), current.push(events)
            assert bags(found) == bags(expected)
        assert current.counts() == lasting.counts()
