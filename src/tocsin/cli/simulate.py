"""`tocsin simulate`: one stream of updates, carried to the same subscriptions in six ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console

from tocsin import __version__
from tocsin.cli import options
from tocsin.cli.costs import show_costs
from tocsin.cli.output import check_distinct, opened, takes_standard_output, write_json
from tocsin.cli.terminal import counted, note, progress
from tocsin.dissemination.byte_model import MAX_BYTES
from tocsin.model.errors import TocsinError

if TYPE_CHECKING:  # these bring the compiler
    from tocsin.dissemination.can.construction import Splitting
    from tocsin.dissemination.scenarios.comparison import UpdateKinds
    from tocsin.dissemination.scenarios.scenario import Prepared, Scenario
    from tocsin.dissemination.simulator import CostSummary

_MOST = 1_000_000_000  # of anything that is counted: far more would not fit into 64 bits either
_JOIN = "join"
_OF_WALKS = ("rows", "decimals", "spikes", "ignorable")
_OF_QUOTES = ("stocks", "steps")
_NOT_OF_JOINS = ("trace", "quotes", *_OF_QUOTES, "decimals", "spikes", "ignorable", "html")


def _network(text: str, **settings: Any) -> Any:
    return typer.Option(help=text, rich_help_panel="The network", **settings)


def _workload(text: str, *names: str, **settings: Any) -> Any:
    return typer.Option(*names, help=text, rich_help_panel="Rows, updates and subscriptions", **settings)


def _to_file(text: str) -> Any:
    return typer.Option(help=text, dir_okay=False, callback=options.to_be_written)


@dataclass(frozen=True)
class NetworkOptions(options.OptionGroup):
    """The network of a `Scenario`."""

    nodes: Annotated[int, _network("Overlay nodes.", min=1, max=_MOST)] = 100
    physical: Annotated[int, _network("Nodes of a generated network.", min=2, max=_MOST)] = 2_000
    links: Annotated[
        Path | None, _network("Read the network from this file, a link a line.", dir_okay=False)
    ] = None
    splitting: Annotated[
        str,
        _network("How zones are split: uniform, subscriptions (by their number) or database (by rows, too)."),
    ] = "subscriptions"
    field: Annotated[int, _network("Bytes of a message's field.", min=1, max=MAX_BYTES)] = 8
    header: Annotated[int, _network("Bytes of a message's header.", min=0, max=MAX_BYTES)] = 0


@dataclass(frozen=True)
class WorkloadOptions(options.OptionGroup):
    """The rows, updates and subscriptions of a `Scenario`."""

    subscriptions: Annotated[int, _workload("The number of subscriptions.", min=1, max=_MOST)] = 20_000
    short: Annotated[bool, _workload("Short ranges, all over the domain.", "--short")] = False
    rows: Annotated[int, _workload("The number of rows of the table.", min=1, max=_MOST)] = 2_000
    decimals: Annotated[
        int,
        _workload(
            "The decimals of a row's x: with fewer, more rows share an x, and more updates are ignorable; -2 for hundreds.",
            min=-3,
            max=9,
        ),
    ] = 2
    events: Annotated[int, _workload("The number of updates; all for quotes.", min=0, max=_MOST)] = 5_000
    spikes: Annotated[
        float,
        _workload(
            "The share of updates that drop below all rows (for max, rise above them); the next one restores the row.",
            min=0,
            max=0.5,
        ),
    ] = 0.005
    ignorable: Annotated[
        str,
        _workload(
            "The share of updates, without spikes, that change no minimum (or maximum), or any for a random share.",
            metavar="SHARE|any",
        ),
    ] = "0"
    trace: Annotated[bool, _workload("Generated quotes of stocks.", "--trace")] = False
    quotes: Annotated[
        Path | None, _workload("Read quotes of stocks from this file of JSON lines.", dir_okay=False)
    ] = None
    stocks: Annotated[int, _workload("The number of stocks in generated quotes.", min=1, max=_MOST)] = 3_053
    steps: Annotated[int, _workload("The number of generated quotes of each stock.", min=1, max=_MOST)] = 120


@options.with_option_groups
def simulate(
    context: typer.Context,
    *,
    network: NetworkOptions,
    workload: WorkloadOptions,
    strategy: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this strategy (S-UN, S-MN, CN, CN+, S-CN, DS-CN); may be given several times.",
            show_default="all",
        ),
    ] = None,
    view: Annotated[
        str,
        typer.Option(
            help="The view of a range: min, max, count, sum, avg, distinct, or join (pairs of two tables' rows)."
        ),
    ] = "min",
    seed: Annotated[int, typer.Option(min=0, help="The seed of all random choices.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="The number of updates published at once.")] = 1_000,
    json: Annotated[Path | None, _to_file("Write all figures to this file, - for standard output.")] = None,
    html: Annotated[
        Path | None, _to_file("Write a page to this file that shows the messages travel.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Carry updates of a table to subscriptions across a simulated network, in six ways, and compare the costs.

    The answers of a sample of subscriptions are recomputed. Ends with 0, or with 2 if an answer is wrong.
    """
    from tocsin.dissemination.scenarios.comparison import compare, count_update_kinds, warm_up  # noqa: PLC0415 - brings the compiler
    from tocsin.dissemination.scenarios.scenario import Scenario  # noqa: PLC0415
    from tocsin.dissemination.simulator import CostSummary  # noqa: PLC0415

    is_given = _given(context)
    is_trace = workload.trace or workload.quotes is not None
    _check_together(is_given, view, is_trace=is_trace, is_read=workload.quotes is not None)
    if network.links is None and network.nodes > network.physical:
        raise TocsinError(
            f"--nodes {network.nodes} are more than the network has; give more with --physical (now {network.physical}), "
            "or fewer nodes"
        )
    check_distinct(json=json, html=html)
    names = _strategies(strategy or (), view)
    parsed = {"splitting": _splitting(network.splitting), "ignorable": _share(workload.ignorable)}
    given = {**asdict(network), **asdict(workload), **parsed, "trace": is_trace}
    scenario = Scenario(kind=view, seed=seed, **given)
    with ExitStack() as stack:
        stack.enter_context(_within_memory())
        bar = stack.enter_context(progress("events", quiet=quiet))
        drawing = bar.add_task("drawing the scenario", total=None)
        prepared = _prepare(scenario, first=workload.events if is_trace and is_given("events") else None)
        kinds = count_update_kinds(prepared)
        bar.update(drawing, description="warming up")
        warm_up(view, names)
        bar.remove_task(drawing)
        total = len(prepared.changes)
        tasks = {name: bar.add_task(name, start=False, total=total, count=0) for name in names}
        done = dict.fromkeys(names, 0)

        def advance(name: str, events: int) -> None:
            bar.start_task(tasks[name])
            done[name] += events
            bar.update(tasks[name], completed=done[name], count=done[name])

        costs = [CostSummary.of(result) for result in compare(prepared, names, batch, advance)]
    if not takes_standard_output(json, html):
        _show(prepared, kinds, costs)
    if json is not None:
        _write(json, prepared, kinds, costs)
    if html is not None:
        _draw(html, scenario, names)


