"""Subscriptions at their gateways: each zone finds its own among those that a message concerns."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.state import SpreadTrees
from tocsin.dissemination.query_kinds.base import Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.traffic import Role, Traffic
from tocsin.matching import IdArray, Matches
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import Rectangles
from tocsin.views.kinds.kind import Answers, Told
from tocsin.views.messages import Messages


class Gateways:
    """A tree of ranges for each zone, and the answers of all subscriptions.

    A zone's owner looks at its own tree alone, and alters the answers of its own subscriptions alone.
    """

    def __init__(self, can: Can, queries: Queries, gateways: IdArray, answers: Answers) -> None:
        self._answers = answers
        self._index = PointIndex()
        self._roots = self._index.plant(len(can))
        for zone, numbers in by_zone(gateways):
            self._index.add(int(self._roots[zone]), numbers, queries.lows[numbers], queries.highs[numbers])

    def hear(self, messages: Messages, zones: IdArray) -> Told:
        """Return which answers change as messages, in the order of their changes, reach a zone each."""
        asked = Rectangles(
            self._roots[zones], messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r
        )
        places, offsets = self._index.find(asked)
        return self._answers.tell(messages, Matches(offsets, places))


def by_zone(gateways: IdArray) -> Iterator[tuple[int, IdArray]]:
    """Return each zone that has subscriptions, and their numbers, ascending."""
    order = np.argsort(gateways, kind="stable")
    zones, counts = np.unique(gateways, return_counts=True)
    ends = np.cumsum(counts)
    for zone, begin, end in zip(zones.tolist(), ends - counts, ends, strict=True):
        yield zone, order[begin:end]


def spread_messages(messages: Messages, spread: SpreadTrees) -> Messages:
    """Return each message once for every zone that it reaches."""
    return messages.take(np.repeat(np.arange(len(messages)), np.diff(spread.starts)))


def spread_traffic(
    setting: Setting, events: IdArray, spread: SpreadTrees, fields: IdArray | int, steps: IdArray | int = 0
) -> Traffic:
    """Return what is sent as messages spread: each belongs to an event, has so many fields, and sets out at a step."""
    reached = np.diff(spread.starts)

    def each(column: IdArray | int) -> IdArray:
        return np.repeat(np.broadcast_to(np.asarray(column, dtype=np.int64), reached.shape), reached)

    handed = spread.parents >= 0
    size = setting.byte_model.header + setting.byte_model.field * each(fields)
    return Traffic.of(
        each(events)[handed],
        spread.parents[handed],
        spread.zones[handed],
        size=size[handed],
        step=(each(steps) + spread.depths - 1)[handed],
        role=Role.SPREAD,
    )
