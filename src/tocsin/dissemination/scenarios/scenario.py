"""Scenarios of a simulation: a network, rows, subscriptions and changes, all drawn from a seed."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tocsin.dissemination.byte_model import ByteModel
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.dissemination.network.edge_lists import read_edges
from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import Overlay, place_overlay
from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.query_kinds.join_rows import JoinSide
from tocsin.dissemination.query_kinds.joins import JoinQueries
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.scenarios import walks
from tocsin.dissemination.scenarios.quotes import make_trace, read_quotes
from tocsin.dissemination.scenarios.ranges import DOMAIN, SHORT, TABLE_1, Ranges, draw_ranges
from tocsin.dissemination.setting import Setting
from tocsin.model.errors import TocsinError
from tocsin.views.aggregates.registry import RANGE_AGGREGATES
from tocsin.views.changes import Floats, PointChanges

_VALUES: Final = 20  # that distinct values are of
_SHOWN_NODES: Final = 48
_SHOWN_PHYSICAL: Final = 400
_SHOWN_SUBSCRIPTIONS: Final = 400
_LENGTHENED: Final = 2.5  # among few rows, short ranges hold none
_SHOWN_ROWS: Final = 40
_HUNDREDS: Final = -2  # so that some rows share an x
_SHOWN_SPIKES: Final = 0.02
_CANDIDATES: Final = 5_000
_SHOWN_STEPS: Final = 20


class Scenario(Struct, frozen=True, kw_only=True):
    """The parameters of a simulation, by default those of the paper's Table 1."""

    kind: str = "min"
    nodes: int = 1_000
    physical: int = 20_000
    links: Path | None = None  # a file of links, instead of a network that is made up
    subscriptions: int = 500_000
    population: int | None = (
        None  # subscriptions are the first of this many, and zones are split for all of them
    )
    short: bool = False  # ranges of figure 10 instead of Table 1's
    lengthened: float = 1.0  # how many times longer ranges are than that
    rows: int = 10_000
    decimals: int = 2  # of x, -2 for hundreds: with fewer, more rows share one, and are ignorable
    events: int = 200_000
    spikes: float = walks.SPIKES
    ignorable: float | None = 0.0  # the share of ignorable updates; None draws any update
    trace: bool = False  # quotes of stocks, and no rows that walk; `rows` to `ignorable` do not count
    quotes: Path | None = None  # the file of quotes; they are made up if it is None
    stocks: int = 3_053  # of quotes that are made up,
    steps: int = 120  # for so many steps
    splitting: Splitting = Splitting.SUBSCRIPTIONS
    field: int = 8  # bytes
    header: int = 0
    seed: int = 1

    def check(self) -> None:
        """Raise `TocsinError` for an impossible parameter, naming it."""
        if self.kind not in (*RANGE_AGGREGATES, JoinQueries.kind):
            raise TocsinError(
                f"there is no kind `{self.kind}`; there are: {', '.join(RANGE_AGGREGATES)}, {JoinQueries.kind}"
            )
        for name in ("nodes", "physical", "subscriptions", "rows", "field", "stocks", "steps"):
            if getattr(self, name) < 1:
                raise TocsinError(f"{name} is {getattr(self, name)}; give at least 1")
        for name in ("events", "header", "seed"):
            if getattr(self, name) < 0:
                raise TocsinError(f"{name} is {getattr(self, name)}; give at least 0")
        if not self.lengthened > 0:
            raise TocsinError(f"lengthened is {self.lengthened}; give more than 0, 1 for ranges as they are")
        if self.population is not None and self.population < self.subscriptions:
            raise TocsinError(
                f"population is {self.population}; give at least as many as there are subscriptions, {self.subscriptions}"
            )
        for name in ("spikes", "ignorable"):
            if (share := getattr(self, name)) is not None and not 0 <= share <= 1:
                raise TocsinError(f"{name} is {share}; it is a share, from 0 to 1")


class Prepared(Struct, frozen=True):
    """A drawn scenario: its network, its queries, of ranges or of a join, and the changes, one after another."""

    scenario: Scenario
    setting: Setting
    queries: Any
    changes: Changes


def prepare(scenario: Scenario) -> Prepared:
    """Return a scenario's network, queries and changes; raise `TocsinError` for impossible parameters."""
    scenario.check()
    if scenario.kind == JoinQueries.kind:
        return _prepare_join(scenario)
    x, y, changes, domain = _drawn(scenario)
    population = _population(scenario, domain, scenario.seed)
    ranges = population.first(scenario.subscriptions)
    queries = RangeQueries(scenario.kind, x, y, ranges.lows, ranges.highs)
    return Prepared(scenario, _place(scenario, population, x, domain), queries, changes)


