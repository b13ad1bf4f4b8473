"""The technical benchmark (Cayuga 4.1, table 3): five templates of sequences over one stream of eight attributes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import Blocks, Ragged, check_parameters
from benchmarks.workloads.distributions import zipf
from benchmarks.workloads.tabular import FilledTemplate, split

STREAM: Final = "s"
TIME: Final = "t"
_SUBSCRIPTIONS, _EVENTS = 0, 1
_ALIASES: Final = "abcdefghijklmnopqrstuvwxyz"

Kind = Literal["LinearStat", "LinearDyn", "Filter", "NonDeterministic", "NonDeterministicAgg"]


class Parameters(Struct, frozen=True, forbid_unknown_fields=True):
    """Table 3, and the parameters it leaves open.

    The discrete attributes are `d1` and so on, with whole numbers from 0; the continuous ones are `c1` and so on,
    from 0 to 1. Number k of attributes, values and ranges is drawn as often as Zipf's exponent says. Attributes are
    drawn by that of the first step, for all steps alike; with `by_step`, for each step anew, but for the primary one.
    """

    events: int = 100_000
    discrete: int = 4  # attributes
    continuous: int = 4
    subscriptions: int = 200_000
    domain: int = 100  # values of a discrete attribute
    equalities: int = 2  # atomic predicates of a step: on the primary attribute, and on others
    inequalities: int = 2
    ranges: int = 25  # that an inequality can ask for: equally wide, equally far apart
    selectivity: float = 0.7  # of an inequality
    zipf: tuple[float, ...] = (1.0, 1.0, 0.8)  # an exponent for each step
    duration: int = 20  # t, in ticks
    rise: float = 1.01  # LinearDyn: how many times the value of the step before is to be exceeded
    by_step: bool = False

    def __post_init__(self) -> None:
        faults = {
            "a sequence needs a step, and a step an exponent of Zipf": not self.zipf,
            "an exponent of Zipf is 0 or more": any(exponent < 0 for exponent in self.zipf),
            "a step has a predicate on the primary attribute, and no more than there are discrete attributes": not 1
            <= self.equalities
            <= self.discrete,
            "a step has no more inequalities than there are continuous attributes": not 0
            <= self.inequalities
            <= self.continuous,
            "a selectivity is above 0 and at most 1": not 0 < self.selectivity <= 1,
            "there is at least one value, and one range": self.domain < 1 or self.ranges < 1,
            "a duration is at least a tick": self.duration < 1,
        }
        check_parameters(faults)

    @property
    def steps(self) -> int:
        """Return how many steps a sequence has."""
        return len(self.zipf)

    def range(self, number: NDArray[np.integer[Any]]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return where ranges begin and end, by their numbers."""
        lows = number.astype(np.float64) * ((1.0 - self.selectivity) / max(self.ranges - 1, 1))
        return lows, lows + self.selectivity


TABLE_3: Final = Parameters()


class _Drawn:
    """Columns of a matrix of drawn subscriptions, a row each: where which of its numbers stands."""

    def __init__(self, p: Parameters) -> None:
        equal, unequal, steps = p.equalities, p.inequalities, p.steps
        widths = {
            "equal": equal * steps,  # attributes of each step, the primary one first
            "unequal": unequal * steps,  # attributes, ascending
            "compared": steps,  # the attribute that LinearDyn compares with the step before
            "values": equal * steps,
            "ranges": unequal * steps,
        }
        ends = np.cumsum(list(widths.values())).tolist()
        self.width = ends[-1]
        self._shape = {"equal": equal, "unequal": unequal, "values": equal, "ranges": unequal}
        self._places = {
            name: slice(end - width, end) for (name, width), end in zip(widths.items(), ends, strict=True)
        }

    def of(self, rows: NDArray[np.int32], name: str) -> NDArray[np.int32]:
        """Return a part of each row: [rows, steps] or [rows, steps, predicates]."""
        part = rows[:, self._places[name]]
        inner = self._shape.get(name)
        return part if inner is None else part.reshape(len(rows), -1, inner)

    def attributes(self, rows: NDArray[np.int32], *, compared: bool) -> NDArray[np.int32]:
        """Return all attributes of a row, which determine its template."""
        names = ("equal", "unequal", "compared") if compared else ("equal", "unequal")
        return np.concatenate([rows[:, self._places[name]] for name in names], axis=1)


