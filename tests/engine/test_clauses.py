"""Conditions whose disjunctive normal form is too large, or larger: the engine keeps them in clauses."""

from __future__ import annotations

from pathlib import Path

import pytest

from tocsin import Engine
from tocsin.engine import ManualClock
from tocsin.errors import ApplyError, NormalFormError, SubscriptionError
from tocsin.matching import create_matcher, registered_matchers, takes_clauses

CLAUSES = " and ".join(f"(a{i} = 1 or b{i} > 5)" for i in range(20))  # a million conjunctions
TAKERS = [name for name in sorted(registered_matchers()) if takes_clauses(create_matcher(name))]
SATISFIED: dict[str, object] = {("a" if i % 2 else "b") + str(i): 1 if i % 2 else 6 for i in range(20)}
MISSED = SATISFIED | {"b4": 5}


@pytest.fixture(params=TAKERS)
def engine(request: pytest.FixtureRequest) -> Engine:
    return Engine(matcher=request.param, clock=ManualClock(100))


def notified(engine: Engine, event: dict[str, object], stream: str | None = None) -> list[str]:
    return sorted(note.subscription for note in engine.publish(event, stream=stream))


def test_the_oracle_stores_cnfs() -> None:
    assert "oracle" in TAKERS
    assert "dynamic" not in TAKERS


def test_a_condition_in_clauses_is_subscribed_matched_and_unsubscribed(engine: Engine) -> None:
    assert engine.subscribe(CLAUSES, id="huge").warnings == ()
    engine.subscribe("a1 = 1", id="plain")
    stats = engine.stats().matcher
    assert (stats.subscriptions, stats.conjunctions, stats.predicates) == (2, 2, 41)
    assert notified(engine, SATISFIED) == ["huge", "plain"]
    assert notified(engine, MISSED) == ["plain"]
    assert list(engine.match([SATISFIED, MISSED])) == [("huge", "plain"), ("plain",)]
    engine.unsubscribe("huge")
    assert notified(engine, SATISFIED) == ["plain"]


def test_its_stream_is_a_clause_of_its_own(engine: Engine) -> None:
    engine.subscribe(f"from s where {CLAUSES}", id="huge")
    assert engine.stats().matcher.predicates == 41
    assert notified(engine, SATISFIED, "s") == ["huge"]
    assert notified(engine, SATISFIED, "t") == []
    assert notified(engine, SATISFIED) == []


def test_it_is_explained_and_tested(engine: Engine) -> None:
    engine.subscribe(CLAUSES, id="huge")
    assert engine.explain("huge", SATISFIED).matched
    why = engine.explain("huge", MISSED)
    assert not why.matched
    assert [reason.text for reason in why.failed] == ["a4 = 1", "b4 > 5"]
    assert len(engine.test(CLAUSES, [SATISFIED, MISSED]).events) == 1


def test_it_meets_kept_events(engine: Engine) -> None:
    engine.publish(SATISFIED, time=90, valid_until=200)
    assert [n.subscription for n in engine.subscribe(CLAUSES, id="huge").notifications] == ["huge"]


def test_a_template_in_clauses(engine: Engine) -> None:
    text = f"from s where {CLAUSES.replace('= 1', '= :x').replace('> 5', '> :y')} and c = :x"
    rows = {"x": [1, 1, 2, "z"], "y": [5, 6, 5, 5]}
    assert engine.subscribe_many(text, rows, id="r{row}").ids == ("r0", "r1", "r2", "r3")
    assert engine.stats().matcher.conjunctions == 4
    assert notified(engine, SATISFIED | {"c": 1}, "s") == ["r0"]
    assert notified(engine, SATISFIED | {"c": 1}) == []
    every = {f"a{i}": "z" for i in range(20)}
    assert notified(engine, {**every, "c": "z"}, "s") == ["r3"]
    engine.unsubscribe("r3")
    assert notified(engine, {**every, "c": "z"}, "s") == []


@pytest.mark.parametrize("matcher", sorted(registered_matchers()))
def test_rows_that_can_never_match_are_left_out_whichever_form_is_kept(matcher: str) -> None:
    text = "(a > :x or a > :y) and (a < 2 or a < 3) and (b = 1 or c = 1 or d = 1)"
    made = Engine(matcher=matcher).subscribe_many(text, {"x": [1, 5, 9], "y": [1, 5, 2]}, id="r{row}")
    assert (made.ids, made.never) == (("r0", "r2"), (1,))


def test_apply_takes_clauses_too(engine: Engine) -> None:
    assert engine.apply({"huge": CLAUSES, "plain": "a1 = 1"}).added == ("huge", "plain")
    assert notified(engine, SATISFIED) == ["huge", "plain"]
    assert engine.apply({"huge": CLAUSES.replace("> 5", "> 6")}).changed == ("huge",)
    assert notified(engine, SATISFIED) == []


