"""The buckets that an event probes, and their contents."""

from __future__ import annotations

from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch
from tocsin.matching.amkh.matcher import Amkh
from tocsin.model.event import read_event


def add(matcher: Amkh, *texts: str) -> None:
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(t))) for i, t in enumerate(texts)))


def test_lookup_returns_the_probed_buckets() -> None:
    matcher = Amkh(general=0)
    words = [one + other for one in "abcdefgh" for other in "abcdefgh"]
    texts = [f"s contains '{words[i]}' and t contains '{words[-i]}'" for i in range(60)]
    add(matcher, *texts)
    event = read_event({"s": "".join(words), "t": "".join(words)})
    found = matcher.lookup(event)
    assert found.is_complete
    assert set(found.buckets) == set(matcher.contents())
    assert found.examined == tuple(range(60))


def test_lookup_of_very_many_buckets_returns_the_non_empty_ones() -> None:
    matcher = Amkh(general=0)
    add(matcher, *(f"a{i} = 1" for i in range(1500)), "b = 2")
    found = matcher.lookup(read_event({f"a{i}": 1 for i in range(1500)}))
    assert not found.is_complete
    assert set(found.buckets) == {b for b, ids in matcher.contents().items() if ids != [1500]}
    assert found.examined == tuple(range(1500))
