"""`tocsin plan`: the subscriptions that cost most, why, and how to make them cheaper."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import typer
from msgspec.structs import replace

from tocsin.cli import options
from tocsin.cli.coverage import warn_of_unseen
from tocsin.cli.json_results import reported_errors, warning_record, write_result
from tocsin.cli.output import check_distinct, opened, results
from tocsin.cli.plans import MATCHER, Seen, adapt, working
from tocsin.cli.subscription_loading import load_given
from tocsin.cli.terminal import FaultLog, counted, note, print_trees
from tocsin.formats.files import is_standard
from tocsin.model.errors import TocsinError

_COMMAND: Final = "plan"
_NOTHING: Final = (
    "nothing to plan for: name a file of subscriptions, or give -s TEXT, or --template and --parameters"
)


@options.with_option_groups
def plan(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE]",
            help="A file of subscriptions; with --subscribe or --template, the only argument is EVENTS.",
        ),
    ] = None,
    events: Annotated[
        str | None,
        typer.Argument(
            metavar="[EVENTS]",
            help="A file of events like those to expect, or - for standard input; without events, shares are guesses.",
        ),
    ] = None,
    subscribe: options.Subscribe = None,
    template: options.TemplateText = None,
    parameters: options.TemplateParameters = None,
    id_rule: options.TemplateIds = None,
    top: Annotated[int, typer.Option(help="Show so many subscriptions, the costliest.", min=0)] = 10,
    graph: Annotated[
        Path | None,
        typer.Option(
            help="Draw the share of the cost that the costliest subscriptions have in this file, in SVG.",
            dir_okay=False,
            callback=options.to_be_written,
        ),
    ] = None,
    faults: options.Faults = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
    *,
    replay: options.ReplayOptions,
) -> None:
    """Show which filters an event is checked against most often, why, and how to make them cheaper.

    An event is checked against a conjunction if it reaches its access path in the index, such as a value that it must have. A
    filter that all events reach costs one check per event; one that one in a thousand reaches costs 0.001.

    Ends with 0; with 1 if a record or a subscription was left out; with 2 if nothing could be done.
    """
    with reported_errors(json, _COMMAND):
        if file is not None and events is None and (subscribe or template is not None):
            file, events = None, file
        if file is None and not subscribe and template is None:
            raise TocsinError(_NOTHING)
        check_distinct(json=json, graph=graph, faults=faults)
        options.check_standard_input(file, events, parameters)
        with FaultLog(faults) as log:
            engine = replay.engine(MATCHER, log)
            with working("reading subscriptions", quiet=quiet):
                files = [] if file is None else [Path(file)]
                load_given(engine, subscribe, files, (template, parameters, id_rule), log)
            seen = Seen()
            if events is not None:
                seen = adapt(engine, events, replay, log, quiet=quiet)
            else:
                engine.adapt()
            with working("summing up", quiet=quiet):
                costs = engine.explain_costs(top)
            costs = replace(costs, filters=tuple(map(seen.completed, costs.filters)))
    print_trees(costs.trees(), results(json, graph, faults))
    unseen = [] if events is None else warn_of_unseen(engine, seen.schema, log.count)
    if graph is not None:
        with opened(graph) as drawing:
            drawing.write(costs.chart().encode())
        if not quiet and not is_standard(graph):
            note(f"drawn in {graph}")
    others = len(engine) - len(costs.by_rank)
    if not quiet:
        if others:
            note(
                f"{counted(others, 'subscription')} left out: sequences, views, and filters that can never match"
            )
        if seen.count:
            note(f"expected from {counted(seen.count, 'event')}")
    record = {"subscriptions": len(engine), "events": seen.count, **costs.record()}
    write_result(json, _COMMAND, record, warnings=map(warning_record, unseen), log=log)
    if log.count:
        raise typer.Exit(1)
