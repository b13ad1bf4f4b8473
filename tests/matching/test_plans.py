"""Plans as text, as documents, and what they advise."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
import numpy as np
import pytest

from tocsin.language import parse_condition
from tocsin.matching import Oracle, create_matcher
from tocsin.matching.plans import (
    ConjunctionPlan,
    FilterCosts,
    FilterPlan,
    KindCosts,
    PathKind,
    PathPart,
    PlannedCheck,
    PlanningMatcher,
)
from tocsin.model.conditions import Predicate


def predicate(text: str) -> Predicate:
    found = parse_condition(text)
    assert isinstance(found, Predicate)
    return found


def part(text: str, probability: float, cell: tuple[float | None, float | None] | None = None) -> PathPart:
    return PathPart(text.split(maxsplit=1)[0], probability, predicate(text), cell)


def check(text: str, probability: float = 0.5, *, in_python: bool = False) -> PlannedCheck:
    return PlannedCheck(predicate(text), probability, in_python)


TOGETHER = ConjunctionPlan(
    PathKind.EQUALITIES,
    0.0002,
    4,
    (part("carrier = 'UA'", 0.1), part("dest = 'SFO'", 0.02)),
    (check("distance > 1000", 0.4), check("distance / air_time > 5", 1.0, in_python=True)),
)
EVERY = ConjunctionPlan(PathKind.EVERY_EVENT, 1.0, 1, (), (check("gate is missing", 0.9),))


def plan(*conjunctions: ConjunctionPlan, counted: int = 1_000, selective: tuple[str, ...] = ()) -> FilterPlan:
    return FilterPlan("it", conjunctions, counted, selective)


def test_a_plan_reads_as_a_sentence_and_as_a_tree() -> None:
    assert str(TOGETHER) == (
        "checked by 0.02 % of events: reached by carrier = 'UA' and dest = 'SFO' together; "
        "then distance > 1000, distance / air_time > 5"
    )
    assert str(plan(TOGETHER)).splitlines() == [
        "checked by 0.02 % of events, 3 other conjunctions with the same path",
        "├── reached by carrier = 'UA' and dest = 'SFO' together",
        "│   ├── carrier = 'UA'  10 % of events",
        "│   └── dest = 'SFO'  2 % of events",
        "├── then distance > 1000  holds for 40 %",
        "└── and distance / air_time > 5  in Python",
    ]
    assert repr(plan(TOGETHER)).startswith("<FilterPlan: `it`, 1 conjunction, checked by 0.02 % of events; ")
    assert "carrier = &#x27;UA&#x27;" in plan(TOGETHER)._repr_html_()


def test_cells_show_their_values_in_few_digits() -> None:
    one = part("price between 1 and 2", 0.01, (0.98765432, None))
    assert one.cell_text == "values from 0.987654"
    assert part("price < 2", 0.01, (None, 2.00000001)).cell_text == "values below 2"
    assert part("price < 2", 0.01, (None, None)).cell_text == "any value"
    times = (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC))
    cell = msgspec.structs.replace(one, cell=times)
    assert (
        cell.cell_text == "values from timestamp '2026-01-01T00:00:00Z' to timestamp '2026-01-02T00:00:00Z'"
    )
    tree = str(plan(ConjunctionPlan(PathKind.RANGE, 0.01, 1, (one,), ())))
    assert "│   └── values from 0.987654  1 % of events\n└── then nothing else: these events match" in tree


def test_many_conjunctions_are_summed_up_and_a_guess_is_called_one() -> None:
    lines = str(plan(*[TOGETHER] * 20, EVERY, counted=0)).splitlines()
    assert lines[0] == "checked by every event"
    assert "21 conjunctions, 1 checks per event in all" in "\n".join(lines).replace("1.004", "1")
    assert "13 are not shown, 0.0026 checks" in "\n".join(lines)
    assert lines[-1].startswith("no events have been counted: all shares are guesses")


PRESENCE = PathPart("text", 0.9)


@pytest.mark.parametrize(
    ("conjunction", "why", "advice"),
    [
        (
            EVERY,
            "every event: `gate is missing` holds where there is no value to look up",
            ["add a predicate beside `gate is missing` on an attribute that such events have"],
        ),
        (ConjunctionPlan(PathKind.EVERY_EVENT, 1.0, 1), "every event: it has no predicate", []),
        (
            ConjunctionPlan(PathKind.EVERY_EVENT, 1.0, 1, (), (check("a / b > 5", 1.0, in_python=True),)),
            "every event: `a / b > 5` is evaluated in Python",
            ["beside `a / b > 5`, compare an attribute with a constant: with a range that follows from it"],
        ),
        (
            ConjunctionPlan(PathKind.PRESENCE, 0.9, 1, (PRESENCE,), (check("text != 'x'", 0.8),)),
            "reached by the presence of `text`: 90 % of events have it",
            ["replace `text != 'x'` by what is wanted: an equality, or a list with `in (…)`"],
        ),
        (
            ConjunctionPlan(PathKind.PRESENCE, 0.9, 1, (PRESENCE,), (check("text > 3", 0.6),)),
            "reached by the presence of `text`: 90 % of events have it",
            ["narrow the range `text > 3`: it holds for 60 % of events"],
        ),
        (
            ConjunctionPlan(PathKind.PRESENCE, 1.0, 1, (PRESENCE,), (check("text > 3", 0.01),)),
            "reached by the presence of `text`: every event has it; ranges such as `text > 3` are indexed where more filters have them",
            [],
        ),
        (
            ConjunctionPlan(PathKind.EQUALITY, 0.9, 1, (part("a0 = 0", 0.9),), (check("b != 3", 0.9),)),
            "`a0 = 0` holds for 90 % of events",
            [],
        ),
        (
            ConjunctionPlan(PathKind.LIST, 0.7, 1, (part("a in (1, 2)", 0.7),)),
            "`a in (1, 2)` holds for 70 % of events",
            ["shorten the list `a in (1, 2)`: it holds for 70 % of events"],
        ),
        (
            ConjunctionPlan(PathKind.RANGE, 0.5, 1, (part("p > 3", 0.5, (3.0, None)),), (check("p > 3", 0.45),)),
            "50 % of events have a value in the cell around `p > 3`",
            ["narrow the range `p > 3`: it holds for 45 % of events"],
        ),
        (TOGETHER, "reached by `carrier = 'UA'` and `dest = 'SFO'` together: 0.02 % of events", None),
    ],
)  # fmt: skip
def test_the_reason_and_the_advice_are_of_the_path(
    conjunction: ConjunctionPlan, why: str, advice: list[str] | None
) -> None:
    assert plan(conjunction).why == why
    if advice is None:  # few events reach it
        assert plan(conjunction).advice == ()
        return
    general = "add an equality on an attribute with many values"
    assert plan(conjunction).advice == tuple(advice or [general])
    known = plan(conjunction, selective=("flight", "dest")).advice
    assert known == (*advice, "add an equality on `flight` or `dest`, where a value holds for few events")


def test_the_costliest_of_several_conjunctions_is_the_reason() -> None:
    assert plan(TOGETHER, EVERY).why.startswith("2 conjunctions; the costliest: every event")
    assert plan().why == "it has no conjunction: it never matches"
    assert plan().advice == ()
    assert str(plan()) == plan().why


KINDS = (KindCosts(PathKind.EVERY_EVENT, 1, 1.0), KindCosts(PathKind.EQUALITIES, 2, 0.0003))


def test_what_sections_leave_belongs_to_the_reason() -> None:
    conjunction = ConjunctionPlan(
        PathKind.EQUALITY, 0.5, 900, (part("k = 1", 0.5),), (check("a > 3"),), in_sections=0.1
    )
    assert conjunction.cost == pytest.approx(0.05)
    assert (
        plan(conjunction).why
        == "`k = 1` holds for 50 % of events; by its range it is checked for 10 % of these"
    )
    assert plan(conjunction, selective=("a", "k", "flight")).advice == (
        "add an equality on `flight`, where a value holds for few events",
    )
    assert str(plan(conjunction)).splitlines()[:3] == [
        "checked by 5 % of events, 899 other conjunctions with the same path",
        "├── reached by k = 1",
        "├── of 50 % of events, each meets 10 % of the conjunctions there, by their ranges",
    ]


def test_costs_are_shares_of_their_sum() -> None:
    costs = FilterCosts((plan(EVERY), plan(TOGETHER)), np.array([1.0, 0.0002, 0.0001]), KINDS, 1_000)
    lines = str(costs).splitlines()
    assert lines[:4] == [
        "3 filters, 3 conjunctions: an event is expected to be checked against 1 of these; the costliest 2 have 100 % of that",
        "├── by every event: 1 conjunction, 1 check",
        "└── by equalities together: 2 conjunctions, 0.0003 checks",
        "it  1 check per event, 100 % of all  ▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇▇",
    ]
    assert "it  0.0002 checks per event, 0.02 % of all  ▇" in lines
    record = costs.record()
    assert record["by_kind"][1] == {"path": "equalities", "conjunctions": 2, "checks": 0.0003}
    assert record["share_of_top"] == pytest.approx({"1": 0.9997, "2": 0.9999, "3": 1.0}, abs=1e-4)
    assert record["top"][1]["conjunctions"][0]["parts"][1] == {
        "text": "dest = 'SFO'", "attribute": "dest", "share": 0.02
    }  # fmt: skip
    assert msgspec.json.decode(msgspec.json.encode(record)) == record
    assert repr(costs) == "<FilterCosts: 1 checks per event of 3 filters; it (1), it (0.0002)>"
    assert "<svg" in costs._repr_html_()


@pytest.mark.parametrize("name", ["oracle", "opindex", "dynamic"])
def test_only_a_matcher_with_plans_says_so(name: str) -> None:
    assert not isinstance(Oracle() if name == "oracle" else create_matcher(name), PlanningMatcher)
    assert isinstance(create_matcher("adaptive"), PlanningMatcher)
