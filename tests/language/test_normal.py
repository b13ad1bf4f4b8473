import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.contract.evaluator import holds
from tests.strategies import conditions, crowded, events
from tocsin.language import Cnf, Dnf, condition_text, parse_condition, to_cnf, to_dnf, to_nnf, to_normal
from tocsin.language.normal import dnf_unless_cnf_is_smaller, forms
from tocsin.language.semantics import condition_truth, truth
from tocsin.model import And, Condition, Event, Filter, Not, Or, Predicate
from tocsin.model.conditions import all_of, any_of
from tocsin.model.errors import NormalFormError


def dnf_text(text: str) -> str:
    normal = to_dnf(parse_condition(text))
    return condition_text(any_of([all_of(list(c)) for c in normal.conjunctions]))


def cnf_text(text: str) -> str:
    normal = to_cnf(parse_condition(text))
    return condition_text(all_of([any_of(list(c)) for c in normal.clauses]))


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        # one rule a line: what is written, what it becomes
        ("not (a < 3)", "a >= 3"),
        ("not (a = 1 or b like 'x%')", "a != 1 and b not starts with 'x'"),
        ("not not a = 1", "a = 1"),
        ("not (a is missing)", "a is present"),
        ("a = 1 and true", "a = 1"),
        ("a = 1 or true", "true"),
        ("a = 1 and false", "false"),
        ("a = 1 or false", "a = 1"),
        ("a = 1 and a = 1", "a = 1"),
        ("a = 1 or a = 2 or a in (3, 1)", "a in (1, 2, 3)"),
        ("a = 1 or a = 'x'", "a in (1, 'x')"),
        ("a != 1 and a != 2", "a not in (1, 2)"),
        ("a > 3 or a <= 3", "a > 3 or a <= 3"),
        ("100 < a", "a > 100"),
        ("a > 2 * 50", "a > 100"),
        ("a > 1 / 0", "false"),
        ("1 < 2", "true"),
        ("1 = 'x'", "false"),
        ("a in (1)", "a = 1"),
        ("a not in (1)", "a != 1"),
        ("a in ()", "false"),
        ("a not in ()", "false"),
        ("a between 2 and 2", "a = 2"),
        ("a between 5 and 3", "false"),
        ("a not between 5 and 3", "a not between 5 and 3"),
        ("a between 1 and 'x'", "false"),
        # overlapping intervals of one attribute
        ("a > 1 and a > 3", "a > 3"),
        ("a > 3 and a >= 3", "a > 3"),
        ("a < 9 and a <= 9", "a < 9"),
        ("a >= 3 and a <= 9", "a between 3 and 9"),
        ("a > 3 and a <= 9", "a > 3 and a <= 9"),
        ("a between 1 and 5 and a between 3 and 9", "a between 3 and 5"),
        ("a between 1 and 3 and a between 3 and 9", "a = 3"),
        ("a >= 3 and a != 3", "a > 3"),
        ("a >= 3 and a != 2", "a >= 3"),
        ("a between 3 and 9 and a not between 1 and 4", "a > 4 and a <= 9"),
        ("a between 3 and 9 and a not between 5 and 6", "a between 3 and 9 and a not between 5 and 6"),
        ("a between 3 and 9 and a not between 20 and 30", "a between 3 and 9"),
        ("a > 4 and a not between 4 and 5 and a not between 5 and 7", "a > 7"),
        ("a in (1, 2, 3) and a > 1", "a in (2, 3)"),
        ("a in (1, 2, 3) and a in (3, 4)", "a = 3"),
        ("a in (1, 'x') and a > 0", "a = 1"),
        ("a not in (1, 'x') and a > 0", "a > 0 and a != 1"),
        ("a < 'm' and a > 'c'", "a > 'c' and a < 'm'"),
        # contradictions
        ("a = 1 and a = 2", "false"),
        ("a = 1 and a != 1", "false"),
        ("a > 5 and a < 5", "false"),
        ("a >= 5 and a < 5", "false"),
        ("a = 1 and a = 'x'", "false"),
        ("a = 1 and a = true", "false"),
        ("a > 3 and a like 'x%'", "false"),
        ("a between 3 and 4 and a not between 1 and 9", "false"),
        ("a is missing and a = 1", "false"),
        ("a is missing and b > 2 * a", "false"),
        ("a is missing and a is present", "false"),
        ("a is present and a = 1", "a = 1"),
        ("a = 1 and (a = 2 or b = 3)", "a = 1 and b = 3"),
        # a string may be read as a timestamp, so these do not contradict each other
        ("a > 'b' and a > timestamp '2026-01-01T00:00:00Z'", "a > 'b' and a > timestamp '2026-01-01T00:00:00Z'"),
        ("a starts with '2026' and a = timestamp '2026-01-01T00:00:00Z'", "a = timestamp '2026-01-01T00:00:00Z' and a starts with '2026'"),
        # distribution
        ("(a = 1 or b = 2) and c = 3", "a = 1 and c = 3 or b = 2 and c = 3"),
        ("a = 1 or a = 1 and b = 2", "a = 1"),
    ],
)  # fmt: skip
def test_disjunctive_normal_form(text: str, normal: str) -> None:
    # Members of a conjunction may come in any order: compare as sets, beside the text that reads well.
    wanted, found = parse_condition(normal), parse_condition(dnf_text(text))
    assert _shape(found) == _shape(wanted), dnf_text(text)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("a = 1 and b = 2 or c = 3", "(a = 1 or c = 3) and (b = 2 or c = 3)"),
        ("a = 1 or a = 2", "a in (1, 2)"),
        ("a > 1 and a > 3 and (b = 1 or c = 2)", "a > 3 and (b = 1 or c = 2)"),
        ("a is missing or a is present", "true"),
        ("a = 1 and a = 2", "false"),
        ("b = 1 or a between 5 and 3", "b = 1"),
        ("a = 1 and (a = 1 or b = 2)", "a = 1"),
    ],
)
def test_conjunctive_normal_form(text: str, normal: str) -> None:
    assert _shape(parse_condition(cnf_text(text))) == _shape(parse_condition(normal)), cnf_text(text)


