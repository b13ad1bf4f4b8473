"""Scenarios that are small enough to be looked at."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from tocsin.dissemination.scenarios.scenario import Scenario

_NODES: Final = 48
_PHYSICAL: Final = 400
_SUBSCRIPTIONS: Final = 400
_LENGTHENED: Final = 2.5  # among few rows, short ranges hold none
_ROWS: Final = 40
_HUNDREDS: Final = -2  # so that some rows share an x
_SPIKES: Final = 0.02
_CANDIDATES: Final = 5_000
_STEPS: Final = 20


def pictured(scenario: Scenario) -> Scenario:
    """Return a scenario of the same sort that a page can show.

    It has fewer nodes, subscriptions and rows, since in a table of thousands an update reaches no farther than a dot. Rows
    that walk are at whole hundreds, so that there are ignorable updates, and spike more often; of their updates, and of
    quotes, a page takes the first of each sort.
    """
    return replace(
        scenario,
        nodes=min(scenario.nodes, _NODES),
        physical=min(scenario.physical, max(_PHYSICAL, _NODES)),
        subscriptions=min(scenario.subscriptions, _SUBSCRIPTIONS),
        lengthened=_LENGTHENED,
        rows=min(scenario.rows, _ROWS),
        decimals=min(scenario.decimals, _HUNDREDS),
        events=_CANDIDATES,
        spikes=max(scenario.spikes, _SPIKES),
        ignorable=None,
        stocks=min(scenario.stocks, _ROWS),
        steps=min(scenario.steps, _STEPS),
    )


def described(scenario: Scenario, rows: int) -> str:
    """Return what a picture is of, in a line."""
    source = "stock" if scenario.trace else "row"
    return (
        f"{scenario.kind} of {_counted(scenario.subscriptions, 'range')} over {_counted(rows, source)}, "
        f"{_counted(scenario.nodes, 'overlay node')}, seed {scenario.seed}"
    )


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"