def test_a_cnf_that_can_never_match_gives_a_warning(engine: Engine) -> None:
    found = engine.subscribe(f"c = 1 and {CLAUSES} and c = 2", id="never")
    assert found.warnings == ("it can never match: no value of c satisfies `c = 1 and c = 2`",)
    assert engine.stats().matcher.conjunctions == 0


def test_a_form_too_large_in_both_is_refused_by_its_id() -> None:
    text = f"{CLAUSES} and ({' or '.join(f'c{i} = 1 and d{i} = 2' for i in range(11))})"
    for engine in (Engine(), Engine(matcher="dynamic"), Engine(matcher="oracle")):
        engine.subscribe("a1 = 1", id="plain")
        refused = r"subscription `huge`: .*more than 1,024 clauses.*; split the subscription, or gather alternatives"
        with pytest.raises(SubscriptionError, match=refused):
            engine.subscribe(text, id="huge")
        with pytest.raises(ApplyError, match=refused):
            engine.apply({"huge": text})
        assert engine.subscribe_all({"huge": text}).errors
        with pytest.raises(NormalFormError, match="max_conjunctions"):
            engine.subscribe_many(f"c = :x and {text}", {"x": [1]}, id="r{row}")
        assert notified(engine, SATISFIED) == ["plain"]


def test_the_default_engine_keeps_them_when_it_hands_over_to_an_index() -> None:
    engine = Engine(matcher=None)
    engine.subscribe(CLAUSES, id="huge")
    assert engine.stats().matcher.conjunctions == 1
    text = CLAUSES.replace("a1 = 1", "a1 = :x")
    engine.subscribe_many("e = :x", {"x": range(6_000)}, id="e{x}")
    assert engine.subscribe_all({"all": CLAUSES}).ids == ("all",)
    assert engine.subscribe_many(text, {"x": [1, 2]}, id="r{x}").ids == ("r1", "r2")
    assert notified(engine, SATISFIED | {"e": 7}) == ["all", "e7", "huge", "r1"]
    assert notified(engine, MISSED | {"e": 7}) == ["e7"]
    top = engine.publish(SATISFIED | {"e": 7}, top=2)
    assert [(note.subscription, note.score) for note in top] == [("all", 20.0), ("huge", 20.0)]
    engine.unsubscribe("huge")
    assert notified(engine, SATISFIED) == ["all", "r1"]


@pytest.mark.parametrize("matcher", [None, "dynamic", "be-tree"])
def test_a_sequence_and_a_view_in_clauses(matcher: str | None) -> None:
    engine = Engine(matcher=matcher, view_matcher=matcher)
    engine.table("t", key="k")
    engine.subscribe(f"from s where {CLAUSES} next s on z = 1", id="sequence")
    engine.subscribe(f"select count(*) from table t where {CLAUSES}", id="view")
    assert notified(engine, MISSED, "s") == notified(engine, {"z": 1}, "s") == []
    assert notified(engine, SATISFIED, "s") == []
    assert notified(engine, {"z": 1}, "s") == ["sequence"]
    assert notified(engine, MISSED | {"k": 1}, "t") == []
    assert notified(engine, SATISFIED | {"k": 1}, "t") == ["view"]
    assert engine.answer("view") == 1


def test_every_matcher_gives_the_same_matches_for_conditions_with_two_forms() -> None:
    texts = [
        "(a1 = 1 or b1 > 5) and (a2 = 1 or b2 > 5 or c is missing)",
        "(a1 = 1 and b2 > 5) or (a1 = 1 and c = 3)",
        "not (a1 = 2 and b2 > 5) and (c = 3 or d like 'x%')",
    ]
    events: list[dict[str, object]] = [
        SATISFIED,
        MISSED,
        {"a1": 1, "c": 3, "b2": 1},
        {"a1": 3, "d": "xy"},
        {},
    ]
    answers = []
    for name in sorted(registered_matchers()):
        engine = Engine(matcher=name)
        for number, text in enumerate(texts):
            engine.subscribe(text, id=f"s{number}")
        answers.append([notified(engine, event) for event in events])
    assert all(answer == answers[0] for answer in answers)
    assert any(map(any, answers[0]))


@pytest.mark.parametrize("matcher", [None, "amkh", "opindex"])
def test_a_saved_template_too_large_for_conjunctions_opens_again(matcher: str | None, tmp_path: Path) -> None:
    engine = Engine(matcher=matcher, clock=ManualClock(100))
    engine.subscribe_many(CLAUSES.replace("a1 = 1", "a1 = :x"), {"x": [1, 2]}, id="r{x}")
    engine.save(tmp_path / "engine")
    opened = Engine.open(tmp_path / "engine", clock=ManualClock(100))
    assert notified(opened, SATISFIED) == ["r1"]
    assert notified(opened, SATISFIED | {"a1": 2}) == ["r2"]
    assert notified(opened, MISSED) == []
