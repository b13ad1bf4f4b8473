"""Sharing between automata: removal frees all that is not shared."""

from __future__ import annotations

from itertools import count as counting
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tocsin.language import Template, parse
from tocsin.matching import ConjunctionBatch
from tocsin.matching.timed_batch import TimedBatch
from tocsin.model import Event, Sequence
from tocsin.model.errors import MatcherError
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_sequence
from tocsin.sequences.modes import MODES
from tocsin.sequences.running.matcher import AutomatonMatcher
from tocsin.structures import hash_index

_TEXTS = [
    "from s a where a.k = 1 next s b on b.k = 2 where b.x > a.x",
    "from s a where a.k = 1 next s b on b.k = 2 where b.x > 3",
    "from s a where a.k = 1 next s b on b.k = 2 where b.x > a.x next s c on c.k = a.k",
    "from s a fold s b on b.k = a.k while b.x >= last.x compute n = count(*) where n > 3 within 20",
    "from t a next s b on b.w contains a.w",
    'from (from s a where a.k = 3 next s b) a next t b on b.k = a."a.k"',
    "from s a where a.k = 1 publish as made",
    'from made a next s b on b.x = a."a.x" select a."a.x" + 7 as more',
    "from s a where a.w like 'x%y' next s b on a.w ~ '^x' or b.x = a.x",
]


def compiled(text: str) -> CompiledSequence:
    query = parse(text)
    assert isinstance(query, Sequence)
    return compile_sequence(query)


def events(random: Random, begin: int, count: int) -> TimedBatch:
    return TimedBatch(
        [
            Event(
                f"e{end}",
                {
                    "k": random.randint(1, 4),
                    "x": random.randint(1, 9),
                    "w": random.choice(["xay", "xy", "z"]),
                },
                random.choice("sst"),
                end,
                end,
            )
            for end in range(begin, begin + count)
        ]
    )


def holds_nothing(runner: AutomatonMatcher) -> bool:
    """Return whether no state of any subscription is left."""
    graph, state = runner._graph, runner._graph.state
    return (
        hash_index.live_entries(state.graph.entries) == 0
        and hash_index.live_entries(state.graph.filters) == 0
        and hash_index.live_entries(state.instances.keys) == 0
        and len(graph.forms) == len(graph.streams) == len(graph.columns.table) == 0
        and graph.edges.count == graph.filters.count == 0
        and not runner._codec._string_pins
        and not runner._holders.inner
        and runner.stats().instances == 0
    )


def test_equal_beginnings_are_shared() -> None:
    begin = "from s a where a.k = 1 next s b on b.k = 2 where b.x > 3 and b.x > a.x"
    texts = [begin, begin, f"{begin} next s c on c.k = 1", f"{begin} next s c on c.k = 2 next s d"]
    runner = AutomatonMatcher(matcher="oracle")
    apart = AutomatonMatcher(matcher="oracle", mode=MODES["no merging"])
    for number, text in enumerate(texts):
        runner.add(np.array([number]), compiled(text), {})
        apart.add(np.array([number]), compiled(text), {})
    # One node after the first event, two after the second, for they wait for different ones, and one after the third.
    assert (runner.stats().nodes, runner.stats().ends) == (4, 3)
    assert (apart.stats().nodes, apart.stats().ends) == (7, 4)


def test_equal_subscriptions_share_their_end() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    runner.add(np.array([5]), compiled("from s a where a.k = 1 next s b on b.x = a.x"), {})
    runner.add(np.array([9]), compiled("from s one where one.k = 1.0 next s two on two.x = one.x"), {})
    assert runner.stats().nodes == 1
    template = Template("from s a where a.k = :k next s b on b.x = a.x").query
    assert isinstance(template, Sequence)
    runner.add(np.array([1, 2]), compile_sequence(template), {"k": np.array([1, 2])})
    assert runner.stats().nodes == 2
    found = runner.process(
        TimedBatch([Event("e1", {"k": 1, "x": 4}, "s", 1, 1), Event("e2", {"k": 3, "x": 4}, "s", 2, 2)])
    )
    assert found.subscriptions.tolist() == [1, 5, 9]


