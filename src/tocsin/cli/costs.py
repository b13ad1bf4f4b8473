"""A table of the costs of strategies: one row per figure, one column per strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

if TYPE_CHECKING:  # it brings the compiler
    from tocsin.dissemination.simulator import CostSummary

_WIDEST: Final = 1_000


def show_costs(found: Sequence[CostSummary]) -> None:
    """Print a column for each strategy; a terminal that is too narrow wraps lines, and no figure is cut."""
    table = Table(box=SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1))
    table.add_column("mean of an event", no_wrap=True)
    for one in found:
        table.add_column(one.strategy, justify="right", no_wrap=True)
    for ends_part, name, cell in _ROWS:
        table.add_row(name, *(cell(one) for one in found), end_section=ends_part)
    needed = Console(width=_WIDEST).measure(table).maximum
    Console(width=max(Console().width, needed)).print(table)


def bytes_text(count: float) -> str:
    """Return a number of bytes in three digits or so: `640 B`, `1.2 MB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{_number(count)} {unit}"
        count /= 1000
    return f"{_number(count)} TB"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


_ROWS: Final[Sequence[tuple[bool, str, Callable[[CostSummary], str]]]] = (
    (False, "overlay hops", lambda one: _number(one.overlay_hops)),
    (False, "IP hops", lambda one: _number(one.ip_hops)),
    (False, "bytes", lambda one: _number(one.size)),
    (False, "max. node stress", lambda one: _number(one.stress)),
    (False, "  highest", lambda one: _number(one.highest_stress)),
    (True, "steps", lambda one: _number(one.steps)),
    (False, "server messages", lambda one: _number(one.server_messages)),
    (True, "server time, us", lambda one: _number(one.server_us)),
    (True, "busiest link, in all", lambda one: bytes_text(one.busiest_link)),
    (False, "state at the server", lambda one: bytes_text(one.server_state)),
    (False, "  in the network", lambda one: bytes_text(one.network_state)),
    (True, "  at subscribers", lambda one: bytes_text(one.subscriber_state)),
    (False, "answers changed", lambda one: _number(one.changed_answers)),
)
