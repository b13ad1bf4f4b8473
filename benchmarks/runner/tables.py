"""Reports as tables at the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from rich.console import Console
from rich.table import Table

from benchmarks.runner.benchmark import Experiment
from benchmarks.runner.report import Measurement, Report, of_experiment

_WIDEST: Final = 7  # measurements that a table has room for; more go into another
_AT_LEAST: Final = ("times", "%")  # units in which more is better


def table_of(left: Sequence[str], right: Sequence[str], title: str = "") -> Table:
    """Return an empty table: columns of text, then columns of numbers."""
    table = Table(title=title or None, title_justify="left")
    for heading in left:
        table.add_column(heading)
    for heading in right:
        # In a narrow terminal a long word goes on in the next line, and nothing is cut off.
        table.add_column(heading, justify="right", overflow="fold")
    return table


def show_by_matcher(report: Report, experiments: Mapping[str, Experiment[Any]]) -> None:
    """Print a table for each experiment and measurement, a column for each contender."""
    console = Console()
    for title, varied, found in titled(report, experiments):
        for name in dict.fromkeys(one.name for one in found):
            chosen = [one for one in found if one.name == name]
            phases = " (of which phase 2)" if any("phase 2" in one.details for one in chosen) else ""
            console.print(f"\n{title}: {name}, {chosen[0].unit}{phases}", style="bold", highlight=False)
            labels = list(dict.fromkeys(str(one.details["matcher"]) for one in chosen))
            cells = {(one.details["at"], one.details["matcher"]): _with_phase(one) for one in chosen}
            table = table_of((), (varied, *labels))
            for at in dict.fromkeys(one.details["at"] for one in chosen):
                table.add_row(_place(at), *(cells.get((at, label), "-") for label in labels))
            console.print(table)
    _show_left_out(report)
    show_targets(report)


def show_by_place(
    report: Report, experiments: Mapping[str, Experiment[Any]], gaps: Sequence[str] = (), of: str = "matcher"
) -> None:
    """Print tables for each experiment: a row for each place, contender and kind of events, a column for a measurement.

    `of` names the contenders. A measurement named in `gaps` estimates the cost of skipped runs.
    """
    console = Console()
    for title, varied, found in titled(report, experiments):
        console.print(f"\n{title}", style="bold", highlight=False, markup=False)
        columns = list(dict.fromkeys((one.name, one.unit) for one in found if one.name not in gaps))
        for first in range(0, max(len(columns), 1), _WIDEST):
            console.print(_table_of_places(found, columns[first : first + _WIDEST], (varied, of), gaps))
    _show_left_out(report)
    show_targets(report)


def _table_of_places(
    found: Sequence[Measurement],
    columns: Sequence[tuple[str, str]],
    headings: tuple[str, str],
    gaps: Sequence[str],
) -> Table:
    has_kinds = any("kind" in one.details for one in found)
    table = Table()
    table.add_column(headings[0], justify="right")
    for heading in (headings[1], *(["events"] if has_kinds else [])):
        table.add_column(heading)
    for name, unit in columns:
        table.add_column(f"{name}\n{unit}", justify="right")
    rows: dict[tuple[float | str, float | str], list[Measurement]] = {}
    for one in found:
        rows.setdefault((one.details["at"], one.details["matcher"]), []).append(one)
    for (at, matcher), own in rows.items():
        missing = "".join(f", {one.name} ({number(one.value)} {one.unit})" for one in own if one.name in gaps)
        for kind in dict.fromkeys(str(one.details["kind"]) for one in own if "kind" in one.details) or [""]:
            cells = {one.name: number(one.value) for one in own if one.details.get("kind", kind) == kind}
            named = [f"{matcher}{missing}", *([kind] if has_kinds else [])]
            table.add_row(_place(at), *named, *(cells.get(name, "-") for name, _ in columns))
    return table


def show_runs(report: Report, experiments: Mapping[str, Experiment[Any]]) -> None:
    """Print a table for each experiment, a row for each measurement with its runs, and the plans of the queries."""
    console = Console()
    for title, _, found in titled(report, experiments):
        table = table_of(("of", "what"), ("median", "lowest", "highest", "target"), title)
        for one in found:
            spread = [one.details.get(name, "") for name in ("lowest", "highest")]
            table.add_row(
                str(one.details["of"]),
                one.name,
                f"{number(one.value)} {one.unit}",
                *(value if isinstance(value, str) else number(value) for value in spread),
                "" if one.target is None else _target(one),
            )
        console.print(table)
        for one in found:
            if "plan" in one.details:
                text = f"\n{one.name}:\n{one.details['plan']}"
                console.print(text, highlight=False, markup=False, soft_wrap=True)


def show_targets(report: Report) -> None:
    """Print the measurements that have a target, if there are any."""
    table = table_of(("what", "matcher", "at"), ("figure", "target"), "targets on one core")
    for one in report.measurements:
        if one.target is not None:
            kind = one.details.get("kind")
            table.add_row(
                f"{one.details['experiment']}: {one.name}" + (f", {kind}" if kind else ""),
                str(one.details["matcher"]),
                _place(one.details["at"]),
                f"{number(one.value)} {one.unit}",
                _target(one),
            )
    if table.row_count:
        Console().print(table)


def titled(
    report: Report, experiments: Mapping[str, Experiment[Any]]
) -> Iterator[tuple[str, str, list[Measurement]]]:
    """Return, for each experiment of a report or part of one, its title, the varied parameter and the shown measurements.

    Experiments that are not in the table are left out; a part is called `experiment: part`.
    """
    for name in dict.fromkeys(str(one.details.get("experiment")) for one in report.measurements):
        whole, _, part = name.partition(":")
        if (known := experiments.get(whole)) is not None:
            title = f"{known.title}:{part}" if part else known.title
            found = of_experiment(report.measurements, name)
            yield title, known.varied, [one for one in found if not known.shown or one.name in known.shown]


def number(value: float) -> str:
    """Return a value with three digits, or whole."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _show_left_out(report: Report) -> None:
    Console().print(f"left out: {report.parameters['left_out']}", highlight=False, soft_wrap=True)


def _target(one: Measurement) -> str:
    """Return the target of a measurement, and whether the value misses it."""
    assert one.target is not None  # noqa: S101 - only those that have one are shown
    is_least = one.unit.endswith("/s") or one.unit in _AT_LEAST
    is_met = one.value >= one.target if is_least else one.value <= one.target
    return f"{'≥' if is_least else '≤'} {number(one.target)}{'' if is_met else ' (missed)'}"


def _with_phase(one: Measurement) -> str:
    second = one.details.get("phase 2")
    return f"{number(one.value)} ({number(second)})" if isinstance(second, float) else number(one.value)


def _place(at: float | str) -> str:
    if isinstance(at, str):
        return at
    return f"{at:,}" if isinstance(at, int) else f"{at:,.2f}"
