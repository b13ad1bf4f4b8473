"""`tocsin spark run` and `tocsin spark publish`: streams, and the index that they match with."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any

import typer
from rich.live import Live
from rich.text import Text

from tocsin.cli import options as common
from tocsin.cli.spark import options
from tocsin.cli.spark.options import pairs
from tocsin.cli.terminal import FaultLog, counted, errors, note
from tocsin.model.errors import TocsinError


class SinkFormat(StrEnum):
    """The formats of a stream's notifications."""

    PARQUET = "parquet"
    ARROW = "tocsin-arrow"
    CONSOLE = "console"


@common.with_option_groups
def run(
    events: options.Source,
    *,
    checkpoint: Annotated[
        str, typer.Option(help="The folder in which the stream records its progress.", metavar="FOLDER")
    ],
    sink: Annotated[
        str | None,
        typer.Option(
            help="The folder for notifications, or kafka://HOST:PORT/TOPIC.", metavar="FOLDER|TOPIC"
        ),
    ] = None,
    sink_format: Annotated[
        SinkFormat, typer.Option(help="The format of notifications.")
    ] = SinkFormat.PARQUET,
    sink_option: Annotated[
        list[str] | None,
        typer.Option(help="An option for the sink, as key=value; may be given several times."),
    ] = None,
    dead_letters: Annotated[
        str | None,
        typer.Option(
            help="The folder for rows that are no events, or kafka://HOST:PORT/TOPIC.", metavar="FOLDER|TOPIC"
        ),
    ] = None,
    given: options.SparkSubscriptionOptions,
    matching: options.MatchOptions,
    building: options.IndexOptions,
    declared: options.DeclarationOptions,
    state: options.StateOptions,
    late: Annotated[
        bool,
        typer.Option(
            "--late", help="Write a row with a reason for each event that came too late for sequences."
        ),
    ] = False,
    trigger: Annotated[
        str | None,
        typer.Option(help="The interval of micro-batches, such as '5 seconds'; default: no pause."),
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="Match the present events, and end.")] = False,
    session: options.SessionOptions,
) -> None:
    """Match a stream of events for as long as it runs; Ctrl-C ends it, and the next start resumes there.

    A file of subscriptions, or an index, may change meanwhile: a change takes effect with the next micro-batch.
    """
    from tocsin.spark.data_sources import register  # noqa: PLC0415 - imports Spark
    from tocsin.spark.pipeline import Pipeline  # noqa: PLC0415
    from tocsin.spark.sinks.kafka import kafka_options  # noqa: PLC0415

    if sink is None and sink_format is not SinkFormat.CONSOLE:
        raise TocsinError(
            "name the folder that notifications go to with --sink, or print them: --sink-format console"
        )
    target: dict[str, Any] = {"format": sink_format.value}
    if sink is not None and sink.startswith("kafka://"):
        target = {"format": "kafka", **kafka_options(sink)}
    elif sink is not None:
        target["path"] = sink
    target |= pairs(sink_option, "--sink-option")
    with FaultLog() as log:
        subscriptions, making = given.source(log), building.settings() | declared.settings()
        if session.is_local:
            options.check_before_spark(subscriptions, matching.time_field, making, log)
        with session.open(events, **matching.reading(), is_stream=True) as (spark, source):
            register(spark)
            pipeline = Pipeline(
                source.frame,
                subscriptions,
                target,
                checkpoint,
                **matching.settings(events),
                **making,
                **state.settings(),
                late=late,
                dead_letters=dead_letters,
                trigger=trigger,
                on_error=log,
                **source.layout,  # type: ignore[arg-type]
            )
            _watch(pipeline, once=once, quiet=session.quiet)
    if log.count:
        raise typer.Exit(1)


def _watch(pipeline: Any, *, once: bool, quiet: bool) -> None:
    """Run a pipeline; at a terminal one line shows the newest micro-batch, elsewhere each has its own."""
    events = notifications = 0
    if errors.is_terminal and not quiet:
        with Live(Text("waiting for events", style="dim"), console=errors, refresh_per_second=4) as live:

            def show(progress: Any) -> None:
                nonlocal events, notifications
                events, notifications = events + progress.events, notifications + progress.notifications
                live.update(Text(f"{progress}  (in all {events:,} events, {notifications:,} notifications)"))

            pipeline.run(available_now=once, on_progress=show)
    else:
        pipeline.run(available_now=once, on_progress=None if quiet else lambda progress: note(str(progress)))


@common.with_option_groups
def publish(
    index: Annotated[
        str,
        typer.Argument(help="The folder of the index; it is created if it does not exist.", metavar="INDEX"),
    ],
    *,
    given: options.TemplateOptions,
    building: options.IndexOptions,
    declared: options.DeclarationOptions,
    faults: common.Faults = None,
) -> None:
    """Make the subscriptions of an index equal to these; streams use them from their next micro-batch."""
    from tocsin.index import SubscriptionIndex  # noqa: PLC0415 - only when asked for
    from tocsin.spark.subscription_sources import fill_index  # noqa: PLC0415 - imports Spark

    with FaultLog(faults) as log:
        source = given.source(log)
        published = SubscriptionIndex(index, **building.settings())
        before = published.generation
        fill_index(published, source, log, **declared.settings())
        if log.count and not len(published):
            raise TocsinError(f"{index}: no subscription could be read; the index is left as it was")
        number = published.publish()
        published.vacuum()
    state = "unchanged" if number == before else f"now generation {number}"
    note(f"{index}: {counted(len(published), 'subscription')}, {state}")
    if log.count:
        raise typer.Exit(1)


@common.with_option_groups
def grow(
    checkpoint: Annotated[
        str, typer.Argument(help="The checkpoint of a stream that was stopped.", metavar="CHECKPOINT")
    ],
    into: Annotated[str, typer.Argument(help="The folder of the new checkpoint.", metavar="NEW")],
    *,
    state_shards: Annotated[
        int, typer.Option(min=2, help="The number of shards it then has: a multiple of the present one.")
    ],
    session: options.SessionOptions,
) -> None:
    """Write a checkpoint with more shards of sequences and views, from which a stream goes on.

    `tocsin spark run` takes it with the same --state-shards. The old one stays as it is, and is not to be used again.
    """
    from tocsin.spark.stateful.growth import grow as grow_checkpoint  # noqa: PLC0415 - imports Spark

    with session.session() as spark:
        grow_checkpoint(spark, checkpoint, into, state_shards)
    note(
        f"{into}: a checkpoint with {state_shards:,} shards; go on with --checkpoint {into} --state-shards {state_shards}"
    )
