"""Gateways: every zone indexes its own subscriptions, and finds those that a message affects."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.query_kinds.base import Queries
from tocsin.matching import IdArray, Matches
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import Rectangles
from tocsin.views.aggregates.base import Answers
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.messages import Messages


class Gateways:
    """A point index of ranges for each zone, and the answers of all subscriptions.

    A zone's owner probes its own index only, and alters the answers of its own subscriptions only.
    """

    def __init__(self, can: Can, queries: Queries, gateways: IdArray, answers: Answers) -> None:
        self._answers = answers
        self._index = PointIndex()
        self._roots = self._index.plant(len(can))
        for zone, numbers in by_zone(gateways):
            self._index.add(int(self._roots[zone]), numbers, queries.lows[numbers], queries.highs[numbers])

    def receive(self, messages: Messages, zones: IdArray) -> AnswerChanges:
        """Return the answers that change as each message, sorted by change, reaches its zone."""
        probes = Rectangles(
            self._roots[zones], messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r
        )
        subscriptions, offsets = self._index.find(probes)
        return self._answers.apply(messages, Matches(offsets, subscriptions))


def by_zone(gateways: IdArray) -> Iterator[tuple[int, IdArray]]:
    """Yield each zone that has subscriptions, with their numbers in ascending order."""
    order = np.argsort(gateways, kind="stable")
    zones, counts = np.unique(gateways, return_counts=True)
    ends = np.cumsum(counts)
    for zone, begin, end in zip(zones.tolist(), ends - counts, ends, strict=True):
        yield zone, order[begin:end]
