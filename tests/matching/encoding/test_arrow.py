from __future__ import annotations

import os
from datetime import timedelta
from itertools import groupby, pairwise
from operator import itemgetter
from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from tests.matching.arrow_tables import tables
from tests.strategies import PATHS, conditions, predicates, tested
from tocsin.formats import EventReader, Fault
from tocsin.formats.arrow_rows import arrow_rows
from tocsin.language import parse_condition, to_dnf
from tocsin.matching import ConjunctionBatch, EventBatch, Matcher, Oracle, create_matcher, registered_matchers
from tocsin.matching.encoding.arrow import ArrowEvents, arrow_events
from tocsin.matching.encoding.codes import FIELDS, Field
from tocsin.matching.encoding.events import EncodedEvents, encode_events, encode_rows
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model import Condition
from tocsin.model.event import STREAM

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
asked = st.lists(
    st.one_of(predicates(), predicates(), conditions(max_leaves=3), tested), min_size=1, max_size=8
)


def holding(name: str, asked: list[Condition], vocabulary: Vocabulary | None = None) -> Matcher:
    matcher = create_matcher(name) if vocabulary is None else create_matcher(name, vocabulary=vocabulary)
    matcher.add(ConjunctionBatch.of((i, to_dnf(condition)) for i, condition in enumerate(asked)))
    return matcher


def by_row(table: Any) -> tuple[list[dict[str, Any]], dict[int, str]]:
    """Return the attributes and the faults by row, if the table is read row by row."""
    reader = EventReader()
    batches = table.to_batches() if isinstance(table, pa.Table) else [table]
    read = [reader.event(record, None, number) for number, record in arrow_rows(batches)]
    faults = {place: row.reason for place, row in enumerate(read) if isinstance(row, Fault)}
    return [{} if isinstance(row, Fault) else dict(row.attributes) for row in read], faults


def pairs(encoded: EncodedEvents) -> list[list[tuple[int, ...]]]:
    columns = zip(*(column.tolist() for column in encoded[1:]), strict=True)
    every = list(columns)
    ends = encoded.offsets.tolist()
    return [sorted(every[begin:end]) for begin, end in pairwise(ends)]


def assert_tests_stand_together(encoded: EncodedEvents) -> None:
    """The pairs in a field TEXT are next to each other, and the last one, and no other, has the key -1."""
    for begin, end in pairwise(encoded.offsets.tolist()):
        fields, keys = encoded.fields[begin:end].tolist(), encoded.keys[begin:end].tolist()
        runs = [
            (field, [key for _, key in run])
            for field, run in groupby(zip(fields, keys, strict=True), itemgetter(0))
        ]
        assert len({field for field, _ in runs}) == len(runs)
        for field, passed in runs:
            if field % FIELDS == Field.TEXT:
                assert passed[-1] == -1
                assert passed[:-1] == sorted(set(passed[:-1]))
                assert -1 not in passed[:-1]
            else:
                assert len(passed) == 1


def speaking_of(*forms: str, paths: tuple[str, ...] = (*PATHS, "data.other", "a.x.y")) -> Vocabulary:
    """A vocabulary with every kind of predicate on every path."""
    vocabulary = Vocabulary()
    asked = [parse_condition(f"{path} {form}") for path in paths for form in forms]
    holding("propagation-wp", asked, vocabulary)
    return vocabulary


@pytest.fixture(scope="module")
def vocabularies() -> list[Vocabulary]:
    texts, times = "in ('', 'x', 'abcdefgh', 'ü')", "> timestamp '2026-01-01T00:00:00Z'"
    tests = ("starts with 'a'", "not contains ''", "ends with 'h'", "~ 'x|2026'", "not like '_'")
    numbers = f"in ({2**53 + 1}, {2**63 - 1}, {2**63 + 1}, 2)"
    return [
        speaking_of("> 0", numbers, texts, times, "> 'x'"),
        speaking_of("> 0", numbers, texts, times),
        speaking_of("> 0", texts, "> 'x'"),
        speaking_of("> 0", texts, times, paths=("a", "data.city")),
        speaking_of("> 0", paths=("b",)),
        speaking_of("> 0", times, "> 'x'", *tests),
        speaking_of("starts with 'x'", "is missing", paths=("a", "data.city")),
    ]


