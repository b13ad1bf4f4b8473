"""All that a page shows, from a run of the strategies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct

from tocsin.dissemination.ledger import TrafficLedger
from tocsin.dissemination.page.captions import headline, in_words, title_of
from tocsin.dissemination.page.event_selection import Point, ShownEvent, one_change
from tocsin.dissemination.page.layout import laid_out
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.dissemination.traffic import Role
from tocsin.model.errors import TocsinError

MOST_ZONES: Final = 150

Line = tuple[int, int, int, int, int, int]
"""A step, a role, the sender, the receiver, how many messages, and their bytes."""


class Drawn(Struct, frozen=True):
    """A strategy, as it is called and described."""

    name: str
    title: str
    holds: str


class Run(Struct, frozen=True):
    """What a strategy did for an event."""

    lines: list[Line]
    overlay_hops: int
    ip_hops: int
    size: int
    stress: int
    steps: int
    server_messages: int
    words: str


class Happening(Struct, frozen=True):
    """An event, what a server makes of it, whose answers change, and what each strategy did."""

    row: int
    old: Point | None
    new: Point | None
    sort: str
    title: str
    rectangles: list[tuple[float | None, float, float, float | None]]  # outer_l, inner_l, inner_r, outer_r
    values: list[Any]  # the new answer that each rectangle's message tells, if it is one
    points: list[float]  # the x whose quadrants the event is in
    told: list[tuple[int, Any, Any]]  # subscription, old answer, new answer
    runs: list[Run]


class Scene(Struct, frozen=True):
    """A network, what is asked, and what happens; None stands for infinity."""

    kind: str
    note: str  # what the scene is of
    domain: tuple[float, float]  # of x
    heights: tuple[float, float]  # of y
    zones: list[tuple[float | None, ...]]  # low1, high1, low2, high2
    nodes: list[tuple[float, float]]  # where they are drawn, in the unit square
    server: int
    subscriptions: list[tuple[float, float, int]]  # low, high, gateway
    rows: list[Point]
    roles: list[str]
    strategies: list[Drawn]
    events: list[Happening]


def make_scene(
    setting: Setting,
    queries: RangeQueries,
    names: Sequence[str],
    chapters: Sequence[ShownEvent],
    note: str = "",
) -> Scene:
    """Let strategies carry some changes, one by one, and return all there is to see of it.

    Raise `TocsinError` if there are more zones than can be drawn, or no change, or if two strategies tell different answers.
    """
    if len(setting.can) > MOST_ZONES:
        raise TocsinError(
            f"a page with {len(setting.can):,} zones shows nothing; draw a network of up to {MOST_ZONES} overlay nodes"
        )
    if not chapters:
        raise TocsinError("a page without an event shows nothing; there is no update to be drawn")
    strategies = [strategy_named(name)(setting, queries) for name in names]
    accounts = TrafficLedger(setting.overlay)
    events = [_happening(strategies, accounts, event, chapter) for event, chapter in enumerate(chapters)]
    zones = setting.can.zones
    return Scene(
        kind=queries.kind,
        note=note,
        domain=_span([queries.lows, queries.highs, queries.x], [(one.old, one.new) for one in chapters], 0),
        heights=_span([queries.y], [(one.old, one.new) for one in chapters], 1),
        zones=[
            tuple(_finite(end) for end in ends)
            for ends in zip(*(column.tolist() for column in zones[:4]), strict=True)
        ],
        nodes=[(round(x, 4), round(y, 4)) for x, y in laid_out(setting.overlay, setting.seed).tolist()],
        server=setting.server,
        subscriptions=list(
            zip(queries.lows.tolist(), queries.highs.tolist(), strategies[0].gateways.tolist(), strict=True)
        ),
        rows=list(zip(queries.x.tolist(), queries.y.tolist(), strict=True)),
        roles=[role.name.lower() for role in Role],
        strategies=[Drawn(one.name, title_of(one.name), one.stored_state.words) for one in strategies],
        events=events,
    )


def _happening(
    strategies: Sequence[Strategy], accounts: TrafficLedger, event: int, chapter: ShownEvent
) -> Happening:
    """Return an event with what each strategy does for it."""
    changes = one_change(chapter.old, chapter.new)
    outcomes = [strategy.publish(changes) for strategy in strategies]
    told = [_told(outcome) for outcome in outcomes]
    for strategy, other in zip(strategies, told, strict=True):
        if repr(other) != repr(told[0]):
            raise TocsinError(
                f"event {event}: strategy {strategy.name} tells {len(other):,} subscriptions, and "
                f"{strategies[0].name} {len(told[0]):,}, or something else; a page shows what is true, and this is not"
            )
    messages = chapter.messages
    corners = (messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r)
    rectangles = [
        (_finite(outer_l), inner_l, inner_r, _finite(outer_r))
        for outer_l, inner_l, inner_r, outer_r in zip(*(one.tolist() for one in corners), strict=True)
    ]
    values = [_finite(value) for value in messages.payload.get("value", np.empty(0)).tolist()]
    points = [end[0] for end in (chapter.old, chapter.new) if end is not None]
    return Happening(
        row=chapter.row,
        old=chapter.old,
        new=chapter.new,
        sort=chapter.sort.value,
        title=headline(chapter),
        rectangles=rectangles,
        values=values,
        points=list(dict.fromkeys(points)),
        told=told[0],
        runs=[
            _run(strategy, accounts, outcome, chapter)
            for strategy, outcome in zip(strategies, outcomes, strict=True)
        ],
    )


def _run(strategy: Strategy, accounts: TrafficLedger, outcome: Outcome, chapter: ShownEvent) -> Run:
    sent = outcome.traffic
    costs = accounts.add(sent, 1)
    columns = (sent.step, sent.role, sent.sender, sent.receiver, sent.messages, sent.size)
    return Run(
        lines=sorted(zip(*(column.tolist() for column in columns), strict=True)),
        overlay_hops=int(costs.overlay_hops[0]),
        ip_hops=int(costs.ip_hops[0]),
        size=int(costs.size[0]),
        stress=int(costs.stress[0]),
        steps=int(costs.steps[0]),
        server_messages=outcome.outgoing,
        words=in_words(strategy, outcome, chapter),
    )


def _told(outcome: Outcome) -> list[tuple[int, Any, Any]]:
    told = outcome.answer_changes
    columns = (told.numbers, told.old, told.new)
    lines = zip(*(column.tolist() for column in columns), strict=True)
    return sorted(
        ((number, _finite(old), _finite(new)) for number, old, new in lines), key=lambda one: one[0]
    )


def _finite(value: Any) -> Any:
    """Return a value as JSON has it: None for null and for infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _span(
    columns: Sequence[Any], ends: Sequence[tuple[Point | None, Point | None]], axis: int
) -> tuple[float, float]:
    """Return the least and the greatest of all, those included that come with the changes."""
    later = [end[axis] for pair in ends for end in pair if end is not None]
    found = np.concatenate([*columns, np.array(later, dtype=np.float64)])
    lowest, highest = float(found.min()), float(found.max())
    return lowest, highest if highest > lowest else lowest + 1.0
