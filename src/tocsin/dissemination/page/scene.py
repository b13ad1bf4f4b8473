"""The scene of a page, a network with its subscriptions and a run of each strategy, and the page as one file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib.resources import files
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from tocsin.dissemination.multicast.coordinates import network_coordinates
from tocsin.dissemination.network.overlay import Overlay
from tocsin.dissemination.page.captions import caption, headline, title_of
from tocsin.dissemination.page.event_selection import Point, ShownEvent, one_change
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.dissemination.traffic import MessageRole, TrafficLedger
from tocsin.model.errors import TocsinError
from tocsin.views.changes import Floats

_PARTS: Final = files("tocsin.dissemination.page").joinpath("parts")
_SCRIPTS: Final = ("scene.js", "arrows.js", "zones.js", "rows.js", "overlay.js", "bill.js", "controls.js")

MOST_ZONES: Final = 150
_ROUNDS: Final = 120  # of pushing nodes apart
_PUSH: Final = 0.15  # in a round, of the distance by which two nodes are too near

Line = tuple[int, int, int, int, int, int]
"""The columns of `Traffic` in `_LINE`."""

_LINE: Final = ("step", "role", "sender", "receiver", "messages", "size")


class SceneStrategy(Struct, frozen=True):
    """A strategy's name, title and stored state."""

    name: str
    title: str
    holds: str


class SceneRun(Struct, frozen=True):
    """The messages and costs of a strategy for an event."""

    lines: list[Line]
    overlay_hops: int
    ip_hops: int
    size: int
    stress: int
    steps: int
    server_messages: int
    words: str


class SceneEvent(Struct, frozen=True):
    """An event, its reformulated messages, the answers that change, and a run of each strategy."""

    row: int
    old: Point | None
    new: Point | None
    sort: str
    title: str
    rectangles: list[tuple[float | None, float, float, float | None]]  # outer_l, inner_l, inner_r, outer_r
    values: list[Any]  # the new answer of each rectangle's message, if it has one
    points: list[float]  # the x of the event's quadrants
    answer_changes: list[tuple[int, Any, Any]]  # subscription, old answer, new answer
    runs: list[SceneRun]


class Scene(Struct, frozen=True):
    """A network, its queries and events; None stands for infinity. The page's scripts read these fields by name."""

    kind: str
    note: str  # a description of the scenario
    domain: tuple[float, float]  # of x
    heights: tuple[float, float]  # of y
    zones: list[tuple[float | None, ...]]  # low1, high1, low2, high2
    nodes: list[tuple[float, float]]  # where they are drawn, in the unit square
    server: int
    subscriptions: list[tuple[float, float, int]]  # low, high, gateway
    rows: list[Point]
    roles: list[str]
    strategies: list[SceneStrategy]
    events: list[SceneEvent]


def make_scene(
    setting: Setting, queries: RangeQueries, names: Sequence[str], shown: Sequence[ShownEvent], note: str = ""
) -> Scene:
    """Let strategies carry some changes, one by one, and return the scene.

    Raise `TocsinError` if there are more zones than can be drawn, or no change, or if strategies change different answers.
    """
    if len(setting.can) > MOST_ZONES:
        raise TocsinError(
            f"a page with {len(setting.can):,} zones shows nothing; draw a network of up to {MOST_ZONES} overlay nodes"
        )
    if not shown:
        raise TocsinError("a page without an event shows nothing; there is no update to be drawn")
    strategies = [strategy_named(name)(setting, queries) for name in names]
    ledger = TrafficLedger(setting.overlay)
    events = [_scene_event(strategies, ledger, number, event) for number, event in enumerate(shown)]
    zones = setting.can.zones
    return Scene(
        kind=queries.kind,
        note=note,
        domain=_span([queries.lows, queries.highs, queries.x], [(one.old, one.new) for one in shown], 0),
        heights=_span([queries.y], [(one.old, one.new) for one in shown], 1),
        zones=[
            tuple(_finite(end) for end in ends)
            for ends in zip(*(column.tolist() for column in zones[:4]), strict=True)
        ],
        nodes=[(round(x, 4), round(y, 4)) for x, y in node_positions(setting.overlay, setting.seed).tolist()],
        server=setting.server,
        subscriptions=list(
            zip(queries.lows.tolist(), queries.highs.tolist(), strategies[0].gateways.tolist(), strict=True)
        ),
        rows=list(zip(queries.x.tolist(), queries.y.tolist(), strict=True)),
        roles=[role.name.lower() for role in MessageRole],
        strategies=[
            SceneStrategy(one.name, title_of(one.name), one.stored_state.words) for one in strategies
        ],
        events=events,
    )


