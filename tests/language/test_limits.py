"""Inputs that are large, deep or odd are refused or read in good time, and never bring the process down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from functools import reduce

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tocsin.language import (
    Template,
    all_of,
    any_of,
    attr,
    check,
    param,
    parse,
    parse_condition,
    span,
    stream,
    to_cnf,
    to_dnf,
    to_nnf,
    to_text,
)
from tocsin.language.semantics import condition_truth, truth
from tocsin.model import read_event
from tocsin.model.errors import EventError, KindError, LanguageError, TemplateError, TocsinError

# depth and length


@pytest.mark.parametrize("sign", ["+", "*"])
def test_a_long_sum_is_refused_before_it_is_too_deep(sign: str) -> None:
    parse("a > " + sign.join(["b"] * 257))
    with pytest.raises(LanguageError, match="more than 256 operations in one term"):
        parse("a > " + sign.join(["b"] * 200_000))
    with pytest.raises(LanguageError, match="more than 256 operations"):
        parse(
            "a > "
            + "(" * 60
            + "+".join(["b"] * 200)
            + ")"
            + "".join("+" + "+".join(["c"] * 10) + ")" for _ in range(59))
        )


def test_many_terms_may_be_long() -> None:
    long = "+".join(["b"] * 100)
    parse(f"a > {long} and c > {long} and ({long} < {long})")
    parse(f"select {long} as x, {long} as y from s")


def test_the_builder_is_bounded_in_depth_too() -> None:
    with pytest.raises(LanguageError, match="nested more than"):
        reduce(lambda clause, _: ~clause, range(1000), attr("a") == 1)
    with pytest.raises(LanguageError, match="nested more than"):
        reduce(lambda total, _: total + 1, range(1000), attr("a"))
    with pytest.raises(LanguageError, match="nested more than 64 levels deep"):
        reduce(lambda clause, _: ~clause, range(100), attr("a") == 1).build()


def test_ten_thousand_names_and_members_are_read_in_good_time() -> None:
    parse("select " + ", ".join(f"p{i}" for i in range(10_000)) + " from s")
    parse("from s a compute " + ", ".join(f"p{i} = 1" for i in range(10_000)))
    Template("a in (" + ", ".join(f":p{i}" for i in range(10_000)) + ")")
    any_of(attr("a") == i for i in range(20_000)).build()
    assert to_text(all_of([attr("a") == 1, attr("b") == 2]).build()) == "a = 1 and b = 2"
    assert to_text(any_of([]).build()) == "false"


def test_a_long_string_is_read_in_good_time() -> None:
    parse("a = '" + "x" * 3_000_000 + "'")
    with pytest.raises(LanguageError, match="no closing"):
        parse("a = '" + "x" * 3_000_000)


def test_alternatives_that_exclude_each_other_do_not_multiply() -> None:
    clauses = [
        "("
        + " or ".join(f"a between {20 * j + i / 1000} and {20 * j + 10 + i / 1000}" for j in range(16))
        + ")"
        for i in range(20)
    ]
    assert len(to_dnf(parse_condition(" and ".join(clauses))).conjunctions) == 16


# numbers


def test_huge_integers_are_folded_or_left_alone_but_never_fatal() -> None:
    for text in ("a > 2 * 1" + "0" * 309, f"a > {'9' * 4000}*{'9' * 4000} and a < 5"):
        condition = parse_condition(text)
        for form in (to_nnf, to_dnf, to_cnf):
            form(condition)
        check(text)


def test_constants_that_cannot_be_written_are_refused() -> None:
    with pytest.raises(KindError, match="more than 4,300 digits"):
        attr("a") == 10**5000  # noqa: B015
    template = Template("a > :p")
    assert "more than 4,300 digits" in str(template.bind_many([{"p": 10**5000}]).errors[0])
    with pytest.raises(TemplateError, match="more than 4,300 digits"):
        template.bind({"p": 10**5000})
    with pytest.raises(EventError, match="more than 4,300 digits"):
        read_event({"a": 10**5000})
    with pytest.raises(EventError, match="more than 4,300 digits"):
        read_event({"a": Decimal("1e3000000")})
    assert read_event({"a": Decimal("1e-3000000")}).attributes == {"a": 0.0}


def test_equal_constants_are_the_same_in_arithmetic() -> None:
    condition = parse_condition("a * 1.0 > 9007199254740992 or a * 1 > 9007199254740992")
    event = {"a": 2**53 + 1}
    assert condition_truth(condition, event) is condition_truth(to_nnf(condition), event) is True


def test_a_column_of_numbers_computes_like_the_row_itself() -> None:
    template = Template("a * :p = 27021597764222979")
    bound = template.bind_many([{"p": 3}, {"p": 0.5}])
    (predicate,) = next(bound.conjunctions(0))
    assert truth(predicate, {"a": 2**53 + 1}) is True


def test_bounds_at_the_edge_of_64_bits_are_not_taken_for_empty() -> None:
    low, high = np.array([-(2**63), -(2**62) - 100]), np.array([0.0, -(2.0**62)])
    assert Template("a > :lo and a < :hi").bind_many({"lo": low, "hi": high}).never.tolist() == []


# rows of odd shapes


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        (lambda: pd.DataFrame({"s": ["IBM"]}).to_dict(), "a column of values is needed, not dict; to bind one row, use `bind`"),
        (lambda: {"s": "IBM"}, "a column of values is needed, not str"),
        (lambda: {"s": 5}, "a column of values is needed, not int"),
        (lambda: {"s": (i for i in range(3))}, "a column of values is needed, not generator"),
        (lambda: {"s": np.array(5)}, "a column of values is needed"),
        (lambda: None, "rows are mappings"),
        (lambda: np.array([[1, 2], [3, 4]]), "rows are mappings"),
        (lambda: pd.DataFrame({"s": pd.to_timedelta(["1s"])}), "neither numbers, strings, booleans nor timestamps"),
        (lambda: pa.table([[1], [2]], names=["s", "s"]), "two columns have its name"),
    ],
)  # fmt: skip
def test_rows_that_are_no_table_are_refused(rows: Callable[[], object], reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        Template("a = :s").bind_many(rows())


@pytest.mark.parametrize(
    "rows",
    [
        {"s": pa.array(["x", "y"])},
        {"s": pa.chunked_array([["x"], ["y"]])},
        pa.record_batch({"s": ["x", "y"]}),
        {"s": pd.Series(["x", "y"])},
    ],
)
def test_arrow_and_pandas_columns_are_read(rows: object) -> None:
    assert Template("a = :s").bind_many(rows).columns["s"].tolist() == ["x", "y"]


def test_times_and_nulls_of_arrow_and_pandas_are_read() -> None:
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    for kind in (pa.timestamp("us", tz="UTC"), pa.timestamp("us"), pa.date32()):
        table = pa.table({"s": pa.array([moment, None], kind)})
        bound = Template("a = :s").bind_many(table)
        assert bound.columns["s"].tolist() == [moment]
        assert "null is not a value" in str(bound.errors[0])
    nullable = pd.DataFrame({"s": pd.array([1, None], dtype="Int64")})
    masked = {"s": np.ma.masked_array([1, 2], mask=[False, True])}
    for rows in (nullable, masked):
        assert "null is not a value" in str(Template("a = :s").bind_many(rows).errors[0])
    lists = pa.table({"s": [[1, None], [2]]})
    assert "null is not a value" in str(Template("a in :s").bind_many(lists).errors[0])


# strings and words


class Colour(str, Enum):  # noqa: UP042 - the older form is the one in question
    RED = "red"


def test_a_member_of_a_string_enum_is_its_string() -> None:
    assert read_event({"c": Colour.RED}).attributes == {"c": "red"}
    assert to_text((attr("c") == Colour.RED).build()) == "c = 'red'"


@pytest.mark.parametrize(
    "misuse",
    [
        lambda: attr("symbol").is_in("IBM"),
        lambda: attr("a").like("abc\\"),
        lambda: span(10, "fortnights"),
        lambda: stream("s").within("5 minutes select a.x --"),  # type: ignore[arg-type]
        lambda: stream("s").within(True),
        lambda: param("p or true"),
        lambda: (attr("a") == 1) & attr("b"),  # type: ignore[operator]
        lambda: Template("a like :p or b ~ :p").bind({"p": "\\Qa\\"}),
    ],
)
def test_misuse_of_the_builder_raises(misuse: Callable[[], object]) -> None:
    with pytest.raises((TocsinError, TypeError)) as caught:
        misuse()
    assert str(caught.value)


def test_singular_units_and_built_templates_are_accepted() -> None:
    assert span(10, "minute").term == span(10, "minutes").term
    assert Template(attr("a") == param("p")).parameters == ("p",)


def test_a_source_may_be_called_by_its_own_name() -> None:
    assert parse("from stock where stock.price > 3") == parse("from stock where price > 3")
    assert parse("select min(stock.per) from table stock") == parse("select min(per) from table stock")
    assert parse("from s a fold s b while b.x > LAST.x") == parse("from s a fold s b while b.x > last.x")
    assert check("from stock S where s.price > 1").warnings == (
        "`s.price` is an attribute of that name; the alias is written `S`",
    )


def test_an_empty_list_among_alternatives_is_warned_of() -> None:
    assert check("a in () or b = 1").warnings == (
        "one of its alternatives can never match: the list of `a in ()` is empty",
    )
