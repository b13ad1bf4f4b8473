"""Long interleavings of adds, removals, events and changes of scheme; classes under removals; nothing is left behind."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.matching.amkh.invariants import check_invariants
from tests.matching.interleaving import Step, play
from tocsin.language import Template, parse_condition, to_dnf
from tocsin.matching import (
    ConjunctionBatch,
    ConjunctionGroup,
    EventBatch,
    Oracle,
    Statistics,
    base,
    create_matcher,
    open_matcher,
    save_matcher,
    stored_matcher,
)
from tocsin.matching.amkh import index_pair
from tocsin.matching.amkh import matcher as module
from tocsin.matching.amkh import state as arrays
from tocsin.matching.amkh.matcher import Amkh
from tocsin.matching.amkh.scheme import ALL_CLASSES, Scheme
from tocsin.matching.saved import arrays_of

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
NAMES = "abcdef"

_predicates = st.one_of(
    st.builds(
        "{} {} {}".format,
        st.sampled_from(NAMES),
        st.sampled_from(["=", "=", "<", "<=", ">", ">=", "!="]),
        st.integers(0, 9),
    ),
    st.builds(
        "{} {}".format,
        st.sampled_from(NAMES),
        st.sampled_from(
            [
                "in (1, 2)",
                "in (1, 2, 3, 4, 5, 6, 7, 8, 9)",
                "in ('p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x')",
                "not in (0, 3)",
                "in (2, 'x')",
                "between 1 and 2",
                "not between 3 and 6",
                "is missing",
                "is present",
                "contains 'x'",
                "not contains 'y'",
                "< 'q'",
                "!= 'x'",
            ]
        ),
    ),
)
_conditions = st.lists(_predicates, min_size=1, max_size=5).map(" and ".join)
_events = st.dictionaries(
    st.sampled_from(NAMES), st.sampled_from([*range(10), 2.5, "x", "p", "xy", 2**60 + 1]), max_size=6
)
_steps = st.one_of(
    st.tuples(st.just("add"), st.lists(_conditions, min_size=1, max_size=40)),
    st.tuples(st.just("remove"), st.integers(1, 50)),
    st.tuples(st.just("match"), st.lists(_events, min_size=1, max_size=12)),
    st.tuples(
        st.just("scheme"),
        st.sampled_from(
            [
                Scheme((), 2),
                Scheme((), 2, equalities=True),
                Scheme(None, 2),
                Scheme(None, 8, 1, equalities=True),
                Scheme(None, ALL_CLASSES),
                Scheme((0, 8, 16), 4),
            ]
        ),
    ),
    st.tuples(st.just("move"), st.integers(1, 30)),
)
_options = st.sampled_from(
    [
        {},
        {"ranked_classes": False},
        {"split_weights": False, "ranked_classes": False, "buckets": 7},
        {"general": 1},
        {"general": 2, "classes": 0},
        {"classes": 3, "buckets": 3},
    ]
)


def add(matcher: Amkh | Oracle, *texts: str, first: int = 0) -> None:
    matcher.add(ConjunctionBatch.of((first + i, to_dnf(parse_condition(t))) for i, t in enumerate(texts)))


def hash_by(matcher: Amkh, scheme: Scheme) -> None:
    """Let a matcher begin to move all it holds to an index with another scheme."""
    matcher._finish_move()
    names = len(matcher._index.hashing)
    general = scheme.general if scheme.general is None else tuple(f for f in scheme.general if f < names)  # type: ignore[operator]
    scheme = Scheme(general, scheme.classes, scheme.width, scheme.equalities)
    matcher._scheme = scheme
    matcher._indexes.following, matcher._moved = matcher._empty_index(scheme, matcher._sample(64)), 0


@settings(max_examples=400 if LONG else 40)
@given(steps=st.lists(_steps, min_size=3, max_size=25), seed=st.integers(0, 2**32 - 1), options=_options)
def test_matches_and_invariants_survive_any_interleaving(
    steps: list[Step], seed: int, options: dict[str, Any]
) -> None:
    matcher = Amkh(**options)

    def own(step: str, argument: object) -> None:
        if step == "scheme":
            assert isinstance(argument, Scheme)
            hash_by(matcher, argument)
        elif step == "move":
            assert isinstance(argument, int)
            matcher._move(argument)

    play(
        matcher,
        steps,
        seed,
        normal=lambda condition, _: to_dnf(condition),
        own=own,
        check=lambda: check_invariants(matcher),
    )
    assert (matcher.stats().conjunctions, matcher.stats().predicates) == (0, 0)
    assert matcher.stats().details["points"] == matcher.stats().details["buckets"] == 0
    assert len(matcher.vocabulary.names) == 0


@pytest.mark.parametrize("ranked", [True, False])
def test_classes_are_right_while_their_extremes_come_and_go(ranked: bool) -> None:
    matcher, oracle = Amkh(classes=4, ranked_classes=ranked), Oracle()
    random = np.random.default_rng(3)
    texts = [
        "a > {}",
        "a >= {}",
        "a < {}",
        "a <= {}",
        "a between {} and {}",
        "a != {}",
        "a not in ({}, 5000)",
    ]
    held: list[int] = []
    for round_ in range(10):
        ids = list(range(200 * round_, 200 * round_ + 200))
        values = random.integers(0, 1000, len(ids))
        said = [texts[i % len(texts)].format(v, v + i % 50) for i, v in zip(ids, values, strict=True)]
        for each in (matcher, oracle):
            add(each, *said, first=ids[0])
        held += ids
        # The greatest and the least constants go first.
        gone = random.choice(held, size=len(held) // 2, replace=False)
        for part in np.array_split(gone, 8):
            for each in (matcher, oracle):
                each.remove(part)
            check_invariants(matcher)
            events = EventBatch.of_dicts([{"a": int(v)} for v in random.integers(-5, 1005, 4)])
            assert matcher.match(events).to_lists() == oracle.match(events).to_lists()
        held = sorted(set(held) - set(gone.tolist()))


def test_life_goes_on_without_drift() -> None:
    # The same in small as 1,000,000 random operations: what was removed leaves nothing, and arrays stop growing.
    matcher = Amkh()
    random = np.random.default_rng(0)
    template = Template("s = :s and p > :p and q between :l and :h")
    sizes, fresh = [], 0
    for _ in range(12):
        held: list[int] = []
        for _ in range(6):
            ids = np.arange(fresh, fresh + 200)
            fresh += 200
            low = random.integers(0, 50, 200)
            columns = {"s": [f"w{i}" for i in random.integers(0, 40, 200)], "p": random.integers(0, 99, 200)}
            rows = template.bind_many({**columns, "l": low, "h": low + random.integers(0, 9, 200)})
            matcher.add(ConjunctionBatch.of_rows(ids, rows))
            held += ids.tolist()
            gone = random.choice(held, size=len(held) // 3, replace=False)
            matcher.remove(gone)
            held = sorted(set(held) - set(gone.tolist()))
            matcher.match(EventBatch.of_dicts([{"s": "w1", "p": int(p), "q": 7} for p in range(0, 99, 9)]))
        check_invariants(matcher)
        matcher.remove(np.array(held))
        stats = matcher.stats()
        assert (stats.subscriptions, stats.conjunctions, stats.predicates) == (0, 0, 0)
        for detail in ("schemas", "points", "buckets"):
            assert stats.details[detail] == 0
        sizes.append({name: array.shape for name, array in arrays_of(matcher._index).items()})
    assert sizes[-1] == sizes[-6]
    assert len(matcher.vocabulary.names) == len(matcher.vocabulary.symbols) == 0


def test_the_scheme_follows_the_subscriptions() -> None:
    matcher, oracle = Amkh(), Oracle()
    random = np.random.default_rng(0)
    alike = [f"a = {random.integers(9)} and b = {random.integers(9)} and c > {i % 9}" for i in range(1200)]
    for each in (matcher, oracle):
        add(each, *alike)
    assert matcher.scheme.general == ()  # two equalities each: a bucket has fifteen
    names = [f"n{i}" for i in range(3000)]
    unlike = [
        " and ".join(
            f"{name} {op} {random.integers(9)}"
            for name, op in zip(random.choice(names, 4), "><>=", strict=True)
        )
        for _ in range(6000)
    ]
    for each in (matcher, oracle):
        add(each, *unlike, first=5000)
    check_invariants(matcher)
    matcher.review()
    assert matcher._indexes.following is None
    assert matcher.scheme.name != "AMKH(0,-)"
    check_invariants(matcher)
    rows = [
        {**{str(n): int(random.integers(9)) for n in random.choice(names, 60)}, "a": 1, "b": 2, "c": 5}
        for _ in range(50)
    ]
    assert (
        matcher.match(EventBatch.of_dicts(rows)).to_lists()
        == oracle.match(EventBatch.of_dicts(rows)).to_lists()
    )


def test_all_are_hashed_again_a_few_for_each_event() -> None:
    matcher = Amkh()
    add(matcher, *(f"a = {i} and b > {i % 7}" for i in range(1000)))
    one = matcher.stats().bytes
    hash_by(matcher, Scheme((), 2, 1, equalities=True))
    assert matcher.stats().bytes > one  # there are two indexes now
    events = EventBatch.of_dicts([{"a": i, "b": 9} for i in range(10)])
    wanted = [[i] for i in range(10)]
    for _ in range(3):
        assert matcher.match(events).to_lists() == wanted
        check_invariants(matcher)
        assert matcher._indexes.following is not None
    assert matcher.stats().details["points"] == 1000
    for _ in range(3):
        assert matcher.match(events).to_lists() == wanted
    assert matcher._indexes.following is None
    assert matcher.examined().events == 60


def test_a_matcher_is_saved_with_its_scheme(tmp_path: Any) -> None:
    matcher = Amkh(general=1, classes=8, buckets=97, weights={"a": 5})
    add(matcher, *(f"a = {i % 9} and b > {i}" for i in range(300)))
    hash_by(matcher, Scheme((), 2))
    save_matcher(matcher, tmp_path / "saved")  # which ends the move
    opened = open_matcher(tmp_path / "saved")
    assert isinstance(opened, Amkh)
    assert opened.scheme == matcher.scheme == Scheme((), 2)
    check_invariants(opened)
    events = EventBatch.of_dicts([{"a": 3, "b": 100}])
    assert opened.match(events).to_lists() == matcher.match(events).to_lists() != [[]]
    opened.remove(np.arange(300))
    assert opened.stats().details["points"] == 0


@pytest.mark.parametrize("name", ["amkh", "mkh"])
def test_a_subscription_that_cannot_be_placed_is_not_stored(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    matcher = create_matcher(name)
    assert isinstance(matcher, Amkh)
    add(matcher, "a = 1", first=1)

    def refuse(*_: object, **__: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(arrays, "with_points", refuse)
        with pytest.raises(MemoryError):
            add(matcher, "b = 1 and s = 'x1'", "b in (1, 2) and s = 'x2'", first=1)
    check_invariants(matcher)
    assert (matcher.stats().subscriptions, matcher.stats().conjunctions) == (1, 1)
    assert sorted(matcher.vocabulary.names.codes) == ["a"]


def test_conjunctions_whose_move_was_interrupted_are_moved_later(monkeypatch: pytest.MonkeyPatch) -> None:
    matcher = Amkh()
    add(matcher, *(f"a = {i} and b in (1, 2, 3)" for i in range(300)))
    hash_by(matcher, Scheme((), 2))

    def refuse(*_: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(index_pair, "place", refuse)
        with pytest.raises(MemoryError):
            matcher._move(100)
    assert matcher.match(EventBatch.of_dicts([{"a": 7, "b": 2}, {"a": 250, "b": 1}])).to_lists() == [
        [7],
        [250],
    ]
    matcher._finish_move()
    check_invariants(matcher)


@pytest.mark.parametrize("kernel", ["keep", "place", "withdraw", "take_from", "recall", "forget"])
@pytest.mark.parametrize("call", ["add", "remove", "match"])
def test_an_interrupt_leaves_nothing_half_done(
    kernel: str, call: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A signal that comes while a kernel runs is raised when it returns.
    users = {"take_from": base, "recall": stored_matcher, "place": index_pair, "withdraw": index_pair}
    user = users.get(kernel, module)
    run = getattr(user, kernel)

    def interrupted(*arguments: object) -> object:
        run(*arguments)
        raise KeyboardInterrupt

    texts = [f"a = {i % 50} and b in (1, 2, {i})" for i in range(300)]
    matcher = Amkh()
    add(matcher, *texts)
    hash_by(matcher, Scheme((), 2))
    matcher._move(70)
    held = dict(enumerate(texts))
    events = EventBatch.of_dicts([{"a": i, "b": 2} for i in range(50)])
    with monkeypatch.context() as patch:
        patch.setattr(user, kernel, interrupted)
        try:
            if call == "add":
                add(matcher, "a = 1 and b = 2", "s = 'new'", first=1000)
            elif call == "remove":
                matcher.remove(np.array([3, 90, 200]))
            else:
                matcher.match(events)
        except KeyboardInterrupt:
            is_done = False
        else:
            is_done = True
    gone = matcher.stats().subscriptions < len(texts) or is_done
    if call == "add" and is_done:
        held.update({1000: "a = 1 and b = 2", 1001: "s = 'new'"})
    if call == "remove" and gone:
        held = {i: text for i, text in held.items() if i not in (3, 90, 200)}
    oracle = Oracle()
    oracle.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in held.items()))
    for _ in range(2):
        assert matcher.match(events).to_lists() == oracle.match(events).to_lists()
        check_invariants(matcher)
    assert matcher.stats().conjunctions == len(held)
    matcher.remove(np.arange(1002))
    check_invariants(matcher)
    assert (matcher.stats().conjunctions, matcher.stats().predicates) == (0, 0)


@pytest.mark.parametrize("name", ["mkh", "amkh"])
def test_a_range_after_very_many_equalities(name: str) -> None:
    # Where every id is a class, the first range makes as many classes as there were ids.
    matcher = create_matcher(name) if name == "mkh" else Amkh(general=1, classes=ALL_CLASSES)
    assert isinstance(matcher, Amkh)
    add(matcher, *(f"a = {i} and b = {i}" for i in range(2000)))
    hash_by(matcher, Scheme(None, ALL_CLASSES))
    matcher._finish_move()
    add(matcher, "a > 1 and b < 1990", first=5000)
    for blocks in (matcher._index.chains, matcher._index.bounds):
        assert blocks.top[0] <= len(blocks.rows)
    check_invariants(matcher)
    assert matcher.match(EventBatch.of_dicts([{"a": 3, "b": 3}])).to_lists() == [[3, 5000]]


@pytest.mark.parametrize(
    "options", [{}, {"buckets": 1009}, {"split_weights": False}, {"general": 0, "buckets": 1009}]
)
def test_no_event_looks_for_more_buckets_than_there_are(options: dict[str, Any]) -> None:
    matcher, oracle = Amkh(**options), Oracle()
    words = [one + other for one in "abcdefgh" for other in "abcdefgh"]
    random = np.random.default_rng(5)
    texts = [
        " and ".join(f"{name} contains '{w}'" for name, w in zip(NAMES, random.choice(words, 6), strict=True))
        for _ in range(600)
    ]
    for each in (matcher, oracle):
        add(each, *texts, "g = 1")
    matcher.remove(np.arange(0, 600, 7))
    oracle.remove(np.arange(0, 600, 7))
    events = EventBatch.of_dicts(
        [{**{name: "".join(words[:part]) for name in NAMES}, "g": 1} for part in (64, 30, 3)]
    )
    assert matcher.match(events).to_lists() == oracle.match(events).to_lists()
    assert matcher.examined().probed <= 3 * 1024 + 3


def test_a_conjunction_with_very_many_predicates() -> None:
    matcher = Amkh()
    text = " and ".join(f"a{i} = 1" for i in range(2000))
    add(
        matcher,
        text,
        "a7 = 1 and a8 in (1, 2, 3) and a9 in (1, 2, 3) and a10 in (1, 2, 3) and a11 in (1, 2, 3)",
    )
    full = {f"a{i}": 1 for i in range(2000)}
    assert matcher.match(EventBatch.of_dicts([full, {**full, "a7": 2}])).to_lists() == [[0, 1], []]
    hash_by(matcher, Scheme(None, 2))
    assert matcher.match(EventBatch.of_dicts([full, {**full, "a1999": 2}])).to_lists() == [[0, 1], [1]]
    matcher._finish_move()
    check_invariants(matcher)
    assert matcher.stats().details["points"] <= 65
    matcher.remove(np.array([0, 1]))
    check_invariants(matcher)


def test_a_subscription_that_never_matches_is_in_no_bucket() -> None:
    matcher = Amkh()
    for i, texts in enumerate(
        [("a > 3", "a < 2"), ("a > 1", "a < 3"), ("a > 2", "a < 2"), ("a = 1", "a = 2")]
    ):
        shape = tuple(parse_condition(text) for text in texts)
        group = ConjunctionGroup(shape, np.array([i]), {})  # type: ignore[arg-type]
        matcher.add(ConjunctionBatch((group,)))
    assert matcher.stats().conjunctions == 4
    assert matcher.stats().details["points"] == 1
    assert matcher.match(EventBatch.of_dicts([{"a": 2}])).to_lists() == [[1]]
    matcher.remove(np.arange(4))
    check_invariants(matcher)


def test_statistics_find_rare_attributes() -> None:
    events = [{"a": 1, "b": 1, "rare": 1} if i % 100 == 0 else {"a": 1, "b": i} for i in range(2000)]
    matcher = Amkh(statistics=Statistics.of(events))
    add(matcher, "a = 1 and rare = 1", "a = 2 and b = 2 and rare = 3")
    matcher.match(EventBatch.of_dicts([{"a": 2, "b": 2}]))
    assert matcher.examined().schemas == 0


def test_a_scheme_is_chosen_for_long_conjunctions_too() -> None:
    matcher = Amkh()
    add(matcher, *(" and ".join(f"a{k} = {(i * k) % 7}" for k in range(40)) for i in range(600)))
    assert matcher.scheme.general == ()
    full = {f"a{k}": (3 * k) % 7 for k in range(40)}
    assert matcher.match(EventBatch.of_dicts([full])).to_lists() == [list(range(3, 600, 7))]
