"""`tocsin test`: how often a subscription would have fired."""

from __future__ import annotations

from itertools import chain
from typing import Annotated, Final

import typer

from tocsin.cli import options, terminal
from tocsin.cli.coverage import observed, warn_of_unseen
from tocsin.cli.json_results import Record, reported_errors, warning_record, write_result
from tocsin.cli.output import results
from tocsin.formats.notifications import notification_record
from tocsin.language.schema_inference import ObservedSchema

_COMMAND: Final = "test"


@options.with_option_groups
def dry_run(
    subscription: options.SubscriptionArgument,
    events: options.EventsArgument = "-",
    limit: Annotated[int, typer.Option(min=0, help="The number of notifications to show.")] = 10,
    faults: options.Faults = None,
    json: options.Json = None,
    quiet: options.Quiet = False,
    *,
    replay: options.ReplayOptions,
) -> None:
    """Count how often a subscription would have fired, without subscribing, and show the first notifications.

    Ends with 0 if it would have fired, with 1 if not.
    """
    fired = 0
    shown: list[Record] = []
    console = results(json)
    with reported_errors(json, _COMMAND):
        with terminal.FaultLog(faults) as log, terminal.progress("events", quiet=quiet) as bar:
            engine = replay.engine("oracle", log)  # loading an index does not pay for one subscription
            warnings = engine.subscribe(subscription, id="it").warnings
            for warning in warnings:
                terminal.warn(warning)
            source = replay.open_for(engine, events, quiet=quiet)
            schema = ObservedSchema()
            incoming = observed(terminal.watched(source, bar, "testing", source), schema, engine)
            size = 1 if source.path is None else 256
            notes = engine.publish_stream(incoming, on_error=log, batch_size=size)
            for one in chain(notes, terminal.flushed(engine)):
                fired += 1
                if fired <= limit:
                    shown.append(notification_record(one, engine.ticks))
                    events_of = ", ".join(one.event_ids)
                    text = terminal.shortened(terminal.notification_text(one), 200)
                    console.print(f"{events_of}: {text}", markup=False, soft_wrap=True)
        examined = engine.stats().published
    if fired > limit:
        console.print(f"… and {fired - limit:,} more")
    share = f" ({fired / examined:.2%})" if examined else ""
    console.print(
        f"it would have fired {terminal.counted(fired, 'time')} in {terminal.counted(examined, 'event')}{share}"
    )
    if log.count:
        terminal.note(f"{terminal.counted(log.count, 'record')} refused or late")
    unseen = warn_of_unseen(engine, schema, log.count)
    counts = {"events": examined, "fired": fired, "notifications": shown}
    write_result(json, _COMMAND, counts, warnings=map(warning_record, (*warnings, *unseen)), log=log)
    if not fired:
        raise typer.Exit(1)
