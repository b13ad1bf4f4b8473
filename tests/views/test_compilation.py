"""Supported views, and how they are maintained."""

from __future__ import annotations

import numpy as np
import pytest

from tocsin.language import parse
from tocsin.language.parsing.parser import parse_template
from tocsin.model import View
from tocsin.model.errors import SubscriptionError
from tocsin.views.compilation import compile_view
from tocsin.views.compiled import CompiledRangeView, CompiledRowView, CompiledView


def planned(text: str) -> CompiledView:
    view = parse(text)
    assert isinstance(view, View)
    return compile_view(view, "v")


@pytest.mark.parametrize(
    "text",
    [
        "select min(y) from table t",
        "select min(y) from table t where x between 1 and 2",
        "select max(y) from table t where not (x < 1) and x < 2 and x <= 5",
        "select sum(y * 2) from table t where x = 1",
        "select count(*) from table t where x > timestamp '2026-01-01T00:00:00Z'",
        "select distinct s from table t where x >= -1.5",
    ],
)
def test_one_range_of_one_attribute_is_followed_by_points(text: str) -> None:
    assert isinstance(planned(text), CompiledRangeView)


@pytest.mark.parametrize(
    "text",
    [
        "select min(y) from table t where x between 1 and 2 and z < 3",
        "select min(y) from table t where x = 1 or x = 2",
        "select min(y) from table t where s = 'a'",
        "select min(y) from table t where x in (1, 2)",
        "select min(y) from table t where x > z",
        "select min(y) from table t where x > 9007199254740993",
        "select min(y) from table t where x between 2 and 1",
        "select * from table t where x > 1",
        "select count(*) from table t a join table u b on a.k = b.k and a.x < b.x",
    ],
)
def test_other_conditions_are_followed_by_rows(text: str) -> None:
    assert isinstance(planned(text), CompiledRowView)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("select min(y), max(y) from table t", "a view has one answer"),
        ("select y, max(y) from table t", "a view has one answer"),
        ("select max(y) - 1 from table t", "an aggregate stands alone"),
        ("select distinct x, y from table t", "`select distinct` has the values of one attribute"),
        ("select distinct max(x) from table t", "`select distinct` has the values of one attribute"),
        (
            "select * from table t a join table u b on a.x < b.x",
            "`on a.x < b.x`: two tables are joined where",
        ),
        ("select * from table t a join table u b on a.x = 1", "two tables are joined where"),
    ],
)
def test_an_unsupported_view_is_refused_with_the_remedy(text: str, reason: str) -> None:
    with pytest.raises(SubscriptionError, match=reason.replace("(", "[(]")):
        planned(text)


def test_a_template_is_followed_by_points_if_all_its_bounds_are_of_one_kind() -> None:
    view, _ = parse_template("select min(y) from table t where x >= :a and x < :b")
    assert isinstance(view, View)

    def sort(a: list[object], b: list[object]) -> type[CompiledView]:
        columns = {"a": np.array(a), "b": np.array(b, dtype=object)}
        return type(compile_view(view, "v", columns))

    assert sort([1, 2], [1.5, 2]) is CompiledRangeView
    assert sort([1, 2], ["x", 2]) is CompiledRowView
    assert sort([1, 2**53 + 1], [1, 2]) is CompiledRowView
    assert sort([1, 2], [1, 2**60 + 1]) is CompiledRowView
    selecting, _ = parse_template("select min(y * :f) from table t where x >= :a")
    assert isinstance(selecting, View)
    with pytest.raises(SubscriptionError, match="`:f` is in the selected values"):
        compile_view(selecting, "v", {})
