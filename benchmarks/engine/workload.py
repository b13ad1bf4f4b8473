"""Alerts on real flights, as the engine, a plain Python loop and a database take them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

import numpy as np
import pyarrow as pa
from msgspec import Struct

from tocsin.cli.flights import flights_table

STREAM: Final = "flights"
ATTRIBUTES: Final = ("carrier", "flight", "origin", "dest", "month", "day", "dep_delay", "arr_delay")
_DELAYS: Final = (15, 30, 45, 60, 90, 120)
_SEED: Final = 11
_NEVER: Final = (
    -1_000
)  # minutes: no alert is for flights that leave so early, so it stands for an absent delay

Condition: TypeAlias = Callable[[Mapping[str, Any]], bool]


class AlertKind(Struct, frozen=True):
    """Alerts of one template, about the flights that equal a given one in some columns and are late."""

    share: float
    columns: tuple[str, ...]

    @property
    def text(self) -> str:
        """Return the template."""
        equalities = " and ".join(f"{name} = :{name}" for name in self.columns)
        return f"{equalities} and dep_delay > :minutes"


KINDS: Final = (
    AlertKind(0.1, ("carrier", "flight", "month", "day")),
    AlertKind(0.1, ("origin", "dest", "month", "day")),
    AlertKind(0.8, ("carrier", "flight")),
)
"""With 100,000 of these alerts, a flight has 3.5 matches on average."""


class Alerts(Struct, frozen=True):
    """Alerts of one kind: a row of parameters each."""

    kind: AlertKind
    rows: pa.Table

    def texts(self) -> Iterator[str]:
        """Return each alert as a text of its own."""
        for row in self.rows.to_pylist():
            parts = [f"{name} = {_literal(row[name])}" for name in self.kind.columns]
            yield " and ".join([*parts, f"dep_delay > {row['minutes']}"])

    def lambdas(self) -> Iterator[str]:
        """Return each alert as Python code."""
        for row in self.rows.to_pylist():
            parts = [f"e[{name!r}] == {row[name]!r}" for name in self.kind.columns]
            yield f"lambda e: {' and '.join(parts)} and e.get('dep_delay', {_NEVER}) > {row['minutes']}"


def _literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


@cache
def flights() -> pa.Table:
    """Return all flights."""
    return flights_table()


def draw_alerts(count: int) -> list[Alerts]:
    """Return `count` alerts about random flights, the same each time; half of the first two are of the first kind."""
    random = np.random.default_rng(_SEED)
    sizes = [round(count * kind.share) for kind in KINDS]
    sizes[0] += count - sum(sizes)
    drawn = []
    for kind, size in zip(KINDS, sizes, strict=True):
        rows = (
            flights().select(list(kind.columns)).take(pa.array(random.integers(0, flights().num_rows, size)))
        )
        drawn.append(Alerts(kind, rows.append_column("minutes", pa.array(random.choice(_DELAYS, size)))))
    return drawn


def compiled_lambdas(alerts: Sequence[Alerts]) -> list[Condition]:
    """Return alerts as compiled Python functions."""
    return [compile_lambda(code, timestamps=True) for one in alerts for code in one.lambdas()]


def dicts(count: int, attributes: Sequence[str] = ATTRIBUTES) -> list[dict[str, Any]]:
    """Return the first flights as dicts of some attributes, without absent values."""
    rows = flights().select(list(attributes)).slice(0, count).to_pylist()
    return [{name: value for name, value in row.items() if value is not None} for row in rows]


def event_columns(count: int) -> pa.Table:
    """Return the first flights as a table of the same attributes."""
    return flights().select(list(ATTRIBUTES)).slice(0, count)


_TEXTS: Final = {"EVE": "2013-12-24T00:00:00Z", "BOXING_DAY": "2013-12-26T23:59:59Z"}
_TIMES: Final = {name: datetime.fromisoformat(text) for name, text in _TEXTS.items()}


def compile_lambda(code: str, *, timestamps: bool) -> Condition:
    """Return a condition in Python, compiled; `time` is a datetime, or else an ISO text."""
    found: Condition = eval(code, {"re": re, **(_TIMES if timestamps else _TEXTS)})  # noqa: S307 - our own text
    return found


DEMO_LAMBDAS: Final[Mapping[str, str]] = {
    "five hours late": "lambda e: e.get('dep_delay', -9999) > 300",
    "an hour early": "lambda e: e.get('arr_delay', 9999) <= -60",
    "made up an hour": "lambda e: e.get('dep_delay', -9999) > 60 and e.get('arr_delay', 9999) <= 0",
    "lost two hours in the air": "lambda e: 'arr_delay' in e and 'dep_delay' in e and e['arr_delay'] > e['dep_delay'] + 120",
    "faster than 570 mph": "lambda e: 'air_time' in e and e['distance'] > 570 / 60 * e['air_time']",
    "cancelled at JFK": "lambda e: e['origin'] == 'JFK' and 'dep_time' not in e and 'arr_time' not in e",
    "shuttle is late": "lambda e: e['dest'] in ('BOS', 'DCA') and 120 <= e.get('dep_delay', -9999) <= 180",
    "late to Hawaii": "lambda e: e['dest'] == 'HNL' and e.get('arr_delay', -9999) > 30",
    "night owls to the Bay": "lambda e: re.search('^(SFO|OAK|SJC)$', e['dest']) and e['hour'] >= 20 and e.get('dep_delay', -9999) > 60",
    "JetBlue's long wait": "lambda e: re.match('N...JB$', e.get('tailnum', '')) and e.get('dep_delay', -9999) > 240",
    "Christmas delays": "lambda e: EVE <= e['time'] <= BOXING_DAY and e.get('dep_delay', -9999) > 90",
    "small airlines, big trouble": "lambda e: e['carrier'] in ('OO', 'HA', 'YV', 'F9', 'AS') and (e.get('dep_delay', -9999) > 180 or e.get('arr_delay', -9999) > 180)",
}
"""The filters of `tocsin demo` as somebody would write them in Python, for `compile_lambda`."""


DEMO_SQL: Final[Mapping[str, str]] = {
    "five hours late": "dep_delay > 300",
    "an hour early": "arr_delay <= -60",
    "made up an hour": "dep_delay > 60 and arr_delay <= 0",
    "lost two hours in the air": "arr_delay > dep_delay + 120",
    "faster than 570 mph": "distance > 570.0 / 60 * air_time",
    "cancelled at JFK": "origin = 'JFK' and dep_time is null and arr_time is null",
    "shuttle is late": "dest in ('BOS', 'DCA') and dep_delay between 120 and 180",
    "late to Hawaii": "dest = 'HNL' and arr_delay > 30",
    "night owls to the Bay": "regexp_matches(dest, '^(SFO|OAK|SJC)$') and hour >= 20 and dep_delay > 60",
    "JetBlue's long wait": "tailnum like 'N___JB' and dep_delay > 240",
    "Christmas delays": "time between '2013-12-24T00:00:00Z' and '2013-12-26T23:59:59Z' and dep_delay > 90",
    "small airlines, big trouble": "carrier in ('OO', 'HA', 'YV', 'F9', 'AS') and (dep_delay > 180 or arr_delay > 180)",
}
"""The same in SQL."""