class Workload:
    """Subscriptions of one kind, and events, one a tick; the same seed draws the same ones, whatever the batches."""

    def __init__(self, parameters: Parameters = TABLE_3, kind: Kind = "LinearStat", seed: int = 1) -> None:
        self.parameters = parameters
        self.kind: Kind = kind
        self._columns = _Drawn(parameters)
        self._subscriptions = Blocks((seed, _SUBSCRIPTIONS), self._draw_subscriptions)
        self._events = Blocks((seed, _EVENTS), self._draw_events)
        self._values = [zipf(parameters.domain, exponent) for exponent in parameters.zipf]
        self._ranges = [zipf(parameters.ranges, exponent) for exponent in parameters.zipf]

    def subscriptions(self, begin: int = 0, end: int | None = None) -> list[FilledTemplate]:
        """Return the subscriptions from number `begin` to `end`, those over the same attributes together."""
        end = self.parameters.subscriptions if end is None else end
        rows = self._subscriptions.rows(begin, end).columns[0].reshape(end - begin, -1)
        keys = self._columns.attributes(rows, compared=self.kind == "LinearDyn")
        return [self._rows(rows[places], places + begin) for places in split(keys)]

    def levels(self, end: int | None = None) -> tuple[int, ...]:
        """Return how many first steps the subscriptions up to number `end` have, how many first two steps, and so on.

        That is how many nodes there are at each level, once what is equal is merged.
        """
        end = self.parameters.subscriptions if end is None else end
        rows = self._subscriptions.rows(0, end).columns[0].reshape(end, -1)
        parts = [self._columns.of(rows, name) for name in ("equal", "unequal", "values", "ranges")]
        reached, found = np.zeros(end, dtype=np.int64), []
        for step in range(self.parameters.steps):
            keys = [part[:, step] for part in parts]
            if self.kind == "LinearDyn" and step:
                keys.append(self._columns.of(rows, "compared")[:, step, None])
            _, reached = np.unique(np.column_stack([reached, *keys]), axis=0, return_inverse=True)
            reached = reached.reshape(-1)
            found.append(int(reached.max(initial=-1)) + 1)
        return tuple(found)

    def events(self, begin: int = 0, end: int | None = None, *, batch: int = 1_000) -> Iterator[pa.Table]:
        """Return the events from number `begin` to `end` in batches; event n happens at tick n + 1."""
        p = self.parameters
        end = p.events if end is None else end
        for first, rows in self._events.batches(begin, end, batch):
            held = rows.columns[0].reshape(-1, p.discrete + p.continuous)
            columns: dict[str, NDArray[Any]] = {TIME: np.arange(first + 1, first + len(held) + 1)}
            for place in range(p.discrete):
                columns[f"d{place + 1}"] = held[:, place].astype(np.int64)
            for place in range(p.continuous):
                columns[f"c{place + 1}"] = np.ascontiguousarray(held[:, p.discrete + place])
            yield pa.table(columns)

    def _rows(self, rows: NDArray[np.int32], numbers: NDArray[np.int64]) -> FilledTemplate:
        """Return the subscriptions of drawn rows, which are all over the same attributes."""
        p, part = self.parameters, self._columns.of
        equal, unequal, compared = (part(rows, name)[0] for name in ("equal", "unequal", "compared"))
        values, ranges = part(rows, "values"), part(rows, "ranges")
        columns: dict[str, NDArray[Any]] = {"p": values[:, 0, 0].astype(np.int64)}
        steps = []
        for number in range(p.steps):
            step = Step.of(number, equal[number], unequal[number], int(compared[number]))
            for place, name in enumerate(step.equal[1:], 1):
                columns[step.parameter(name)] = values[:, number, place].astype(np.int64)
            for place, name in enumerate(step.unequal):
                lows, highs = p.range(ranges[:, number, place])
                columns[step.parameter(name, "low")] = lows
                columns[step.parameter(name, "high")] = highs
            steps.append(step)
        continuous = [f"c{place + 1}" for place in range(p.continuous)]
        text = write_template(self.kind, STREAM, steps, duration=p.duration, rise=p.rise, summed=continuous)
        return FilledTemplate(text, numbers, columns)

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        equal, unequal, compared = [], [], []
        primary: NDArray[np.int64] | None = None
        for _ in range(p.steps if p.by_step else 1):
            ordered = _ordered(random, count, p.discrete, p.zipf[0], primary)
            primary = ordered[:, 0]
            others = np.sort(ordered[:, 1 : p.equalities], axis=1)
            equal.append(np.concatenate([ordered[:, :1], others], axis=1))
            chosen = _ordered(random, count, p.continuous, p.zipf[0])
            unequal.append(np.sort(chosen[:, : p.inequalities], axis=1))
            compared.append(chosen[:, :1])
        if not p.by_step:
            equal, unequal, compared = (part * p.steps for part in (equal, unequal, compared))
        values = [choice.draw(random, (count, p.equalities)) for choice in self._values]
        for later in values[1:]:
            later[:, 0] = values[0][:, 0]  # the primary predicate has one value in all steps
        ranges = [choice.draw(random, (count, p.inequalities)) for choice in self._ranges]
        drawn = np.concatenate([*equal, *unequal, *compared, *values, *ranges], axis=1)
        return Ragged.even(drawn.astype(np.int32))

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        discrete = random.integers(0, p.domain, (count, p.discrete)).astype(np.float64)
        return Ragged.even(np.concatenate([discrete, random.random((count, p.continuous))], axis=1))


