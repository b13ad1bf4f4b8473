"""Errors: whatever they quote, their texts can be written."""

from __future__ import annotations

import pickle
from collections.abc import Callable

import pytest

import tocsin
from tocsin import Engine, Template
from tocsin.errors import TocsinError

HALF = "\ud800"  # of a surrogate pair: no UTF-8 has it


@pytest.mark.parametrize(
    "refused",
    [
        lambda engine: engine.subscribe(f"a = '{HALF}'"),
        lambda engine: engine.subscribe(f"{HALF} = 1"),
        lambda engine: engine.apply({"x": f"a = '{HALF}'"}),
        lambda engine: engine.apply({HALF: "a = 1"}),
        lambda engine: engine.unsubscribe(HALF),
        lambda engine: engine.explain(HALF, {"a": 1}),
        lambda engine: engine.publish({HALF: 1}),
        lambda engine: engine.subscribe("a = 1", valid_until=HALF),
        lambda _: Engine(matcher=HALF),
        lambda _: Template(f"a = :x and b = '{HALF}'"),
        lambda _: tocsin.from_json({HALF: []}),
        lambda _: tocsin.from_json({"=": [{"attribute": [HALF]}, 1]}),
    ],
)
def test_an_error_that_quotes_half_of_a_character_can_be_written(refused: Callable[[Engine], object]) -> None:
    with pytest.raises(TocsinError) as caught:
        refused(Engine())
    text = str(caught.value)
    assert r"\ud800" in text
    assert text.encode("utf-8").decode("utf-8") == text
    assert str(pickle.loads(pickle.dumps(caught.value))) == text  # noqa: S301
