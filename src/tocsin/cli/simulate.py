"""`tocsin simulate`: one stream of updates, carried to the same subscriptions in six ways."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import typer
from rich.console import Console

from tocsin import __version__
from tocsin.cli import options
from tocsin.cli.costs import show_costs
from tocsin.cli.terminal import counted, note, progress
from tocsin.dissemination.byte_model import MAX_BYTES
from tocsin.model.errors import TocsinError

if TYPE_CHECKING:  # these bring the compiler
    from tocsin.dissemination.can.construction import Splitting
    from tocsin.dissemination.scenarios.comparison import Sorts
    from tocsin.dissemination.scenarios.joins import PreparedJoin
    from tocsin.dissemination.scenarios.scenario import Prepared, Scenario
    from tocsin.dissemination.simulator import CostSummary

_NETWORK = "The network"
_WORKLOAD = "Rows, updates and subscriptions"
_MANY = 1_000_000_000  # of anything that is counted: far more would not fit into a number of 64 bits either
_OF_ROWS = ("rows", "decimals", "spikes", "ignorable")
_OF_QUOTES = ("stocks", "steps")
_JOIN = "join"
_NOT_OF_JOINS = ("trace", "quotes", "stocks", "steps", "decimals", "spikes", "ignorable", "html")


def simulate(
    context: typer.Context,
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
            help="What is asked of a range: min, max, count, sum, avg, distinct, or join (pairs of two tables' rows)."
        ),
    ] = "min",
    nodes: Annotated[
        int, typer.Option(min=1, max=_MANY, help="Overlay nodes.", rich_help_panel=_NETWORK)
    ] = 100,
    physical: Annotated[
        int,
        typer.Option(min=2, max=_MANY, help="Nodes of a network that is made up.", rich_help_panel=_NETWORK),
    ] = 2_000,
    links: Annotated[
        Path | None,
        typer.Option(
            help="Read the network from this file, a link a line.", dir_okay=False, rich_help_panel=_NETWORK
        ),
    ] = None,
    splitting: Annotated[
        str,
        typer.Option(
            help="How zones are split: uniform, subscriptions (by their number) or database (by rows, too).",
            rich_help_panel=_NETWORK,
        ),
    ] = "subscriptions",
    field: Annotated[
        int, typer.Option(min=1, max=MAX_BYTES, help="Bytes of a message's field.", rich_help_panel=_NETWORK)
    ] = 8,
    header: Annotated[
        int, typer.Option(min=0, max=MAX_BYTES, help="Bytes of a message's header.", rich_help_panel=_NETWORK)
    ] = 0,
    subscriptions: Annotated[
        int, typer.Option(min=1, max=_MANY, help="How many subscriptions.", rich_help_panel=_WORKLOAD)
    ] = 20_000,
    short: Annotated[
        bool, typer.Option("--short", help="Short ranges, all over the domain.", rich_help_panel=_WORKLOAD)
    ] = False,
    rows: Annotated[
        int, typer.Option(min=1, max=_MANY, help="How many rows the table has.", rich_help_panel=_WORKLOAD)
    ] = 2_000,
    decimals: Annotated[
        int,
        typer.Option(
            min=-3,
            max=9,
            help="Of a row's x: with fewer, more rows share one, and more updates are ignorable; -2 for hundreds.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = 2,
    events: Annotated[
        int,
        typer.Option(min=0, max=_MANY, help="How many updates; of quotes, all.", rich_help_panel=_WORKLOAD),
    ] = 5_000,
    spikes: Annotated[
        float,
        typer.Option(
            min=0,
            max=0.5,
            help="The share of updates that drop below all rows (for max, rise above them); the next one restores the row.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = 0.005,
    ignorable: Annotated[
        str,
        typer.Option(
            metavar="SHARE|any",
            help="The share of updates, spikes apart, that change no minimum (or maximum), or any for what comes.",
            rich_help_panel=_WORKLOAD,
        ),
    ] = "0",
    trace: Annotated[
        bool, typer.Option("--trace", help="Quotes of stocks that are made up.", rich_help_panel=_WORKLOAD)
    ] = False,
    quotes: Annotated[
        Path | None,
        typer.Option(
            help="Read quotes of stocks from this file of JSON lines.",
            dir_okay=False,
            rich_help_panel=_WORKLOAD,
        ),
    ] = None,
    stocks: Annotated[
        int, typer.Option(min=1, max=_MANY, help="Of quotes that are made up.", rich_help_panel=_WORKLOAD)
    ] = 3_053,
    steps: Annotated[
        int,
        typer.Option(
            min=1, max=_MANY, help="How often each such stock is quoted.", rich_help_panel=_WORKLOAD
        ),
    ] = 120,
    seed: Annotated[int, typer.Option(min=0, help="Of all that is drawn.")] = 1,
    batch: Annotated[int, typer.Option(min=1, help="How many updates are published at once.")] = 1_000,
    json: Annotated[
        Path | None,
        typer.Option(help="Write all figures to this file.", dir_okay=False, callback=options.to_be_written),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Write a page to this file that shows the messages travel.",
            dir_okay=False,
            callback=options.to_be_written,
        ),
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Carry updates of a table to subscriptions across a simulated network, in six ways, and compare what they cost.

    All answers are checked: those of a sample of subscriptions are recomputed. Ends with 0, or with 2 if an answer is wrong.
    """
    from tocsin.dissemination.scenarios.comparison import compare, sorts, warm_up  # noqa: PLC0415
    from tocsin.dissemination.scenarios.scenario import Scenario  # noqa: PLC0415
    from tocsin.dissemination.simulator import CostSummary  # noqa: PLC0415 - brings the compiler

    is_given = _given(context)
    is_trace = trace or quotes is not None
    _check_together(is_given, view, is_trace=is_trace, is_read=quotes is not None)
    if links is None and nodes > physical:
        raise TocsinError(
            f"--nodes {nodes} are more than the network has; give more with --physical (now {physical}), or fewer nodes"
        )
    if json is not None and html is not None and json.resolve() == html.resolve():
        raise TocsinError(f"--json and --html are both {json}; name two files")
    names = _names(strategy or (), view)
    scenario = Scenario(
        kind=view,
        nodes=nodes,
        physical=physical,
        links=links,
        subscriptions=subscriptions,
        short=short,
        rows=rows,
        decimals=decimals,
        events=events,
        spikes=spikes,
        ignorable=_share(ignorable),
        trace=is_trace,
        quotes=quotes,
        stocks=stocks,
        steps=steps,
        splitting=_splitting(splitting),
        field=field,
        header=header,
        seed=seed,
    )
    with ExitStack() as stack:
        stack.enter_context(_within_memory())
        bar = stack.enter_context(progress("events", quiet=quiet))
        drawing = bar.add_task("drawing the scenario", total=None)
        prepared = _prepared(scenario, first=events if is_trace and is_given("events") else None)
        of_sorts = sorts(prepared)
        bar.update(drawing, description="warming up")
        warm_up(view, names)
        bar.remove_task(drawing)
        total = len(prepared.changes)
        tasks = {name: bar.add_task(name, start=False, total=total, count=0) for name in names}
        done = dict.fromkeys(names, 0)

        def tell(name: str, events: int) -> None:
            bar.start_task(tasks[name])
            done[name] += events
            bar.update(tasks[name], completed=done[name], count=done[name])

        found = [CostSummary.of(result) for result in compare(prepared, names, batch, tell)]
    _show(prepared, of_sorts, found)
    if json is not None:
        _write(json, prepared, of_sorts, found)
    if html is not None:
        _draw(html, scenario, names)


