"""S-UN, CN and S-CN: every message is sent that the definitions call for, of its size and at its step, and no other."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from msgspec.structs import replace

from tests.dissemination.worlds import Definition, World, make_world
from tocsin.dissemination.byte_model import ByteModel
from tocsin.dissemination.can.construction import Splitting
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.traffic import MessageRole, Traffic

INF = math.inf
SIZES = ByteModel(field=4, header=3)
KINDS = ("min", "max", "count", "sum", "avg", "distinct")
Line = tuple[int, ...]  # event, sender, receiver, messages, size, step


def worlds(kind: str) -> list[World]:
    """Return worlds whose messages have a header."""
    found = [
        make_world(seed, kind=kind, nodes=(20, 3, 9)[seed], splitting=list(Splitting)[seed])
        for seed in range(3)
    ]
    return [replace(world, setting=replace(world.setting, byte_model=SIZES)) for world in found]


def lines_of(sent: Traffic, role: MessageRole) -> list[Line]:
    of = sent.role == role
    columns = (sent.event, sent.sender, sent.receiver, sent.messages, sent.size, sent.step)
    return sorted(zip(*(column[of].tolist() for column in columns), strict=True))


def spread_lines(setting: Setting, event: int, ends: tuple[float, ...], fields: int, step: int) -> list[Line]:
    """Return how a message goes over outer_l < x1 <= inner_l and inner_r <= x2 < outer_r, each zone asking for its parent."""
    outer_l, inner_l, inner_r, outer_r = ends
    sides = setting.can.zones[:4]
    zones = list(enumerate(zip(*(side.tolist() for side in sides), strict=True)))

    def parent(zone: int) -> int | None:
        _, high1, low2, _ = zones[zone][1]
        if high1 <= inner_l:
            x1, x2 = high1, max(low2, inner_r)
            return next(z for z, (left, right, low, high) in zones if left <= x1 < right and low <= x2 < high)
        if low2 > inner_r:
            return next(z for z, (left, right, _, high) in zones if left <= inner_l < right and high == low2)
        return None

    def depth(zone: int) -> int:
        above = parent(zone)
        return 0 if above is None else 1 + depth(above)

    met = [
        zone
        for zone, (left, right, low, high) in zones
        if left <= inner_l and right > outer_l and low < outer_r and high > inner_r
    ]
    handed = [(zone, above) for zone in met if (above := parent(zone)) is not None]
    return [(event, above, zone, 1, SIZES.of(fields), step + depth(zone) - 1) for zone, above in handed]


@pytest.mark.parametrize("kind", KINDS)
def test_a_unicast_goes_to_everybody_whose_answer_changes(kind: str) -> None:
    for world in worlds(kind):
        server, definition = world.setting.server, Definition(world.queries)
        strategy = strategy_named("S-UN")(world.setting, world.queries)
        for batch in world.batches:
            outcome, expected, altered = strategy.publish(batch), [], 0
            for event, changed in enumerate(definition.follow(batch)):
                altered += len(changed)
                for node, count in Counter(strategy.gateways[list(changed)].tolist()).items():
                    size = count * SIZES.of(3 if kind == "distinct" else 2)
                    expected.append((event, server, node, count, size, 0))
            assert lines_of(outcome.traffic, MessageRole.SPREAD) == sorted(
                line for line in expected if line[2] != server
            )
            assert outcome.outgoing == altered


@pytest.mark.parametrize("kind", KINDS)
def test_without_a_server_a_change_goes_to_the_quadrants_of_its_x(kind: str) -> None:
    for world in worlds(kind):
        strategy = strategy_named("CN")(world.setting, world.queries)
        for batch in world.batches:
            expected = []
            for event, x in enumerate(zip(batch.old_x.tolist(), batch.new_x.tolist(), strict=True)):
                for one in {value for value in x if not math.isnan(value)}:
                    expected += spread_lines(world.setting, event, (-INF, one, one, INF), 3, 0)
            assert lines_of(strategy.publish(batch).traffic, MessageRole.SPREAD) == sorted(expected)


@pytest.mark.parametrize("kind", KINDS)
def test_a_servers_message_goes_to_its_corner_and_over_its_rectangle(kind: str) -> None:
    for world in worlds(kind):
        strategy = strategy_named("S-CN")(world.setting, world.queries)
        server, can = world.queries.new_server(), world.setting.can
        for batch in world.batches:
            messages, outcome = server.reformulate(batch), strategy.publish(batch)
            routed, spread = [], []
            columns = (messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r)
            for place, event in enumerate(messages.change.tolist()):
                ends = tuple(float(column[place]) for column in columns)
                fields = 5 if kind in {"min", "max"} else 6
                if kind == "distinct":
                    fields = 4 + sum(int(codes[place] >= 0) for codes in messages.payload.values())
                elif kind in {"count", "sum", "avg"} and ends == (-INF, ends[1], ends[1], INF):
                    fields = 3
                corner = messages.inner_l[[place]], messages.inner_r[[place]]
                way = can.route(np.array([world.setting.server]), *corner).zones.tolist()
                routed += [
                    (event, *pair, 1, SIZES.of(fields), step) for step, pair in enumerate(pairwise(way))
                ]
                spread += spread_lines(world.setting, event, ends, fields, len(way) - 1)
            assert lines_of(outcome.traffic, MessageRole.ROUTE) == sorted(routed)
            assert lines_of(outcome.traffic, MessageRole.SPREAD) == sorted(spread)
            assert outcome.outgoing == len(messages)


def test_a_multicast_counts_as_a_message_where_it_concerns_somebody() -> None:
    for world in worlds("min"):
        strategy, server = strategy_named("S-MN")(world.setting, world.queries), world.queries.new_server()
        lows, highs = world.queries.lows, world.queries.highs
        for batch in world.batches:
            messages = server.reformulate(batch)
            is_concerned = [
                bool(np.any((lows > outer_l) & (lows <= inner_l) & (highs >= inner_r) & (highs < outer_r)))
                for outer_l, inner_l, inner_r, outer_r in zip(
                    messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r, strict=True
                )
            ]
            assert strategy.publish(batch).outgoing == sum(is_concerned)
