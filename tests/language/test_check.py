import pytest

from tocsin import Engine
from tocsin.language import check
from tocsin.model.errors import LanguageError


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("a = 1", ()),
        ("a = 1 and a = 2", ("it can never match: no value of a satisfies `a = 1 and a = 2`",)),
        ("a in ()", ("it can never match: the list of `a in ()` is empty",)),
        ("a = 1 and false", ("it can never match: its condition is false",)),
        ("a between 5 and 3", ("it can never match: no value of a satisfies `a between 5 and 3`",)),
        ("from s a where a.x = 1 and a.x = 2 next s b", ("it can never match: no value of a.x satisfies `a.x = 1 and a.x = 2`",)),
        ("from s a next s b on b.x is missing and b.y > b.x", ("it can never match: `b.y > b.x` needs b.x, which must be missing",)),
        ("from s a next s b on b.x is missing and a.x > 1", ()),
        ("from s r next (from s a where a.x > 2 and a.x < 1 next s b) t", ("it can never match: no value of a.x satisfies `a.x > 2 and a.x < 1`",)),
        ("select min(p) from table t where x > 3 and x < 2", ("it can never match: no value of x satisfies `x > 3 and x < 2`",)),
        ('symbol = "IBM"', ("\"IBM\" in double quotes is the name of an attribute; a text is written in single quotes: 'IBM'",)),
        ("a = 1 and (b = 2 or b > 3 and b < 3)", ("one of its alternatives can never match: no value of b satisfies `b > 3 and b < 3`",)),
    ],
)  # fmt: skip
def test_warnings(text: str, warnings: tuple[str, ...]) -> None:
    assert check(text).warnings == warnings


HYPHEN = "did you mean the name `{}`, in double quotes?"


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("content-type = 'x'", "`content - type = 'x'` compares a number with a string; " + HYPHEN.format('"content-type"')),
        ("not content-type = 'x'", "`content - type != 'x'` compares a number with a string; " + HYPHEN.format('"content-type"')),
        ("headers.content-type in ('x', 'y')", "`headers.content - type in ('x', 'y')` compares a number with a string; " + HYPHEN.format('"headers.content-type"')),
        ("x-ray-1 like 'b%'", "`x - ray - 1 starts with 'b'` tests a number as if it were a string; " + HYPHEN.format('"x-ray-1"')),
        ("from s a next s b where b.content-type = 'x'", "`b.content - type = 'x'` compares a number with a string; " + HYPHEN.format('b."content-type"')),
        ("price * 2 = 'x'", "`price * 2 = 'x'` compares a number with a string"),
        ("'x' = price * 2", "`price * 2 = 'x'` compares a number with a string"),
        ("-a = true", "`-a = true` compares a number with a boolean"),
        ("a > 1 and a + b < timestamp '2026-01-01T00:00:00Z'", "`a + b < timestamp '2026-01-01T00:00:00Z'` compares a number with a timestamp"),
        ("x between 'a' and b * 2", "`x between 'a' and b * 2` compares a number with a string"),
        ("a + 1 between 5 and 3 and b = 1", "no value of a + 1 satisfies `a + 1 between 5 and 3`"),
        ("select count(*) from table t where a - b = 'x'", "`a - b = 'x'` compares a number with a string; " + HYPHEN.format('"a-b"')),
    ],
)  # fmt: skip
def test_arithmetic_beside_anything_but_numbers_never_matches(text: str, warning: str) -> None:
    assert check(text).warnings == (f"it can never match: {warning}",)


@pytest.mark.parametrize(
    "text", ["content-type = 5", "a-b in (1, 'x')", "a-b = c", "a = 'x' and b-c > 1", "a contains b"]
)
def test_arithmetic_that_may_match_gives_no_warning(text: str) -> None:
    assert check(text).warnings == ()


