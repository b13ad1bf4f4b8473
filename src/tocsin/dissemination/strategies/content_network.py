"""The content-based network: messages are routed to a zone, spread over a rectangle of zones, and alter answers there (2.3.1)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tocsin.dissemination.can.can import Can
from tocsin.dissemination.can.state import Routes, SpreadTrees
from tocsin.dissemination.query_kinds.base import Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.traffic import MessageRole, Traffic
from tocsin.matching import IdArray, Matches
from tocsin.structures.point_index.index import PointIndex
from tocsin.structures.point_index.state import Rectangles
from tocsin.views.aggregates.base import Answers
from tocsin.views.answer_changes import AnswerChanges
from tocsin.views.messages import Messages


def disseminate(
    setting: Setting,
    queries: Queries,
    gateways: Gateways,
    messages: Messages,
    sources: IdArray,
    *,
    steps: IdArray | int = 0,
) -> tuple[Traffic, AnswerChanges]:
    """Send each message from its source node, at its step, to the owner of its corner and over its rectangle.

    Return the traffic, and the answers that change.
    """
    fields = queries.fields(messages)
    routes = setting.can.route(sources, messages.inner_l, messages.inner_r)
    hops = np.diff(routes.starts) - 1
    departures = np.broadcast_to(np.asarray(steps, dtype=np.int64), hops.shape)
    routed = route_traffic(setting, messages.change, routes, fields, steps=departures)
    trees = setting.can.spread(messages)
    received = messages.take(np.repeat(np.arange(len(messages)), np.diff(trees.starts)))
    changed = gateways.receive(received, trees.zones)
    spread = spread_traffic(setting, messages.change, trees, fields, departures + hops)
    return Traffic.concat([routed, spread]), changed


def route_traffic(
    setting: Setting,
    events: IdArray,
    routes: Routes,
    fields: IdArray | int,
    *,
    steps: IdArray,
    role: MessageRole = MessageRole.ROUTE,
) -> Traffic:
    """Return the traffic along routes, given each route's event, number of fields and first step."""
    hops = np.diff(routes.starts) - 1
    route = np.repeat(np.arange(len(hops)), hops)
    # Every zone of a route but the last forwards to the next.
    nth = np.arange(len(route)) - np.repeat(np.cumsum(hops) - hops, hops)
    sender = routes.starts[route] + nth
    return Traffic.from_columns(
        events[route],
        routes.zones[sender],
        routes.zones[sender + 1],
        size=setting.byte_model.of(np.broadcast_to(fields, hops.shape)[route]),
        step=steps[route] + nth,
        role=role,
    )


def spread_traffic(
    setting: Setting, events: IdArray, trees: SpreadTrees, fields: IdArray | int, steps: IdArray | int = 0
) -> Traffic:
    """Return the traffic along trees, given each tree's event, number of fields and first step."""
    tree = np.repeat(np.arange(len(events)), np.diff(trees.starts))
    forwarded = trees.parents >= 0
    tree = tree[forwarded]
    return Traffic.from_columns(
        events[tree],
        trees.parents[forwarded],
        trees.zones[forwarded],
        size=setting.byte_model.of(np.broadcast_to(fields, events.shape)[tree]),
        step=np.broadcast_to(steps, events.shape)[tree] + trees.depths[forwarded] - 1,
        role=MessageRole.SPREAD,
    )


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
