"""Rankings: k-index's own, and those of any matcher, compared with scores computed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.evaluator import holds
from tests.strategies import conditions, crowded, tested
from tests.strategies import events as any_events
from tocsin.language import Cnf, Dnf, parse_condition, to_cnf, to_dnf, to_normal
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle, create_matcher
from tocsin.matching.k_index.matcher import KIndex
from tocsin.matching.k_index.state import Total
from tocsin.matching.ranking import Weight, rank
from tocsin.model import Condition, Event
from tocsin.model.errors import MatcherError
from tocsin.model.terms import Attribute

NEGATED = {
    "!=",
    "not between",
    "not in",
    "not like",
    "not starts with",
    "not ends with",
    "not contains",
    "!~",
}


def worth(normal: Dnf | Cnf, event: Event, weight: Weight, given: dict[str, float]) -> float | None:
    """Return a score by the letter of the definition, with the contract suite's own evaluator; None for no match."""

    def one(predicate: object) -> float:
        subject, operator = predicate.subject, str(predicate.operator)  # type: ignore[attr-defined]
        if type(subject) is not Attribute or operator in NEGATED or operator == "is missing":
            return 0.0
        own = weight.get(subject.path, 1.0) if isinstance(weight, dict) else weight
        return float(own) * given.get(subject.path, 1.0)  # type: ignore[arg-type]

    def true(predicate: Condition) -> bool:
        return holds(predicate, event.attributes)

    if isinstance(normal, Dnf):
        found = [sum(map(one, c)) for c in normal.conjunctions if all(map(true, c))]
        return max(found, default=None)
    kept = [[one(p) for p in clause if true(p)] for clause in normal.clauses]
    return sum(map(max, kept)) if all(kept) else None


_quarters = st.integers(0, 12).map(lambda n: n / 4)  # sums of which are exact
_weights = st.one_of(_quarters, st.dictionaries(st.sampled_from("abcde"), _quarters, max_size=3))
_forms = st.builds(
    lambda condition, form: form(condition),
    st.one_of(conditions(), crowded, tested),
    st.sampled_from([to_dnf, to_cnf, to_normal]),
)


@given(
    forms=st.lists(_forms, max_size=12),
    weights=st.dictionaries(st.integers(0, 11), _weights),
    batch=st.lists(any_events, min_size=1, max_size=3),
    given_=st.dictionaries(st.sampled_from("abcde"), _quarters, max_size=4),
    top=st.integers(1, 4),
)
def test_k_index_and_every_other_way_give_the_same_ranking(
    forms: list[Dnf | Cnf],
    weights: dict[int, Weight],
    batch: list[Event],
    given_: dict[str, float],
    top: int,
) -> None:
    added = ConjunctionBatch.of(enumerate(forms))
    added = ConjunctionBatch(added.groups, added.clauses, weights)
    matcher, oracle = KIndex(), Oracle()
    for each in (matcher, oracle):
        each.add(added)
    wanted = []
    for event in batch:
        scores = [(i, worth(form, event, weights.get(i, 1.0), given_)) for i, form in enumerate(forms)]
        kept = [(i, score) for i, score in scores if score is not None]
        wanted.append(sorted(kept, key=lambda pair: (-pair[1], pair[0]))[:top])
    events = EventBatch.of(batch)
    assert matcher.rank(events, top, given_).to_lists() == wanted
    slow = rank(oracle, events, top, forms.__getitem__, weights=weights, event_weights=given_)
    assert slow.to_lists() == wanted


def test_each_event_may_have_weights_of_its_own() -> None:
    matcher = KIndex()
    matcher.add(
        ConjunctionBatch.of((i, to_dnf(parse_condition(f"{name} = 1"))) for i, name in enumerate("abc"))
    )
    events = EventBatch.of_dicts([{"a": 1, "b": 1, "c": 1}] * 3)
    weights = [{"a": 3.0}, {"b": 3.0, "unheard": 9.0}, {}]
    assert matcher.rank(events, 1, weights).to_lists() == [[(0, 3.0)], [(1, 3.0)], [(0, 1.0)]]


