"""The plans that a user reads are those of the state, and what they expect is what events do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.matching.adaptive.invariants import check_invariants
from tocsin.language import parse_condition, to_dnf
from tocsin.language.printer import condition_text
from tocsin.language.semantics import truth
from tocsin.matching import ConjunctionBatch, open_matcher, save_matcher
from tocsin.matching.adaptive import state as arrays
from tocsin.matching.adaptive._kernels.inspection import inspect
from tocsin.matching.adaptive.dividing import Sizes
from tocsin.matching.adaptive.matcher import Adaptive, Thresholds
from tocsin.matching.adaptive.planning import _with_grid
from tocsin.matching.adaptive.plans import KINDS, _levels, paths_of, shares
from tocsin.matching.adaptive.state import (
    OP_BITS,
    ORDER,
    PRESENCE,
    SLOT_MASK,
    Access,
    Code,
    Slot,
    Stored,
    Total,
)
from tocsin.matching.conjunction_store.state import blank_expressions, numbers_in_use
from tocsin.matching.encoding.codes import FIELDS, Field, Op
from tocsin.matching.plans import ConjunctionPlan, PathKind, PathPart
from tocsin.model.errors import MatcherError

# What is planned changes with the cost model; here tables and grids are given, and nothing is divided.
GIVEN = Thresholds(counted=1, planned=1 << 40, events=1 << 40, large=1 << 29, sizes=Sizes(checks=1 << 40))
_RANDOM = np.random.default_rng(11)
NAMED = {
    1: "gate is missing",
    2: "kind != 'y'",
    3: "flight = 7 and kind != 'x' and distance > 100",
    4: "flight in (3, 5, 11) and distance > 2900",
    5: "carrier = 'c7' and dest = 'd2' and distance < 900",
    6: "price between 1000 and 1001 and kind != 'x'",
    7: "carrier = 'c1' and price between 1000 and 1001",
    8: "distance / price > 5",
    9: "distance / price > 5 and price > 10 and dest = 'd3'",
    10: "(carrier = 'c3' and dest = 'd1') or kind = 'z' or flight is missing",
    11: "true",
}


def condition(i: int) -> str:
    """Return one of the many conditions for which tables and cells pay off."""
    low = float(_RANDOM.random() * 3_000)
    if i % 2:
        return f"price between {low:.2f} and {low + 2:.2f} and carrier = 'c{_RANDOM.integers(12)}'"
    return (
        f"carrier = 'c{_RANDOM.integers(12)}' and dest = 'd{_RANDOM.integers(40)}' and distance > {low:.0f}"
    )


def event() -> dict[str, Any]:
    return {
        "carrier": f"c{min(int(_RANDOM.exponential(3)), 11)}",
        "dest": f"d{_RANDOM.integers(40)}",
        "flight": int(_RANDOM.integers(300)),
        "distance": int(_RANDOM.integers(3_000)),
        "price": float(_RANDOM.random() * 3_000),
        "kind": "xyz"[_RANDOM.integers(3)],
    }


def matcher_of(texts: dict[int, str], events: Sequence[Mapping[str, Any]]) -> Adaptive:
    """Return a matcher that has matched events one by one, so that all are counted and no cluster is hot."""
    matcher = Adaptive(thresholds=GIVEN)
    matcher.add(ConjunctionBatch.of((id_, to_dnf(parse_condition(text))) for id_, text in texts.items()))
    for one in events:
        matcher.match_one(one)
    return matcher


def slot_of(matcher: Adaptive, name: str, kind: int = Field.NUMBER) -> int:
    """Return the slot of an attribute's values of a kind."""
    return int(matcher._state.slots.of[matcher.vocabulary.names.codes[name] * FIELDS + kind]) - 1


def make_grid(matcher: Adaptive, slot: int) -> int:
    """Make a grid for the ranges of a slot, and return the slot of the level with most cells."""
    keys = matcher._state.predicates.entries.keys
    inside = (keys[:, Code.TAG] & SLOT_MASK == slot) & (keys[:, Code.TAG] >> OP_BITS == Op.BETWEEN)
    ends = np.unique(keys[inside][:, [Code.LOW, Code.HIGH]])
    matcher._state = _with_grid(arrays.with_slots(matcher._state, arrays.LEVELS), slot, ends)
    move_all(matcher)
    levels = _levels(matcher._state, int(matcher._state.slots.rows[slot, Slot.GRID]) - 1)
    return int(max(levels.tolist(), key=lambda level: matcher._state.slots.rows[level, Slot.EQUALITIES]))


