"""Workloads over strings and any operators, made up or over rows that were read: a function writes each subscription."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any, Final, TypeAlias

import numpy as np

from benchmarks.opindex.workloads.keywords import files_at
from benchmarks.workloads.pooled import Pool, PooledSubscriptions, RecordEvents
from benchmarks.workloads.words import make_words
from tocsin.formats.files import format_of, raw_records
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.errors import TocsinError
from tocsin.model.terms import Attribute, literal
from tocsin.model.values import Value

Test: TypeAlias = tuple[str, Operator, tuple[Value, ...]]
"""An attribute, an operator and its constants."""

Row: TypeAlias = Mapping[str, Value]

_BLOCK: Final = 1_000  # events that one seed draws
_TEAMS: Final = 1_000
_REGIONS: Final = 200
_ATTRIBUTES: Final = 50
_WORDS: Final = 400  # values of an attribute


class WrittenWorkload:
    """Subscriptions and events that two functions write; the same seed draws the same ones."""

    def __init__(
        self, subscription: Callable[[Random], Sequence[Test]], event: Callable[[Random], Row], seed: int = 1
    ) -> None:
        self._subscription = subscription
        self._event = event
        self._seed = seed

    def subscriptions(self, begin: int, end: int, *, batch: int = 1 << 16) -> Iterator[PooledSubscriptions]:
        """Return the subscriptions from number `begin` to `end`, in batches."""
        known: dict[Test, int] = {}
        tests: list[Test] = []
        pool = Pool(lambda code: _predicate(*tests[code]))
        for first in range(begin, end, batch):
            offsets, codes = [0], []
            for number in range(first, min(first + batch, end)):
                for test in self._subscription(Random(self._seed << 40 | number)):  # noqa: S311 - no secret
                    code = known.setdefault(test, len(known))
                    if code == len(tests):
                        tests.append(test)
                    codes.append(code)
                offsets.append(len(codes))
            ids = np.arange(first, first + len(offsets) - 1, dtype=np.int64)
            places = pool.places(np.array(codes, dtype=np.int64))
            yield PooledSubscriptions(ids, np.array(offsets, dtype=np.int64), places, pool)

    def events(self, begin: int, end: int, *, batch: int = _BLOCK) -> Iterator[RecordEvents]:
        """Return the events from number `begin` to `end`, in batches."""
        for first in range(begin, end, batch):
            numbers = range(first, min(first + batch, end))
            yield RecordEvents([self._event(Random(~(self._seed << 40 | one))) for one in numbers])  # noqa: S311


def _predicate(name: str, operator: Operator, constants: tuple[Value, ...]) -> Predicate:
    return Predicate(Attribute(name), operator, tuple(literal(one) for one in constants))


def lists() -> WrittenWorkload:
    """Return subscriptions of two lists, of five teams and of three regions, and for some a bound."""

    def subscription(random: Random) -> list[Test]:
        # Neighbours stand in a list together, as they do where people choose from groups.
        team, region = random.randrange(_TEAMS), random.randrange(_REGIONS)
        teams = tuple(f"team {(team + random.randrange(12) * i) % _TEAMS}" for i in range(5))
        regions = tuple(f"region {(region + i) % _REGIONS}" for i in range(3))
        tests: list[Test] = [("team", Operator.IN, teams), ("region", Operator.IN, regions)]
        if random.random() < 0.3:
            tests.append(("severity", Operator.GE, (random.randrange(1, 5),)))
        return tests

    def event(random: Random) -> Row:
        return {
            "team": f"team {random.randrange(_TEAMS)}",
            "region": f"region {random.randrange(_REGIONS)}",
            "severity": random.randrange(1, 6),
            "host": f"host {random.randrange(10_000)}",
        }

    return WrittenWorkload(subscription, event)


def mixed() -> WrittenWorkload:
    """Return subscriptions of two to five predicates on fifty attributes by Zipf: words and numbers, all kinds of operators."""
    words = make_words(_WORDS)
    weights = [1 / (i + 1) for i in range(_ATTRIBUTES)]
    word_weights = [1 / (i + 1) ** 0.7 for i in range(_WORDS)]
    for each in (weights, word_weights):  # random.choices takes sums, which are added once
        each[:] = np.cumsum(each).tolist()

    def attribute(random: Random) -> int:
        return random.choices(range(_ATTRIBUTES), cum_weights=weights)[0]

    def value(random: Random, number: int) -> Value:
        if number % 2:
            return random.randrange(1, 10_001)
        return random.choices(words, cum_weights=word_weights)[0]

    def test(random: Random, number: int) -> Test:
        name, drawn, kind = f"s{number}", value(random, number), random.random()
        if isinstance(drawn, str):
            if kind < 0.55:
                return name, Operator.EQ, (drawn,)
            if kind < 0.8:
                return name, Operator.IN, (drawn, value(random, number), value(random, number))
            if kind < 0.95:
                return name, Operator.STARTS_WITH, (drawn[:4],)
            return (name, Operator.PRESENT, ()) if kind < 0.97 else (name, Operator.NE, (drawn,))
        assert isinstance(drawn, int)  # noqa: S101 - as `value` draws
        if kind < 0.2:
            return name, Operator.EQ, (drawn,)
        if kind < 0.5:
            return name, Operator.BETWEEN, (drawn, drawn + random.randrange(10, 500))
        return (
            (name, Operator.LE, (drawn // 8,)) if kind < 0.75 else (name, Operator.GE, (10_000 - drawn // 8,))
        )

    def subscription(random: Random) -> list[Test]:
        numbers = dict.fromkeys(attribute(random) for _ in range(random.randrange(3, 7)))
        if len(numbers) == 1:
            numbers[(attribute(random) + 1) % _ATTRIBUTES] = None
        return [test(random, number) for number in numbers]

    def event(random: Random) -> Row:
        numbers = dict.fromkeys(attribute(random) for _ in range(30))
        return {f"s{number}": value(random, number) for number in numbers}

    return WrittenWorkload(subscription, event)


def flights(path: Path) -> WrittenWorkload:
    """Return alerts over flights: delays of a flight, a route, a carrier or an aircraft."""
    rows = read_rows(path)

    def subscription(random: Random) -> list[Test]:
        row, late = random.choice(rows), (random.choice((15, 30, 45, 60, 120)),)
        kind = random.random()
        if kind < 0.4:
            return [*_same(row, "carrier", "flight"), ("arr_delay", Operator.GE, late)]
        if kind < 0.7:
            return [*_same(row, "origin", "dest"), ("dep_delay", Operator.GT, late)]
        if kind < 0.85:
            return [*_same(row, "tailnum"), ("dep_delay", Operator.GE, late)]
        if kind < 0.95:
            return [*_same(row, "dest", "carrier"), ("cancelled", Operator.EQ, (True,))]
        low = random.randrange(60, 300)
        return [("arr_delay", Operator.BETWEEN, (low, low + 5)), *_same(row, "origin")]

    return WrittenWorkload(subscription, lambda random: random.choice(rows))


def quotes(path: Path) -> WrittenWorkload:
    """Return alerts over quotes: a stock beyond or within a price, or cheap ones of a sector."""
    rows = [row for row in read_rows(path) if isinstance(row.get("price"), (int, float))]

    def subscription(random: Random) -> list[Test]:
        row, kind = random.choice(rows), random.random()
        price = _number(row["price"]) * random.uniform(0.9, 1.1)
        if kind < 0.4:
            low = round(price, 2)
            return [*_same(row, "symbol"), ("price", Operator.BETWEEN, (low, low + 0.5))]
        if kind < 0.6:
            return [*_same(row, "symbol"), ("price", Operator.GT, (round(1.2 * price, 2),))]
        if kind < 0.8:
            return [*_same(row, "symbol"), ("price", Operator.LT, (round(0.8 * price, 2),))]
        bounds: list[Test] = [("pe", Operator.LE, (round(random.uniform(2, 9), 2),))]
        if kind < 0.9:
            return [*_same(row, "sector"), *bounds]
        return [*bounds, ("dividend_yield", Operator.GE, (round(random.uniform(4, 9), 2),))]

    return WrittenWorkload(subscription, lambda random: random.choice(rows))


def read_rows(path: Path) -> list[dict[str, Any]]:
    """Return the records of a file of JSON lines; raise `TocsinError` if there are none."""
    rows = [
        record
        for file in files_at(path)
        for _, record in raw_records(file, format_of(file))
        if isinstance(record, dict) and record
    ]
    if not rows:
        raise TocsinError(f"{path} has no events; it should have objects with attributes, one a line")
    return rows


def _same(row: Row, *names: str) -> list[Test]:
    """Return equalities with a row's values; a value that is absent is asked to be so."""
    return [
        (name, Operator.EQ, (row[name],)) if name in row else (name, Operator.MISSING, ()) for name in names
    ]


def _number(value: Value) -> float:
    return float(value)  # type: ignore[arg-type]  # of rows that have a number there