def _shape(condition: Condition) -> object:
    if isinstance(condition, (And, Or)):
        return type(condition), frozenset(map(_shape, condition.conditions))
    return condition


def test_a_condition_that_can_never_match_gives_the_reason() -> None:
    assert to_dnf(parse_condition("a = 1 and a = 2")).never == ("no value of a satisfies `a = 1 and a = 2`",)
    assert to_dnf(parse_condition("a is missing and a > 2")).never == (
        "`a > 2` needs a, which must be missing",
    )


def test_exponential_growth_is_an_error_that_names_the_limit() -> None:
    text = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(40))
    with pytest.raises(
        NormalFormError,
        match=r"more than 1,024 conjunctions, the limit that `max_conjunctions` sets.*`to_cnf`",
    ):
        to_dnf(parse_condition(text))
    assert len(to_cnf(parse_condition(text)).clauses) == 40
    mirrored = " or ".join(f"(a{i} = 1 and b{i} = 1)" for i in range(40))
    with pytest.raises(NormalFormError, match="more than 1,024 clauses, the limit that `max_clauses` sets"):
        to_cnf(parse_condition(mirrored))
    with pytest.raises(NormalFormError, match="more than 3 conjunctions"):
        to_dnf(parse_condition("(a = 1 or b = 1) and (c = 1 or d = 1)"), max_conjunctions=3)


@pytest.mark.parametrize(
    ("text", "form", "predicates"),
    [
        ("a = 1", Dnf, 1),
        ("a = 1 and b = 2 and c > 3", Dnf, 3),
        ("a = 1 and a > 0 and b = 2", Dnf, 2),
        ("a = 1 or b = 2", Dnf, 2),
        ("a = 1 or b = 2 and c = 3", Dnf, 3),
        ("(a = 1 or b = 2) and c = 3", Cnf, 3),
        ("(a = 1 or b = 2) and (c = 3 or d = 4)", Cnf, 4),
        ("not (a = 1 and b = 2) and not (c = 3 and d = 4)", Cnf, 4),
        ("(a = 1 and b = 2) or (a = 1 and c = 3)", Cnf, 3),
        ("(a = 1 or b = 2) and (c = 3 or d = 4) or e = 5", Cnf, 6),
        # an alternative that cannot hold leaves the disjunctive form as small
        ("(a = 1 or b = 2) and a = 3", Dnf, 2),
        ("(a = 1 or b = 2) and (a = 1 or c = 3) and (a = 1 or d = 4)", Dnf, 4),
        ("a = 1 and a = 2 and (b = 1 or c = 1)", Dnf, 0),
        ("false", Dnf, 0),
        ("true", Dnf, 0),
        ("(a is missing or a is present) and (b is missing or b is present)", Dnf, 0),
    ],
)
def test_the_smaller_normal_form(text: str, form: type[Dnf] | type[Cnf], predicates: int) -> None:
    normal = to_normal(parse_condition(text))
    assert type(normal) is form, normal
    assert _size(normal) == predicates


def _size(normal: Dnf | Cnf) -> int:
    return sum(map(len, normal.conjunctions if isinstance(normal, Dnf) else normal.clauses))


