"""The written grammar and the hand-written parser accept the same texts."""

from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lark import Lark
from lark.exceptions import LarkError

from tests.language.examples import EXAMPLES, TEMPLATES
from tests.strategies import queries
from tocsin.language import to_text
from tocsin.language.parsing.parser import parse_template
from tocsin.model import Query
from tocsin.model.errors import LanguageError

GRAMMAR = Path(__file__).parents[2] / "docs" / "reference" / "grammar.lark"
VOCABULARY = [
    "a", "b.c", '"d e"', "1", "2.5", "'x'", "true", "and", "or", "not", "(", ")", "(", ")", "=", "<", "in", "like",
    "between", "is", "missing", "null", ",", "+", "-", "*", "contains", "starts with", "~", ":p", "--\n",
]  # fmt: skip


@cache
def grammar() -> Lark:
    return Lark(GRAMMAR.read_text(encoding="utf-8"), parser="earley", lexer="dynamic")


def grammar_accepts(text: str) -> bool:
    try:
        grammar().parse(text)
    except LarkError:
        return False
    return True


def parser_accepts(text: str) -> bool:
    try:
        parse_template(text)
    except LanguageError:
        return False
    return True


@pytest.mark.parametrize("text", [*EXAMPLES.values(), *TEMPLATES])
def test_the_grammar_accepts_the_examples(text: str) -> None:
    assert grammar_accepts(text)


@settings(max_examples=60)
@given(queries)
def test_the_grammar_accepts_printed_queries(query: Query) -> None:
    assert grammar_accepts(to_text(query))


@given(st.lists(st.sampled_from(VOCABULARY), min_size=1, max_size=9))
def test_both_agree_on_any_soup_of_tokens(tokens: list[str]) -> None:
    text = " ".join(tokens)
    assert parser_accepts(text) == grammar_accepts(text)


SENTENCES = [
    "a = 1 and ( b.c < 2.5 or not a in ( 1 , 'x' ) )",
    "a not between 1 and 2.5 + a or b.c is not null",
    "a not like 'x' and b.c contains a or ( a ~ 'x' )",
    "- a * ( 1 + b.c ) < 2.5 - - 1 and true",
]


@given(st.sampled_from(SENTENCES), st.data())
def test_both_agree_on_sentences_with_a_slip(sentence: str, data: st.DataObject) -> None:
    tokens = sentence.split()
    at = data.draw(st.integers(0, len(tokens) - 1))
    slip = data.draw(st.sampled_from([[], [tokens[at]] * 2, *[[word] for word in VOCABULARY]]))
    text = " ".join([*tokens[:at], *slip, *tokens[at + 1 :]])
    assert parser_accepts(text) == grammar_accepts(text)
