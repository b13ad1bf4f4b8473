"""The paper's closing table (7), with measured values in place of its words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from benchmarks.dbnet.network.experiments import FULL
from benchmarks.runner.report import Measurement

CLOSING: Final = "closing table"
COLUMNS: Final = (
    "traffic",
    "highest stress",
    "state, subscribers",
    "state, network",
    "server time",
    "state, server",
)
"""What the paper calls traffic, MNS, state (subs), processing and state; it has no column for the network's state."""
_IN_WORDS: Final = {  # by strategy: what the paper says of each column
    "S-UN": ("very high", "high", "none", "", "medium", "high"),
    "S-MN": ("very high", "low", "none", "", "medium", "high"),
    "CN": ("high", "low", "high", "", "none", "none"),
    "CN+": ("medium", "low", "medium", "", "none", "none"),
    "S-CN": ("low", "low", "low", "", "low", "low"),
    "DS-CN": ("low", "low", "low", "", "none", "none"),
}
_NO_WORDS: Final = ("",) * len(COLUMNS)  # of a strategy that the paper does not have


def closing_table(measurements: Sequence[Measurement]) -> list[Measurement]:
    """Return the closing table's cells, from the largest simulations; none if they were not asked for."""
    full = [one for one in measurements if one.details["experiment"] == FULL and one.name in COLUMNS]
    cells = []
    for one in sorted(full, key=lambda one: COLUMNS.index(one.name)):
        strategy = str(one.details["matcher"])
        words = _IN_WORDS.get(strategy, _NO_WORDS)[COLUMNS.index(one.name)]
        details = {"experiment": CLOSING, "matcher": strategy, "at": one.details["at"], "paper": words}
        cells.append(Measurement(one.name, one.value, one.unit, None, details))
    return cells
