from datetime import UTC, datetime, timedelta

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from tocsin.language import Template, parse, to_json, to_text
from tocsin.model import Filter
from tocsin.model.errors import LanguageError, TemplateError

ROWS = [{"s": "IBM", "p": 100}, {"s": "MSFT", "p": 25.5}, {"s": "AAPL", "p": 2**60 + 1}]


@pytest.fixture
def template() -> Template:
    return Template("symbol = :s and price > :p")


def conjunctions(template: Template, rows: object) -> list[list[str]]:
    bound = template.bind_many(rows)
    return [[to_text(Filter(p)) for c in bound.conjunctions(i) for p in c] for i in range(len(bound))]


WANTED = [
    ["symbol = 'IBM'", "price > 100"],
    ["symbol = 'MSFT'", "price > 25.5"],
    ["symbol = 'AAPL'", f"price > {2**60 + 1}"],
]


@pytest.mark.parametrize(
    "rows",
    [
        ROWS,
        iter(ROWS),
        {"s": ["IBM", "MSFT", "AAPL"], "p": [100, 25.5, 2**60 + 1]},
        {"s": np.array(["IBM", "MSFT", "AAPL"]), "p": np.array([100, 25.5, 2**60 + 1], dtype=object), "extra": [1, 2, 3]},
        pd.DataFrame({"s": ["IBM", "MSFT", "AAPL"], "p": pd.Series([100, 25.5, 2**60 + 1], dtype=object)}),
    ],
    ids=["list", "iterator", "columns", "arrays", "pandas"],
)  # fmt: skip
def test_rows_may_come_in_any_form(template: Template, rows: object) -> None:
    assert conjunctions(template, rows) == WANTED


def test_equal_strings_of_a_column_are_one(template: Template) -> None:
    texts = pa.array(["".join(["a", "b"]) for _ in range(3)])
    columns = template.bind_many(pa.table({"s": texts, "p": [1, 2, 3]})).columns
    assert len(set(map(id, columns["s"]))) == 1


def test_arrow_tables_keep_integers_exact(template: Template) -> None:
    table = pa.table({"s": ["a", "b"], "p": pa.array([2**60 + 1, None])})
    bound = template.bind_many(table)
    assert conjunctions(template, table) == [["symbol = 'a'", f"price > {2**60 + 1}"]]
    assert [str(e) for e in bound.errors] == [
        "row 1, parameter `:p`: null is not a value and equals nothing; use `is missing` or `is present` instead"
    ]


def test_bind_gives_the_query_that_the_text_with_values_would(template: Template) -> None:
    assert template.bind({"s": "O'Brien", "p": -1, "unused": 3}) == parse(
        "symbol = 'O''Brien' and price > -1"
    )


def test_sequences_and_views_are_bound_row_by_row() -> None:
    sequence = Template("from s a next s b on b.x > :f * a.x where duration < :d within :w")
    bound = sequence.bind({"f": 1.05, "d": timedelta(minutes=5), "w": 30})
    assert bound == parse(
        "from s a next s b on b.x > 1.05 * a.x where duration < 300000000 microseconds within 30"
    )
    view = Template("select min(per) from table stock where risk between :l and :h")
    assert view.bind({"l": 1, "h": 2}) == parse("select min(per) from table stock where risk between 1 and 2")
    rows = view.bind_many([{"l": 1, "h": 2}, {"l": 3, "h": None}])
    assert (rows.normal, rows.rows.tolist(), len(rows.errors)) == (None, [0], 1)


def test_patterns_are_simplified_in_each_row() -> None:
    template = Template("name like :n")
    assert conjunctions(template, [{"n": "a%"}, {"n": "%z"}, {"n": "a_c"}, {"n": "abc"}]) == [
        ["name starts with 'a'"],
        ["name ends with 'z'"],
        ["name like 'a_c'"],
        ["name = 'abc'"],
    ]


def test_a_parameter_may_stand_for_a_list() -> None:
    template = Template("a in :list or b not in :list")
    assert conjunctions(template, [{"list": [1, "x"]}, {"list": (True,)}]) == [
        ["a in (1, 'x')", "b not in (1, 'x')"],
        ["a in (true)", "b not in (true)"],
    ]


