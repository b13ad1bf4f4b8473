"""The key of a sequence, or why it has none, of texts whose answer is known."""

from __future__ import annotations

import pytest

from tocsin import parse
from tocsin.language import Template
from tocsin.model import Sequence
from tocsin.model.terms import Parameter
from tocsin.sequences.translation import expression_of
from tocsin.sharding.correlation import Correlation, find_correlation


def key_of(text: str) -> Correlation:
    query = parse(text)
    assert isinstance(query, Sequence)
    return find_correlation(expression_of(query, {}))


@pytest.mark.parametrize(
    ("text", "scheme"),
    [
        ("from s a next s b on b.k = a.k", {"s": ("k",)}),
        ("from s a next s b on a.k = b.k and b.x > a.x where b.y = 1", {"s": ("k",)}),
        ("from s a next t b on b.j = a.k", {"s": ("k",), "t": ("j",)}),
        ("from s a next t b on b.j = a.k next s c on c.k = b.j", {"s": ("k",), "t": ("j",)}),
        ("from s a next s b on b.k = a.k next s c on c.k = a.k and c.x = b.x", {"s": ("k",)}),
        ("from s a next s b on b.k = a.k and b.x = a.x", {"s": ("k", "x")}),
        ("from s a fold s b on b.k = last.k while b.x > last.x", {"s": ("k",)}),
        ("from s a fold s b on b.k = a.k next s c on c.k = b.k within 5 ticks", {"s": ("k",)}),
        ("from s a next s b on b.k = a.k fold s c on c.k = last.k", {"s": ("k",)}),
        # what is known of an event that was taken holds for the guards after it
        ("from s a next t b on b.k = a.k where b.j = b.k next u c on c.i = b.j", {"s": ("k",), "t": ("k",), "u": ("i",)}),
        ("from s a where a.k = a.j next s b on b.k = a.j", {"s": ("k",)}),
        # a constant with something that varies
        ("from s a where a.kind = 'x' next s b on b.kind = 'x' and b.k = a.k", {"s": ("k",)}),
        ("from s a next s b on not (b.k != a.k)", {"s": ("k",)}),
    ],
)  # fmt: skip
def test_guards_that_all_demand_an_equality_make_a_key(text: str, scheme: dict[str, tuple[str, ...]]) -> None:
    found = key_of(text)
    assert dict(found.scheme) == scheme, found.reason
    assert found.constants == ()


@pytest.mark.parametrize(
    ("text", "scheme", "constants"),
    [
        ("from s a where a.k = 'X' next s b on b.k = 'X'", {"s": ("k",)}, ("X",)),
        ("from s a where a.k = 'X' next s b on b.k = a.k", {"s": ("k",)}, ("X",)),
        ("from s a next t b on a.k = 7 and b.j = 7.0", {"s": ("k",), "t": ("j",)}, (7,)),
        ("from s a where a.k = true next s b on b.k = a.k where b.k = true", {"s": ("k",)}, (True,)),
        ("from s a where a.k = 1 and a.j = 2 next s b on b.j = 2 and b.k = 1", {"s": ("k", "j")}, (1, 2)),
    ],
)
def test_a_key_that_equals_constants_has_them(
    text: str, scheme: dict[str, tuple[str, ...]], constants: tuple[object, ...]
) -> None:
    found = key_of(text)
    assert (dict(found.scheme), found.constants) == (scheme, constants)


def test_a_templates_parameters_are_preferred_to_what_varies() -> None:
    text = "from s a where a.k = :s next s b on b.k = :s and b.j = a.j where b.x > :p"
    expression = expression_of(Template(text).query, {})  # type: ignore[arg-type]
    found = find_correlation(expression)
    assert (found.scheme, found.constants) == ((("s", ("k",)),), (Parameter("s"),))
    assert find_correlation(expression, unusable=["s"]).scheme == (("s", ("j",)),)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("from s a next s b", "the next `b` is taken whatever its attributes are"),
        ("from s a next s b where b.k = a.k", "the next `b` is taken whatever its attributes are"),
        ("from s a fold s b while b.k = a.k", "the next `b` is taken whatever its attributes are"),
        ("from s a next s b on b.k = a.k or b.x > a.x", "the next `b` is taken whatever its attributes are"),
        ("from s a next s b on b.k >= a.k", "the next `b` is taken whatever its attributes are"),
        ("from s a next s b on b.k = a.k + 1", "the next `b` is taken whatever its attributes are"),
        ("from s a next s b on b.k in ('X', 'Y') where a.k = 'X'", "the next `b` is taken whatever"),
        ("from s a where a.k = 'X' next s b on b.k = 'Y'", "the next `b` is taken whatever"),
        ("from s a where a.k = 1 next s b on b.k = true", "the next `b` is taken whatever"),
        ("from s a next s b on b.k = a.k next s c on c.k > b.k", "the next `c` is taken whatever"),
        ("from s a next s b on b.k = a.k next s c on c.j = a.j", "with different attributes of `a`"),
        ("from s a next s b on b.k = 'X'", "the next `b` is taken whatever its attributes are"),
        ("from s a next s b on b.j = a.k", "with different attributes of one stream"),
        # a text and a timestamp may both equal a timestamp
        (
            "from s a where a.k = timestamp '2026-01-01' next s b on b.k = timestamp '2026-01-01'",
            "the next `b` is taken whatever its attributes are",
        ),
        # a computed value may be anything
        ("from s a compute n = a.k + 1 next s b on b.k = n", "the next `b` is taken whatever"),
        ("from s a where a.k = 1 compute n = 1", "it has one step"),
        (
            "from (from s a next s b on b.k = a.k select b.k as k) r next s c on c.k = r.k",
            "a sequence in parentheses",
        ),
    ],
)
def test_other_sequences_have_no_key_and_a_reason(text: str, reason: str) -> None:
    found = key_of(text)
    assert not found.is_keyed
    assert reason in found.reason