@given(table=tables(), which=st.integers(0, 6))
@settings(max_examples=20_000 if LONG else 1_000)
def test_a_table_by_the_column_is_encoded_as_its_rows_are(
    vocabularies: list[Vocabulary], table: Any, which: int
) -> None:
    vocabulary = vocabularies[which]
    batch = ArrowEvents.by_column(table)
    event("by row" if batch is None else "by column, some refused" if batch.faults else "by column")
    if batch is not None:
        rows, faults = by_row(table)
        assert (len(batch), batch.faults) == (len(rows), faults)
        encoded = encode_events(batch, vocabulary)
        assert pairs(encoded) == pairs(encode_rows(rows, vocabulary))
        assert_tests_stand_together(encoded)
        assert [column.dtype for column in encoded] == [np.int64, np.int32, np.int64, np.int64, np.int64]
        assert all(column.flags.c_contiguous and column.flags.writeable for column in encoded)


@given(tables(odd=False))
def test_a_table_of_known_types_and_good_cells_is_read_by_the_column(table: Any) -> None:
    batch = ArrowEvents.by_column(table)
    assert batch is not None
    assert not batch.faults


@given(tables(), asked)
def test_a_table_matches_as_its_rows_do(table: Any, asked: list[Condition]) -> None:
    rows, faults = by_row(table)
    wanted = EventBatch(rows, faults=faults)
    oracle = holding("oracle", asked)
    batch = arrow_events(table)
    assert batch.faults == faults
    assert [dict(each.attributes) for each in batch] == rows
    assert [dict(batch.attributes(place)) for place in range(len(batch))] == rows
    expected = oracle.match(wanted).to_lists()
    assert oracle.match(batch).to_lists() == expected
    assert holding("propagation-wp", asked).match(batch).to_lists() == expected


@given(tables(), st.data())
def test_a_slice_is_the_batch_of_its_rows(table: Any, data: st.DataObject) -> None:
    batch = ArrowEvents.by_column(table)
    if batch is not None:
        begin = data.draw(st.integers(0, len(batch)))
        end = data.draw(st.integers(begin, len(batch)))
        rows, faults = by_row(table)
        part = batch.slice(begin, end)
        assert [dict(each.attributes) for each in part] == rows[begin:end]
        assert part.faults == {place - begin: faults[place] for place in faults if begin <= place < end}


@pytest.mark.parametrize("name", ["oracle", "propagation-wp"])
def test_the_stream_is_an_attribute_of_every_row(name: str) -> None:
    asked = [
        parse_condition(f'"{STREAM}" {rest}') for rest in ("= 's'", "= 't'", "> 'r'", "like 's%' and a = 1")
    ]
    batch = arrow_events(pa.table({"a": [1, 2, None]}), stream="s")
    assert isinstance(batch, ArrowEvents)
    assert holding(name, asked).match(batch).to_lists() == [[0, 2, 3], [0, 2], [0, 2]]
    nested = arrow_events(pa.table({"a": [1, 2], "b": pa.array([1, None], pa.date64())}), stream="s")
    assert not isinstance(nested, ArrowEvents)
    assert holding(name, asked).match(nested).to_lists() == [[0, 2, 3], [0, 2]]


def test_a_stream_that_reads_as_a_time_is_compared_as_one() -> None:
    asked = [parse_condition(f"\"{STREAM}\" > timestamp '2025-01-01T00:00:00Z'")]
    batch = arrow_events(pa.table({"a": [1]}), stream="2026-01-01T00:00:00Z")
    assert holding("propagation-wp", asked).match(batch).to_lists() == [[0]]