@settings(max_examples=30)
@given(st.randoms(use_true_random=False))
def test_removed_sequences_leave_nothing_behind(random: Random) -> None:
    runner = AutomatonMatcher(matcher="oracle")
    held: set[int] = set()
    end = 1
    for _ in range(random.randint(1, 12)):
        if random.random() < 0.6:
            number = random.randint(0, 30)
            if number not in held:
                runner.add(np.array([number]), compiled(random.choice(_TEXTS)), {})
                held.add(number)
        elif held:
            gone = random.choice(sorted(held))
            runner.remove(np.array([gone]))
            held.discard(gone)
        count = random.randint(0, 6)
        runner.process(events(random, end, count))
        end += count
        assert runner.stats().subscriptions == len(held)
    runner.remove(np.array(sorted(held), dtype=np.int64))
    assert holds_nothing(runner)


def test_a_refused_sequence_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = AutomatonMatcher(matcher="oracle")
    runner.add(np.array([0]), compiled(_TEXTS[0]), {})
    before = runner.stats()

    def refuse(_: ConjunctionBatch) -> None:
        raise MatcherError("there is no memory")

    with monkeypatch.context() as patched:
        patched.setattr(runner._graph.filters.matcher, "add", refuse)
        with pytest.raises(MatcherError, match="no memory"):
            runner.add(
                np.array([1]), compiled("from s a where a.k = 1 next s b on b.k = 4 where b.x < a.x"), {}
            )
    assert runner.stats().nodes == before.nodes
    assert runner.stats().subscriptions == 1
    runner.remove(np.array([0]))
    assert holds_nothing(runner)


_NESTED = (
    "from (from (from s a where a.x = 1 next s b on b.x = 7) c next s d on d.x = 8) e "
    'next (from t a next t b on b.x = 9 where b.k = 2) f on f."a.x" = 1'
)


@pytest.mark.parametrize("index", ["edges", "filters"])
@pytest.mark.parametrize("nth", range(1, 4))
def test_sequences_in_parentheses_go_with_one_that_is_refused(
    monkeypatch: pytest.MonkeyPatch, index: str, nth: int
) -> None:
    runner = AutomatonMatcher(matcher="oracle")
    matcher = getattr(runner._graph, index).matcher
    taken, add = counting(1), matcher.add

    def refuse(batch: ConjunctionBatch) -> None:
        if next(taken) == nth:
            raise MatcherError("there is no memory")
        add(batch)

    with monkeypatch.context() as patched:
        patched.setattr(matcher, "add", refuse)
        try:
            runner.add(np.array([0]), compiled(_NESTED), {})
        except MatcherError:
            assert holds_nothing(runner)
    runner.add(np.array([1]), compiled(_NESTED), {})
    runner.remove(np.array([0, 1]))
    assert holds_nothing(runner)


def test_a_template_without_rows_holds_nothing() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    query = Template('from (from s a next s b on b.x = 7) c where c."a.x" = :k next s d').query
    assert isinstance(query, Sequence)
    runner.add(np.empty(0, dtype=np.int64), compile_sequence(query), {"k": np.empty(0, dtype=np.int64)})
    assert holds_nothing(runner)


def test_one_that_is_removed_twice_at_once_goes_once() -> None:
    runner = AutomatonMatcher(matcher="oracle")
    runner.add(np.array([3]), compiled(_TEXTS[0]), {})
    runner.add(np.array([4]), compiled(_TEXTS[0]), {})
    runner.remove(np.array([3, 3]))
    assert (runner.stats().subscriptions, runner.stats().nodes) == (1, 1)
    runner.remove(np.array([4]))
    assert holds_nothing(runner)


def test_one_that_goes_does_not_look_through_all_streams(monkeypatch: pytest.MonkeyPatch) -> None:
    runner = AutomatonMatcher(matcher="oracle")
    for number in range(20):
        runner.add(np.array([number]), compiled(f"from s{number} a next t{number} b on b.k = a.k"), {})

    def refuse(_: object) -> None:
        raise AssertionError("all streams are looked through")

    monkeypatch.setattr(type(runner._graph.streams), "__iter__", refuse)
    for number in range(20):
        runner.remove(np.array([number]))
        assert len(runner._graph.streams) == 2 * (19 - number)
    assert holds_nothing(runner)
