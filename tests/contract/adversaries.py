"""Adversarial workloads: each is hard for some kind of index. The oracle's answers come with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Final, TypeAlias

import numpy as np
from msgspec import Struct

from tocsin.language import Template
from tocsin.matching import ConjunctionBatch, EventBatch, Matcher, Oracle
from tocsin.matching.batches import ConjunctionGroup, IdArray
from tocsin.model import Attribute, Operator, Predicate
from tocsin.model.terms import literal

Row: TypeAlias = dict[str, object]


class Add(Struct, frozen=True):
    """Subscriptions to add, all at once."""

    batch: ConjunctionBatch


class Remove(Struct, frozen=True):
    """Subscriptions to remove."""

    ids: IdArray


class Match(Struct, frozen=True):
    """Events to match, each several times in one batch: so many, drawn of `rows`."""

    rows: Sequence[Row]
    count: int

    def drawn(self) -> IdArray:
        """Return the row of each event; each row comes."""
        random = np.random.default_rng(len(self.rows))
        count = max(self.count, len(self.rows))
        return random.permutation(np.arange(count, dtype=np.int64) % len(self.rows))


Step: TypeAlias = Add | Remove | Match
Answers: TypeAlias = list[list[int]]

ADVERSARIES: Final[dict[str, Callable[[int], Iterator[Step]]]] = {}
"""By name: the steps of a workload whose number of subscriptions grows with the argument, 1 in the usual tests."""

_EVENTS: Final = 640  # of a batch: a matcher that evaluates many events together does so
_ROUNDS: Final = 3  # batches in which a matcher may learn
_HELD: Final = 2_400  # subscriptions: a matcher that plans by their number does so


def adversary(name: str) -> Callable[[Callable[[int], Iterator[Step]]], Callable[[int], Iterator[Step]]]:
    """Register a workload."""

    def add(make: Callable[[int], Iterator[Step]]) -> Callable[[int], Iterator[Step]]:
        ADVERSARIES[name] = make
        return make

    return add


@cache
def steps_of(name: str, size: int) -> tuple[tuple[Step, Answers], ...]:
    """Return the steps of a workload, each with the oracle's answers to its rows."""
    oracle, found = Oracle(), []
    for step in ADVERSARIES[name](size):
        answers: Answers = []
        match step:
            case Add(batch):
                oracle.add(batch)
            case Remove(ids):
                oracle.remove(ids)
            case Match(rows):
                answers = oracle.match(EventBatch.of_dicts(rows)).to_lists()
        found.append((step, answers))
    return tuple(found)


def play(matcher: Matcher, name: str, size: int, check: Callable[[], None] = lambda: None) -> None:
    """Play a workload, compare the matches of batches and of single events with the oracle's, and `check` after each step."""
    held: set[int] = set()
    for step, answers in steps_of(name, size):
        match step:
            case Add(batch):
                matcher.add(batch)
                held.update(*(group.ids.tolist() for group in batch.groups))
            case Remove(ids):
                matcher.remove(ids)
                held.difference_update(ids.tolist())
            case Match(rows):
                drawn = step.drawn().tolist()
                found = matcher.match(EventBatch.of_dicts([rows[i] for i in drawn])).to_lists()
                wrong = [i for i, ids in zip(drawn, found, strict=True) if ids != answers[i]]
                assert not wrong, (rows[wrong[0]], answers[wrong[0]], found[drawn.index(wrong[0])])
                events = EventBatch.of_dicts(rows)
                alone = [matcher.match_one(events.attributes(i)).tolist() for i in range(len(rows))]
                assert alone == answers
        check()
    matcher.remove(np.array(sorted(held), dtype=np.int64))
    check()
    stats = matcher.stats()
    assert (stats.subscriptions, stats.conjunctions, stats.predicates) == (0, 0, 0)


def _add(first: int, text: str, **columns: object) -> Add:
    """Return the rows of a template as subscriptions, with ids from `first` on."""
    rows = Template(text).bind_many(columns)
    return Add(ConjunctionBatch.of_rows(np.arange(first, first + len(rows), dtype=np.int64), rows))


def _rounds(rows: Sequence[Row], count: int = _EVENTS) -> Iterator[Step]:
    return (Match(rows, count) for _ in range(_ROUNDS))


def _rows(random: np.random.Generator, count: int, **most: int) -> list[Row]:
    """Return events in which each attribute is below a number; one in eight is missing."""
    return [
        {name: int(random.integers(0, end)) for name, end in most.items() if random.random() < 0.875}
        for _ in range(count)
    ]


@adversary("all alike")
def _alike(size: int) -> Iterator[Step]:
    count = _HELD * size
    yield _add(0, "a = :x and b > 3 and c between 2 and 6 and d != 1", x=np.ones(count, dtype=np.int64))
    rows = _rows(np.random.default_rng(1), 30, a=8, b=8, c=8, d=3)
    yield from _rounds([*rows, {"a": 1, "b": 4, "c": 2, "d": 0}, {}])
    yield Remove(np.arange(1, count, 2, dtype=np.int64))
    yield Match(rows, _EVENTS)


