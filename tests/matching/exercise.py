"""Every kind of call that reaches a kernel, in a process of its own: prints how often each kernel is compiled."""

from __future__ import annotations

import json
import sys

import numpy as np

from tocsin.language import Template, parse_condition, to_cnf, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Matcher, Statistics, create_matcher
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher
from tocsin.model import read_event
from tocsin.structures.jit import compiled_kernels

CONDITIONS = [
    "a = 1 and b > 2 and c <= 3",
    "a in (1, 2.5, 'x', true) or a not in (3, 4)",
    "a != 3 and b between 1 and 5 and c not between 2 and 4",
    "a like 'x_y%' or a ~ 'x+' or b > 2 * c",
    "a starts with 'x' and b not ends with 'Z' or a contains 'z' and c is missing",
    "a < 'm' and b >= timestamp '2026-01-01T00:00:00Z'",
    f"a = {2**60 + 1} or a is present and b is missing",
    "true",
]
EVENTS: list[dict[str, object]] = [
    {},
    {"a": 1, "b": 3, "c": 2.5},
    {"a": "xzy", "b": "2026-01-01T00:00:00Z", "unheard": 1},
    {"a": 2**60 + 1, "b": True},
]


def exercise(matcher: Matcher) -> None:
    matcher.match(EventBatch.of([]))
    matcher.add(ConjunctionBatch.of([]))
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(CONDITIONS)))
    matcher.add(ConjunctionBatch.of((20 + i, to_cnf(parse_condition(t))) for i, t in enumerate(CONDITIONS)))
    template = Template("symbol = :s and price > :p and size in :sizes")
    rows = template.bind_many({"s": ["x", "y"], "p": [1, 2.5], "sizes": [[1, 2], ["L"]]})
    matcher.add(ConjunctionBatch.of_rows(np.array([50, 51], dtype=np.int64), rows))
    matcher.add(ConjunctionBatch.of_rows(np.arange(60, 64)[::2], rows))
    matcher.add(ConjunctionBatch.of_rows(_read_only(70, 71), rows))
    matcher.match(EventBatch.of(map(read_event, EVENTS)))
    matcher.match(EventBatch.of_dicts([*EVENTS, {"a": float("nan")}]))
    for event in EVENTS:
        matcher.match_one(event)  # type: ignore[arg-type]
    matcher.match_one({f"w{i}": i for i in range(99)})
    matcher.explain(read_event(EVENTS[1]), 0)
    matcher.stats()
    if isinstance(matcher, ClusteredMatcher):
        matcher.use_statistics(Statistics.of(EVENTS, groups=[("a", "b")]))
    matcher.remove(np.array([0, 1, 99], dtype=np.int32))
    matcher.remove(_read_only(2, 3))
    matcher.remove(np.arange(100)[::2])
    matcher.match(EventBatch.of_dicts(EVENTS))
    matcher.remove(np.array([], dtype=np.int64))


def _read_only(*ids: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Return ids in memory that another library owns."""
    array = np.array(ids, dtype=np.int64)
    array.flags.writeable = False
    return array


if __name__ == "__main__":
    exercise(create_matcher(sys.argv[1]))
    sys.stdout.write(json.dumps(compiled_kernels()))
