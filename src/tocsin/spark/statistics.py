"""Statistics of a history of events, as one Spark job."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace
from pyspark.sql import DataFrame, functions
from pyspark.sql.types import ArrayType, BinaryType, MapType, VariantType

from tocsin.matching.batches import ConjunctionBatch
from tocsin.matching.statistics import CandidateGroups, Distribution, Joint, Statistics, candidate_groups
from tocsin.matching.statistics.files import decode_distribution, decode_joint
from tocsin.matching.statistics.joint import MAX_GROUPS, WIDEST, Group
from tocsin.matching.statistics.statistics import BINS, TOP, group_of
from tocsin.matching.statistics.tally import GROUP, Row
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import SparkError
from tocsin.model.values import Kind
from tocsin.spark.event_columns import resolve_layout
from tocsin.spark.event_decoding import EventLayout
from tocsin.spark.statistics_worker import COUNTS, PARTS, SUMMARIES, condense, count, summarise
from tocsin.spark.worker_python import ensure_worker_python

_ROW: Final = "__tocsin_row"  # the column that replaces an event's id and time on workers
_NO_VALUES: Final = (ArrayType, BinaryType, MapType, VariantType)
_log = logging.getLogger("tocsin")


def statistics(
    events: DataFrame,
    *,
    groups: Iterable[Sequence[str]] = (),
    subscriptions: ConjunctionBatch | Iterable[Conjunction] = (),
    max_groups: int = MAX_GROUPS,
    event_id: str | None = None,
    payload: str | None = None,
    struct: str | None = None,
    stream: str | None = None,
    stream_column: str | None = None,
    top: int = TOP,
    bins: int = BINS,
) -> Statistics:
    """Return the statistics of the events in a batch DataFrame, in one pass.

    `payload`, `struct`, `stream` and `stream_column` say where the events are, as for `match`; the values of the
    column `event_id`, if it is named, are not counted. `groups` are attributes to count together. Further groups of up
    to four attributes come from the equalities of most `subscriptions`, at most `max_groups`; the number of groups left
    out is logged, and is `groups_left_out`. `refused` counts the rows that are no events.

    Counts, the number of different values, and the `top` most frequent values and combinations are exact. Of the
    rest, each of `bins` bins is off by at most a sixteenth of its depth.
    """
    if events.isStreaming:
        raise SparkError("statistics are of a history: give a batch DataFrame, not a stream")
    ensure_worker_python(events.sparkSession)
    frame = events.withColumn(_ROW, functions.lit(0))
    layout = _without_ids(
        resolve_layout(
            frame,
            event_id=event_id or _ROW,
            stream=stream,
            stream_column=stream_column,
            payload=payload,
            struct=struct,
        ),
        events,
    )
    candidates = _candidates(subscriptions, max_groups)
    wanted = tuple(dict.fromkeys([*map(group_of, groups), *candidates.groups]))
    counts = _selected(frame, layout).mapInArrow(partial(count, layout, wanted), COUNTS)
    whole = counts.groupBy("subject", "kind", "value").sum("events")
    parts = whole.sortWithinPartitions("subject", "kind").mapInArrow(partial(condense, top, bins), PARTS)
    together = parts.repartition("subject", "kind").sortWithinPartitions("subject", "kind")
    found = together.mapInArrow(partial(summarise, top, bins), SUMMARIES).toArrow()
    distributions: dict[tuple[str, Kind], Distribution] = {}
    joints: dict[Group, Joint] = {group: Joint() for group in wanted}
    totals: list[Row] = []
    for subject, kind, number, document in zip(
        *(column.to_pylist() for column in found.columns), strict=True
    ):
        if kind == GROUP:
            joints[wanted[int(subject)]] = decode_joint(document)
        elif document:
            distributions[subject, Kind(kind)] = decode_distribution(Kind(kind), document)
        else:
            totals.append(Row(subject, kind, "", number))
    return Statistics.assembled(distributions, joints, totals, groups_left_out=candidates.left_out)


def _without_ids(layout: EventLayout, events: DataFrame) -> EventLayout:
    """Return a layout that needs neither ids nor times, without the columns that hold no values."""
    columns = None
    if layout.columns is not None:
        columns = tuple(
            field.name
            for field in events.schema.fields
            if field.name != layout.event_id and not isinstance(field.dataType, _NO_VALUES)
        )
        if not columns:
            raise SparkError(f"no column holds values: {', '.join(events.columns) or 'there is none'}")
    return replace(layout, event_id=_ROW, time=_ROW, columns=columns)


def _selected(frame: DataFrame, layout: EventLayout) -> DataFrame:
    """Return the columns that workers need."""
    needed = [*(layout.columns or ()), layout.struct, layout.payload, layout.stream_column, _ROW]
    names = dict.fromkeys(name for name in needed if name is not None)
    return frame.select(*(f"`{name.replace('`', '``')}`" for name in names))


def _candidates(subscriptions: ConjunctionBatch | Iterable[Conjunction], max_groups: int) -> CandidateGroups:
    """Return the groups of attributes to count; log a warning if some are left out."""
    found = candidate_groups(subscriptions, most=max_groups, width=WIDEST)
    if found.left_out:
        _log.warning(
            "the %d most frequent groups of attributes in subscriptions are counted, %d are not; raise `max_groups`",
            len(found.groups),
            found.left_out,
        )
    return found