def test_candidates_that_cannot_be_among_the_best_are_skipped() -> None:
    matcher, oracle = KIndex(), Oracle()
    random = np.random.default_rng(3)
    texts, weights = [], {}
    for i in range(3000):
        names = random.choice(12, size=1 + i % 4, replace=False)
        texts.append(" and ".join(f"a{name} >= {random.integers(9)}" for name in names))
        weights[i] = float(random.integers(1, 64)) / 4
    forms = [to_dnf(parse_condition(text)) for text in texts]
    batch = ConjunctionBatch.of(enumerate(forms))
    for each in (matcher, oracle):
        each.add(ConjunctionBatch(batch.groups, (), weights))
    events = EventBatch.of_dicts(
        [{f"a{name}": int(random.integers(9)) for name in range(12)} for _ in range(20)]
    )
    given_ = {"a0": 0.25, "a3": 2.0}
    found = matcher.rank(events, 5, given_)
    wanted = rank(oracle, events, 5, forms.__getitem__, weights=weights, event_weights=given_)
    assert found.to_lists() == wanted.to_lists()
    assert matcher._state.totals[Total.PRUNED] > 1000


def test_a_saved_matcher_ranks_as_before() -> None:
    matcher = KIndex()
    batch = ConjunctionBatch.of((i, to_dnf(parse_condition(f"a > {i}"))) for i in range(5))
    matcher.add(ConjunctionBatch(batch.groups, (), {2: 5.0, 3: {"a": 7.0, "b": 1.0}}))
    other = KIndex()
    with matcher.parts() as parts:
        other.vocabulary = parts.vocabulary  # type: ignore[assignment]
        other.restore(parts)
    events = EventBatch.of_dicts([{"a": 9}])
    assert other.rank(events, 3, {}).to_lists() == [[(3, 7.0), (2, 5.0), (0, 1.0)]]


@pytest.mark.parametrize("top", [0, -1, True, 1.5])
def test_how_many_are_wanted_is_checked(top: int) -> None:
    with pytest.raises(MatcherError, match="1 or more"):
        rank(create_matcher("oracle"), EventBatch.of([]), top, lambda _: Dnf(()))


@pytest.mark.parametrize("weight", [-1.0, float("nan"), float("inf"), "much", True, {"a": -2}, 10**400])
def test_a_weight_is_a_finite_number_of_zero_or_more(weight: object) -> None:
    batch = ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))])
    with pytest.raises(MatcherError, match="a weight is a finite number, 0 or more"):
        KIndex().add(ConjunctionBatch(batch.groups, (), {1: weight}))  # type: ignore[dict-item]
    events = EventBatch.of_dicts([{"a": 1}])
    given_ = weight if isinstance(weight, dict) else {"a": weight}
    with pytest.raises(MatcherError, match="a weight is a finite number, 0 or more"):
        KIndex().rank(events, 1, given_)  # type: ignore[arg-type]


def test_weights_of_events_are_as_many_as_the_events() -> None:
    with pytest.raises(
        MatcherError, match="the weights of 1 events are one mapping for all, or a list of as many"
    ):
        KIndex().rank(EventBatch.of_dicts([{"a": 1}]), 1, [{}, {}])


def test_weights_are_given_by_names() -> None:
    with pytest.raises(MatcherError, match="by the names of attributes, not by 7"):
        KIndex().rank(EventBatch.of_dicts([{"a": 1}]), 1, {7: 1.0})  # type: ignore[dict-item]


@pytest.mark.parametrize("weight", [2**53 + 1, 10**300])
def test_whole_weights_are_multiplied_as_floats(weight: int) -> None:
    batch = ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))])
    batch = ConjunctionBatch(batch.groups, (), {1: weight})
    events = EventBatch.of_dicts([{"a": 1}])
    found = []
    for each in (KIndex(), Oracle()):
        each.add(batch)
        ranked = rank(
            each,
            events,
            1,
            lambda _: to_dnf(parse_condition("a = 1")),
            weights=batch.weights,
            event_weights={"a": 3 * weight},
        )
        found.append(ranked.to_lists())
    assert found == [[[(1, float(weight) * float(3 * weight))]]] * 2
