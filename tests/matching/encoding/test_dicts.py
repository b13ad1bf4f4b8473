"""Plain dicts as events: reading and encoding them at once equals doing it one after another."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from tests.strategies import predicates, values
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Oracle, create_matcher
from tocsin.matching.encoding.events import EncodedEvents, encode_events, encode_rows
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model import Predicate
from tocsin.model.errors import EventError
from tocsin.model.event import flatten

_raw = st.one_of(
    values,
    st.none(),
    st.sampled_from(
        [float("nan"), float("inf"), 10**5000, 2**64, "\ud800", "größe", [1, 2], {"city": "Oslo"}, b"x"]
    ),
)
_names = st.sampled_from(["a", "b", "c", "price", "data", "data.city", "größe", "\ud800", "other"])
_rows = st.lists(st.dictionaries(_names, _raw, max_size=5), max_size=6)


@given(rows=_rows, asked=st.lists(predicates(), max_size=8))
def test_reading_in_one_go_makes_the_same_pairs_and_faults(
    rows: list[dict[str, object]], asked: list[Predicate]
) -> None:
    vocabulary = Vocabulary()
    for predicate in asked:
        tag, low, _ = vocabulary.encode(predicate)
        vocabulary.retain(*(_array(number) for number in (tag, low)))
    faults: dict[int, str] = {}
    flat: list[Mapping[str, object]] = []
    for place, row in enumerate(rows):
        try:
            flat.append(flatten(row))
        except EventError as fault:
            faults[place] = str(fault)
            flat.append({})
    batch = EventBatch.of_dicts(rows)
    encoded = encode_events(batch, vocabulary)
    wanted = encode_rows(flat, vocabulary)  # type: ignore[arg-type]
    assert _pairs(encoded) == _pairs(wanted)
    assert batch.faults == EventBatch.of_dicts(rows).faults == faults
    assert [dict(batch.attributes(place)) for place in range(len(batch))] == flat


@pytest.mark.parametrize("name", ["oracle", "dynamic"])
def test_a_row_that_is_no_event_satisfies_nothing_and_stops_nothing(name: str) -> None:
    matcher = create_matcher(name)
    texts = {1: "true", 2: "a = 1"}
    matcher.add(ConjunctionBatch.of((id_, to_dnf(parse_condition(text))) for id_, text in texts.items()))
    batch = EventBatch.of_dicts([{"a": 1}, {1: 2}, "no event", {"b": {"c": 1}}])  # type: ignore[list-item, dict-item]
    assert matcher.match(batch).to_lists() == [[1, 2], [], [], [1]]
    assert sorted(batch.faults) == [1, 2]
    assert "not 1" in batch.faults[1]
    assert batch.faults[2] == "an event is a mapping of attributes, not str"


def test_the_oracle_and_an_index_share_a_batch() -> None:
    batch = EventBatch.of_dicts([{"a": 1}])
    assert Oracle().match(batch).to_lists() == create_matcher("dynamic").match(batch).to_lists() == [[]]


def _array(number: int) -> NDArray[np.int64]:
    return np.array([number], dtype=np.int64)


def _pairs(encoded: EncodedEvents) -> list[list[tuple[int, ...]]]:
    bounds = encoded.offsets.tolist()
    columns = [column.tolist() for column in encoded[1:]]
    rows = list(zip(*columns, strict=True))
    return [sorted(rows[begin:end]) for begin, end in pairwise(bounds)]
