"""Subscriptions hashed by outdated statistics are hashed again."""

from __future__ import annotations

import numpy as np

from tests.matching.amkh.invariants import check_invariants
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle
from tocsin.matching.amkh.choice import Cost
from tocsin.matching.amkh.matcher import Amkh
from tocsin.matching.amkh.staleness import Staleness
from tocsin.matching.amkh.state import Total, new_state

FIRST = {f"a{k}": 9 for k in range(20)}
SECOND = {f"b{k}": 9 for k in range(20)}


def add(matcher: Amkh | Oracle, *texts: str, first: int = 0) -> None:
    matcher.add(ConjunctionBatch.of((first + i, to_dnf(parse_condition(t))) for i, t in enumerate(texts)))


def send(matcher: Amkh, event: dict[str, int], count: int) -> None:
    for _ in range(count // 100):
        matcher.match(EventBatch.of_dicts([event] * 100))


def examined(matcher: Amkh, event: dict[str, int]) -> int:
    matcher.forget_examined()
    matcher.match(EventBatch.of_dicts([event]))
    return matcher.examined().examined


def test_subscriptions_are_hashed_again_when_other_attributes_are_rare() -> None:
    matcher, oracle = Amkh(), Oracle()
    texts = [f"a{i % 20} > {i % 7} and b{i // 20 % 20} > {i % 5}" for i in range(2000)]
    for each in (matcher, oracle):
        add(each, *texts)
    send(matcher, FIRST, 1900)
    matcher.review()
    scheme = matcher.scheme
    assert examined(matcher, FIRST) == 0
    send(matcher, SECOND, 600)  # as cheap as it gets: `b` is still the rarer
    assert examined(matcher, SECOND) > 1000
    send(matcher, SECOND, 6000)
    matcher.review()
    check_invariants(matcher)
    assert matcher.scheme == scheme
    assert examined(matcher, SECOND) == 0
    both = EventBatch.of_dicts([FIRST | SECOND, FIRST | {"b3": 2}])
    assert matcher.match(both).to_lists() == oracle.match(both).to_lists()


def test_an_attribute_that_is_new_is_not_taken_to_be_rare() -> None:
    # A schema is looked at when an event has its rarest attribute.
    def looked_at(event: dict[str, int]) -> int:
        matcher.forget_examined()
        matcher.match(EventBatch.of_dicts([event]))
        return matcher.examined().schemas

    matcher = Amkh()
    add(matcher, *(f"rare > {i % 9}" for i in range(100)), "a = 1")
    send(matcher, {"a": 1}, 1200)
    send(matcher, {"rare": 1}, 100)
    add(matcher, *(f"new > 3 and rare > {i % 9}" for i in range(100)), first=1000)
    assert looked_at({"new": 9}) == 0
    send(matcher, {"a": 1}, 1200)
    add(matcher, "new > 3 and a > 1", first=2000)  # by now, it is known that nobody has it
    assert looked_at({"a": 1}) == 1
    assert looked_at({"new": 9}) == 1
    matcher.remove(np.arange(1000, 2001))
    add(matcher, *(f"new > 3 and rare > {i % 9}" for i in range(100)), first=3000)
    assert looked_at({"new": 9}) == 0  # nobody asked for it, so that it was new again


def test_an_index_is_compared_with_its_cost_when_it_was_new() -> None:
    totals, staleness, expected = new_state().totals, Staleness(), Cost(0, 0, 1000)

    def cost(each: float, events: int = 1000) -> bool:
        totals[Total.SEEN] += events
        totals[Total.EXAMINED] += events * each
        return staleness.judge(totals, 1000, expected)

    assert not cost(1500)
    assert not cost(9000, events=100)  # too few to tell
    staleness.begin(totals, 1000)
    assert cost(4000)
    staleness.excess = None  # all are hashed anew
    assert not cost(4000)
    assert not cost(4500)
    staleness.forget(totals)
    assert cost(9000)
    staleness.begin(totals, 4000)  # most of which have gone when it is judged
    staleness.excess = 1.0
    assert not cost(4000)