def test_an_alternative_is_warned_of_in_clauses_too() -> None:
    text = " and ".join(f"(a{i} = 1 or b{i} = 2 or c{i} * 2 = 'x')" for i in range(12))
    warnings = check(text).warnings
    assert len(warnings) == 12
    assert (
        warnings[0]
        == "one of its alternatives can never match: `c0 * 2 = 'x'` compares a number with a string"
    )


def test_a_name_that_only_its_fold_computes_is_refused_before_it_is_computed() -> None:
    with pytest.raises(LanguageError, match="`n` is computed after each iteration") as refused:
        check("from s a fold s b on b.k = a.k while n <= 4 compute n = count(*)")
    assert refused.value.column == 38
    assert refused.value.suggestion == (
        "the value of the iteration before is `last.n`; the attribute is written `b.n`"
    )
    with pytest.raises(LanguageError, match="with an alias `b` after the stream"):
        check("from s a fold s on n <= 4 compute n = count(*)")


@pytest.mark.parametrize(
    "text",
    [
        "from s a fold s b while last.n <= 4 compute n = count(*)",
        "from s a fold s b while b.n <= 4 compute n = count(*)",
        "from s a compute n = 1 fold s b while n <= 4 compute n = last.n + 1",
        "from s a fold s b compute n = count(*) where n > 2 next s c where n > 3",
        "from s a fold s b compute price = avg(price)",
    ],
)
def test_names_that_have_a_value_are_not_warned_of(text: str) -> None:
    assert check(text).warnings == ()


@pytest.mark.parametrize(
    "text", ["a > 2026-13-01", "a > 2026-01-01-5", "a > b-01-01", "a > 2026-1-1", "a > 2026+01-01"]
)
def test_other_subtractions_are_not_taken_for_a_day(text: str) -> None:
    assert check(text).warnings == ()


def test_a_computed_value_that_reads_an_attribute_of_its_name_gives_a_warning() -> None:
    assert check("from s a fold s b compute n = n + 1").warnings == (
        (
            "in `compute n = n + 1`, `n` is an attribute of the event; the value of the iteration before is `last.n`, "
            "and the attribute is also written `b.n`"
        ),
    )


@pytest.mark.parametrize(
    ("text", "warning"),
    [
        ("price = NaN", "`NaN` is the name of an attribute here; events have no such value, and absence is tested by `is missing`"),
        ("price > inf", "`inf` is the name of an attribute here; events have no such value, and absence is tested by `is missing`"),
        ("select price from stock s where stock.price > 5", "`stock.price` is an attribute of that name; the alias is written `s`"),
        ("select min(price) from table stock s where stock.price > 5", "`stock.price` is an attribute of that name; the alias is written `s`"),
        ("a in ()", "it can never match: the list of `a in ()` is empty"),
        ("time > 2026-01-31", "`2026-01-31` is a subtraction; a time is written: timestamp '2026-01-31'"),
    ],
)  # fmt: skip
def test_what_reads_as_another_thing_than_it_seems_gives_a_warning(text: str, warning: str) -> None:
    assert check(text).warnings == (warning,)


def test_a_warning_appears_wherever_a_query_is_given() -> None:
    text, warning = "price * 2 = 'x'", "it can never match: `price * 2 = 'x'` compares a number with a string"
    engine = Engine()
    assert engine.subscribe(text, id="a").warnings == (warning,)
    assert engine.subscribe_all({"b": text, "c": "price > 1"}).warnings == {"b": (warning,)}
    assert engine.test(text, [{"price": 1}]).warnings == (warning,)
    assert engine.apply({"d": text, "e": "price > 1"}, owner="me", dry_run=True).warnings == {"d": (warning,)}
    assert engine.apply({"d": text}, owner="me").warnings == {"d": (warning,)}
    assert [note.subscription for note in engine.publish({"price": 2})] == ["c"]
    made = engine.subscribe_many("price * 2 > :least", {"least": [1, "x"]}, id="f-{least}")
    assert [str(error) for error in made.errors] == ["row 1, parameter `:least`: its value must be a number"]


def test_a_condition_too_large_to_normalise_is_not_warned_of() -> None:
    assert check(" and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(40))).warnings == ()