@given(st.one_of(conditions(), conditions(max_leaves=12), crowded), events)
def test_the_smaller_normal_form_holds_for_exactly_the_same_events(
    condition: Condition, event: Event
) -> None:
    normal, dnf, cnf = to_normal(condition), to_dnf(condition), to_cnf(condition)
    for form in (normal, cnf, dnf_unless_cnf_is_smaller(condition)):
        parts = form.conjunctions if isinstance(form, Dnf) else form.clauses
        truths = [[truth(p, event.attributes) is True for p in part] for part in parts]
        found = any(map(all, truths)) if isinstance(form, Dnf) else all(map(any, truths))
        assert found is holds(condition, event.attributes)
    assert type(to_normal(condition, dnf=dnf)) is type(normal)
    if isinstance(normal, Cnf):
        assert _size(normal) < _size(dnf)
        assert all(normal.clauses)
        assert any(len(clause) > 1 for clause in normal.clauses)
    else:
        assert _size(normal) <= _size(dnf)
    assert isinstance(dnf_unless_cnf_is_smaller(condition), Dnf)  # nothing so small is far


def test_the_form_that_would_be_by_far_the_larger_is_not_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise AssertionError

    clauses = parse_condition(" and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(40)))
    conjunctions = parse_condition(" or ".join(f"(a{i} = 1 and b{i} = 1)" for i in range(40)))
    with monkeypatch.context() as patch:
        patch.setattr(forms, "conjunctions_of", refuse)
        assert to_normal(clauses) == dnf_unless_cnf_is_smaller(clauses) == to_cnf(clauses)
    with monkeypatch.context() as patch:
        patch.setattr(forms, "clauses_of", refuse)
        assert to_normal(conjunctions) == dnf_unless_cnf_is_smaller(conjunctions) == to_dnf(conjunctions)
        flat = parse_condition(" or ".join(f"a{i} = 1" for i in range(40)))
        for condition in (flat, parse_condition("a > 1 and a < 9 and b = 2")):
            assert to_normal(condition) == to_dnf(condition)
            assert to_normal(condition, dnf=to_dnf(condition)) == to_dnf(condition)


def test_a_form_past_its_limit_counts_as_larger() -> None:
    flat = parse_condition(" or ".join(f"a{i} = 1" for i in range(2_000)))
    assert [len(clause) for clause in to_normal(flat).clauses] == [2_000]  # type: ignore[union-attr]
    small = parse_condition("(a = 1 or b = 1) and (c = 1 or d = 1)")
    assert isinstance(to_normal(small, max_clauses=1), Dnf)
    assert isinstance(to_normal(parse_condition("a = 1 or b = 2 and c = 3"), max_conjunctions=1), Cnf)


def test_a_condition_past_both_limits_is_an_error_that_names_them() -> None:
    clauses = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(40))
    conjunctions = " or ".join(f"(c{i} = 1 and d{i} = 1)" for i in range(40))
    with pytest.raises(NormalFormError) as caught:
        to_normal(parse_condition(f"{conjunctions} or {clauses}"))
    assert str(caught.value) == (
        "the disjunctive normal form has more than 1,024 conjunctions and the conjunctive one more than 1,024 clauses, "
        "the limits that `max_conjunctions` and `max_clauses` set; split the subscription, or gather alternatives of "
        "one attribute with `in (…)`"
    )
    assert (caught.value.setting, caught.value.limit) == ("max_conjunctions", 1024)


def test_alternatives_that_gather_do_not_grow() -> None:
    text = " and ".join(f"(a{i} = 1 or a{i} = 2)" for i in range(40))
    assert len(to_dnf(parse_condition(text)).conjunctions) == 1


@given(st.one_of(conditions(), crowded), events)
def test_normal_forms_hold_for_exactly_the_same_events(condition: Condition, event: Event) -> None:
    wanted = condition_truth(condition, event.attributes) is True
    nnf = to_nnf(condition)
    assert not _has_not(nnf)
    assert (condition_truth(nnf, event.attributes) is True) is wanted
    dnf = to_dnf(condition)
    assert any(all(truth(p, event.attributes) is True for p in c) for c in dnf.conjunctions) is wanted
    cnf = to_cnf(condition)
    assert all(any(truth(p, event.attributes) is True for p in c) for c in cnf.clauses) is wanted


@given(st.one_of(conditions(), crowded))
def test_normalising_again_changes_nothing_more(condition: Condition) -> None:
    once = to_dnf(condition)
    again = to_dnf(any_of([all_of(list(c)) for c in once.conjunctions]))
    assert {frozenset(c) for c in again.conjunctions} == {frozenset(c) for c in once.conjunctions}


def _has_not(condition: Condition) -> bool:
    if isinstance(condition, (And, Or)):
        return any(map(_has_not, condition.conditions))
    return isinstance(condition, Not)


def test_every_normal_form_can_be_printed() -> None:
    normal = to_nnf(parse_condition("a > 1e308 * 10 and not (b in (1, 2))"))
    assert parse_condition(condition_text(normal)) == normal
    assert isinstance(Filter(normal), Filter)
    assert isinstance(parse_condition("a = 1"), Predicate)
