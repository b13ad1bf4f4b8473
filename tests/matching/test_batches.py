"""Normal forms on their way to a matcher, and what a matcher says of them."""

from __future__ import annotations

import numpy as np

from tocsin.language import Cnf, Dnf, Template, condition_text, parse_condition, to_cnf, to_dnf
from tocsin.matching import (
    ClauseGroup,
    ConjunctionBatch,
    EventBatch,
    Matcher,
    Oracle,
    create_matcher,
    open_matcher,
    save_matcher,
    takes_clauses,
)
from tocsin.model import read_event
from tocsin.model.terms import Alternatives

HUGE = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(20))


def batch(*texts: str) -> ConjunctionBatch:
    return ConjunctionBatch.of((i, to_cnf(parse_condition(text))) for i, text in enumerate(texts))


def shown(found: ConjunctionBatch) -> list[tuple[int, str]]:
    return [(id_, " and ".join(map(condition_text, conjunction))) for id_, conjunction in found]


def test_a_clause_form_counts_once() -> None:
    found = batch("(a = 1 or b = 2) and (c = 3 or d = 4)", "a = 1 and b = 2")
    assert (len(found.groups), len(found.clauses), len(found)) == (1, 1, 2)
    assert shown(found) == [(1, "a = 1 and b = 2")]
    ((id_, clauses),) = found.clauses[0]
    assert (id_, [[condition_text(p) for p in c] for c in clauses]) == (
        0,
        [["a = 1", "b = 2"], ["c = 3", "d = 4"]],
    )


def test_clauses_of_one_predicate_each_are_a_conjunction_and_an_empty_clause_is_nothing() -> None:
    ids = np.array([1, 2])
    (single,) = to_cnf(parse_condition("a = 1")).clauses
    assert ConjunctionBatch.of_shapes(ids, Cnf((single,)), {}).groups[0].shape == single
    assert ConjunctionBatch.of_shapes(ids, Cnf(()), {}).groups[0].shape == ()
    assert len(ConjunctionBatch.of_shapes(ids, Cnf((single, ())), {})) == 0


def test_clause_forms_are_expanded_to_conjunctions() -> None:
    found = batch("(a = 1 or b = 2) and (c = 3 or d = 4)", "e = 5").in_conjunctions()
    assert found.clauses == ()
    assert sorted(shown(found)) == [
        (0, "a = 1 and c = 3"),
        (0, "a = 1 and d = 4"),
        (0, "b = 2 and c = 3"),
        (0, "b = 2 and d = 4"),
        (1, "e = 5"),
    ]
    plain = ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))])
    assert plain.in_conjunctions() is plain


def test_the_rows_of_a_template_are_expanded_together() -> None:
    rows = Template("(a = :x or b = 2) and c > :y").bind_many({"x": [1, 7], "y": [3, 4]}, clauses=True)
    found = ConjunctionBatch.of_rows(np.array([10, 20]), rows)
    assert isinstance(found.clauses[0], ClauseGroup)
    assert [len(group.ids) for group in found.in_conjunctions().groups] == [2, 2]
    assert sorted(shown(found.in_conjunctions())) == [
        (10, "c > 3 and a = 1"),
        (10, "c > 3 and b = 2"),
        (20, "c > 4 and a = 7"),
        (20, "c > 4 and b = 2"),
    ]
    assert list(rows.conjunctions(1)) == [c for id_, c in found.in_conjunctions() if id_ == 20]


def test_rows_that_no_number_satisfies_are_found_in_clauses_too() -> None:
    template = Template(
        "a > :x and a < :y and (b between :x and :y or c between :y and :x) and (d = 1 or e = 1)"
    )
    rows = template.bind_many({"x": [1, 5, 2], "y": [2, 5, 1]}, clauses=True)
    assert isinstance(rows.normal, Cnf)
    assert (rows.rows.tolist(), rows.never.tolist()) == ([0], [1, 2])
    impossible = Template("(b between :x and 1 or c between :x and 2) and (d = 1 or e = 1)")
    assert impossible.bind_many({"x": [0, 3]}, clauses=True).never.tolist() == [1]


def test_of_a_form_that_cannot_be_expanded_some_clauses_stay_whole() -> None:
    held = list(batch(HUGE).in_conjunctions())
    assert len(held) == 64
    assert {sum(type(p.subject) is Alternatives for p in conjunction) for _, conjunction in held} == {14}
    found = batch("(a > 1 or b > 2 or e > 1) and (c = 3 or d = 4) and (a > 1 or c = 3) and f = 5")
    assert shown(found.in_conjunctions(3)) == [
        (0, "f = 5 and c = 3 and (a > 1 or b > 2 or e > 1)"),
        (0, "f = 5 and d = 4 and (a > 1 or c = 3) and (a > 1 or b > 2 or e > 1)"),
    ]


def test_a_matcher_says_whether_it_takes_clauses() -> None:
    class Silent:
        """A matcher that says nothing of clauses."""

    assert takes_clauses(Oracle())
    assert not takes_clauses(create_matcher("dynamic"))
    silent: Matcher = Silent()  # type: ignore[assignment]
    assert not takes_clauses(silent)


def test_an_explanation_blames_the_conjunction_nearest_to_a_match() -> None:
    oracle = Oracle()
    oracle.add(batch("(a = 1 or b = 2) and (c = 3 or d = 4) and (e = 5 or f = 6)"))
    oracle.add(ConjunctionBatch.of([(0, to_dnf(parse_condition("x = 1 and y = 2")))]))

    def blamed(**event: object) -> list[str]:
        return [condition_text(t.predicate) for t in oracle.explain(read_event(event), 0).failed]

    assert blamed(a=1, d=4) == ["e = 5", "f = 6"]
    assert blamed(a=1, x=1) == ["y = 2"]
    assert blamed(a=1) == ["x = 1", "y = 2"]
    assert blamed(b=2, d=4, f=6) == []
    assert blamed(x=1, y=2) == []
    explained = oracle.explain(read_event({"x": 1, "y": 2}), 0)
    assert (explained.matched, len(explained.conjunctions), len(explained.clauses)) == (True, 1, 1)


def test_a_saved_oracle_keeps_cnfs(tmp_path: object) -> None:
    oracle = Oracle()
    oracle.add(batch(HUGE, "a0 = 1", "(a0 = 1 or c is missing) and (d like 'x%' or b1 = 1)"))
    oracle.add(ConjunctionBatch.of([(0, Dnf(((),)))]))
    save_matcher(oracle, str(tmp_path))
    opened = open_matcher(str(tmp_path))
    events = EventBatch.of_dicts([{f"{'ab'[i % 2]}{i}": 1 for i in range(20)}, {"c": 1}])
    assert opened.match(events).to_lists() == oracle.match(events).to_lists() == [[0, 1, 2], [0]]
    assert opened.stats() == oracle.stats()
    event = read_event({"a0": 1})
    assert [opened.explain(event, i) for i in range(3)] == [oracle.explain(event, i) for i in range(3)]
    opened.remove(np.arange(3))
    assert (len(opened), opened.stats().subscriptions) == (0, 0)  # type: ignore[arg-type]