# what was asked for


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
    """Return what tells whether an option was given."""

    def is_given(name: str) -> bool:
        source = context.get_parameter_source(name)
        return source is not None and source.name == "COMMANDLINE"

    return is_given


def _check_together(is_given: Callable[[str], bool], view: str, *, is_trace: bool, is_read: bool) -> None:
    """Raise `TocsinError` for an option that does not count beside another one."""
    if view == _JOIN and (odd := [name for name in _NOT_OF_JOINS if is_given(name)]):
        raise TocsinError(f"--{odd[0]} is not of joins, whose two tables have other rows; leave it out")
    of_rows = [name for name in _OF_ROWS if is_given(name)]
    of_quotes = [name for name in _OF_QUOTES if is_given(name)]
    if is_trace and of_rows:
        raise TocsinError(f"--{of_rows[0]} is of rows that walk, and quotes are given; leave it out")
    if is_read and of_quotes:
        raise TocsinError(f"--{of_quotes[0]} is of quotes that are made up; leave it out, or --quotes")
    if not is_trace and of_quotes:
        raise TocsinError(f"--{of_quotes[0]} is of quotes that are made up; ask for them with --trace")
    if is_given("links") and is_given("physical"):
        raise TocsinError("--physical is of a network that is made up; leave it out, or --links")


def _names(asked: Sequence[str], view: str) -> list[str]:
    """Return the strategies that carry a kind of view; those that are asked for have to."""
    from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named  # noqa: PLC0415
    from tocsin.views.kinds.registry import RANGED  # noqa: PLC0415

    if view not in (*RANGED, _JOIN):
        raise TocsinError(f"--view {view}: there is no such kind; there are: {', '.join((*RANGED, _JOIN))}")
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
    """Return the share of ignorable updates, None for what comes."""
    if text == "any":
        return None
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise TocsinError(f"--ignorable {text}: give a share from 0 to 1, or any for what comes")
    return share