def make_table(matcher: Adaptive, *slots: int) -> None:
    matcher._state = arrays.with_table(matcher._state, tuple(sorted(slots)), 1.0)
    move_all(matcher)


def move_all(matcher: Adaptive) -> None:
    matcher._move(numbers_in_use(matcher._store))


@pytest.fixture(scope="module")
def matcher() -> Adaptive:
    texts = {**NAMED, **{100 + i: condition(i) for i in range(2_000)}}
    texts |= {10_000 + i: f"price between {low} and {low + 1}" for i, low in enumerate(range(0, 3_000, 5))}
    texts |= {20_000 + i: f"flight = {i} and kind = 'x'" for i in range(60)}
    made = matcher_of(texts, [event() for _ in range(1_000)])
    make_grid(made, slot_of(made, "price"))
    make_table(made, slot_of(made, "carrier", Field.STRING), slot_of(made, "dest", Field.STRING))
    for _ in range(1_000):
        made.match_one(event())
    check_invariants(made)
    return made


def plans(matcher: Adaptive, id_: int) -> dict[PathKind, ConjunctionPlan]:
    return {one.kind: one for one in matcher.explain_plan(id_).conjunctions}


@pytest.mark.parametrize(
    ("id_", "kind", "path"),
    [
        (1, PathKind.EVERY_EVENT, "every event"),
        (2, PathKind.PRESENCE, "the presence of kind"),
        (3, PathKind.EQUALITY, "flight = 7"),
        (4, PathKind.LIST, "flight in (3, 5, 11)"),
        (5, PathKind.EQUALITIES, "carrier = 'c7' and dest = 'd2' together"),
        (6, PathKind.RANGE, "price between 1000 and 1001"),
        (8, PathKind.EVERY_EVENT, "every event"),
        (9, PathKind.EQUALITY, "dest = 'd3'"),
        (10, PathKind.EQUALITIES, "carrier = 'c3' and dest = 'd1' together"),
        (10, PathKind.EQUALITY, "kind = 'z'"),
        (10, PathKind.EVERY_EVENT, "every event"),
        (11, PathKind.EVERY_EVENT, "every event"),
    ],
)
def test_each_kind_of_path_is_named_in_the_words_of_the_filter(
    matcher: Adaptive, id_: int, kind: PathKind, path: str
) -> None:
    found = plans(matcher, id_)[kind]
    assert found.path_text == path
    entry = {matcher._state.store.rows[number, Stored.PATH] for number in matcher._numbers_of(id_)}
    paths = paths_of(matcher._state, np.array(sorted(entry)))
    assert found.sharing in paths.members


def test_an_equality_and_a_cell_are_a_path_together() -> None:
    texts = {i: f"a = {i % 20} and p between {i} and {i + 150}" for i in range(1_500)}
    matcher = matcher_of(texts, [{"a": i % 20, "p": float(i * 7 % 1_650)} for i in range(800)])
    level = make_grid(matcher, slot_of(matcher, "p"))
    make_table(matcher, slot_of(matcher, "a"), level)
    ranges = [i for i in texts if PathKind.EQUALITIES_AND_RANGES in plans(matcher, i)]
    assert len(ranges) > 500
    for i in ranges[::100]:
        (found,) = matcher.explain_plan(i).conjunctions
        assert set(found.path_text.removesuffix(" together").split(" and p ")) == {
            f"a = {i % 20}", f"between {i} and {i + 150}"
        }  # fmt: skip
        (cell,) = [part.cell for part in found.path if part.cell is not None]
        assert all(isinstance(bound, float) for bound in cell if bound is not None)
        low, high = cell
        assert low is None or float(str(low)) <= i
        assert high is None or float(str(high)) > i + 150
    details = matcher.stats().details
    assert details["reached by equalities and ranges"] == len(ranges)
    assert details["table of a, p (cells)"] == len(ranges)


