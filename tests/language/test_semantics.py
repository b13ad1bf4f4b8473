"""The corner cases of three-valued logic, each by its name."""

from datetime import UTC, datetime

import pytest

from tocsin.language import parse_condition
from tocsin.language.semantics import condition_truth
from tocsin.model import Value

YEAR = datetime(2026, 1, 1, tzinfo=UTC)


def truth(text: str, **attributes: Value) -> bool | None:
    return condition_truth(parse_condition(text), attributes)


def test_a_predicate_on_a_missing_attribute_is_unknown_and_so_is_its_negation() -> None:
    assert truth("a < 3") is None
    assert truth("not (a < 3)") is None
    assert truth("a != 3") is None
    assert truth("a not in (1)") is None
    assert truth("a not like 'x%'") is None


def test_negation_is_pushed_to_the_comparison() -> None:
    assert truth("not (a < 3)", a=3) is True
    assert truth("not (a < 3)", a=2) is False


def test_a_tautology_still_needs_its_attribute() -> None:
    assert truth("a > 3 or a <= 3") is None
    assert truth("a > 3 or a <= 3", a="x") is None
    assert truth("a > 3 or a <= 3", a=3) is True


def test_missing_and_present_are_the_only_predicates_a_missing_attribute_settles() -> None:
    assert truth("a is missing") is True
    assert truth("a is present") is False
    assert truth("a is null and b is not null", b=1) is True


def test_unknown_and_false_is_false_unknown_or_true_is_true() -> None:
    assert truth("a = 1 and b = 2", b=3) is False
    assert truth("a = 1 or b = 2", b=2) is True
    assert truth("a = 1 and b = 2", b=2) is None
    assert truth("a = 1 or b = 2", b=3) is None


@pytest.mark.parametrize(
    "text", ["a = 1", "a != 1", "a < 'x'", "a >= true", "a = timestamp '2026-01-01T00:00:00Z'"]
)
@pytest.mark.parametrize("value", ["1", 1, True, YEAR])
def test_comparison_across_kinds_is_unknown(text: str, value: Value) -> None:
    same = {"a = 1": int, "a != 1": int, "a < 'x'": str, "a >= true": bool}.get(text, datetime)
    assert (truth(text, a=value) is None) is (type(value) is not same)


def test_true_is_not_one() -> None:
    assert truth("a = 1", a=True) is None
    assert truth("a = true", a=1) is None
    assert truth("a in (true)", a=1) is None
    assert truth("a in (1, true)", a=True) is True


def test_numbers_compare_as_python_compares_them() -> None:
    assert truth("a = 1.0", a=1) is True
    assert truth(f"a = {2**53 + 1}", a=float(2**53)) is False
    assert truth(f"a > {2**53}", a=2**53 + 1) is True
    assert truth(f"a < {2**200}", a=float("inf")) is False


def test_in_looks_only_at_members_of_the_values_kind() -> None:
    assert truth("a in (1, 'x')", a=2) is False
    assert truth("a in (1, 'x')", a=False) is None
    assert truth("a not in (1, 'x')", a=2) is True
    assert truth("a not in (1, 'x')", a="y") is True
    assert truth("a not in ('x')", a=2) is None
    assert truth("a in ()", a=2) is None
    assert truth("a not in ()", a=2) is None


def test_a_text_of_iso_8601_is_read_as_a_timestamp_beside_a_timestamp_constant() -> None:
    text = "a >= timestamp '2026-01-01T00:00:00Z'"
    assert truth(text, a="2026-01-01T01:00:00+01:00") is True
    assert truth(text, a="2025-12-31T23:59:59.999999Z") is False
    assert truth(text, a="2026-01-01") is True
    assert truth(text, a="2025-12-31") is False
    assert truth("a < timestamp '2026-01-01'", a="2025-12-31T23:59") is True
    assert truth(text, a="20260101") is None
    assert truth("timestamp '2026-01-01T00:00:00Z' <= a", a="2026-01-01T00:00:00Z") is True
    assert truth("a in (timestamp '2026-01-01T00:00:00Z', 'x')", a="2026-01-01T00:00:00z") is True
    assert truth("a not in (timestamp '2026-01-01T00:00:00Z')", a="yesterday") is None


def test_a_timestamp_beside_a_string_constant_is_unknown() -> None:
    assert truth("a = '2026-01-01T00:00:00Z'", a=YEAR) is None
    assert truth("a = b", a=YEAR, b="2026-01-01T00:00:00Z") is None


def test_between_is_closed_and_unknown_if_either_end_is() -> None:
    assert truth("a between 1 and 3", a=1) is True
    assert truth("a between 1 and 3", a=3) is True
    assert truth("a not between 1 and b", a=0) is None
    assert truth("a not between 1 and 'x'", a=0) is None
    assert truth("a between 5 and 3", a=4) is False
    assert truth("a not between 5 and 3", a=4) is True


def test_tests_on_strings_are_unknown_of_other_kinds() -> None:
    assert truth("a starts with '1'", a=1) is None
    assert truth("a not contains 'x'", a=True) is None
    assert truth("a !~ 'x'", a=1) is None
    assert truth("a contains b", a="xyz", b="y") is True
    assert truth("a contains b", a="xyz", b=1) is None


def test_like_minds_escapes_lines_and_every_character() -> None:
    assert truth(r"a like 'x\%_'", a="x%y") is True
    assert truth(r"a like 'x\%_'", a="xyy") is False
    assert truth("a like 'x%z_'", a="x\n\nzü") is True
    assert truth("a like 'a.c%_'", a="abcd") is False


def test_regular_expressions_are_unanchored_and_know_unicode() -> None:
    assert truth("a ~ 'b+'", a="abbc") is True
    assert truth("a ~ '^b'", a="ab") is False
    assert truth("a ~ '^.$'", a="ü") is True
    assert truth("a !~ 'x'", a="ab") is True


def test_arithmetic_without_a_result_is_unknown() -> None:
    assert truth("a / b > 1", a=1, b=0) is None
    assert truth("not (a / b > 1)", a=1, b=0) is None
    assert truth("a * b > 1", a=2) is None
    assert truth("a + b > 1", a=2, b="3") is None
    assert truth("a + b > 1", a=2, b=True) is None
    assert truth("a * 1.5 > 1", a=10**400) is None
    assert truth("a - a >= 0", a=float("inf")) is None
    assert truth("-a < 0", a=2) is True
    assert truth("price > 1.05 * open", price=106, open=100) is True
