import math

import numpy as np
import pytest

from tests.dissemination.worlds import Definition, World, make_world
from tocsin.dissemination.page.captions import headline
from tocsin.dissemination.page.event_selection import EventKind, ShownEvent, choose_events, one_change
from tocsin.dissemination.query_kinds.ranges import RangeQueries
from tocsin.dissemination.scenarios.scenario import Scenario, pictured, prepare
from tocsin.views.changes import PointChanges

NAN = math.nan


def chosen(queries: RangeQueries, *changes: tuple[float, float, float, float]) -> list[ShownEvent]:
    return choose_events(queries, PointChanges(*(np.array(column) for column in zip(*changes, strict=True))))


def all_changes(world: World) -> PointChanges:
    columns = ("old_x", "old_y", "new_x", "new_y")
    return PointChanges(*(np.concatenate([getattr(one, name) for one in world.batches]) for name in columns))


@pytest.mark.parametrize("kind", ["min", "max"])
def test_a_picture_of_updates_shows_every_kind_that_occurs(kind: str) -> None:
    prepared = prepare(pictured(Scenario(kind=kind, nodes=12, physical=60, subscriptions=100)))
    chapters = choose_events(prepared.queries, prepared.changes)
    sorts = [one.kind for one in chapters]
    assert {
        EventKind.GOOD,
        EventKind.IGNORABLE,
        EventKind.BAD,
        EventKind.UNHEARD,
        EventKind.SPIKE,
        EventKind.RETURN,
    } == set(sorts)
    assert sorts[sorts.index(EventKind.SPIKE) + 1] == EventKind.RETURN
    assert 10 <= len(chapters) <= 16


def test_a_picture_with_few_sorts_has_events_enough() -> None:
    prepared = prepare(pictured(Scenario(kind="count", nodes=4, physical=40, subscriptions=50)))
    sorts = [one.kind for one in choose_events(prepared.queries, prepared.changes.part(0, 200))]
    assert set(sorts) == {EventKind.MOVE}
    assert len(sorts) >= 8


def test_rows_that_come_go_and_move_are_selected_too() -> None:
    world = make_world(5, nodes=4, events=400)
    assert {EventKind.COMES, EventKind.GOES, EventKind.MOVE} <= {
        one.kind for one in choose_events(world.queries, all_changes(world))
    }


@pytest.mark.parametrize(
    ("kind", "spike", "words"),
    [("min", 1.0, "falls from 4 to 1, below"), ("max", 9.0, "rises from 4 to 9, above")],
)
def test_a_spike_goes_where_answers_are(kind: str, spike: float, words: str) -> None:
    queries = RangeQueries(
        kind, np.array([1.0, 5.0, 7.0]), np.array([2.0, 4.0, 8.0]), np.array([0.0]), np.array([9.0])
    )
    there, back = chosen(queries, (5.0, 4.0, 5.0, spike), (5.0, spike, 5.0, 4.0))
    assert (there.kind, back.kind) == (EventKind.SPIKE, EventKind.RETURN)
    assert headline(there) == f"Row 1 at x = 5: y {words} all others"


def test_chosen_events_can_be_replayed_without_the_others() -> None:
    world = make_world(6, nodes=4, events=300)
    chapters = choose_events(world.queries, all_changes(world))
    definition = Definition(world.queries)
    for one in chapters:  # a row that were not where a chapter says it is could not be removed
        assert len(list(definition.follow(one_change(one.old, one.new)))) == 1


def test_kinds_of_events_are_distinguished() -> None:
    queries = RangeQueries(
        "min", np.array([1.0, 1.0, 5.0]), np.array([2.0, 8.0, 4.0]), np.array([0.0]), np.array([9.0])
    )
    [ignorable] = chosen(queries, (1.0, 8.0, 1.0, 5.0))
    assert (ignorable.kind, ignorable.row, len(ignorable.messages)) == (EventKind.IGNORABLE, 1, 0)
    [good] = chosen(queries, (1.0, 2.0, 1.0, 1.0))
    assert (good.kind, good.row, len(good.messages)) == (EventKind.GOOD, 0, 1)
    spike, back = chosen(queries, (5.0, 4.0, 5.0, 1.0), (5.0, 1.0, 5.0, 4.0))
    assert (spike.kind, back.kind) == (EventKind.SPIKE, EventKind.RETURN)
    [bad] = chosen(queries, (1.0, 2.0, 1.0, 9.0))
    assert (bad.kind, len(bad.messages)) == (EventKind.BAD, 2)
    assert [one.kind for one in chosen(queries, (5.0, 4.0, NAN, NAN), (NAN, NAN, 3.0, 1.0))] == [
        EventKind.COMES
    ]
