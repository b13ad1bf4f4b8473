"""The translation of names, lengths of time and aggregates."""

from __future__ import annotations

import pytest

from tests.sequences.outcomes import query_of
from tocsin.errors import SubscriptionError
from tocsin.model import (
    Attribute,
    Elapsed,
    Literal,
    Operator,
    Parameter,
    Predicate,
    literal,
)
from tocsin.sequences.algebra import (
    Expression,
    Iterate,
    Next,
    OutputValues,
    Project,
    Rename,
    Select,
    Stream,
    output_values,
    reads_of,
)
from tocsin.sequences.translation import expression_of


def _expression(text: str, **ticks: int) -> Expression:
    return expression_of(query_of(text), ticks)


def _next(text: str) -> Next:
    expression = _expression(text)
    while not isinstance(expression, Next):
        assert isinstance(expression, (Select, Project))
        expression = expression.of
    return expression


def test_a_step_without_an_alias_has_the_name_of_its_stream_or_that_and_its_number() -> None:
    expression = _next("from stock next stock on price > 1 next blog")
    assert isinstance(expression.left, Next)
    assert isinstance(expression.left.left, Rename)
    assert isinstance(expression.left.right, Rename)
    assert isinstance(expression.right, Rename)
    names = [expression.left.left.alias, expression.left.right.alias, expression.right.alias]
    assert names == ["stock", "stock#2", "blog"]
    assert expression.left.on == Predicate(Attribute("price", "stock#2"), Operator.GT, (literal(1),))


def test_a_name_that_is_taken_gets_another_number() -> None:
    expression = _next('from stock "stock#2" next stock next stock')
    assert isinstance(expression.left, Next)
    assert isinstance(expression.left.right, Rename)
    assert isinstance(expression.right, Rename)
    assert [expression.left.right.alias, expression.right.alias] == ["stock", "stock#3"]


def test_a_bare_name_is_a_computed_value_or_the_own_events() -> None:
    on = _next("from stock a compute high = a.price next stock b on price > high").on
    assert on == Predicate(Attribute("price", "b"), Operator.GT, (Attribute("high"),))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("while b.price > last.price", Attribute("price", "last")),
        ("while b.price > last.low", Attribute("low")),
        ("while b.price > low", Attribute("low")),
        ("while b.price > last.sum compute sum = sum(price)", Attribute("sum")),
        ("while b.price > b.sum compute sum = sum(price)", Attribute("sum", "b")),
    ],
)
def test_in_a_fold(text: str, name: Attribute) -> None:
    expression = _expression(f"from stock a compute low = a.price fold stock b {text}")
    assert isinstance(expression, Iterate)
    assert expression.while_ == Predicate(Attribute("price", "b"), Operator.GT, (name,))
    assert expression.lefts == ("a",)


@pytest.mark.parametrize(
    ("length", "tick", "ticks"),
    [
        ("10 minutes", 1, 600_000_000),
        ("10 minutes", 60_000_000, 10),
        ("0.1 seconds", 1, 100_000),
        ("7 ticks", 9, 7),
        ("7", 9, 7),
    ],
)
def test_a_length_of_time_is_a_number_of_ticks(length: str, tick: int, ticks: int) -> None:
    text = f"from stock a next stock b where duration >= {length} within {length}"
    outer = _expression(text, stock=tick)
    assert isinstance(outer, Select)
    assert outer.where == Predicate(Elapsed(), Operator.LE, (literal(ticks),))
    assert isinstance(outer.of, Select)
    assert outer.of.where == Predicate(Elapsed(), Operator.GE, (literal(ticks),))


def test_parameters_stay() -> None:
    outer = _expression("from stock a next stock b on b.price > :p within :w")
    assert isinstance(outer, Select)
    assert outer.where == Predicate(Elapsed(), Operator.LE, (Parameter("w"),))
    assert isinstance(outer.of, Next)
    assert outer.of.on == Predicate(Attribute("price", "b"), Operator.GT, (Parameter("p"),))


@pytest.mark.parametrize(
    ("text", "ticks", "message"),
    [
        ("from stock a next blog b", {"stock": 1_000}, "one of `stock` 1,000: .* declare both"),
        (
            "from stock a next stock b within 1.5 seconds",
            {"stock": 1_000_000},
            "no whole number of ticks .* finer tick",
        ),
        ("from stock a next stock b within 99999999999 weeks", {}, "leave it out"),
        ('from stock a compute "#n" = 1 next stock b', {}, "needs another name"),
        (
            "from (from stock a select a.price) p next stock b on b.price > p.prize",
            {},
            "no `p.prize`.*did you mean `price`",
        ),
        ("from (from stock a next stock c) p next stock b on b.price > p.b.price", {}, "have `a.…`, `c.…`"),
        (
            "from stock a next (from stock c select c.price) b on prise > 1",
            {},
            "no `prise`.*did you mean `price`",
        ),
        (
            "from (from stock c select c.price) a fold (from stock c select c.price) b on last.x = 1",
            {},
            "no `last.x`",
        ),
    ],
)
def test_meaningless_sequences_are_refused_with_a_remedy(
    text: str, ticks: dict[str, int], message: str
) -> None:
    with pytest.raises(SubscriptionError, match=message):
        _expression(text, **ticks)


def test_equal_sequences_in_parentheses_have_one_name() -> None:
    expression = _next("from (from stock a  next stock b) x next (FROM stock a next stock b) y")
    assert isinstance(expression.left, Rename)
    assert isinstance(expression.right, Rename)
    assert expression.left.of == expression.right.of
    assert isinstance(expression.left.of, Stream)
    assert expression.left.of.name == "$(from stock a next stock b)"
    assert reads_of(expression) == {"stock"}


@pytest.mark.parametrize(
    ("text", "telling"),
    [
        ("from stock a next stock b", OutputValues((), False)),
        (
            "from stock a compute n = 1 fold stock b compute mean = avg(price), n = count(*)",
            OutputValues(("n", "mean"), False),
        ),
        (
            "from stock a next stock b select a.price, b.price as later",
            OutputValues(("price", "later"), True),
        ),
    ],
)
def test_values_of_a_match(text: str, telling: OutputValues) -> None:
    assert output_values(_expression(text)) == telling


def test_arithmetic_of_constants_is_done_by_the_rules_of_sequences() -> None:
    on = _next(f"from stock a next stock b on b.price > {2**63 - 1} + 2 and b.price > 1 / 0").on
    assert not isinstance(on, Predicate)
    first, second = on.conditions  # type: ignore[union-attr]
    assert isinstance(first, Predicate)
    assert first.operands == (Literal(2.0**63, literal(1).kind),)
    assert isinstance(second, Predicate)
    assert not isinstance(second.operands[0], Literal)
