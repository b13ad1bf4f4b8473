import json

import pytest

from tests.language.examples import EXAMPLES
from tocsin.language import from_json, parse, to_json
from tocsin.model.errors import FormError

A = {"attribute": ["a"]}


@pytest.mark.parametrize("text", EXAMPLES.values(), ids=EXAMPLES)
def test_every_example_survives_json(text: str) -> None:
    query = parse(text)
    assert from_json(json.loads(json.dumps(to_json(query)))) == query


def test_a_bare_condition_is_a_filter_over_every_stream() -> None:
    assert from_json({"and": [{"=": [A, "IBM"]}, {">": [{"attribute": ["price"]}, 100]}]}) == parse(
        "a = 'IBM' and price > 100"
    )
    assert from_json(True) == parse("true")


def test_a_selected_term_needs_no_name() -> None:
    form = {"filter": {"from": "stock", "select": [A, [{"attribute": ["b"]}, "c"]]}}
    assert from_json(form) == parse("select a, b as c from stock")


@pytest.mark.parametrize(
    ("form", "message"),
    [
        (None, "expected a condition, got null - at `$`"),
        ("a = 1", "expected a condition, got a string - at `$`"),
        ([], "expected a condition, got a list - at `$`"),
        ({}, "a condition is an object with one key, its operator; this has 0 - at `$`"),
        ({"=": [A, 1], "<": [A, 2]}, "a condition is an object with one key, its operator; this has 2 - at `$`"),
        ({"==": [A, 1]}, "there is no operator `==` among conditions - at `$.==`"),
        ({"and": [{"=": [A, 1]}, {"=": [A]}]}, "`=` takes 2 arguments, got 1 - at `$.and[1].=`"),
        ({"and": [True]}, "`and` takes 2 or more arguments, got 1 - at `$.and`"),
        ({"not": {"=": [A, 1]}}, "expected a list, got an object - at `$.not`"),
        ({"=": [A, None]}, "expected a term, got null - at `$.=[1]`"),
        ({"=": [A, float("nan")]}, "NaN is not a number that can be compared - at `$.=[1]`"),
        ({"=": [A, float("inf")]}, "a constant must be finite - at `$.=[1]`"),
        ({"=": [{"attribute": [""]}, 1]}, "expected a name, got a string - at `$.=[0].attribute[0]`"),
        ({"=": [{"atribute": ["a"]}, 1]}, "there is no operator `atribute` among terms - at `$.=[0].atribute`"),
        ({"between": [A, 1]}, "`between` takes 3 arguments, got 2 - at `$.between`"),
        ({"is missing": [A, 1]}, "`is missing` takes 1 argument, got 2 - at `$.is missing`"),
        ({"=": [A, {"timestamp": ["yesterday"]}]}, "`yesterday` is not a timestamp of ISO 8601 such as 2026-01-01T00:00:00Z - at `$.=[1].timestamp[0]`"),
        ({"like": [A, 5]}, "`like` needs its pattern as a string - at `$.like[1]`"),
        ({"=": [A, 10**5000]}, "the integer has more than 4,300 digits - at `$.=[1]`"),
        ({"sequence": {"steps": [{"from": "s"}], "within": {"span": [1, []]}}}, "`span` takes a number and one of ticks, microseconds, milliseconds, seconds, minutes, hours, days, weeks - at `$.sequence.within.span`"),
        ({"like": [A, "x\\"]}, "the pattern cannot be read: it ends with a lone backslash; a backslash itself is written twice - at `$.like[1]`"),
        ({"filter": {"wher": True}}, "unknown key `wher`; known are from, select, where - at `$.filter`"),
        ({"sequence": {"steps": []}}, "a sequence needs at least one step - at `$.sequence.steps`"),
        ({"sequence": {"steps": [{"next": "s"}]}}, "the first step is a `from`, every other a `next` or a `fold` - at `$.sequence.steps[0]`"),
        ({"sequence": {"steps": [{"from": "s"}], "within": 5}}, '`within` takes {"span": [10, "minutes"]} or a parameter - at `$.sequence.within`'),
        ({"sequence": {"steps": [{"from": "s", "compute": [["x"]]}]}}, "expected [name, term] - at `$.sequence.steps[0].compute[0]`"),
        ({"view": {"tables": []}}, "a view reads one table or joins two, got 0 - at `$.view.tables`"),
        ({"view": {"tables": ["t"], "distinct": 1}}, "expected true or false, got a number - at `$.view.distinct`"),
        ({"=": [A, {"span": [1, "fortnights"]}]}, "`span` takes a number and one of ticks, microseconds, milliseconds, seconds, minutes, hours, days, weeks - at `$.=[1].span`"),
    ],
)  # fmt: skip
def test_a_faulty_form_is_refused_with_the_path_to_the_fault(form: object, message: str) -> None:
    with pytest.raises(FormError) as caught:
        from_json(form)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"=": [A, {"parameter": ["p"]}]}, "the parameter `:p` needs a template"),
        ({"=": [{"attribute": ["x", "b"]}, 1]}, "has parts that the language cannot express"),
        ({"filter": {"where": True, "select": [A]}}, "has parts that the language cannot express"),
        ({"view": {"tables": ["t"], "on": {"=": [A, 1]}}}, "has parts that the language cannot express"),
        ({"~": [A, "("]}, "the regular expression is refused"),
        ({"=": [A, {"avg": [A]}]}, "an aggregate needs a table"),
        (
            {"sequence": {"steps": [{"from": "s", "as": "a"}, {"next": "s", "as": "a"}]}},
            "the alias `a` is given twice",
        ),
    ],
)
def test_invalid_queries_are_refused_in_json_too(form: object, reason: str) -> None:
    with pytest.raises(FormError, match=reason):
        from_json(form)


@pytest.mark.parametrize(
    ("form", "reason"),
    [
        ({"=": [A, {"parameter": ["p or b = 2"]}]}, "a parameter's name is one word, not `p or b = 2`"),
        ({"=": [A, {"parameters": ["p"]}]}, "has parts that the language cannot express"),
        ({"in": [A, {"parameters": ["p"]}, 1]}, "has parts that the language cannot express"),
    ],
)
def test_a_template_in_json_cannot_smuggle_text(form: object, reason: str) -> None:
    with pytest.raises(FormError, match=reason):
        from_json(form, template=True)


def test_deep_nesting_is_refused() -> None:
    form: object = {"=": [A, 1]}
    for _ in range(5000):
        form = {"not": [form]}
    with pytest.raises(FormError, match="nested"):
        from_json(form)
