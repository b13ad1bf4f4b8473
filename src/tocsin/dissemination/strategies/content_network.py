"""How a reformulated message gets to those whom it concerns, once somebody has made it (2.3.1)."""

from __future__ import annotations

import numpy as np

from tocsin.dissemination.can.state import Routes
from tocsin.dissemination.query_kinds.base import Queries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.gateways import Gateways, spread_messages, spread_traffic
from tocsin.dissemination.traffic import Role, Traffic
from tocsin.matching import IdArray
from tocsin.views.kinds.kind import Told
from tocsin.views.messages import Messages


def disseminate(
    setting: Setting,
    queries: Queries,
    gateways: Gateways,
    messages: Messages,
    sources: IdArray,
    *,
    steps: IdArray | int = 0,
) -> tuple[Traffic, Told]:
    """Send messages on from some nodes: each to the owner of its corner, and from there over its rectangle.

    A message sets out at its step. Return what is sent, and which answers change.
    """
    fields = queries.fields(messages)
    ways = setting.can.route(sources, messages.inner_l, messages.inner_r)
    hops = np.diff(ways.starts) - 1
    begun = np.broadcast_to(np.asarray(steps, dtype=np.int64), hops.shape)
    routed = route_traffic(setting, messages.change, ways, fields, steps=begun)
    spread = setting.can.spread(messages)
    told = gateways.hear(spread_messages(messages, spread), spread.zones)
    spreading = spread_traffic(setting, messages.change, spread, fields, begun + hops)
    return Traffic.together([routed, spreading]), told


def route_traffic(
    setting: Setting,
    events: IdArray,
    ways: Routes,
    fields: IdArray,
    *,
    steps: IdArray,
    role: Role = Role.ROUTE,
) -> Traffic:
    """Return what is sent along ways: each belongs to an event, has so many fields, and sets out at a step."""
    hops = np.diff(ways.starts) - 1
    of = np.repeat(np.arange(len(hops)), hops)
    # Within a way, every zone but the last hands on to the next.
    first = np.repeat(ways.starts[:-1], hops)
    nth = np.arange(len(of)) - np.repeat(np.cumsum(hops) - hops, hops)
    return Traffic.of(
        events[of],
        ways.zones[first + nth],
        ways.zones[first + nth + 1],
        size=setting.byte_model.header + setting.byte_model.field * fields[of],
        step=steps[of] + nth,
        role=role,
    )