def test_checks_come_in_their_order_with_python_last(matcher: Adaptive) -> None:
    (found,) = matcher.explain_plan(9).conjunctions
    assert [(one.text, one.in_python) for one in found.checks] == [
        ("price > 10", False),
        ("distance / price > 5", True),
    ]
    (found,) = matcher.explain_plan(3).conjunctions
    assert {one.text for one in found.checks} == {"kind != 'x'", "distance > 100"}
    for id_ in (3, 5, 100, 101):
        for one in matcher.explain_plan(id_).conjunctions:
            likely = [check.probability for check in one.checks]
            assert len(likely) < 2 or likely[0] < likely[-1] + 0.2


def holds(part: PathPart, event: dict[str, Any]) -> bool:
    """Tell whether an event has a part of an access path."""
    if part.cell is not None:
        low, high = part.cell
        value = event[part.attribute]
        return (low is None or low <= value) and (high is None or value < high)
    return part.attribute in event if part.predicate is None else truth(part.predicate, event) is True


def test_the_expected_share_is_about_the_measured_one(matcher: Adaptive) -> None:
    some = [event() for _ in range(4_000)]
    for id_ in [*NAMED, *range(100, 120), *range(10_000, 10_010)]:
        for plan in matcher.explain_plan(id_).conjunctions:
            measured = sum(all(holds(part, one) for part in plan.path) for one in some) / len(some)
            assert plan.share == pytest.approx(measured, rel=0.5, abs=0.006), (id_, str(plan))
            for check in plan.checks:
                if not check.in_python and check.predicate.operator not in ("!=", "is missing"):
                    share = sum(truth(check.predicate, one) is True for one in some) / len(some)
                    assert check.probability == pytest.approx(share, rel=0.3, abs=0.2), (id_, check.text)


def test_a_plan_has_all_predicates_of_its_conjunction(matcher: Adaptive) -> None:
    for number in numbers_in_use(matcher._store).tolist()[::50]:
        id_ = int(matcher._store.ids.keys[matcher._store.owner[number], 0])
        stored = [
            {condition_text(clause[0]) for clause in one} for one in matcher._decode(matcher._numbers_of(id_))
        ]
        plan = matcher.explain_plan(id_)
        assert [set(map(condition_text, one.predicates)) for one in plan.conjunctions] == stored


def test_shares_are_those_that_conjunctions_move_by(matcher: Adaptive) -> None:
    state = matcher._state
    paths = paths_of(state)
    assert paths.members.sum() == matcher.stats().conjunctions
    single = np.isin(paths.kinds, [KINDS.index(kind) for kind in (PathKind.EQUALITY, PathKind.LIST)])
    codes = paths.codes[single, 0]
    into, expected = blank_expressions(1, len(codes)), np.zeros(len(codes))
    inspect(state, codes, into, expected)
    found = shares(state, paths)[single]
    assert len(found) > 30
    assert (found >= expected - 1e-9).all()
    assert found == pytest.approx(expected, rel=0.2)


def test_costs_are_those_of_the_plans(matcher: Adaptive) -> None:
    costs = matcher.explain_costs(4)
    stats = matcher.stats()
    assert {one.subscription for one in matcher.explain_costs(5)} == {1, 2, 8, 10, 11}
    assert costs.filters[0].subscription == 10
    assert (len(costs.by_rank), costs.conjunctions) == (stats.subscriptions, stats.conjunctions)
    assert [one.checks for one in costs] == pytest.approx(costs.by_rank[:4])
    assert costs.checks == pytest.approx(float(stats.details["expected checks per event"]))
    assert (np.diff(costs.by_rank) <= 0).all()
    kinds = {name: count for name, count in stats.details.items() if name.startswith("reached by ")}
    assert sum(kinds.values()) == stats.conjunctions
    assert kinds["reached by every event"] == 4
    assert kinds["reached by presence"] == 1
    assert kinds["reached by list"] == 1
    assert stats.details["cells of price"] > 10


