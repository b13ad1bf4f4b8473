"""Steps of a long life, played on a matcher and on the oracle beside it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tocsin.language import Cnf, Dnf, parse_condition
from tocsin.matching import ConjunctionBatch, EventBatch, Matcher, Oracle
from tocsin.model import Condition, read_event

Step = tuple[str, object]
"""An action: `add` with texts, `remove` with a number, `match` with events, or something of the matcher's own."""


TESTS = [
    "in (1, 2, 7)",
    "not in (1, 'x')",
    "not in (0, 3)",
    "in (2, 'x')",
    "not between 1 and 2",
    "is missing",
    "is present",
    "= 'x'",
    "!= 'x'",
    "< 'y'",
    "contains 'x'",
    "not contains 'y'",
    "ends with 'y'",
    f"= {2**60 + 1}",
    f"> {2**60}",
    "= true",
    "> 2 * h",
]
"""Tests of an attribute, one of each kind that matchers treat in a way of its own."""


def play(
    matcher: Matcher,
    steps: list[Step],
    seed: int,
    *,
    normal: Callable[[Condition, np.random.Generator], Dnf | Cnf],
    own: Callable[[str, object], None],
    check: Callable[[], None],
) -> None:
    """Play all steps, compare matches with the oracle's and check after each; then remove the rest."""
    oracle = Oracle()
    random = np.random.default_rng(seed)
    held: list[int] = []
    fresh = 0
    for step, argument in steps:
        if step == "add":
            assert isinstance(argument, list)
            ids = range(fresh, fresh + len(argument))
            fresh += len(argument)
            conditions = [parse_condition(text) for text in argument]
            batch = ConjunctionBatch.of((i, normal(c, random)) for i, c in zip(ids, conditions, strict=True))
            matcher.add(batch)
            oracle.add(batch)
            held += ids
        elif step == "remove" and held:
            assert isinstance(argument, int)
            gone = random.choice(held, size=min(argument, len(held)), replace=False)
            matcher.remove(gone)
            oracle.remove(gone)
            held = sorted(set(held) - set(gone.tolist()))
        elif step == "match":
            assert isinstance(argument, list)
            events = EventBatch.of(read_event(event) for event in argument)
            assert matcher.match(events).to_lists() == oracle.match(events).to_lists()
        else:
            own(step, argument)
        check()
    matcher.remove(np.array(held, dtype=np.int64))
    check()


def predicates(names: str, constants: SearchStrategy[object], tests: list[str]) -> SearchStrategy[str]:
    """Return texts of predicates on attributes of one letter: comparisons with constants, and other tests."""
    attributes = st.sampled_from(names)
    operators = st.sampled_from(["=", "=", "<", "<=", ">", ">=", "!="])
    return st.one_of(
        st.builds("{} {} {}".format, attributes, operators, constants),
        st.builds("{} {}".format, attributes, st.sampled_from(tests)),
    )


def conditions(predicate: SearchStrategy[str]) -> SearchStrategy[str]:
    """Return texts of conjunctions, and of conjunctions of clauses."""
    clauses = st.lists(predicate, min_size=1, max_size=3).map(lambda clause: f"({' or '.join(clause)})")
    return st.one_of(
        st.lists(predicate, min_size=1, max_size=5).map(" and ".join),
        st.lists(clauses, min_size=1, max_size=4).map(" and ".join),
    )


def steps(
    condition: SearchStrategy[str], event: SearchStrategy[dict[str, object]], *own: SearchStrategy[Step]
) -> SearchStrategy[Step]:
    """Return steps for `play`, with the matcher's own."""
    return st.one_of(
        st.tuples(st.just("add"), st.lists(condition, min_size=1, max_size=40)),
        st.tuples(st.just("remove"), st.integers(1, 50)),
        st.tuples(st.just("match"), st.lists(event, min_size=1, max_size=12)),
        *own,
    )