@pytest.mark.parametrize(
    ("text", "value", "reason"),
    [
        ("a > :v", float("nan"), "NaN is not a number"),
        ("a > :v", float("inf"), "must be finite"),
        ("a > :v", None, "null is not a value"),
        ("a > :v", {"x": 1}, "dict is neither a number"),
        ("a > :v", "\ud800", "not valid Unicode"),
        ("a ~ :v", "(", r"the pattern is refused: missing \): \("),
        ("a like :v", "x\\", "lone backslash"),
        ("a like :v", 5, "its value must be a string"),
        ("a starts with :v", 5, "its value must be a string"),
        ("a > 2 * :v", "x", "its value must be a number"),
        ("a > 2 * :v", True, "its value must be a number"),
        ("a in :v", "abc", "takes a list of values, not str"),
        ("a in :v", [1, None], "null is not a value"),
    ],
)
def test_a_faulty_row_is_reported_and_loses_nothing_else(text: str, value: object, reason: str) -> None:
    good: object = {"a in :v": [1]}.get(text, "x" if "~" in text or "with" in text or "like" in text else 1)
    bound = Template(text).bind_many([{"v": good}, {"v": value}, {"v": good}])
    assert bound.rows.tolist() == [0, 2]
    assert [e.row for e in bound.errors] == [1]
    with pytest.raises(TemplateError, match=reason) as caught:
        raise bound.errors[0]
    assert caught.value.parameter == "v"
    with pytest.raises(TemplateError, match=reason):
        Template(text).bind({"v": value})


def test_rows_that_can_never_match_are_found_for_all_at_once() -> None:
    bound = Template("a between :l and :h and b > 0").bind_many({"l": [1, 5, 3], "h": [2, 3, 3]})
    assert bound.rows.tolist() == [0, 2]
    assert bound.never.tolist() == [1]
    assert Template("a > :l and a < :h").bind_many({"l": [1, 1.0], "h": [1, 2]}).never.tolist() == [0]
    assert Template("a > :l and a < 5 or b = 1").bind_many({"l": [9]}).never.tolist() == []
    assert Template("a >= :l and a <= :h").bind_many(
        {"l": [2**60 + 1], "h": [float(2**60)]}
    ).rows.tolist() == [0]


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ({"s": ["x"]}, "parameter `:p`: no column has values for it"),
        ({"s": ["x", "y"], "p": [1]}, "the columns differ in length"),
        ([1, 2], "rows are mappings"),
        ({"s": ["x"], "p": np.zeros((1, 2))}, "one value a row"),
    ],
)  # fmt: skip
def test_rows_that_do_not_fit_the_template(template: Template, rows: object, reason: str) -> None:
    with pytest.raises(TemplateError, match=reason):
        template.bind_many(rows)


def test_a_row_that_lacks_a_parameter_is_reported_and_the_rest_is_made(template: Template) -> None:
    bound = template.bind_many([{"s": "x", "p": 1}, {"s": "y"}, {"p": 2}])
    assert bound.rows.tolist() == [0]
    assert [str(e) for e in bound.errors] == [
        "row 1, parameter `:p`: the row has no value for it",
        "row 2, parameter `:s`: the row has no value for it",
    ]
    assert "has no value for it" in str(Template("a in :v").bind_many([{"v": [1]}, {}]).errors[0])


def test_no_rows_make_no_subscriptions(template: Template) -> None:
    assert len(template.bind_many([])) == 0
    assert len(template.bind_many({"s": [], "p": []})) == 0


def test_a_template_needs_a_parameter_and_a_good_text() -> None:
    with pytest.raises(TemplateError, match="needs a parameter"):
        Template("a = 1")
    with pytest.raises(LanguageError, match="did you mean `>=`"):
        Template("a => :x")
    with pytest.raises(TemplateError, match="is a list after `in` and a single value elsewhere"):
        Template("a in :x or b = :x")


def test_a_template_may_be_given_as_json_or_as_a_model(template: Template) -> None:
    form = to_json(template.query)
    assert isinstance(form, dict)
    assert Template(form).query == template.query
    assert Template(template.query).parameters == ("s", "p")


def test_times_in_rows_are_kept_in_utc() -> None:
    moment = pd.Timestamp("2026-01-01T01:00:00", tz="Europe/Berlin")
    assert Template("t > :t").bind({"t": moment}) == Template("t > :t").bind(
        {"t": datetime(2026, 1, 1, tzinfo=UTC)}
    )


def test_a_parameter_after_the_word_timestamp_is_refused() -> None:
    with pytest.raises(LanguageError, match="a parameter stands in the place of a whole time") as caught:
        Template("time > timestamp :t")
    assert caught.value.suggestion == "write: time > :t"
