from datetime import UTC, datetime

import pytest

from tests.language.examples import EXAMPLES
from tocsin.language import (
    Clause,
    Expression,
    StreamBuilder,
    TableBuilder,
    attr,
    avg,
    count,
    duration,
    maximum,
    minimum,
    param,
    parse,
    span,
    stream,
    table,
    total,
)
from tocsin.language.parsing.parser import parse_template
from tocsin.model.errors import KindError, LanguageError

a, b = attr("a"), attr("b")


@pytest.mark.parametrize(
    ("clause", "text"),
    [
        ((a == 1) & (b != "x"), "a = 1 and b != 'x'"),
        ((a < 1) | (a <= 2) | (b > 3) | (b >= 4), "a < 1 or a <= 2 or b > 3 or b >= 4"),
        (((a == 1) | (b == 2)) & (a == 3), "(a = 1 or b = 2) and a = 3"),
        (~(a == True), "not a = true"),  # noqa: E712 - a builder
        (a.between(1, 2), "a between 1 and 2"),
        (a.is_in([1, "x"]), "a in (1, 'x')"),
        (a.like("x%") | a.like("x_y"), "a like 'x%' or a like 'x_y'"),
        (a.starts_with("x") & a.ends_with("y") & a.contains(b), "a starts with 'x' and a ends with 'y' and a contains b"),
        (a.matches("x+"), "a ~ 'x+'"),
        (a.is_missing() | b.is_present(), "a is missing or b is present"),
        (a > 1.05 * b, "a > 1.05 * b"),
        (2 - a / 3 + -b == 4 * (a + 1), "2 - a / 3 + -b = 4 * (a + 1)"),
        (1 + a < b - 1, "1 + a < b - 1"),
        (1 / a < b, "1 / a < b"),
        (attr("data.city") == datetime(2026, 1, 1, tzinfo=UTC), "data.city = timestamp '2026-01-01T00:00:00Z'"),
    ],
)  # fmt: skip
def test_clauses_make_the_condition_that_the_text_says(clause: Clause, text: str) -> None:
    assert clause.build() == parse(text)


@pytest.mark.parametrize(
    ("builder", "text"),
    [
        (stream("stock").where(attr("price") > 5).select("symbol", dear=attr("price")), "select symbol, price as dear from stock where price > 5"),
        (stream("stock").where(a > 1).where(b > 2), "from stock where a > 1 and b > 2"),
        (
            stream("stock", "a").where(attr("vol", "a") > 10000)
            .fold("stock", "b", on=attr("name", "b") == attr("name", "a"), while_=attr("price", "b") < attr("price", "last"))
            .where(duration() >= span(10, "minutes"))
            .next("stock", "c", on=attr("name", "c") == attr("name", "a"))
            .where(attr("price", "c") > 1.05 * attr("price", "b")),
            EXAMPLES["AutQ"],
        ),
        (
            stream("stock", "a").compute(cnt=1)
            .fold("stock", "b", on=attr("name", "b") == attr("name", "a"))
            .compute(cnt=attr("cnt", "last") + 1, top=maximum(attr("price")), n=count())
            .where(duration().between(3, span(10))).within(2, "hours")
            .select(attr("name", "a"), length=attr("cnt"), ratio=attr("price", "b") / attr("price", "a"))
            .publish_as("runs"),
            EXAMPLES["start values"],
        ),
        (
            stream("runs", "r").next(stream("stock", "a").next("stock", "b", on=attr("name", "b") == attr("name", "a")), "p", on=attr("name", "p") == attr("name", "r")),
            EXAMPLES["resubscription"],
        ),
    ],
)  # fmt: skip
def test_streams_make_the_query_that_the_text_says(builder: StreamBuilder, text: str) -> None:
    assert builder.build() == parse(text)


@pytest.mark.parametrize(
    ("builder", "text"),
    [
        (table("stock").where(attr("risk").between(20, 60)).select(minimum(attr("per"))), EXAMPLES["view"]),
        (table("stock").where(attr("price").between(10, 20)).distinct("sector"), EXAMPLES["distinct"]),
        (
            table("orders").where(attr("qty") > 1).select(count(), total(attr("qty")), avg(attr("qty")), most=maximum(attr("qty"))),
            EXAMPLES["aggregates"],
        ),
        (
            table("orders", "o").join("products", "p", on=attr("product", "o") == attr("id", "p"))
            .where(attr("price", "p") < 10).where(attr("qty", "o") > 100),
            EXAMPLES["join"],
        ),
    ],
)  # fmt: skip
def test_tables_make_the_query_that_the_text_says(builder: TableBuilder, text: str) -> None:
    assert builder.build() == parse(text)


def test_parameters_make_a_template() -> None:
    clause = (a == param("x")) & b.is_in(param("list")) & a.like(param("p"))
    assert clause.build(template=True) == parse_template("a = :x and b in :list and a like :p")[0]
    query = stream("s", "a").next("s", "b").within(param("w")).build(template=True)
    assert query == parse_template("from s a next s b within :w")[0]


def test_python_words_are_refused_with_the_remedy() -> None:
    with pytest.raises(TypeError, match="join clauses with & and"):
        _ = (a == 1) and (b == 2)
    with pytest.raises(TypeError, match="unhashable"):
        hash(a)


def test_null_and_infinity_are_refused() -> None:
    with pytest.raises(KindError, match="use `is missing`"):
        a == None  # noqa: B015, E711 - that is the point
    with pytest.raises(KindError, match="finite"):
        a > float("inf")  # noqa: B015


def test_invalid_queries_cannot_be_built() -> None:
    with pytest.raises(LanguageError, match="there is no alias `z` here"):
        stream("s", "a").next("s", "b", on=attr("x", "z") == 1).build()
    with pytest.raises(LanguageError, match="the regular expression is refused"):
        a.matches("(").build()
    with pytest.raises(TypeError, match="`next` takes no `compute`"):
        stream("s", "a").next("s", "b").compute(x=1)
    with pytest.raises(TypeError, match="a parameter that stands for one"):
        a.is_in(b)
    with pytest.raises(TypeError, match="takes a length of time"):
        stream("s").within(a)


def test_builders_show_themselves_as_text() -> None:
    assert repr((a == 1) & (b > 2)) == 'Clause("a = 1 and b > 2")'
    assert repr(a * 2) == 'Expression("a * 2")'
    assert isinstance(a, Expression)