def _splitting(text: str) -> Splitting:
    from tocsin.dissemination.can.construction import Splitting  # noqa: PLC0415

    try:
        return Splitting(text)
    except ValueError:
        raise TocsinError(f"--splitting {text}: there are {', '.join(Splitting)}") from None


def _prepared(scenario: Scenario, first: int | None) -> Prepared | PreparedJoin:
    """Return a scenario, drawn; of a trace only so many events, if that is said."""
    from tocsin.dissemination.scenarios.joins import prepare_any  # noqa: PLC0415
    from tocsin.dissemination.scenarios.walks import DrawError  # noqa: PLC0415

    try:
        prepared = prepare_any(scenario)
    except DrawError as fault:
        raise TocsinError(
            f"--ignorable {scenario.ignorable} with --rows {scenario.rows} and --decimals {scenario.decimals}: {fault}"
        ) from None
    return msgspec.structs.replace(prepared, changes=prepared.changes.part(0, first))


# what came of it


def _show(prepared: Prepared | PreparedJoin, of_sorts: Sorts, found: Sequence[CostSummary]) -> None:
    """Print the table, and what it is of."""
    from tocsin.dissemination.scenarios.comparison import CLOSELY, SAMPLE  # noqa: PLC0415

    show_costs(found)
    scenario, network = prepared.scenario, _network(prepared)
    asked, events = len(prepared.question), len(prepared.changes)
    sizes = prepared.setting.byte_model
    updates = (
        f"{counted(events, 'update')} of {counted(prepared.question.rows, 'row')}, {scenario.kind} of "
        f"{counted(asked, 'range')}: {of_sorts.ignorable:,} ignorable, {of_sorts.one_message:,} in one message, "
        f"{of_sorts.several_messages:,} in several"
    )
    where = (
        f"{counted(network['nodes'], 'node')}, {counted(network['links'], 'link')}; "
        f"{counted(network['overlay_nodes'], 'overlay node')}, {network['mean_hops']:.1f} links apart, "
        f"the server is {network['server']}; zones split by {scenario.splitting}"
    )
    how = f"bytes: {sizes.field} a field, {sizes.header} a header; seed {scenario.seed}"
    checked = (
        f"answers found right: of {counted(min(asked, SAMPLE), 'subscription')} what each was told of the first "
        f"{counted(min(events, CLOSELY), 'event')}, and the last answer"
    )
    if len(found) > 1:
        checked += "; all strategies changed equally many at each event"
    for line in (updates, where, how, checked):
        Console().print(line, highlight=False, soft_wrap=True)


def _network(prepared: Prepared | PreparedJoin) -> dict[str, Any]:
    overlay = prepared.setting.overlay
    pairs = max(len(overlay) * (len(overlay) - 1), 1)
    return {
        "nodes": overlay.topology.nodes,
        "links": len(overlay.topology.ends),
        "overlay_nodes": len(overlay),
        "mean_hops": int(overlay.hops.sum()) / pairs,
        "server": prepared.setting.server,
    }


def _write(
    path: Path, prepared: Prepared | PreparedJoin, of_sorts: Sorts, found: Sequence[CostSummary]
) -> None:
    """Write all figures, and what they are of, as JSON."""
    from tocsin.dissemination.scenarios.comparison import CLOSELY, SAMPLE  # noqa: PLC0415

    figures = {
        "tocsin": __version__,
        "scenario": prepared.scenario,
        "events": len(prepared.changes),
        "network": _network(prepared),
        "byte_model": prepared.setting.byte_model,
        "updates": of_sorts,
        "checked": {
            "subscriptions": min(len(prepared.question), SAMPLE),
            "events_one_by_one": min(len(prepared.changes), CLOSELY),
        },
        "strategies": found,
    }
    encoded = msgspec.json.encode(figures, enc_hook=str)  # of paths
    path.write_bytes(msgspec.json.format(encoded, indent=2) + b"\n")


def _draw(path: Path, scenario: Scenario, names: Sequence[str]) -> None:
    """Write a page of a scenario of the same sort that is small enough to be looked at."""
    from tocsin.dissemination.page import choose, make_scene, write_page  # noqa: PLC0415
    from tocsin.dissemination.scenarios.pictures import described, pictured  # noqa: PLC0415
    from tocsin.dissemination.scenarios.scenario import prepare  # noqa: PLC0415

    prepared = prepare(pictured(scenario))
    chapters = choose(prepared.question, prepared.changes)
    words = described(prepared.scenario, prepared.question.rows)
    write_page(make_scene(prepared.setting, prepared.question, names, chapters, words), path)
    note(f"{path} shows {counted(len(chapters), 'event')} of a scenario that can be looked at: {words}")
