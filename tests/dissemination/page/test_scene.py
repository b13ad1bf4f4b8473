import json
import re
from collections.abc import Sequence

import msgspec
import numpy as np
import pytest

from tests.dissemination import own
from tests.dissemination.worlds import make_world
from tocsin.dissemination.can.construction import Splitting, build_can
from tocsin.dissemination.network.inet import make_topology
from tocsin.dissemination.network.overlay import place_overlay
from tocsin.dissemination.page import Scene, choose_events, make_scene, scene
from tocsin.dissemination.page.event_selection import EventKind, Point, ShownEvent, one_change
from tocsin.dissemination.page.scene import page_text
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario, described, pictured, prepare
from tocsin.dissemination.scenarios.walks import in_batches
from tocsin.dissemination.setting import Setting
from tocsin.dissemination.simulator import simulate
from tocsin.dissemination.strategies import registry
from tocsin.dissemination.strategies.registry import STRATEGIES, strategy_named
from tocsin.model.errors import TocsinError


@pytest.fixture(scope="module")
def prepared() -> Prepared:
    return prepare(pictured(Scenario(nodes=12, physical=60, subscriptions=100)))


@pytest.fixture(scope="module")
def chapters(prepared: Prepared) -> list[ShownEvent]:
    return choose_events(prepared.queries, prepared.changes)


@pytest.fixture(scope="module")
def drawn(prepared: Prepared, chapters: list[ShownEvent]) -> Scene:
    note = described(prepared.scenario, prepared.queries.rows)
    return make_scene(prepared.setting, prepared.queries, list(STRATEGIES), chapters, note)


@pytest.mark.parametrize("name", STRATEGIES)
def test_the_drawn_messages_are_those_of_a_run(
    name: str, prepared: Prepared, chapters: list[ShownEvent], drawn: Scene
) -> None:
    strategy = strategy_named(name)(prepared.setting, prepared.queries)
    result = simulate(strategy, [one_change(one.old, one.new) for one in chapters])
    runs = [event.runs[list(STRATEGIES).index(name)] for event in drawn.events]
    for column, costs in zip(result.costs._fields, result.costs, strict=True):
        assert [getattr(run, column) for run in runs] == costs.tolist(), column
    assert sum(run.server_messages for run in runs) == result.outgoing
    assert sum(len(event.answer_changes) for event in drawn.events) == result.changed_answers
    for run in runs:
        assert sum(messages for *_, messages, _ in run.lines) == run.overlay_hops
        assert sum(size for *_, size in run.lines) == run.size
        assert max((step + 1 for step, *_ in run.lines), default=0) == run.steps
        assert run.lines == sorted(run.lines)
        assert run.words.endswith(".")


def test_the_scene_holds_the_network_the_rows_and_the_subscriptions(prepared: Prepared, drawn: Scene) -> None:
    assert len(drawn.zones) == len(drawn.nodes) == 12
    assert drawn.server == prepared.setting.server
    assert [low for low, _, _ in drawn.subscriptions] == prepared.queries.lows.tolist()
    assert drawn.rows == list(zip(prepared.queries.x.tolist(), prepared.queries.y.tolist(), strict=True))
    assert all(0 <= x <= 1 and 0 <= y <= 1 for x, y in drawn.nodes)
    assert (
        drawn.domain[0] <= min(x for x, _ in drawn.rows) <= max(x for x, _ in drawn.rows) <= drawn.domain[1]
    )
    assert [one.name for one in drawn.strategies] == list(STRATEGIES)
    gateways = prepared.setting.can.locate(prepared.queries.lows, prepared.queries.highs)
    assert [gateway for *_, gateway in drawn.subscriptions] == gateways.tolist()


def test_answers_that_change_lie_in_a_rectangle(drawn: Scene) -> None:
    for event in drawn.events:
        for subscription, _, _ in event.answer_changes:
            low, high, _ = drawn.subscriptions[subscription]
            assert any(
                (left is None or left < low)
                and low <= inner_l
                and inner_r <= high
                and (right is None or high < right)
                for left, inner_l, inner_r, right in event.rectangles
            )


