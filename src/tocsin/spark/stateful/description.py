"""The stages of a match in plain sentences, for `explain`."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from tocsin.display.text import counted
from tocsin.index import Generation
from tocsin.spark.stateful.job import PlannedShards


def show_stages(
    generation: Generation, planned: PlannedShards | None, *, is_stream: bool, plan: str = "index"
) -> None:
    """Print the stages to standard output."""
    sys.stdout.write(describe_stages(generation, planned, is_stream=is_stream, plan=plan) + "\n")


def describe_stages(
    generation: Generation, planned: PlannedShards | None, *, is_stream: bool, plan: str = "index"
) -> str:
    """Return the stages, the shards, and what travels between them; `planned` is None where there are only filters."""
    return "\n".join(_lines(generation, planned, is_stream, plan))


def _lines(
    generation: Generation,
    planned: PlannedShards | None,
    is_stream: bool,
    plan: str,
) -> Iterator[str]:
    filters = sum(shard.subscriptions for shard in generation.shards)
    count = len(generation.shards)
    yield f"Generation {generation.number}."
    if plan == "join":
        yield f"Filters: {counted(filters, 'subscription')}, joined with the events in Spark SQL."
    elif count == 1:
        yield (
            f"Filters: {counted(filters, 'subscription')} on one shard; each event is matched where it is read, and nothing "
            "travels."
        )
    else:
        yield (
            f"Filters: {counted(filters, 'subscription')} on {count:,} shards of the index; an event travels to those that may "
            "match it."
        )
    if planned is None:
        return
    yield (
        "Sequences and views: events are routed where they are read, and travel to the shards below; "
        + (
            "each shard keeps its state in Spark's state store."
            if is_stream
            else "Spark sorts each shard's events by their end, and the shard processes them from first to last."
        )
    )
    yield from (f"  {line}" for line in planned.plan.describe().splitlines())
