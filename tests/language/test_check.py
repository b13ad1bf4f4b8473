import pytest

from tocsin.language import check


@pytest.mark.parametrize(
    ("text", "warnings"),
    [
        ("a = 1", ()),
        ("a = 1 and a = 2", ("it can never match: no value of a satisfies `a = 1 and a = 2`",)),
        ("a in ()", ("it can never match: its condition is false",)),
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


def test_a_condition_too_large_to_normalise_is_not_warned_of() -> None:
    assert check(" and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(40))).warnings == ()