def test_measured_checks_are_about_the_expected_ones(matcher: Adaptive) -> None:
    expected = float(matcher.stats().details["expected checks per event"])
    totals = matcher._state.totals
    checks, counted = totals[Total.CHECKS], totals[Total.COUNTED]
    for _ in range(1_000):
        matcher.match_one(event())
    measured = (totals[Total.CHECKS] - checks) / (totals[Total.COUNTED] - counted)
    assert measured == pytest.approx(expected, rel=0.3)


def test_a_plan_is_the_same_after_opening(matcher: Adaptive, tmp_path: Path) -> None:
    save_matcher(matcher, tmp_path)
    opened = open_matcher(tmp_path)
    assert isinstance(opened, Adaptive)
    assert opened.explain_plan(5) == matcher.explain_plan(5)


def test_an_empty_matcher_has_no_costs_and_no_plan() -> None:
    matcher = Adaptive()
    matcher.maintain()
    costs = matcher.explain_costs(3)
    assert (len(costs.filters), costs.checks, costs.chart()) == (0, 0.0, "")
    assert matcher.stats().details["expected checks per event"] == 0
    with pytest.raises(MatcherError, match="no subscription has the id 7"):
        matcher.explain_plan(7)


def test_cells_of_strings_and_times_are_shown_as_such() -> None:
    texts = {i: f"s between 'k{i:04}' and 'k{i + 1:04}'" for i in range(500)}
    texts |= {
        1_000 + 24 * day + hour: f"t between timestamp '2026-01-{day:02}T{hour:02}:00:00Z' and timestamp "
        f"'2026-01-{day:02}T{hour:02}:59:00Z'"
        for day in range(1, 29)
        for hour in range(24)
    }
    events = [
        {"s": f"k{i % 500:04}x", "t": f"2026-01-{1 + i % 28:02}T{i % 24:02}:30:00Z"} for i in range(500)
    ]
    matcher = matcher_of(texts, events)
    make_grid(matcher, slot_of(matcher, "s", ORDER))
    make_grid(matcher, slot_of(matcher, "t", Field.TIMESTAMP))
    text, time = (plans(matcher, id_)[PathKind.RANGE].path[0] for id_ in (400, 1_300))
    assert "'k0400'" >= text.cell_text.split()[2] > "'k0300'"
    assert "timestamp '2026-01-" in time.cell_text


def test_a_divided_cluster_costs_what_its_sections_do() -> None:
    matcher = Adaptive(thresholds=Thresholds(counted=1, events=64, large=256, sizes=Sizes(saved=0.5)))
    texts = [f"k = 0 and a between {i % 100} and {i % 100 + 3} and b > {i % 7}" for i in range(1_200)]
    matcher.add(ConjunctionBatch.of((i, to_dnf(parse_condition(text))) for i, text in enumerate(texts)))
    rows: list[dict[str, Any]] = [{"k": 0, "a": i * 37 % 100, "b": 3} for i in range(300)]
    for row in rows:
        matcher.match_one(row)
    assert matcher.stats().details["divided clusters"] == 1
    found = plans(matcher, 7)[PathKind.EQUALITY]
    assert found.path_text == "k = 0"
    assert found.sharing == 1_200
    assert found.share == pytest.approx(1, abs=0.01)
    assert 0.03 < found.in_sections < 0.5
    assert found.cost == found.share * found.in_sections
    assert "% of the conjunctions there, by their ranges" in str(matcher.explain_plan(7))
    costs = matcher.explain_costs(1)
    assert costs.checks == pytest.approx(1_200 * found.cost)
    assert costs.checks == pytest.approx(float(matcher.stats().details["expected checks per event"]))


def test_a_path_of_an_unknown_kind_is_called_other() -> None:
    matcher = matcher_of({1: "a = 1 and b > 3"}, [{"a": 1 + i % 4, "b": 5} for i in range(400)])
    state = matcher._state
    entry = int(state.store.rows[numbers_in_use(state.store)[0], Stored.PATH])
    state.access.keys[entry, Access.FIRST] = (7 << 32) | (PRESENCE - 1)
    (found,) = matcher.explain_plan(1).conjunctions
    assert (found.kind, found.path) == (PathKind.OTHER, ())
    assert found.share == pytest.approx(0.25, abs=0.03)
    assert "reached by an access path of another kind" in str(matcher.explain_plan(1))
    assert matcher.stats().details["reached by other"] == 1