class Step(Struct, frozen=True):
    """The attributes that a step's formula is over, the primary one first."""

    alias: str
    equal: tuple[str, ...]
    unequal: tuple[str, ...]
    compared: str

    @classmethod
    def of(cls, number: int, equal: NDArray[np.int32], unequal: NDArray[np.int32], compared: int) -> Step:
        """Return a step by its number and those of its attributes."""
        discrete = tuple(f"d{attribute + 1}" for attribute in equal.tolist())
        continuous = tuple(f"c{attribute + 1}" for attribute in unequal.tolist())
        return cls(_ALIASES[number], discrete, continuous, f"c{compared + 1}")

    def parameter(self, attribute: str, bound: str = "") -> str:
        """Return the name of a predicate's parameter."""
        return "_".join(filter(None, (self.alias, attribute, bound)))

    def primary(self) -> str:
        """Return the primary predicate."""
        return f"{self.alias}.{self.equal[0]} = :p"

    def formula(self) -> str:
        """Return the equalities and the inequalities."""
        equal = [f"{self.alias}.{name} = :{self.parameter(name)}" for name in self.equal[1:]]
        unequal = [
            f"{self.alias}.{name} between :{self.parameter(name, 'low')} and :{self.parameter(name, 'high')}"
            for name in self.unequal
        ]
        return " and ".join([self.primary(), *equal, *unequal])


def write_template(
    kind: str, stream: str, steps: Sequence[Step], *, duration: int, rise: float, summed: Sequence[str]
) -> str:
    """Return a template's text: one of the five kinds, over these steps of a stream; `summed` are attributes."""
    first = steps[0]
    parts = [f"from {stream} {first.alias} where {first.formula()}"]
    has_sums = kind == "NonDeterministicAgg"
    if has_sums:
        parts.append("compute " + ", ".join(f"sum_{name} = {first.alias}.{name}" for name in summed))
    for before, step in pairwise(steps):
        until = f"duration <= {duration} and {step.primary()}"
        if kind in ("LinearStat", "LinearDyn"):
            parts.append(f"next {stream} {step.alias}")
        elif kind == "Filter":
            parts.append(f"next {stream} {step.alias} on {until}")
        else:
            parts.append(f"fold {stream} {step.alias} on {until}")
        if has_sums:
            added = (f"sum_{name} = last.sum_{name} + {step.alias}.{name}" for name in summed)
            parts.append("compute " + ", ".join(added))
        parts.append(f"where {step.formula()}")
        if kind == "LinearDyn":
            name = step.compared
            parts.append(f"and {step.alias}.{name} > {rise} * {before.alias}.{name}")
    return " ".join(parts)


def _ordered(
    random: Generator, count: int, among: int, exponent: float, first: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """Return, for each row, all numbers in the order in which they would be drawn by Zipf; `first` before all.

    A key is exponential with the number's weight as its rate, so that the keys come in that order.
    """
    weights = np.arange(1, among + 1, dtype=np.float64) ** -exponent
    keys = random.standard_exponential((count, among)) / weights
    if first is not None:
        keys[np.arange(count), first] = -1.0
    return np.argsort(keys, axis=1)
