from datetime import UTC, datetime

import pytest

from tests.language.examples import EXAMPLES, TEMPLATES
from tocsin.language import parse, parse_condition, to_text
from tocsin.language.parsing.parser import canonical, parse_template
from tocsin.model import (
    TRUE,
    And,
    Arithmetic,
    Attribute,
    Elapsed,
    Filter,
    Fold,
    Literal,
    Operator,
    Or,
    Predicate,
    Sequence,
    Span,
    SpanUnit,
    View,
    literal,
)
from tocsin.model.errors import LanguageError


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_every_printed_example_parses_and_prints_back_to_the_same_model(text: str) -> None:
    query = parse(text)
    assert parse(to_text(query)) == query
    assert to_text(parse(to_text(query))) == to_text(query)


@pytest.mark.parametrize("text", TEMPLATES)
def test_every_template_parses_and_prints_back(text: str) -> None:
    query, parameters = parse_template(text)
    assert parameters
    assert canonical(query, template=True) == query


def test_a_bare_condition_is_a_filter_over_every_stream() -> None:
    assert parse("a = 1") == Filter(Predicate(Attribute("a"), Operator.EQ, (literal(1),)))


def test_precedence_is_not_then_and_then_or() -> None:
    parsed = parse_condition("a = 1 or not b = 2 and c = 3")
    assert isinstance(parsed, Or)
    assert isinstance(parsed.conditions[1], And)
    assert to_text(parse("(a = 1 or b = 2) and c = 3")) == "(a = 1 or b = 2) and c = 3"


def test_arithmetic_binds_tighter_than_comparison_and_groups_from_the_left() -> None:
    parsed = parse_condition("a - b - c > 2 * (d + 1)")
    assert isinstance(parsed, Predicate)
    assert isinstance(parsed.subject, Arithmetic)
    assert isinstance(parsed.subject.left, Arithmetic)
    assert to_text(Filter(parsed)) == "a - b - c > 2 * (d + 1)"


def test_the_alias_of_a_single_stream_names_the_event_itself() -> None:
    assert parse("select s.price from stock s where s.data.city = 'Oslo'") == parse(
        "select price from stock where data.city = 'Oslo'"
    )


def test_true_and_one_are_different_constants() -> None:
    assert parse("a = true") != parse("a = 1")
    assert parse("a = 1.0") == parse("a = 1")


def test_timestamps_are_read_in_utc() -> None:
    parsed = parse_condition("t >= timestamp '2026-01-01T02:00:00+02:00'")
    assert isinstance(parsed, Predicate)
    assert parsed.operands == (literal(datetime(2026, 1, 1, tzinfo=UTC)),)


@pytest.mark.parametrize(
    ("text", "operator", "operand"),
    [
        ("a like 'ab%'", Operator.STARTS_WITH, "ab"),
        ("a like '%yz'", Operator.ENDS_WITH, "yz"),
        ("a like '%mid%'", Operator.CONTAINS, "mid"),
        ("a like 'exact'", Operator.EQ, "exact"),
        ("a not like 'exact'", Operator.NE, "exact"),
        ("a like '%'", Operator.STARTS_WITH, ""),
        ("a like 'a%b'", Operator.LIKE, "a%b"),
        ("a like '_b%'", Operator.LIKE, "_b%"),
        (r"a like '100\%%'", Operator.STARTS_WITH, "100%"),
        (r"a like 'a\_b'", Operator.EQ, "a_b"),
        (r"a like 'a\\%'", Operator.STARTS_WITH, "a\\"),
    ],
)
def test_like_becomes_the_indexed_operator_it_means(text: str, operator: Operator, operand: str) -> None:
    assert parse_condition(text) == Predicate(Attribute("a"), operator, (literal(operand),))


def test_duration_is_an_attribute_in_a_filter_and_time_elapsed_in_a_sequence() -> None:
    assert parse_condition("duration > 5") == Predicate(Attribute("duration"), Operator.GT, (literal(5),))
    sequence = parse("from s a next s b where duration <= 5 minutes and b.duration > 1")
    assert isinstance(sequence, Sequence)
    where = sequence.steps[1].where
    assert isinstance(where, And)
    assert where.conditions[0] == Predicate(Elapsed(), Operator.LE, (Span(5, SpanUnit.MINUTES),))
    assert where.conditions[1] == Predicate(Attribute("duration", "b"), Operator.GT, (literal(1),))


def test_words_are_keywords_only_where_they_are_expected() -> None:
    parse(
        "timestamp > 5 and present = 1 and last.price > 2 and contains contains 'x' and min = 3 and days = 1"
    )
    assert parse("last.price > 2") == Filter(Predicate(Attribute("last.price"), Operator.GT, (literal(2),)))


def test_select_may_stand_before_or_after_a_sequence() -> None:
    steps = "from stock a next stock b on b.name = a.name"
    assert parse(f"select a.name, b.price {steps} publish as x") == parse(
        f"{steps} select a.name, b.price publish as x"
    )


def test_clauses_left_out_are_true() -> None:
    sequence = parse("from s a fold s b")
    assert isinstance(sequence, Sequence)
    fold = sequence.steps[1]
    assert isinstance(fold, Fold)
    assert (fold.on, fold.while_, fold.where, fold.compute) == (TRUE, TRUE, TRUE, ())


def test_a_join_keeps_which_table_each_name_is_of() -> None:
    view = parse(EXAMPLES["join"])
    assert isinstance(view, View)
    assert view.on == Predicate(Attribute("product", "o"), Operator.EQ, (Attribute("id", "p"),))
    assert isinstance(
        parse("select * from table a join table b on a.x = b.y"), View
    )  # a table's name serves as its alias


def test_integers_stay_exact_and_long() -> None:
    parsed = parse_condition(f"a = {2**200}")
    assert isinstance(parsed, Predicate)
    assert isinstance(parsed.operands[0], Literal)
    assert parsed.operands[0].value == 2**200


def test_ten_thousand_alternatives_need_no_deep_stack() -> None:
    text = " or ".join(f"a = {i}" for i in range(10_000))
    condition = parse_condition(text)
    assert isinstance(condition, Or)
    assert len(condition.conditions) == 10_000


@pytest.mark.parametrize(
    "text", ["(" * 1000 + "a = 1" + ")" * 1000, "not " * 1000 + "a = 1", "-" * 0 + "- " * 999 + "a > 1"]
)
def test_deep_nesting_is_an_error_that_names_the_limit(text: str) -> None:
    with pytest.raises(LanguageError, match="nested more than 64 levels deep"):
        parse(text)


def test_a_trailing_semicolon_is_allowed() -> None:
    assert parse("a = 1;") == parse("a = 1")
