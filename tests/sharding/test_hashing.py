"""Stable hashes: values that the language calls equal have equal ones, by the column and one by one."""

from __future__ import annotations

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import values
from tocsin.language.semantics import truth
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.model import Operator, Predicate, Value
from tocsin.model.terms import Attribute
from tocsin.model.values import Opaque
from tocsin.sharding.hashing import combined, event_hashes, text_hashes, value_hashes

TEXTS = [1737682396083991141, 11158963267281221551, 13862430272168495938]
VALUES = [
    4007319376749187337,
    8911390025734479179,
    8445919433972906847,
    1737682396083991141,
    1181960329256851996,
]
BOTH = [1814888721010531475]
EQUAL = Predicate(Attribute("a"), Operator.EQ, (Attribute("b"),))


@given(values, values)
def test_values_that_the_language_calls_equal_have_equal_hashes(one: Value, other: Value) -> None:
    hashes, present = value_hashes([one, other])
    assert present.all()
    if truth(EQUAL, {"a": one, "b": other}) is True:
        assert hashes[0] == hashes[1]
    else:
        assert hashes[0] != hashes[1]


def test_what_equals_nothing_has_no_hash() -> None:
    assert value_hashes([None, Opaque("bytes"), float("nan"), 0]).present.tolist() == [
        False,
        False,
        False,
        True,
    ]


columns = st.one_of(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1)).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.none() | st.integers(-(2**31), 2**31 - 1)).map(lambda v: pa.array(v, pa.int32())),
    st.lists(st.none() | st.integers(0, 2**64 - 1)).map(lambda v: pa.array(v, pa.uint64())),
    st.lists(st.none() | st.floats(allow_nan=False)).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.none() | st.floats(width=32, allow_nan=False)).map(lambda v: pa.array(v, pa.float32())),
    st.lists(st.none() | st.text()).map(lambda v: pa.array(v, pa.string())),
    st.lists(st.none() | st.sampled_from("abc")).map(lambda v: pa.array(v, pa.string()).dictionary_encode()),
    st.lists(st.none() | st.booleans()).map(lambda v: pa.array(v, pa.bool_())),
    st.lists(st.none() | st.binary()).map(lambda v: pa.array(v, pa.binary())),
    st.lists(st.none() | st.datetimes()).map(lambda v: pa.array(v, pa.timestamp("us"))),
    st.lists(st.none() | st.decimals(-1000, 1000, places=2)).map(lambda v: pa.array(v, pa.decimal128(9, 2))),
)


@given(columns)
def test_a_column_has_the_hashes_of_its_values(column: pa.Array) -> None:
    events = ArrowEvents.by_column(pa.table({"x": column}))
    assert events is not None
    hashes, present = event_hashes(events, "x")
    rows = [events.attributes(row).get("x") for row in range(len(events))]
    expected = value_hashes(rows)
    assert present.tolist() == expected.present.tolist()
    assert hashes[present].tolist() == expected.hashes[present].tolist()


def test_hashes_stay_the_same_in_later_versions() -> None:
    # Checkpoints depend on them: a change here needs a new format of the state.
    assert text_hashes(["a", "XOM", "ü"]).tolist() == TEXTS
    assert value_hashes([0, 1.5, True, "a", 2**70]).hashes.tolist() == VALUES
    assert combined([value_hashes([1]), value_hashes(["a"])]).hashes.tolist() == BOTH