def test_rows_that_are_refused_satisfy_nothing_and_say_why() -> None:
    table = pa.table(
        {
            "t": pa.array([0, 10**15, 1, 2], pa.timestamp("s")),
            "x": [1.0, float("nan"), float("nan"), 2.0],
            "y": [1, 2, 3, 4],
            "raw": pa.array([b"x", b"x", None, b""]),
        }
    )
    batch = arrow_events(table)
    assert isinstance(batch, ArrowEvents)
    assert batch.faults == by_row(table)[1]
    assert [fault[:16] for fault in batch.faults.values()] == ["a cell cannot be"]
    assert batch.count_opaque(np.arange(4)) == {"raw": 2}
    asked = [parse_condition("true"), parse_condition("x is missing"), parse_condition("raw is missing")]
    for name in ("oracle", "propagation-wp"):
        assert holding(name, asked).match(batch).to_lists() == [[0], [], [0, 1, 2], [0]]


@pytest.mark.parametrize("name", sorted(registered_matchers()))
@pytest.mark.parametrize(
    "array",
    [
        pa.array([b"x", None, b""]),
        pa.array([b"x", None, b""], pa.large_binary()),
        pa.array([b"x", None, b"y"], pa.binary_view()),
        pa.array([b"x", None, b"y"]).dictionary_encode(),
        pa.array([b"xy", None, b"yz"], pa.binary(2)),
        pa.array([[1], None, []]),
        pa.array([[("a", 1)], None, []], pa.map_(pa.string(), pa.int64())),
        pa.array([[1], None, [2]], pa.list_(pa.int64(), 1)),
        pa.array([timedelta(1), None, timedelta(0)]),
        pa.array([1, None, 0], pa.duration("ns")),
        pa.array([1, None, 0], pa.time64("ns")),
        pa.array([UUID(int=0).bytes, None, UUID(int=1).bytes], pa.uuid()),
    ],
    ids=lambda array: str(array.type),
)
def test_opaque_columns_are_present_and_no_more(name: str, array: Any) -> None:
    texts = [
        *("a is present", "a is missing", "a = 1", "a != 1", "not a = 1", "a in (1, 'x')", "a not in (1)"),
        *("a != 'x'", "a like '%'", "a not like 'x'", "a < 5 or a >= 5", "a != true", "a + 1 != 2", "a = b"),
    ]
    matcher = holding(name, [parse_condition(text) for text in texts])
    inside = pa.StructArray.from_arrays([array], ["x"], mask=pa.array([False, False, True]))
    expected = [[0], [1], [0]]
    for table in (pa.table({"a": array}), pa.table({"z": [0, 1, 2], "a": array}).slice(1)):
        want = expected[-table.num_rows :]
        batch = ArrowEvents.by_column(table)
        assert batch is not None
        assert matcher.match(batch).to_lists() == want
        assert matcher.match(EventBatch.of(batch)).to_lists() == want
        assert [matcher.match_one(one.attributes).tolist() for one in batch] == want
        assert batch.count_opaque(np.arange(len(batch))) == {"a": sum(bool(0 in one) for one in want)}
    within = ArrowEvents.by_column(pa.table({"a": inside}))
    assert within is not None
    rows, _ = by_row(pa.table({"a": inside}))
    assert [sorted(one) for one in rows] == [["a.x"], [], []]
    assert within.count_opaque(np.arange(3)) == {"a.x": 1}


def test_many_chunks_and_wide_dictionaries_are_encoded_as_one_table() -> None:
    words = pa.array([f"w{i}" for i in range(5_000)])
    indices = np.arange(4_000) % 7 * 700
    whole = pa.table(
        {
            "a": np.arange(4_000),
            "b": pa.DictionaryArray.from_arrays(pa.array(indices), words),
            "c": pa.array([None if i % 3 else 2**60 + i for i in range(4_000)]),
        }
    )
    asked = [
        parse_condition(text) for text in ("a > 10", "b = 'w700'", f"c = {2**60 + 3}", "b > 'w4' and c > 0")
    ]
    vocabulary = Vocabulary()
    holding("propagation-wp", asked, vocabulary)
    expected = pairs(encode_rows(by_row(whole)[0], vocabulary))
    for rows in (1, 100, 1_500, 4_000):
        batch = ArrowEvents.by_column(pa.Table.from_batches(whole.to_batches(max_chunksize=rows)))
        assert batch is not None
        assert pairs(batch.encode(vocabulary)) == expected


