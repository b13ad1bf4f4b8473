"""Fingerprints of subscriptions: equal for what asks the same, whatever form it came in, and different for all else."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from subprocess import run
from sys import executable
from typing import Any

import numpy as np
import pytest

from tocsin import Engine, parse
from tocsin.subscriptions.fingerprints import fingerprints_of

MOMENT = datetime(2026, 3, 1, tzinfo=UTC)
TEMPLATES: list[tuple[str, dict[str, list[Any]]]] = [
    ("price > :p and symbol = :s", {"p": [1, 2.5, 2**60, -3], "s": ["a", "ö", "", "'"]}),
    ("price = :v", {"v": [1, "1", True, MOMENT, 2**70]}),
    ("select price + :d as up from stock where symbol starts with :s", {"d": [1, 2], "s": ["a", "b"]}),
    ("symbol in :l", {"l": [["a", "b"], ["a"], [1, 2.5]]}),
    ("symbol like :l", {"l": ["a%", "%b%", "a_c"]}),
    ("from ticks a next ticks b where b.price > a.price + :d within :w", {"d": [0, 1, -1], "w": [3, 4, 5]}),
    ("from ticks a next ticks b where duration < :t publish as jumps", {"t": [3, 4]}),
    ("select min(price) from table stock where price between :a and :b", {"a": [0, 1], "b": [5, 5]}),
]


def engine() -> Engine:
    made = Engine()
    made.table("stock", key="symbol")
    return made


def fingerprints(made: Engine) -> dict[str, int]:
    store = made._store
    numbers = store.registry.numbers()
    found = fingerprints_of(store.registry, store.queries, numbers).tolist()
    return dict(zip(store.registry.ids_of(numbers), found, strict=True))


def bound(template: str, row: dict[str, Any]) -> Any:
    from tocsin.language import Template  # noqa: PLC0415

    return Template(template).bind(row)


def test_a_row_of_a_template_has_the_fingerprint_of_its_query() -> None:
    rows, single = engine(), engine()
    for place, (template, columns) in enumerate(TEMPLATES):
        assert not rows.subscribe_many(template, columns, id=f"{place}-{{row}}").errors
        for row in range(len(next(iter(columns.values())))):
            query = bound(template, {name: column[row] for name, column in columns.items()})
            single.subscribe(query, id=f"{place}-{row}")
    assert fingerprints(rows) == fingerprints(single)
    assert len(set(fingerprints(rows).values())) == len(rows)


def test_texts_of_a_shape_have_the_fingerprints_of_their_queries() -> None:
    texts = [
        f"from ticks a next ticks b where b.price > a.price + {d} within {w} ticks"
        for d in range(9)
        for w in (3, 4)
    ]
    shaped, parsed = engine(), engine()
    for text in texts:
        shaped.subscribe(text, id=text)
        parsed.subscribe(parse(text), id=text)
    assert fingerprints(shaped) == fingerprints(parsed)
    assert len(set(fingerprints(shaped).values())) == len(texts)


@pytest.mark.parametrize(
    "other",
    [
        {"valid_until": 7},
        {"valid_from": 7},
        {"valid_from": MOMENT},
        {"witness": "full"},
    ],
)
def test_validity_and_witness_count(other: dict[str, Any]) -> None:
    made, text = engine(), "from ticks a next ticks b where b.price > a.price"
    made.subscribe(text, id="one", owner="ann")
    before = fingerprints(made)["one"]
    made.subscribe(text, id="same", weight=2.0)
    made.subscribe(text, id="other", **other)
    found = fingerprints(made)
    assert before == found["one"] == found["same"] != found["other"]


def test_fingerprints_are_the_same_in_every_process() -> None:
    program = (
        "from tests.subscriptions.test_fingerprints import *\nmade = engine()\n"
        "for i, (t, c) in enumerate(TEMPLATES): made.subscribe_many(t, c, id=f'{i}-{{row}}')\nprint(fingerprints(made))"
    )
    seen = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed}
        done = run([executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        seen.add(done.stdout)
    assert len(seen) == 1
    assert len(seen.pop()) > 100


def test_equal_numbers_are_one_and_no_string_is_a_number() -> None:
    made = engine()
    for place, column in enumerate(([1, 2], [1.0, 2.0], np.array([1, 2], dtype=np.int32), ["1", "2"])):
        made.subscribe_many("price = :p", {"p": column}, id=f"{place}-{{row}}")
    found = fingerprints(made)
    assert found["0-1"] == found["1-1"] == found["2-1"] != found["3-1"]