def _scene_event(
    strategies: Sequence[Strategy], ledger: TrafficLedger, number: int, event: ShownEvent
) -> SceneEvent:
    """Return an event with a run of each strategy."""
    changes = one_change(event.old, event.new)
    outcomes = [strategy.publish(changes) for strategy in strategies]
    changed = [_answer_changes(outcome) for outcome in outcomes]
    for strategy, other in zip(strategies, changed, strict=True):
        if repr(other) != repr(changed[0]):
            raise TocsinError(
                f"event {number}: strategy {strategy.name} changes {len(other):,} answers, and "
                f"{strategies[0].name} {len(changed[0]):,}, or different ones; no page is written"
            )
    messages = event.messages
    corners = (messages.outer_l, messages.inner_l, messages.inner_r, messages.outer_r)
    rectangles = [
        (_finite(outer_l), inner_l, inner_r, _finite(outer_r))
        for outer_l, inner_l, inner_r, outer_r in zip(*(one.tolist() for one in corners), strict=True)
    ]
    values = [_finite(value) for value in messages.payload.get("value", np.empty(0)).tolist()]
    points = [end[0] for end in (event.old, event.new) if end is not None]
    return SceneEvent(
        row=event.row,
        old=event.old,
        new=event.new,
        sort=event.kind.value,
        title=headline(event),
        rectangles=rectangles,
        values=values,
        points=list(dict.fromkeys(points)),
        answer_changes=changed[0],
        runs=[
            _run(strategy, ledger, outcome, event)
            for strategy, outcome in zip(strategies, outcomes, strict=True)
        ],
    )


def _run(strategy: Strategy, ledger: TrafficLedger, outcome: Outcome, event: ShownEvent) -> SceneRun:
    """Charge a strategy's traffic to the ledger, and return its run for the page."""
    traffic = outcome.traffic
    costs = ledger.add(traffic, 1)
    columns = (getattr(traffic, name) for name in _LINE)
    return SceneRun(
        lines=sorted(zip(*(column.tolist() for column in columns), strict=True)),
        **{name: int(column[0]) for name, column in costs._asdict().items()},
        server_messages=outcome.outgoing,
        words=caption(strategy, outcome, event),
    )


def _answer_changes(outcome: Outcome) -> list[tuple[int, Any, Any]]:
    """Return the subscription, the old and the new answer of each change, by subscription."""
    changes = outcome.answer_changes
    columns = (changes.numbers, changes.old, changes.new)
    lines = zip(*(column.tolist() for column in columns), strict=True)
    finite = ((number, _finite(old), _finite(new)) for number, old, new in lines)
    return sorted(finite, key=lambda one: one[0])


def _finite(value: Any) -> Any:
    """Return a value as JSON has it: None for null and for infinity."""
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _span(
    columns: Sequence[Any], ends: Sequence[tuple[Point | None, Point | None]], axis: int
) -> tuple[float, float]:
    """Return the least and the greatest value, including those of the changes."""
    later = [end[axis] for pair in ends for end in pair if end is not None]
    found = np.concatenate([*columns, np.array(later, dtype=np.float64)])
    lowest, highest = float(found.min()), float(found.max())
    return lowest, highest if highest > lowest else lowest + 1.0


def node_positions(overlay: Overlay, seed: int) -> Floats:
    """Return a position in the unit square for each node, [nodes, 2]: near nodes near each other, but not overlapping."""
    nodes = len(overlay)
    if nodes < 3:
        return np.linspace((0.3, 0.5), (0.7, 0.5), nodes)
    positions = network_coordinates(overlay.hops, dimensions=2, seed=seed)
    # Mostly ranks: a few distant nodes would crowd all others.
    ranks = np.argsort(np.argsort(positions, axis=0, kind="stable"), axis=0, kind="stable") / (nodes - 1)
    spans = np.ptp(positions, axis=0)
    positions = 0.7 * ranks + 0.3 * (positions - positions.min(axis=0)) / np.where(spans > 0, spans, 1.0)
    apart = 0.8 / np.sqrt(nodes)
    for _ in range(_ROUNDS):
        between = positions[:, None] - positions[None]
        distance = np.sqrt((between**2).sum(axis=2))
        np.fill_diagonal(distance, np.inf)
        lacking = np.clip(apart - distance, 0.0, None) / np.maximum(distance, 1e-9)
        positions += _PUSH * (between * lacking[:, :, None]).sum(axis=1)
    lowest, spans = positions.min(axis=0), np.ptp(positions, axis=0)
    scaled: Floats = (positions - lowest) / np.where(spans > 0, spans, 1.0)
    return scaled


def page_text(scene: Scene) -> str:
    """Return the page that shows a scene: the template with its style, its scripts and the scene within."""
    # In a script `</` would end it, and JSON may write it otherwise.
    data = msgspec.json.encode(scene).decode().replace("<", "\\u003c")
    scripts = "\n".join(_part(name) for name in _SCRIPTS)
    inserted = {"/*style*/": _part("page.css"), "/*scene*/": data, "/*script*/": scripts}
    text = _part("page.html")
    for placeholder, part in inserted.items():
        text = text.replace(placeholder, part, 1)
    return text


def _part(name: str) -> str:
    return _PARTS.joinpath(name).read_text(encoding="utf-8")
