"""Statistics of a history of events, as one Spark job."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tocsin.matching.batches import ConjunctionBatch
from tocsin.matching.statistics import CandidateGroups, Distribution, Joint, Statistics, candidate_groups
from tocsin.matching.statistics.files import decode_distribution, decode_joint
from tocsin.matching.statistics.joint import MAX_GROUPS, WIDEST, Group
from tocsin.matching.statistics.statistics import BINS, TOP, group_of
from tocsin.matching.statistics.tally import GROUP, Row
from tocsin.model.conditions import Conjunction
from tocsin.model.errors import SparkError
from tocsin.model.values import Kind
from tocsin.spark.layout import find_layout
from tocsin.spark.summaries import COUNTS, PARTS, SUMMARIES, condense, count, summarise

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

__all__ = ["statistics"]

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
    top: int = TOP,
    bins: int = BINS,
) -> Statistics:
    """Return the statistics of the events in a batch DataFrame, which is gone through once.

    Events are in typed columns (structs are dotted paths), in the column `struct`, or as JSON in the column
    `payload`; the column `event_id` is no attribute. `groups` are attributes to be counted together; besides
    them, those of up to four attributes that most of the `subscriptions` have equalities on, `max_groups` at the
    most. How many are left out by that is logged, and told by `groups_left_out`.

    Counts, the number of different values, and the `top` most frequent values and combinations are exact. Of the
    rest, each of `bins` bins is off by at most a sixteenth of its depth.
    """
    if events.isStreaming:
        raise SparkError("statistics are of a history: give a batch DataFrame, not a stream")
    layout = find_layout(events, event_id=event_id, payload=payload, struct=struct)
    candidates = _candidates(subscriptions, max_groups)
    wanted = tuple(dict.fromkeys([*map(group_of, groups), *candidates.groups]))
    counts = layout.selected(events).mapInArrow(partial(count, layout, wanted), COUNTS)
    whole = counts.groupBy("subject", "kind", "value").sum("events")
    parts = whole.sortWithinPartitions("subject", "kind").mapInArrow(partial(condense, top, bins), PARTS)
    together = parts.repartition("subject", "kind").sortWithinPartitions("subject", "kind")
    found = together.mapInArrow(partial(summarise, top, bins), SUMMARIES).toArrow()
    distributions: dict[tuple[str, Kind], Distribution] = {}
    joints: dict[Group, Joint] = {group: Joint(0, 0) for group in wanted}
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


def _candidates(subscriptions: ConjunctionBatch | Iterable[Conjunction], max_groups: int) -> CandidateGroups:
    found = candidate_groups(subscriptions, most=max_groups, width=WIDEST)
    if found.left_out:
        _log.warning(
            "the %d groups of attributes that most subscriptions ask for are counted, %d are not; raise `max_groups`",
            len(found.groups),
            found.left_out,
        )
    return found
