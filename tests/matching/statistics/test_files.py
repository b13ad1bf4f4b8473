from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import events, values
from tocsin.matching import EventBatch, Statistics
from tocsin.matching.statistics.texts import combination_of, combination_text, text_of, value_of
from tocsin.model import Event, Value, kind_of
from tocsin.model.errors import SavedStatisticsError
from tocsin.model.version import VERSION


@given(st.lists(events, max_size=20), st.integers(1, 4))
def test_saved_statistics_load_unchanged(history: list[Event], top: int) -> None:
    statistics = Statistics.of(EventBatch.of(history), groups=[("a", "b"), ("a", "b", "c")], top=top, bins=2)
    assert Statistics.from_document(statistics.to_document()) == statistics


def test_a_file_is_written_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "flights.json"
    Statistics.of([{"a": 1}]).save(path)
    statistics = Statistics.of([{"a": math.inf, "größe": 2**70, "b": True, "c": "it's"}], groups=[("a", "b")])
    statistics.save(path)
    assert Statistics.load(path) == statistics
    assert path.stat().st_size == statistics.bytes
    assert list(tmp_path.iterdir()) == [path]


@given(values, values)
def test_a_text_stands_for_one_value_of_a_kind(one: Value, other: Value) -> None:
    assert value_of(kind_of(one), text_of(one)) == one
    if kind_of(one) is kind_of(other):
        assert (text_of(one) == text_of(other)) == (one == other)
    (first, second) = combination_of(combination_text([(kind_of(one), one), (kind_of(other), other)]))
    assert (first.value, first.kind, second.value, second.kind) == (one, kind_of(one), other, kind_of(other))


def refusal(path: Path) -> str:
    with pytest.raises(SavedStatisticsError) as refused:
        Statistics.load(path)
    assert refused.value.path == str(path)
    return refused.value.reason


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    path = tmp_path / "flights.json"
    assert refusal(path) == "there is no such file; `Statistics.save` writes one"
    assert refusal(tmp_path) == "this is a folder; statistics are saved to a file"
    path.write_text("id,name\n", encoding="utf-8")
    assert refusal(path).startswith("these are no statistics: JSON is malformed")
    path.write_text('{"events": 3}', encoding="utf-8")
    assert refusal(path).startswith("these are no statistics: Object missing required field")
    path.write_text('{"saved": "tocsin matcher", "format": 1, "tocsin": "0.1.0"}', encoding="utf-8")
    assert refusal(path) == "these are no statistics, but a `tocsin matcher`"


def test_a_newer_file_raises_an_error_with_the_remedy(tmp_path: Path) -> None:
    path = tmp_path / "flights.json"
    document = Statistics.of([{"a": 1}]).to_document()
    path.write_text(json.dumps({**document, "format": 7, "tocsin": "9.9"}), encoding="utf-8")
    assert refusal(path) == (
        f"they were saved by Tocsin 9.9 in format 7, and Tocsin {VERSION} reads formats up to 1; "
        "update Tocsin, or compute them with this version"
    )


@pytest.mark.parametrize(
    ("place", "broken"),
    [("frequent", [["ten", 1]]), ("bounds", ["1.0"]), ("count", "many"), ("frequent", [["nan", 1]])],
)
def test_a_damaged_file_raises_an_error_with_the_reason(tmp_path: Path, place: str, broken: object) -> None:
    path = tmp_path / "flights.json"
    document = Statistics.of([{"a": 1}]).to_document()
    document["attributes"]["a"]["kinds"]["number"][place] = broken
    path.write_text(json.dumps(document), encoding="utf-8")
    assert refusal(path).startswith("they cannot be read: ")
    assert refusal(path).endswith("; compute them again")