def test_the_page_holds_its_scene_and_needs_nothing_else(drawn: Scene) -> None:
    page = page_text(drawn)
    found = re.search(r'<script type="application/json" id="scene">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    assert json.loads(found.group(1)) == json.loads(msgspec.json.encode(drawn))
    for outside in ("http://", "https://", "src=", "@import", "url(", "<link"):
        assert outside not in page
    assert not re.search(r"/\*(style|scene|script)\*/", page)


def test_a_scene_cannot_end_the_script_that_holds_it(drawn: Scene) -> None:
    page = page_text(msgspec.structs.replace(drawn, note="</script><b>"))
    assert "</script><b>" not in page


def test_other_kinds_are_drawn_with_the_strategies_that_carry_them() -> None:
    for kind in ("sum", "distinct", "count"):
        prepared = prepare(pictured(Scenario(kind=kind, nodes=6, physical=40, subscriptions=40)))
        chapters = choose_events(prepared.queries, next(in_batches(prepared.changes, 100)))
        found = make_scene(prepared.setting, prepared.queries, ["S-UN", "CN", "S-CN"], chapters[:3])
        assert any(event.answer_changes for event in found.events)
        assert not any("another row" in run.words for event in found.events for run in event.runs)
        assert msgspec.json.decode(msgspec.json.encode(found))["kind"] == kind


def test_rows_that_come_go_and_move_are_drawn() -> None:
    world = make_world(5, nodes=6, events=200)
    chapters = choose_events(world.queries, world.batches[0])
    found = make_scene(world.setting, world.queries, list(STRATEGIES), chapters)
    assert len(found.events) == len(chapters)


def test_a_row_that_moves_has_two_owners_who_hand_it_on() -> None:
    world = make_world(5, nodes=6, events=200)
    queries, can = world.queries, world.setting.can
    x = queries.x
    one, other = next(
        (a, b) for a in x for b in x if can.locate(*[np.array([a])] * 2) != can.locate(*[np.array([b])] * 2)
    )
    row = int(np.flatnonzero(x == one)[0])
    old, new = (float(one), float(queries.y[row])), (float(other), float(queries.y[row]))
    messages = queries.new_server().reformulate(one_change(old, new))
    chapter = ShownEvent(row, old, new, EventKind.MOVE, messages)
    found = make_scene(world.setting, queries, ["CN", "DS-CN"], [chapter])
    content, distributed = found.events[0].runs
    owners = [int(can.locate(*[np.array([end])] * 2)[0]) for end in (one, other)]
    zones = {*owners, *(receiver for _, _, _, receiver, _, _ in content.lines)}
    assert f"Zone {owners[0]}, where" in content.words
    assert f"and zone {owners[1]}, where" in content.words
    assert f": {len(zones)} zones." in content.words
    assert f"and zone {owners[1]}, where" in distributed.words


def words_of(queries: RangeQueries, old: Point, new: Point, strategy: str = "S-CN", nodes: int = 4) -> str:
    """Return what a page says of one change, in a network whose zones matter little."""
    ranges = {"lows": queries.lows, "highs": queries.highs, "rows": queries.x}
    can = build_can(nodes, Splitting.UNIFORM, **ranges, domain=(0.0, 9.0), seed=1)
    setting = Setting(place_overlay(make_topology(20, seed=1), nodes, seed=1), can)
    chapter = ShownEvent(0, old, new, EventKind.MOVE, queries.new_server().reformulate(one_change(old, new)))
    return make_scene(setting, queries, [strategy], [chapter]).events[0].runs[0].words


def test_a_range_that_holds_both_places_of_a_row_is_not_said_to_change_if_it_cannot() -> None:
    lows, highs = np.array([0.0, 0.0]), np.array([3.0, 9.0])
    counted = RangeQueries("count", np.array([2.0, 6.0]), np.array([1.0, 2.0]), lows, highs)
    assert "only ranges with 2 or 4, but not both, in them can change" in words_of(
        counted, (2.0, 1.0), (4.0, 1.0)
    )
    lowest = RangeQueries("min", np.array([2.0, 6.0]), np.array([1.0, 2.0]), lows, highs)
    assert "only ranges with 2 or 4 in them can change" in words_of(lowest, (2.0, 1.0), (4.0, 0.5))


def test_a_place_on_which_nothing_depends_is_not_said_to_matter() -> None:
    x, y = np.array([2.0, 1.0, 3.0, 6.0]), np.array([5.0, 1.0, 1.0, 2.0])
    queries = RangeQueries("min", x, y, np.array([0.0]), np.array([9.0]))
    # At 6 another row is lower.
    words = words_of(queries, (2.0, 5.0), (6.0, 7.0))
    assert "only ranges between 1 and 3 with 2 in them can change" in words


def test_any_range_is_said_to_change_only_where_the_widest_does() -> None:
    # One value leaves ranges up to the second row, the other comes to those from the third on.
    x, y = np.array([5.0, 8.0, 2.0]), np.array([1.0, 1.0, 3.0])
    several = RangeQueries("distinct", x, y, np.array([4.0]), np.array([6.0]))
    assert "only ranges with 5 in them can change" in words_of(several, (5.0, 1.0), (5.0, 3.0))
    assert "any range with 5 in it can change" in words_of(several, (5.0, 1.0), (5.0, 7.0))


@pytest.mark.parametrize("strategy", ["S-UN", "S-MN"])
def test_a_server_whose_node_has_all_subscriptions_sends_nothing(strategy: str) -> None:
    lows, highs = np.array([0.0, 1.0]), np.array([9.0, 9.0])
    queries = RangeQueries("min", np.array([2.0, 6.0]), np.array([1.0, 2.0]), lows, highs)
    words = words_of(queries, (2.0, 1.0), (2.0, 0.5), strategy, nodes=1)
    assert words == (
        "The server finds among all 2 subscriptions 2 whose answer changes, all at its own node. It sends nothing."
    )


def test_zones_that_messages_get_to_are_counted_once(prepared: Prepared, drawn: Scene) -> None:
    spread = drawn.roles.index("spread")
    for event in drawn.events:
        if len(event.rectangles) > 1:
            corners = np.array([(low, high) for _, low, high, _ in event.rectangles])
            zones = set(prepared.setting.can.locate(*corners.T).tolist())
            run = event.runs[list(STRATEGIES).index("S-CN")]
            zones |= {receiver for _, role, _, receiver, _, _ in run.lines if role == spread}
            assert f"spread over {len(zones)} zones in all" in run.words


def test_a_strategy_that_is_none_of_the_six_is_drawn_too(
    prepared: Prepared, chapters: list[ShownEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "STRATEGIES", {**STRATEGIES, "OWN": f"{own.__name__}:Own"})
    found = make_scene(prepared.setting, prepared.queries, ["OWN", "S-UN"], chapters)
    assert [one.title for one in found.strategies] == ["", "server, unicast"]
    for event in found.events:
        hops = event.runs[0].overlay_hops
        assert event.runs[0].words.startswith(
            {0: "No messages are", 1: "One message is"}.get(hops, f"{hops:,} messages are")
        )


def test_a_page_without_events_is_refused(prepared: Prepared) -> None:
    with pytest.raises(TocsinError, match="a page without an event shows nothing"):
        make_scene(prepared.setting, prepared.queries, ["CN"], [])


def test_too_many_zones_are_refused(
    monkeypatch: pytest.MonkeyPatch, prepared: Prepared, chapters: Sequence[ShownEvent]
) -> None:
    monkeypatch.setattr(scene, "MOST_ZONES", 11)
    with pytest.raises(TocsinError, match="a page with 12 zones shows nothing; draw a network of up to 11"):
        make_scene(prepared.setting, prepared.queries, ["CN"], chapters)


def test_strategies_that_disagree_are_not_drawn(
    monkeypatch: pytest.MonkeyPatch, prepared: Prepared, chapters: Sequence[ShownEvent]
) -> None:
    silent = msgspec.structs.replace
    real = strategy_named("S-CN").publish

    def deaf(self, changes):  # type: ignore[no-untyped-def]
        outcome = real(self, changes)
        none = np.zeros(0, dtype=np.int64)
        return silent(
            outcome,
            answer_changes=silent(outcome.answer_changes, rows=none, numbers=none, old=none, new=none),
        )

    monkeypatch.setattr(strategy_named("S-CN"), "publish", deaf)
    with pytest.raises(TocsinError, match=r"event 0: strategy S-CN changes 0 answers, and CN \d+"):
        make_scene(prepared.setting, prepared.queries, ["CN", "S-CN"], chapters)
