"""Automata, run by the plain interpreter, find what the algebra says."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import pytest

from tests.sequences.contract import CONTRACT, Subject
from tests.sequences.outcomes import event, found
from tests.sequences.plain import PlainMatcher
from tocsin.model import Event, Value
from tocsin.sequences.modes import MODES

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
TEXTS = [
    "from s a where a.x > 1 publish as p",
    "from s a where duration >= 2 within 3 ticks",
    "from s a next s b on b.x = a.x where b.y > a.y",
    "from s a next s b on a.x = 1 and b.x = a.x",
    "from s a next s b where a.x = 2 and b.y is missing",
    "from s a next s b on b.x > 1.5 * a.x - a.y where b.x + b.y < 3 * a.x or b.y = 1",
    "from s a next s b on (b.x = 1 and b.y > a.y) or (b.x = 2 and b.y < a.y)",
    "from s a next s b on b.x = a.x within 4 ticks",
    "from s a next s b on duration <= 4 and b.x = 1 next s c on duration < 6 where c.x != a.x",
    "from s a next s b next s c where a.x = c.x and b.y >= a.y",
    "from s a fold s b on b.x = a.x",
    "from s a fold s b on b.x = last.x while b.y >= last.y where duration >= 3",
    "from s a fold s b while duration <= 5",
    "from s a where a.x = 1 next t b fold s c on c.x = last.x where c.y = a.y",
    "from s a compute n = 1 fold s b on b.x >= last.x compute n = n + 1 where n >= 3",
    "from s a compute n = a.x fold s b on b.y = n compute n = b.x where n > 1 and a.x < 3",
    """from s a fold s b on b.x = a.x compute total = sum(y), most = max(y), least = min(y), many = count(y),
    mean = avg(y), all = count(*) where all >= 2""",
    "from s a fold s b on b.x = a.x while last.mean < 3 compute mean = avg(y) next t c on c.y > mean select mean, c.y, a.x * 2",
    "from s a fold s b while last.total <= 12 compute total = sum(b.x + b.y)",
    "from s a fold s b compute seen = b.y fold t c on c.x = seen where c.y = a.y or seen > 1 or c.y > 2",
    "from s a fold s b while b.t > last.t",
    "from s a next s b on b.t contains a.t or b.t starts with 'a'",
    "from s a next s b on b.t not contains a.t and not a.t ends with 'b'",
    "from s a next s b where a.t like 'a_b' or b.t ~ '^a' and a.x = b.x",
    "from s a fold s b on not last.t ~ 'b' while b.x > 0",
    "from s a next t b fold s c on last.t like 'a%c' or last.x = 1",
    "from s a fold s b compute low = min(t) where low like 'a_c' or low ~ 'c$'",
    "from s a where a.x in (1, 2, 'a') next s b on b.y not in (1, 'ab') and b.x not between 2 and 3",
    "from s a next s b where a.x in (1, 2, 3, 4, 5, 6, 7, 8, 9) or b.x > a.x and a.t in ('a', 'ab', 1)",
    "from s a next s b where a.y not in (1, 2, 3, 4, 5, 6, 7, 8, 9) or b.y not in (1, 2) and a.x = b.x",
    "from s a next s b on b.x not between a.x and a.y",
    "from s a next s b on b.x between a.x and a.y + 1",
    "from s a next s b on b.w > timestamp '2026-01-01T12:00:01Z' where a.w < timestamp '2026-01-01T12:00:02Z' or a.x = b.x",
    "from s a next s b on b.w > a.w",
    """from s a compute w = a.w fold s b compute w = max(b.w)
    where w >= timestamp '2026-01-01T12:00:02Z' or b.x = a.x""",
    "from s a compute w = a.w next s b where w not in (timestamp '2026-01-01T12:00:02Z', 1, '2026-01-01T12:00:01Z')",
    "from s a compute w = a.w next s b where w between timestamp '2026-01-01T12:00:00Z' and timestamp '2026-01-01T12:00:01Z'",
    "from s a compute k = 2 next s b on b.x = k",
    "from s a next s b on b.z = a.z where b.z + 1 > a.z",
    "from s a fold s b compute n = sum(z), m = max(z)",
    "from s a where a.x = 1 and a.x = 2 next s b",
    "from s a next s b where false",
    'from s a next (from s c next t d on d.x = c.x) b on b."c.x" = a.x',
    'from (from s c fold s d on d.x > last.x compute n = count(*)) a next s b on b.x = a.n select a.n, a."d.x", b.y',
    "from (from s c next s d within 3 ticks select c.x as one, d.y as two) a fold s b on b.x = a.one or b.y = last.two",
    "from s a where a.x / a.y > 1 next s b on b.x / a.y = 1 or -b.x = a.y",
    "from s a where a.f = true next s b on b.f = a.f",
    "from s a next s b where b.f != a.f or a.f = false",
    "from s a where a.t contains 'a' fold s b on b.t contains 'a' and duration < 7 while duration <= 4 or b.x = 1",
    "from s a fold s b on b.x is present compute x = a.x + b.x, y = x fold s c on c.x = y select x, y, c.x as z",
]


def stream(seed: int, size: int = 14) -> list[Event]:
    """Events of two streams: simultaneous, overlapping, with gaps, absent attributes and mixed kinds."""
    draw = random.Random(seed)  # noqa: S311 - a test's cases
    end = 0
    events = []
    for number in range(size):
        end += draw.choice([0, 1, 1, 1, 2])
        data: dict[str, Value] = {}
        for name in ("x", "y"):
            if draw.random() < 0.85:
                data[name] = _one(draw, 1, 2, 2, 3, 2.5, 1.0, "a")
        if draw.random() < 0.8:
            data["t"] = _one(draw, "a", "ab", "abc", "b", "a c", 3)
        if draw.random() < 0.6:
            moment = NOON + timedelta(seconds=draw.randrange(4))
            data["w"] = _one(draw, moment, moment.isoformat(), "noon", 2, True)
        if draw.random() < 0.6:
            data["z"] = _one(draw, 2**62, 2**63 - 1, 2**64, 2.0**64, -(2**63), 1, 10**400)
        if draw.random() < 0.6:
            data["f"] = _one(draw, True, False, 1)
        start = end - draw.choice([0, 0, 0, 1, 2])
        events.append(event(f"e{number}.", end, start, draw.choice("ssst"), **data))
    return events


def _one(draw: random.Random, *values: Value) -> Value:
    return draw.choice(values)


@pytest.mark.parametrize("check", CONTRACT)
def test_the_contract(check: str) -> None:
    CONTRACT[check](Subject(PlainMatcher, share=0.15))


@pytest.mark.parametrize("check", ["finds_the_worked_examples", "agrees_on_whole_batches"])
def test_the_contract_with_everything_in_programs(check: str) -> None:
    CONTRACT[check](Subject(lambda: PlainMatcher(MODES["no mqo"]), share=0.1))


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("indexed", [True, False])
def test_texts_on_random_streams(text: str, indexed: bool) -> None:
    for seed in range(12):
        events = stream(seed)
        plain = PlainMatcher(MODES["cayuga" if indexed else "no mqo"])
        assert found(text, events, plain) == found(text, events), seed


def test_the_texts_find_something() -> None:
    silent = [
        text for text in TEXTS if not any(found(text, stream(seed), PlainMatcher()) for seed in range(12))
    ]
    assert silent == ["from s a where a.x = 1 and a.x = 2 next s b", "from s a next s b where false"]
