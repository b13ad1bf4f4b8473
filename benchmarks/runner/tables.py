"""Reports as tables: what was measured down the side, the matchers across."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from rich.console import Console
from rich.table import Table

from benchmarks.runner.report import Measurement, Report

_WIDEST: Final = 7  # figures that a table has room for; more go into another
_AT_LEAST: Final = ("times", "%")  # units in which more is better


def show_by_matcher(report: Report, titles: Mapping[str, tuple[str, str]]) -> None:
    """Print a table for each experiment and figure; `titles` says what an experiment is, and what it varies."""
    console = Console()
    groups: dict[tuple[str, str], list[Measurement]] = {}
    for one in report.measurements:
        groups.setdefault((str(one.details["experiment"]), one.name), []).append(one)
    for (experiment, name), measurements in groups.items():
        title, varied = titles[experiment]
        has_phases = any("phase 2" in one.details for one in measurements)
        phases = " (of which phase 2)" if has_phases else ""
        console.print(f"\n{title}: {name}, {measurements[0].unit}{phases}", style="bold", highlight=False)
        console.print(_table(varied, measurements))
    console.print(f"left out: {report.parameters['left_out']}", highlight=False)


def show_by_place(
    report: Report, titles: Mapping[str, tuple[str, str]], gaps: Sequence[str], of: str = "matcher"
) -> None:
    """Print an experiment in a table, or several: a row for each place, matcher and kind of events, a column for a figure.

    `titles` says what an experiment is, and what it varies, and `of` what is compared. A measurement called as one of
    `gaps` is the estimate of what figures would have taken that were not.
    """
    console = Console()
    for experiment, (title, varied) in titles.items():
        found = [one for one in report.measurements if one.details["experiment"] == experiment]
        if not found:
            continue
        console.print(f"\n{title}", style="bold", highlight=False, markup=False)
        columns = list(dict.fromkeys((one.name, one.unit) for one in found if one.name not in gaps))
        for first in range(0, max(len(columns), 1), _WIDEST):
            console.print(_table_of_places(found, columns[first : first + _WIDEST], (varied, of), gaps))
    console.print(f"left out: {report.parameters['left_out']}", highlight=False, soft_wrap=True)


def _table_of_places(
    found: Sequence[Measurement],
    columns: Sequence[tuple[str, str]],
    headings: tuple[str, str],
    gaps: Sequence[str],
) -> Table:
    """Return a table of some figures, given by name and unit, a row for each place, matcher and kind of events."""
    table = Table()
    table.add_column(headings[0], justify="right")
    table.add_column(headings[1])
    has_kinds = any("kind" in one.details for one in found)
    if has_kinds:
        table.add_column("events")
    for name, unit in columns:
        table.add_column(f"{name}\n{unit}", justify="right")
    for (at, matcher), figures in _by_place(found).items():
        missing = [
            f", {name} ({_number(one.value)} {one.unit})"
            for (name, _), one in figures.items()
            if name in gaps
        ]
        for kind in dict.fromkeys(kind for _, kind in figures if kind) or [""]:
            taken = {name: one for (name, own), one in figures.items() if own in ("", kind)}
            cells = [_number(taken[name].value) if name in taken else "-" for name, _ in columns]
            named = [f"{matcher}{''.join(missing)}", *([kind] if has_kinds else [])]
            table.add_row(_place(at), *named, *cells)
    return table


def _by_place(
    measurements: Sequence[Measurement],
) -> dict[tuple[float | str, float | str], dict[tuple[str, str], Measurement]]:
    """Return the measurements by what they were taken at and by matcher, and then by name and kind of events."""
    found: dict[tuple[float | str, float | str], dict[tuple[str, str], Measurement]] = {}
    for one in measurements:
        place = found.setdefault((one.details["at"], one.details["matcher"]), {})
        place[one.name, str(one.details.get("kind", ""))] = one
    return found


def show_targets(report: Report) -> None:
    """Print the figures that have a target, if there are any."""
    table = Table(title="targets on one core", title_justify="left")
    for heading in ("what", "matcher", "at"):
        table.add_column(heading)
    for heading in ("figure", "target"):
        table.add_column(heading, justify="right")
    for one in report.measurements:
        if one.target is not None:
            kind = one.details.get("kind")
            table.add_row(
                f"{one.details['experiment']}: {one.name}" + (f", {kind}" if kind else ""),
                str(one.details["matcher"]),
                _place(one.details["at"]),
                f"{_number(one.value)} {one.unit}",
                _target(one),
            )
    if table.row_count:
        Console().print(table)


def show_closing(report: Report) -> None:
    """Print the closing table of strategies, if there is one: what was measured, and what the paper says of it."""
    from benchmarks.dbnet.network.closing import CLOSING, COLUMNS  # noqa: PLC0415 - only when asked for

    found = [one for one in report.measurements if one.details["experiment"] == CLOSING]
    units = {one.name: one.unit for one in found}
    table = Table(title="the closing table; in brackets what the paper says", title_justify="left")
    table.add_column("strategy")
    for name in COLUMNS:
        # In a narrow terminal a long word goes on in the next line, and nothing is cut off.
        table.add_column(f"{name}\n{units.get(name, '')}", justify="right", overflow="fold")
    for strategy in dict.fromkeys(one.details["matcher"] for one in found):
        own = {one.name: one for one in found if one.details["matcher"] == strategy}
        cells = [
            f"{_number(own[name].value)}"
            + (f" ({own[name].details['paper']})" if own[name].details["paper"] else "")
            for name in COLUMNS
        ]
        table.add_row(str(strategy), *cells)
    if found:
        Console().print(table)


def show_by_experiment(report: Report, titles: Mapping[str, str]) -> None:
    """Print a table for each experiment, with targets where there are any, and the plans of the queries."""
    console = Console()
    for experiment, title in titles.items():
        found = [one for one in report.measurements if one.details["experiment"] == experiment]
        table = Table(title=title, title_justify="left")
        for heading in ("of", "what"):
            table.add_column(heading)
        for heading in ("figure", "lowest", "highest", "target"):
            table.add_column(heading, justify="right")
        for one in found:
            spread = [one.details.get(name, "") for name in ("lowest", "highest")]
            table.add_row(
                str(one.details["of"]),
                one.name,
                f"{_number(one.value)} {one.unit}",
                *(figure if isinstance(figure, str) else _number(figure) for figure in spread),
                "" if one.target is None else _target(one),
            )
        console.print(table)
        for one in found:
            if "plan" in one.details:
                console.print(
                    f"\n{one.name}:\n{one.details['plan']}", highlight=False, markup=False, soft_wrap=True
                )


def _target(one: Measurement) -> str:
    """Return what a figure was to reach, and whether it missed that."""
    assert one.target is not None  # noqa: S101 - only those that have one are shown
    is_least = one.unit.endswith("/s") or one.unit in _AT_LEAST
    is_met = one.value >= one.target if is_least else one.value <= one.target
    return f"{'≥' if is_least else '≤'} {_number(one.target)}{'' if is_met else ' (missed)'}"


def _table(varied: str, measurements: Sequence[Measurement]) -> Table:
    table = Table()
    labels = list(dict.fromkeys(str(one.details["matcher"]) for one in measurements))
    table.add_column(varied, justify="right")
    for label in labels:
        table.add_column(label, justify="right")
    cells = {(one.details["at"], one.details["matcher"]): _cell(one) for one in measurements}
    for at in dict.fromkeys(one.details["at"] for one in measurements):
        table.add_row(_place(at), *(cells.get((at, label), "-") for label in labels))
    return table


def _cell(one: Measurement) -> str:
    second = one.details.get("phase 2")
    return f"{_number(one.value)} ({_number(second)})" if isinstance(second, float) else _number(one.value)


def _place(at: float | str) -> str:
    if isinstance(at, str):
        return at
    return f"{at:,}" if isinstance(at, int) else f"{at:,.2f}"


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
