import pickle

from hypothesis import given

from tests.strategies import queries
from tocsin.language import from_json, parse, to_json, to_text
from tocsin.model import Query


@given(queries)
def test_parsing_a_printed_query_gives_the_same_model(query: Query) -> None:
    assert parse(to_text(query)) == query


def test_an_alias_that_is_a_word_of_sql_is_quoted() -> None:
    query = parse('select * from table r "left" join table q "Right" on "left".x = "Right".x')
    assert parse(to_text(query)) == query


@given(queries)
def test_reading_the_json_form_gives_the_same_model(query: Query) -> None:
    assert from_json(to_json(query)) == query


@given(queries)
def test_a_model_survives_pickling(query: Query) -> None:
    assert pickle.loads(pickle.dumps(query)) == query  # noqa: S301 - our own
