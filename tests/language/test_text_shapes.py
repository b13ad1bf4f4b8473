from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tocsin.language import parse
from tocsin.language.check import Checked, check, check_query
from tocsin.language.text_shapes import remember_shape, shaped_text
from tocsin.model.errors import LanguageError

NUMBERS = st.one_of(
    st.integers(-(10**30), 10**30).map(str),
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(["5.", ".5", "1e3", "1E-2", "- 7", "007", "0.0", "-0.0", "9007199254740993", "1e309"]),
)
STRINGS = st.text(st.characters(codec="utf-8") | st.sampled_from("'\"-5 "), max_size=8).map(
    lambda text: "'" + text.replace("'", "''") + "'"
)
CONSTANTS = NUMBERS | STRINGS
NAMES = st.sampled_from(["a", "b.c5", "price", "größe", '"it\'s 5"', "x1", "timestamp"])
OPERATORS = st.sampled_from(["=", "!=", "<", "<=", ">", ">=", "contains", "between 1 and", "in (3,", "~"])


@st.composite
def pairs_of_texts(draw: st.DrawFn) -> tuple[str, str]:
    """Draw two texts that differ in their constants only."""
    first, second = draw(
        st.sampled_from([("", ""), ("from s where ", "from s where "), ("5 < z and ", "6 < z and ")])
    )
    for i in range(draw(st.integers(1, 3))):
        joined = draw(st.sampled_from([" and ", "\n AND ", " or ", " and not "])) if i else ""
        begin = f"{joined}{draw(NAMES)} {draw(OPERATORS)} "
        end = ")" if "in (" in begin else draw(st.sampled_from(["", " ", " -- it's 5\n", " + 1"]))
        kind = draw(st.sampled_from([NUMBERS, STRINGS, CONSTANTS]))
        first += begin + draw(kind) + end
        second += begin + draw(kind) + end
    return first, second


def outcome(read: Callable[[str], Checked], text: str) -> str:
    """Return the query, warnings and normal form of a text, or its error, as text: 1 and 1.0 are equal, but differ."""
    try:
        return repr(read(text))
    except LanguageError as fault:
        return str(fault)


@given(pairs_of_texts())
def test_a_text_whose_shape_is_known_says_what_the_parser_reads(texts: tuple[str, str]) -> None:
    for text in texts:
        assert outcome(check, text) == outcome(lambda text: check_query(parse(text)), text)


def test_texts_that_differ_in_constants_share_a_shape() -> None:
    check("from trades where symbol = 'IBM' and price > 100")
    found = shaped_text("from trades where symbol = 'it''s' and price > 1.50")
    assert found is not None
    assert found.constants == ["it's", 1.5]
    assert found.filter() == parse("from trades where symbol = 'it''s' and price > 1.50")


@pytest.mark.parametrize(
    "text",
    [
        "a = 1 or b = 2",
        "a = 1 and a > 0",
        "a + 1 > 2",
        "a between 1 and 2",
        "a in (1, 2)",
        "a = timestamp '2026-01-01T00:00:00Z'",
        "select a * 2 from s where b = 1",
        "from a next b on x = 1 within 5 seconds",
        '"a" = 1',
        "a = 1 -- it's one",
    ],
)
def test_other_texts_have_no_shape(text: str) -> None:
    check(text)
    assert shaped_text(text) is None


def test_a_constant_that_the_parser_refuses_is_left_to_it() -> None:
    remember_shape("a = 1", parse("a = 1"))
    assert shaped_text("a = 1e999") is None
    assert shaped_text("a = " + "1" * 5000) is None
    with pytest.raises(LanguageError, match="digits is too long"):
        check("a = " + "1" * 5000)