@pytest.mark.parametrize(
    "array",
    [
        pa.array(["2026-01-02T00:00:00Z", None, "x"]),
        pa.array(["2026-01-02T00:00:00Z", None, "x"]).dictionary_encode(),
        pa.DictionaryArray.from_arrays(pa.array([1, 0, None]), pa.array([None, "2026-01-02T00:00:00Z"])),
        pa.array([253_402_300_799 - 3_600, 253_402_300_799, 0], pa.timestamp("s", "+05:00")),
        pa.array([-62_135_596_800, -62_135_596_800 + 3_600, 0], pa.timestamp("s", "-11:30")),
        pa.array([-1, 0, 1], pa.timestamp("ms", "Europe/Oslo")),
        pa.array([-1_000, 1_000, None], pa.timestamp("ns", "Europe/Oslo")),
        pa.array([2**63 - 1, None, 2**53 + 3]),
        pa.array([2**64 - 1, 2**63 + 1, 2**53 + 3], pa.uint64()),
        pa.array([{"x": {"y": 1.5}}, None, {"x": {"y": float("nan")}}]),
    ],
    ids=lambda array: str(array.type),
)
@pytest.mark.parametrize("which", [0, 1])
def test_cells_at_the_edges_are_encoded_as_in_rows(
    vocabularies: list[Vocabulary], array: Any, which: int
) -> None:
    for table in (pa.table({"a": array}), pa.table({"a": array}).slice(1)):
        batch = ArrowEvents.by_column(table)
        assert batch is not None
        rows, faults = by_row(table)
        assert batch.faults == faults
        assert pairs(batch.encode(vocabularies[which])) == pairs(encode_rows(rows, vocabularies[which]))


@pytest.mark.parametrize(
    "array",
    [
        pa.array([1, 1_001], pa.timestamp("ns")),
        pa.array([1, 2], pa.timestamp("us", "Nowhere/Land")),
        pa.DictionaryArray.from_arrays(pa.array([0]), pa.array([{"x": 1}])),
        pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], names=["x", "x"]),
        pa.Array.from_buffers(
            pa.string(), 2, [None, pa.array(["a", "b"]).buffers()[1], pa.py_buffer(b"\xffb")]
        ),
        pa.RunEndEncodedArray.from_arrays([2], ["x"]),
    ],
    ids=lambda array: str(array.type),
)
def test_columns_of_other_types_are_read_row_by_row(array: Any) -> None:
    table = pa.table({"a": array})
    assert ArrowEvents.by_column(table) is None
    rows, faults = by_row(table)
    batch = arrow_events(table)
    assert batch.faults == faults
    assert [dict(each.attributes) for each in batch] == rows


def test_rows_without_columns_are_events_without_attributes() -> None:
    empty = pa.RecordBatch.from_struct_array(pa.array([{}, {}], pa.struct([])))
    assert holding("oracle", [parse_condition("true")]).match(arrow_events(empty)).to_lists() == [[0], [0]]


def test_a_batch_is_encoded_again_when_the_vocabulary_has_changed() -> None:
    matcher = holding("propagation-wp", [parse_condition("a = 'x'")])
    batch = arrow_events(pa.table({"a": ["x", "y"], "b": [1, 2]}))
    assert matcher.match(batch).to_lists() == [[0], []]
    matcher.add(ConjunctionBatch.of([(1, to_dnf(parse_condition("b = 2 or a = 'y'")))]))
    assert matcher.match(batch).to_lists() == [[0], [1]]
    assert Oracle().match(batch).to_lists() == [[], []]
