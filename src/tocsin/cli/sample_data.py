"""Small made-up files to try the commands with: flights out of New York, quotes, trades, and subscriptions to them.

They are the same on every machine: all randomness is `Random.random` with a seed, and arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from random import Random
from typing import Final

_DAYS: Final = 14
_AIRCRAFT: Final = 60
_CARRIERS: Final = ("AA", "B6", "DL", "EV", "UA", "US", "WN")
_ORIGINS: Final = ("EWR", "JFK", "LGA")
_DESTINATIONS: Final = (  # with miles, and minutes in the air
    ("BOS", 187, 39), ("DCA", 214, 46), ("CLT", 529, 85), ("ORD", 733, 116), ("ATL", 760, 113), ("MIA", 1089, 152),
    ("IAH", 1400, 198), ("DEN", 1620, 227), ("LAX", 2475, 329), ("SFO", 2586, 346), ("HNL", 4983, 623),
)  # fmt: skip
_SYMBOLS: Final = (
    "AMZN", "BA", "CAT", "DIS", "GE", "IBM", "INTC", "JNJ", "KO", "MSFT", "NKE", "ORCL", "PFE", "T", "WMT", "XOM"
)  # fmt: skip
_TRADES: Final = 2_000
_ROUNDS: Final = 40  # of quotes

SUBSCRIPTIONS: Final = """\
-- subscriptions to flights.csv
five-hours-late: dep_delay > 300
made-up-time: dep_delay > 15 and arr_delay <= 0
cancelled-at-jfk: origin = 'JFK' and dep_delay is missing
shuttle-is-late:
  dest in ('BOS', 'DCA')
  and dep_delay between 120 and 180
late-to-hawaii: dest = 'HNL' and not arr_delay <= 30
fast: distance / air_time * 60 > 500
"""


def sample_files() -> dict[str, str]:
    """Return the text of each file by its name."""
    return {
        "flights.csv": _csv(
            "time,carrier,flight,tailnum,origin,dest,distance,air_time,dep_delay,arr_delay", _flights()
        ),
        "quotes.csv": _csv("time,symbol,price,per,risk", _quotes()),
        "trades.csv": _csv("time,symbol,price,volume", _trades()),
        "alerts.csv": _csv("s,p", _alerts()),
        "subscriptions.txt": SUBSCRIPTIONS,
    }


def _csv(header: str, rows: Iterator[Sequence[object]]) -> str:
    return "\n".join([header, *(",".join(map(str, row)) for row in rows)]) + "\n"


def _moment(begin: datetime, seconds: float) -> str:
    return f"{begin + timedelta(seconds=int(seconds)):%Y-%m-%dT%H:%M:%SZ}"


def _pick(random: Random, choices: Sequence[str]) -> str:
    return choices[int(random.random() * len(choices))]


def _flights() -> Iterator[Sequence[object]]:
    """Yield two weeks of flights: each aircraft leaves once or twice a day, and a delay lasts until its next departure."""
    random, begin = Random(2013), datetime(2026, 1, 1, tzinfo=UTC)  # noqa: S311 - nothing is secret
    found = []
    for aircraft in range(_AIRCRAFT):
        carrier, tailnum = (
            _CARRIERS[aircraft % len(_CARRIERS)],
            f"N{100 + 7 * aircraft}{'ABJUX'[aircraft % 5]}",
        )
        origin, number = _pick(random, _ORIGINS), 1 + 31 * aircraft
        for day in range(_DAYS):
            delay, hour = 0.0, 10 + random.random() * 5
            for leg in range(1 + (random.random() < 0.8)):
                dest, distance, minutes = _DESTINATIONS[int(random.random() ** 1.5 * len(_DESTINATIONS))]
                delay = 0.8 * max(delay, 0) - 8 + 25 * random.random() ** 3 + 480 * random.random() ** 32
                air_time = round(minutes * (0.92 + 0.18 * random.random()))
                is_flown = random.random() > 0.015
                late = (round(delay), round(delay + 45 * (random.random() - 0.6))) if is_flown else ("", "")
                time = _moment(begin, (day * 24 + hour) * 3600 // 300 * 300)
                where = (origin, dest, distance, air_time if is_flown else "")
                found.append((time, carrier, number + leg, tailnum, *where, *late))
                hour += 5 + 4 * random.random()
    yield from sorted(found, key=lambda row: row[:3])


def _quotes() -> Iterator[Sequence[object]]:
    """Yield quotes of each stock every ten minutes or so: its price, price to earnings, and risk from 0 to 100."""
    random, begin = Random(500), datetime(2026, 1, 15, 14, 30, tzinfo=UTC)  # noqa: S311
    prices = {symbol: 20 + 180 * random.random() for symbol in _SYMBOLS}
    risks = {symbol: 10 + 80 * random.random() for symbol in _SYMBOLS}
    earnings = {symbol: price / (6 + 24 * random.random()) for symbol, price in prices.items()}
    for number in range(_ROUNDS * len(_SYMBOLS)):
        symbol = _SYMBOLS[number % len(_SYMBOLS)]
        prices[symbol] *= 1 + 0.03 * (random.random() - 0.49)
        risks[symbol] = min(max(risks[symbol] + 6 * (random.random() - 0.5), 0), 100)
        price = prices[symbol]
        time = _moment(begin, number * 36 + 30 * random.random())
        yield time, symbol, f"{price:.2f}", f"{price / earnings[symbol]:.1f}", f"{risks[symbol]:.0f}"


def _trades() -> Iterator[Sequence[object]]:
    """Yield a day of trades, with a jump of the price now and then."""
    random, begin = Random(77), datetime(2026, 1, 15, 14, 30, tzinfo=UTC)  # noqa: S311
    prices = {symbol: 20 + 180 * random.random() for symbol in _SYMBOLS}
    seconds = 0.0
    for _ in range(_TRADES):
        symbol = _pick(random, _SYMBOLS)
        seconds += 1 + 20 * random.random()
        change = 0.008 * (random.random() - 0.5)
        if random.random() < 0.02:
            change = 0.12 * (random.random() - 0.5)
        prices[symbol] *= 1 + change
        yield (
            _moment(begin, seconds),
            symbol,
            f"{prices[symbol]:.2f}",
            100 * (1 + int(40 * random.random() ** 3)),
        )


def _alerts() -> Iterator[Sequence[object]]:
    """Yield the rows of a template: an alert for each symbol and price."""
    for symbol in _SYMBOLS:
        for price in (50, 100, 150):
            yield symbol, price