# options


@contextmanager
def _within_memory() -> Iterator[None]:
    """Raise `TocsinError` where a scenario is too large for this machine."""
    try:
        yield
    except MemoryError as fault:
        raise TocsinError(
            f"the scenario does not fit into memory ({fault}); give fewer --nodes, --subscriptions, --rows or --events"
        ) from None


def _given(context: typer.Context) -> Callable[[str], bool]:
    """Return a function that says whether an option was given."""

    def is_given(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    return is_given


def _check_together(is_given: Callable[[str], bool], view: str, *, is_trace: bool, is_read: bool) -> None:
    """Raise `TocsinError` for an option that has no effect beside another one."""
    conflicts = (
        (view == _JOIN, _NOT_OF_JOINS, "does not apply to joins; leave it out"),
        (is_trace, _OF_WALKS, "applies to a random walk, and quotes are given; leave it out"),
        (is_read, _OF_QUOTES, "applies to generated quotes; leave it out, or --quotes"),
        (not is_trace, _OF_QUOTES, "applies to generated quotes; add --trace"),
        (is_given("links"), ("physical",), "applies to a generated network; leave it out, or --links"),
    )
    for is_conflict, names, reason in conflicts:
        for name in names:
            if is_conflict and is_given(name):
                raise TocsinError(f"--{name} {reason}")


def _strategies(asked: Sequence[str], view: str) -> list[str]:
    """Return the strategies that carry a kind of view; raise if a requested one does not."""
    from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named  # noqa: PLC0415
    from tocsin.views.aggregates.registry import RANGE_AGGREGATES  # noqa: PLC0415

    if view not in (*RANGE_AGGREGATES, _JOIN):
        known = ", ".join((*RANGE_AGGREGATES, _JOIN))
        raise TocsinError(f"--view {view}: there is no such kind; there are: {known}")
    for name in asked:
        if view not in (taken := strategy_named(name)).kinds:
            raise TocsinError(
                f"--strategy {name} does not carry --view {view}; it carries {', '.join(sorted(taken.kinds))}"
            )
    if asked:
        return list(dict.fromkeys(name.upper() for name in asked))
    carrying = [name for name in STRATEGIES if view in strategy_named(name).kinds]
    if len(carrying) < len(STRATEGIES):
        left_out = ", ".join(name for name in STRATEGIES if name not in carrying)
        note(f"{left_out} do not carry {view}, and are left out")
    return carrying


def _share(text: str) -> float | None:
    """Return the share of ignorable updates, None for a random one."""
    if text == "any":
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise TocsinError(f"--ignorable {text}: give a share from 0 to 1, or any for a random share")
    return share


def _splitting(text: str) -> Splitting:
    from tocsin.dissemination.can.construction import Splitting  # noqa: PLC0415

    try:
        return Splitting(text)
    except ValueError:
        raise TocsinError(f"--splitting {text}: there are {', '.join(Splitting)}") from None


def _prepare(scenario: Scenario, first: int | None) -> Prepared:
    """Draw a scenario; of a trace only the first events, if their number is given."""
    from tocsin.dissemination.scenarios.scenario import prepare  # noqa: PLC0415
    from tocsin.dissemination.scenarios.walks import DrawError  # noqa: PLC0415

    try:
        prepared = prepare(scenario)
    except DrawError as fault:
        raise TocsinError(
            f"--ignorable {scenario.ignorable} with --rows {scenario.rows} and --decimals {scenario.decimals}: {fault}"
        ) from None
    return msgspec.structs.replace(prepared, changes=prepared.changes.part(0, first))


# results


def _show(prepared: Prepared, kinds: UpdateKinds, costs: Sequence[CostSummary]) -> None:
    """Print the table of costs and a summary of the scenario."""
    from tocsin.dissemination.scenarios.comparison import CLOSELY, SAMPLE  # noqa: PLC0415

    show_costs(costs)
    scenario, network = prepared.scenario, _network_figures(prepared)
    asked, events = len(prepared.queries), len(prepared.changes)
    sizes = prepared.setting.byte_model
    updates = (
        f"{counted(events, 'update')} of {counted(prepared.queries.rows, 'row')}, {scenario.kind} of "
        f"{counted(asked, 'range')}: {kinds.ignorable:,} ignorable, {kinds.one_message:,} in one message, "
        f"{kinds.several_messages:,} in several"
    )
    where = (
        f"{counted(network['nodes'], 'node')}, {counted(network['links'], 'link')}; "
        f"{counted(network['overlay_nodes'], 'overlay node')}, {network['mean_hops']:.1f} links apart, "
        f"the server is {network['server']}; zones split by {scenario.splitting}"
    )
    how = f"bytes: {sizes.field} a field, {sizes.header} a header; seed {scenario.seed}"
    checked = (
        f"checked for {counted(min(asked, SAMPLE), 'subscription')}: every change in the first "
        f"{counted(min(events, CLOSELY), 'event')}, and the last answer"
    )
    if len(costs) > 1:
        checked += "; all strategies changed equally many at each event"
    for line in (updates, where, how, checked):
        Console().print(line, highlight=False, soft_wrap=True)


def _network_figures(prepared: Prepared) -> dict[str, Any]:
    """Return the sizes of a scenario's network, for the report."""
    overlay = prepared.setting.overlay
    pairs = max(len(overlay) * (len(overlay) - 1), 1)
    return {
        "nodes": overlay.topology.nodes,
        "links": len(overlay.topology.ends),
        "overlay_nodes": len(overlay),
        "mean_hops": int(overlay.hops.sum()) / pairs,
        "server": prepared.setting.server,
    }


def _write(path: Path, prepared: Prepared, kinds: UpdateKinds, costs: Sequence[CostSummary]) -> None:
    """Write the scenario and all figures as JSON."""
    from tocsin.dissemination.scenarios.comparison import CLOSELY, SAMPLE  # noqa: PLC0415

    figures = {
        "tocsin": __version__,
        "scenario": prepared.scenario,
        "events": len(prepared.changes),
        "network": _network_figures(prepared),
        "byte_model": prepared.setting.byte_model,
        "updates": kinds,
        "checked": {
            "subscriptions": min(len(prepared.queries), SAMPLE),
            "events_one_by_one": min(len(prepared.changes), CLOSELY),
        },
        "strategies": costs,
    }
    write_json(path, figures)


def _draw(path: Path, scenario: Scenario, names: Sequence[str]) -> None:
    """Write a page of a similar scenario that is small enough to draw."""
    from tocsin.dissemination.page import choose_events, make_scene, page_text  # noqa: PLC0415
    from tocsin.dissemination.scenarios.scenario import described, pictured, prepare  # noqa: PLC0415

    prepared = prepare(pictured(scenario))
    events = choose_events(prepared.queries, prepared.changes)
    words = described(prepared.scenario, prepared.queries.rows)
    scene = make_scene(prepared.setting, prepared.queries, names, events, words)
    with opened(path) as file:
        file.write(page_text(scene).encode())
    note(f"{path} shows {counted(len(events), 'event')} of a scenario that is small enough to draw: {words}")