@adversary("equal by the thousand")
def _equal(size: int) -> Iterator[Step]:
    same = np.arange(1_000 * size) * 0
    for i in range(3):
        yield _add(i * len(same), "a = :x and b >= :y", x=same + i, y=same + 2 * i)
    some = np.arange(400)
    yield _add(3 * len(same), "a = :x and b < :y", x=some % 7, y=some % 9)
    rows = _rows(np.random.default_rng(2), 30, a=12, b=9)
    yield from _rounds(rows)
    yield Remove(np.arange(len(same), 2 * len(same), dtype=np.int64))
    yield _add(4 * len(same), "a = :x and b >= :y", x=same + 1, y=same + 5)
    yield Match(rows, _EVENTS)


@adversary("one attribute")
def _one_attribute(size: int) -> Iterator[Step]:
    random, count = np.random.default_rng(3), 400 * size
    first = 0
    for text in (
        "a = :x",
        "a != :x and a != :y",
        "a < :x and a != :y",
        "a > :x",
        "a >= :x and a <= :y",
        "a not between :x and :y",
        "a in (:x, :y, 5)",
    ):
        x, y = random.integers(0, 1_000, (2, count))
        yield _add(first, text, x=x, y=y)
        first += count
    yield _add(first, "a contains :x", x=[str(i % 90) for i in range(40)])
    rows: list[Row] = [{"a": int(value)} for value in random.integers(0, 1_000, 14)]
    rows += [{"a": 499.5}, {"a": "text 12"}, {"a": True}, {"b": 1}]
    yield from _rounds(rows, _EVENTS // 2)
    yield Match([*rows, {"a": 2**60 + 1}], _EVENTS // 2)


@adversary("no equality")
def _no_equality(size: int) -> Iterator[Step]:
    random, count, first = np.random.default_rng(4), 600 * size, 0
    for text in (
        "a > :x and b < :y",
        "a between :x and :z and c is missing",
        "d != :x and e not in (:x, 0) and a >= :z",
        "c is present and b not between :x and :y and d <= :y",
    ):
        x, y, more = random.integers(0, 200, (3, count))
        yield _add(first, text, x=x, y=y, z=np.minimum(x + more // 8, 199))
        first += count
    yield from _rounds(_rows(random, 24, a=200, b=200, c=3, d=200, e=4))


@adversary("two bounds together")
def _two_bounds(size: int) -> Iterator[Step]:
    random, count = np.random.default_rng(5), _HELD * size
    x, y = random.integers(0, 1_000, (2, count))
    yield _add(0, "a > :x and b < :y", x=x, y=y // 8)
    yield _add(count, "a < :x and c >= :y", x=x[:200] // 8, y=y[:200])
    yield from _rounds(_rows(random, 30, a=1_000, b=1_000, c=1_000))


@adversary("two lists together")
def _two_lists(size: int) -> Iterator[Step]:
    random, count = np.random.default_rng(6), 1_200 * size
    lists = [random.integers(0, 300, (count, n)).tolist() for n in (3, 5, 2, 40)]
    yield _add(0, "a in :x and b in :y", x=lists[0], y=lists[1])
    yield _add(count, "a in :x and b not in :y and c in (1, 2)", x=lists[2], y=lists[3])
    yield _add(2 * count, "a in (1, 2, 3) and b in :y", y=[list(map(str, one)) for one in lists[0][:400]])
    rows = _rows(random, 30, a=300, b=300, c=4)
    words: list[Row] = [{"a": 2, "b": str(i), "c": 1} for i in (3, 77)]
    yield from _rounds([*rows, *({**row, "a": int(i % 5)} for i, row in enumerate(rows[:10])), *words])


@adversary("one hot value")
def _hot_value(size: int) -> Iterator[Step]:
    random, count = np.random.default_rng(7), 1_200 * size
    x, y = random.integers(0, 1_000, (2, count))
    yield _add(0, "a = 0 and b > :x and c < :y", x=x, y=y // 4)
    yield _add(count, "a = :r and b > :x and c < :y", r=random.integers(1, 10_000, count), x=x, y=y)
    rows = [{"a": 0, **row} for row in _rows(random, 30, b=1_000, c=1_000)]
    yield from _rounds([*rows, {"a": 7, "b": 999, "c": 0}, {"b": 1}])


@adversary("nested ranges")
def _nested(size: int) -> Iterator[Step]:
    half = np.arange(_HELD * size) / (2.0 * size)
    yield _add(0, "p between :x and :y", x=5_000.0 - half, y=5_000.0 + half)
    rows: list[Row] = [{"p": 5_000.0 + float(i) * 97.25 * (-1) ** i} for i in range(20)]
    yield from _rounds([*rows, {"p": 5_000}, {"p": -1}, {}])
    yield Match([*rows, {"p": 2**60 + 1}], _EVENTS)


@adversary("many attributes")
def _many_attributes(size: int) -> Iterator[Step]:
    """A hundred thousand attributes, each in one or a few conjunctions."""
    count = 10_000 * size
    one = (literal(1),)
    parts = [(Operator.EQ, one), (Operator.GE, one), (Operator.NE, one), (Operator.PRESENT, ())]
    groups = []
    for i in range(count):
        terms = tuple(
            Predicate(Attribute(f"n{13 * i + 3 * k}"), *parts[(i + k) % 4]) for k in range(4 + i % 13)
        )
        groups.append(ConjunctionGroup(terms, np.array([i], dtype=np.int64), {}))
    yield Add(ConjunctionBatch(tuple(groups)))
    rows: list[Row] = [
        {f"n{13 * i + 3 * k}": 2 if (i + k) % 4 == 2 else 1 for k in range(4 + i % 13)}
        for i in (*range(12), count // 2, count - 1)
    ]
    wide: Row = {name: value for row in rows for name, value in row.items()}
    yield from _rounds([*rows, {**wide, **{f"unknown{i}": i for i in range(300)}}], _EVENTS // 4)


@adversary("residual predicates")
def _residual(size: int) -> Iterator[Step]:
    count, first = 40 * size, 0
    words = [f"{i % 9}{i % 7}{i % 5}" for i in range(count)]
    for text, pattern in (
        ("s ~ :x", "{}+.?$"),
        ("s !~ :x and t ~ :x", "^[{}]"),
        ("s like :x", "%{}_%"),
        ("s not like :x and t ends with '1'", "{}%"),
        ("s starts with :x", "{}"),
        ("s contains :x or t ends with :x", "{}"),
        ("t not contains :x and t > 'a'", "{}"),
        ("h = 0 and s ~ :x", "{}"),
        ("a > 2 * b and s ~ :x", "{}"),
    ):
        yield _add(first, text, x=[pattern.format(word) for word in words])
        first += count
    rows: list[Row] = [
        {"s": word, "t": word[::-1] + "z", "h": 0, "a": i, "b": i % 3} for i, word in enumerate(words[:12])
    ]
    yield from _rounds([*rows, {"s": 1, "t": "", "h": 0}, {"t": "001"}, {"h": 0, "s": ""}], 80)


@adversary("churn")
def _churn(size: int) -> Iterator[Step]:
    """Down to nothing and up again, with conjunctions that were there before and with others."""
    random, count = np.random.default_rng(8), _HELD * size
    texts = "a = :x and b = :y", "b = :y and c between :x and :z", "a in (:x, :y) and c > :z", "a < :x"
    rows, fresh, held = _rows(random, 20, a=40, b=40, c=60), 0, np.empty(0, dtype=np.int64)
    for stays, seed in ((0.5, 1), (0.1, 1), (0.0, 2), (0.0, 1), (0.9, 3), (0.02, 1)):
        same = np.random.default_rng(seed)
        for i in range(6):
            x, y = same.integers(0, 40, (2, count // 6))
            yield _add(fresh, texts[(seed + i) % 4], x=x, y=y, z=x + 3)
            held = np.concatenate([held, np.arange(fresh, fresh + len(x))])
            fresh += len(x)
        yield Match(rows, _EVENTS // 2)
        gone = held[random.random(len(held)) >= stays]
        for part in np.array_split(gone, 7):
            yield Remove(part)
        held = np.setdiff1d(held, gone)
        yield Match(rows, 100)
        if not len(held):
            yield _add(fresh, "b = :y and a = :x", x=np.array([1]), y=np.array([2]))
            yield Match([{"a": 1, "b": 2}], 1)
            held = np.array([fresh])
            fresh += 1
    for one in held.tolist():  # and one by one
        yield Remove(np.array([one], dtype=np.int64))
    yield Match(rows, 30)


@adversary("what is hot changes")
def _changes(size: int) -> Iterator[Step]:
    random, count = np.random.default_rng(9), _HELD * size
    yield _add(
        0,
        "a = :x and b = :y and c > :z",
        x=random.integers(0, 3, count),
        y=random.integers(0, 30, count),
        z=random.integers(0, 30, count),
    )
    yield _add(count, "d between :x and :y and a = 1", x=np.arange(100), y=np.arange(100) + 30)
    for hot in ("a", "b", "d", "a"):
        rows = _rows(random, 24, a=3, b=30, c=30, d=130)
        odd: list[Row] = [{"a": 1, "b": 2**60 + 1, "c": 5}, {"a": 2**60, "d": "text"}, {"b": 1.5, "c": "2"}]
        yield from _rounds([{**row, hot: 1} for row in rows] + odd, _EVENTS // 2)