def _prepare_join(scenario: Scenario) -> Prepared:
    """Return a scenario of a join; ranges of z are drawn as those of x are."""
    r, s = (walks.draw_rows(scenario.rows, table, scenario.seed) for table in JoinSide)
    population = _population(scenario, DOMAIN, scenario.seed)
    ranges = population.first(scenario.subscriptions)
    of_z = _population(scenario, DOMAIN, scenario.seed + 1).first(scenario.subscriptions)
    setting = _place(scenario, population, r.value, DOMAIN)
    queries = JoinQueries(r, s, ranges.lows, ranges.highs, z_lows=of_z.lows, z_highs=of_z.highs)
    return Prepared(scenario, setting, queries, walks.draw_changes(r, s, scenario.events, scenario.seed))


def _population(scenario: Scenario, domain: tuple[float, float], seed: int) -> Ranges:
    """Return the ranges of a scenario's whole population, of which its subscriptions are the first."""
    count = scenario.population or scenario.subscriptions
    distribution = (SHORT if scenario.short else TABLE_1).lengthened(scenario.lengthened)
    return draw_ranges(count, distribution, domain, seed)


def _place(scenario: Scenario, ranges: Ranges, rows: Floats, domain: tuple[float, float]) -> Setting:
    """Return the network of a scenario, built for these ranges and rows, with its server."""
    if scenario.links is None:
        overlay = _made_up(scenario.physical, scenario.nodes, scenario.seed)
    else:
        overlay = place_overlay(read_edges(scenario.links), scenario.nodes, seed=scenario.seed)
    drawn = {"lows": ranges.lows, "highs": ranges.highs, "rows": rows}
    can = build_can(scenario.nodes, scenario.splitting, **drawn, domain=domain, seed=scenario.seed)
    server = int(np.random.default_rng([scenario.seed, 6]).integers(scenario.nodes))
    return Setting(overlay, can, server, ByteModel(scenario.field, scenario.header), scenario.seed)


@lru_cache(maxsize=2)
def _made_up(physical: int, nodes: int, seed: int) -> Overlay:
    return place_overlay(make_topology(physical, seed=seed), nodes, seed=seed)


def _drawn(scenario: Scenario) -> tuple[Floats, Floats, PointChanges, tuple[float, float]]:
    """Return the rows' points, the changes and the domain."""
    if scenario.trace:
        made_up = scenario.stocks, scenario.steps, scenario.seed
        trace = make_trace(*made_up) if scenario.quotes is None else read_quotes(scenario.quotes)
        x, y, changes, domain = trace.x, trace.y, trace.changes, trace.domain
    else:
        points = walks.draw_points(scenario.rows, decimals=scenario.decimals, seed=scenario.seed)
        updates = walks.draw_updates(
            points, scenario.events, spikes=scenario.spikes, ignorable=scenario.ignorable, seed=scenario.seed
        )
        # A count changes only where rows move.
        changes = walks.moves(points, updates, scenario.seed) if scenario.kind == "count" else updates.changes
        x, y, domain = points.x, points.y, DOMAIN
        if scenario.kind == "max":  # spikes are above all rows, and updates are ignorable for a maximum
            y = walks.mirrored(y)
            old, new = walks.mirrored(changes.old_y), walks.mirrored(changes.new_y)
            changes = replace(changes, old_y=old, new_y=new)
    if scenario.kind == "distinct":
        y = walks.codes(y, _VALUES)
        changes = replace(
            changes, old_y=walks.codes(changes.old_y, _VALUES), new_y=walks.codes(changes.new_y, _VALUES)
        )
    return x, y, changes, domain


def pictured(scenario: Scenario) -> Scenario:
    """Return a scenario of the same sort that a page can show.

    It has fewer nodes, subscriptions and rows, since in a table of thousands an update reaches no farther than a dot. Rows
    that walk are at whole hundreds, so that there are ignorable updates, and spike more often; of their updates, and of
    quotes, a page takes the first of each sort.
    """
    return replace(
        scenario,
        nodes=min(scenario.nodes, _SHOWN_NODES),
        physical=min(scenario.physical, max(_SHOWN_PHYSICAL, _SHOWN_NODES)),
        subscriptions=min(scenario.subscriptions, _SHOWN_SUBSCRIPTIONS),
        lengthened=_LENGTHENED,
        rows=min(scenario.rows, _SHOWN_ROWS),
        decimals=min(scenario.decimals, _HUNDREDS),
        events=_CANDIDATES,
        spikes=max(scenario.spikes, _SHOWN_SPIKES),
        ignorable=None,
        stocks=min(scenario.stocks, _SHOWN_ROWS),
        steps=min(scenario.steps, _SHOWN_STEPS),
    )


def described(scenario: Scenario, rows: int) -> str:
    """Return the caption of a scenario, in a line."""
    source = "stock" if scenario.trace else "row"
    return (
        f"{scenario.kind} of {_counted(scenario.subscriptions, 'range')} over {_counted(rows, source)}, "
        f"{_counted(scenario.nodes, 'overlay node')}, seed {scenario.seed}"
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
