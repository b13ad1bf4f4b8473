from __future__ import annotations

import math
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from tests.strategies import TEXTS, TIMES, conditions, crowded, events, predicates, values
from tocsin.language import Template, parse_condition, to_cnf, to_dnf
from tocsin.language.normal import Cnf, Dnf
from tocsin.language.normal.predicates import rewrite
from tocsin.language.semantics import truth
from tocsin.matching import ConjunctionBatch, EventBatch
from tocsin.matching.batches import Clauses
from tocsin.matching.encoding.codes import (
    FIELD_BITS,
    FIELDS,
    Field,
    Keys,
    Op,
    field_of,
    is_exact,
    key_of,
    key_of_number,
    keys_of_numbers,
    neighbours,
    number_of,
    string_key_bounds,
)
from tocsin.matching.encoding.conjunctions import (
    EncodedClauses,
    EncodedConjunctions,
    encode_clauses,
    encode_conjunctions,
)
from tocsin.matching.encoding.events import EncodedEvents, encode_events
from tocsin.matching.encoding.vocabulary import Encoded, Vocabulary
from tocsin.model import Attribute, Condition, Conjunction, Event, Operator, Predicate, Value, literal

HUGEST = int(np.finfo(np.float64).max)

floats = st.floats(allow_nan=False)
integers = st.one_of(
    st.integers(-(2**53), 2**53),
    st.integers(-(2**70), 2**70),
    st.integers(-(10**320), 10**320),
    st.builds(
        lambda power, offset, sign: sign * (2**power + offset),
        st.integers(50, 1030),
        st.integers(-2, 2),
        st.sampled_from([1, -1]),
    ),
    st.sampled_from([HUGEST, HUGEST + 1, -HUGEST, -HUGEST - 1]),
)
numbers = st.one_of(floats, integers)
texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
    st.text(st.sampled_from("a\0\x01z\x7f\x80ÿ\u0800\uffff\U0010ffff"), max_size=9),
    st.sampled_from(TEXTS),
)
times = st.datetimes(timezones=st.just(UTC))


def order_of(number: float) -> tuple[int, int]:
    """Return the two keys at or between which a number lies."""
    if is_exact(number):
        return (key_of_number(float(number)),) * 2
    assert isinstance(number, int)
    return neighbours(number)


# keys


@given(floats, floats)
def test_keys_keep_the_order_and_equality_of_floats(one: float, other: float) -> None:
    assert (key_of_number(one) < key_of_number(other)) is (one < other)
    assert (key_of_number(one) == key_of_number(other)) is (one == other)


@given(st.lists(floats))
def test_keys_by_the_column_equal_the_keys_of_single_floats(column: list[float]) -> None:
    assert keys_of_numbers(np.array(column, dtype=np.float64)).tolist() == list(map(key_of_number, column))


@given(floats)
def test_a_float_is_read_back_from_its_key(number: float) -> None:
    assert number_of(key_of_number(number)) == number


@given(st.floats(allow_nan=False, max_value=HUGEST))
def test_neighbouring_floats_have_neighbouring_keys(number: float) -> None:
    above = math.nextafter(number, math.inf)
    apart = key_of_number(above) - key_of_number(number)
    # Zero is one number with two representations, and the key of the other one is never given.
    assert apart == (2 if above == 0 else 1)


def test_zero_has_one_key_and_infinity_lies_beyond_every_float() -> None:
    assert key_of_number(-0.0) == key_of_number(0.0) == key_of_number(0) == 0
    assert keys_of_numbers(np.array([-0.0, 0.0])).tolist() == [0, 0]
    assert key_of_number(math.inf) == key_of_number(HUGEST) + 1
    assert key_of_number(-math.inf) == key_of_number(-HUGEST) - 1


@given(numbers)
def test_a_number_is_exact_if_some_float_equals_it(number: float) -> None:
    try:
        equal = float(number) == number
    except OverflowError:
        equal = False
    assert is_exact(number) is equal
    assert field_of(number) is (Field.NUMBER if equal else Field.BIG)
    assert key_of(number) == (key_of_number(float(number)) if equal else None)


@given(integers)
def test_an_integer_that_no_float_equals_lies_between_two_neighbours(number: int) -> None:
    assume(not is_exact(number))
    low, high = neighbours(number)
    assert high == low + 1
    assert number_of(low) < number < number_of(high)


@given(numbers, numbers)
def test_order_keys_compare_any_number_with_any_float(one: float, other: float) -> None:
    assume(is_exact(other))
    (low, high), key = order_of(one), key_of_number(float(other))
    assert (low < key) is (one < other)
    assert (high <= key) is (one <= other)
    assert (high > key) is (one > other)
    assert (low >= key) is (one >= other)


@given(texts, texts)
def test_text_order_brackets_a_string_among_strings(one: str, other: str) -> None:
    (low, high), (key, same) = string_key_bounds(one), string_key_bounds(other)
    assert high - low == (len(one.encode()) > 7)
    if one < other:
        assert low <= key
        assert high <= same
    if key == same:  # a short constant: the keys tell all there is to tell
        assert (low < key) is (one < other)
        assert (high <= key) is (one <= other)
        assert (high > key) is (one > other)
        assert (low >= key) is (one >= other)
        assert (low == high == key) is (one == other)


@given(texts)
def test_text_order_fits_into_64_bits(text: str) -> None:
    assert all(-(2**63) <= key < 2**63 - 1 for key in string_key_bounds(text))


@given(st.one_of(st.booleans(), times), st.one_of(st.booleans(), times))
def test_keys_keep_the_order_of_booleans_and_timestamps(one: Any, other: Any) -> None:
    assume(type(one) is type(other))
    first, second = key_of(one), key_of(other)
    assert first is not None
    assert second is not None
    assert (first < second) is (one < other)
    assert (first == second) is (one == other)


def test_a_string_has_no_key_but_a_code() -> None:
    assert key_of("x") is None
    assert field_of("x") is Field.STRING
    assert field_of(True) is Field.BOOLEAN
    assert field_of(datetime(2026, 1, 1, tzinfo=UTC)) is Field.TIMESTAMP


# predicates

constants: st.SearchStrategy[Value] = st.one_of(
    values, st.floats(allow_nan=False, allow_infinity=False), integers, texts, times
)
some_predicates = st.one_of(predicates(), predicates(literals=constants.map(literal)))


def normalised(predicate: Predicate) -> Predicate:
    """Return a predicate as a normal form would hold it; one that is settled stays as it is."""
    rewritten = rewrite(predicate)
    return rewritten if isinstance(rewritten, Predicate) else predicate


def tags_and_lows(encoded: list[Encoded]) -> tuple[Keys, Keys]:
    table = np.array(encoded, dtype=np.int64).reshape(-1, 3)
    return table[:, 0].copy(), table[:, 1].copy()


def assert_empty(vocabulary: Vocabulary) -> None:
    assert len(vocabulary.names) == len(vocabulary.symbols) == len(vocabulary.predicates) == 0
    assert len(vocabulary.patterns) == len(vocabulary.tests) == len(vocabulary.tests.attributes) == 0
    assert vocabulary.ordered_texts == 0
    assert not any(vocabulary.is_timed(attribute) for attribute in range(vocabulary.names.top))
    assert not vocabulary._members


@given(st.lists(some_predicates.map(normalised), max_size=5))
def test_a_predicate_is_decoded_as_it_was_encoded(several: list[Predicate]) -> None:
    vocabulary = Vocabulary()
    encoded = [vocabulary.encode(predicate) for predicate in several]
    assert [vocabulary.decode(*each) for each in encoded] == several
    assert len(set(encoded)) == len(set(several))
    assert [vocabulary.encode(predicate) for predicate in several] == encoded


@given(st.lists(some_predicates.map(normalised), max_size=5, unique=True), st.data())
def test_released_predicates_leave_the_vocabulary_empty(
    several: list[Predicate], data: st.DataObject
) -> None:
    vocabulary = Vocabulary()
    encoded = [vocabulary.encode(predicate) for predicate in several]
    vocabulary.retain(*tags_and_lows(encoded))
    vocabulary.retain(*tags_and_lows(encoded))
    vocabulary.release(*tags_and_lows(encoded))
    going = data.draw(st.permutations(range(len(several))))
    for done, which in enumerate(going, 1):
        vocabulary.release(*tags_and_lows([encoded[which]]))
        left = [encoded[i] for i in going[done:]]
        assert [vocabulary.decode(*each) for each in left] == [several[i] for i in going[done:]]
    assert_empty(vocabulary)


def test_the_members_of_a_list_are_stored_once_also_if_vocabularies_are_joined() -> None:
    vocabulary = Vocabulary()
    encoded = vocabulary.encode(
        Predicate(Attribute("a"), Operator.IN, (literal("x"), literal("y"), literal(TIMES[0])))
    )
    vocabulary.retain(*tags_and_lows([encoded] * 3))
    other = vocabulary.part(*tags_and_lows([encoded] * 2))
    vocabulary.merge(other)
    assert vocabulary.timed == {vocabulary.names.codes["a"]: 1}
    for _ in range(4):
        vocabulary.release(*tags_and_lows([encoded]))
        assert set(vocabulary.symbols.codes) == {"x", "y"}
    vocabulary.release(*tags_and_lows([encoded]))
    assert_empty(vocabulary)


def test_equal_constants_are_one_predicate_and_kinds_are_not() -> None:
    vocabulary = Vocabulary()
    texts = ["a = 1", "a = 1.0", "a = true", "a = '1'", f"a = {2**53}", f"a = {2**53 + 1}"]
    encoded = [vocabulary.encode(_predicate(text)) for text in texts]
    assert encoded[0] == encoded[1]
    assert len(set(encoded)) == len(texts) - 1


@pytest.mark.parametrize(
    "text",
    [
        "a starts with b",
        "a + 1 > b",
        "a > b",
        "a + 1 > 2",
        "a between 1 and 'x'",
        "a not in (1, 'x')",
        f"a > {2**53 + 1}",
        "a < 'eight by'",
    ],
)
def test_predicates_that_arrays_cannot_decide_are_residual(text: str) -> None:
    vocabulary = Vocabulary()
    encoded = vocabulary.encode(_predicate(text))
    assert encoded.tag >> FIELD_BITS == Op.RESIDUAL
    assert vocabulary.decode(*encoded) == _predicate(text)
    assert len(vocabulary.names) == 0


def _predicate(text: str) -> Predicate:
    predicate = parse_condition(text)
    assert isinstance(predicate, Predicate)
    return predicate


# versions


def hold(vocabulary: Vocabulary, text: str) -> tuple[Keys, Keys]:
    held = tags_and_lows([vocabulary.encode(_predicate(text))])
    vocabulary.retain(*held)
    return held


@pytest.mark.parametrize(
    "text",
    [
        "new = 1",
        "a = 'new'",
        "a in (1, 'new')",
        f"a = {2**60 + 1}",
        "a < 'x'",
        "a > timestamp '2026-01-01T00:00:00Z'",
        "a in (timestamp '2026-01-01T00:00:00Z', 1)",
        "a starts with 'x'",
        "a !~ 'x'",
    ],
)
def test_the_version_changes_when_an_event_might_be_encoded_otherwise(text: str) -> None:
    vocabulary = Vocabulary()
    hold(vocabulary, "a = 1")
    before = vocabulary.version
    held = hold(vocabulary, text)
    during = vocabulary.version
    vocabulary.release(*held)
    assert before != during != vocabulary.version


def test_the_version_changes_when_another_attribute_is_compared_with_timestamps() -> None:
    vocabulary = Vocabulary()
    for text in ("a = 1", "b = 1"):
        hold(vocabulary, text)
    first = hold(vocabulary, "a > timestamp '2026-01-01T00:00:00Z'")
    batch = EventBatch.of([Event("e", {"a": "2027-01-01T00:00:00Z", "b": "2027-01-01T00:00:00Z"})])
    before = encode_events(batch, vocabulary)
    vocabulary.release(*first)
    hold(vocabulary, "b > timestamp '2026-01-01T00:00:00Z'")
    after = encode_events(batch, vocabulary)
    assert [[int(field) % FIELDS for field in each.fields] for each in (before, after)] == [
        [Field.STRING, Field.TIMESTAMP, Field.STRING],
        [Field.STRING, Field.STRING, Field.TIMESTAMP],
    ]


def test_a_test_of_one_attribute_is_not_evaluated_for_another_until_it_is_stored_there() -> None:
    vocabulary = Vocabulary()
    for text in ("a starts with 'x'", "b = 1", "b contains 'z'"):
        hold(vocabulary, text)
    batch = EventBatch.of([Event("e", {"a": "xy", "b": "xy"}), Event("f", {"b": 3, "a": "y"})])
    a, b = (vocabulary.names.codes[name] * FIELDS for name in "ab")
    starts = vocabulary.encode(_predicate("a starts with 'x'")).low

    def texts() -> list[list[tuple[int, int]]]:
        found = encode_events(batch, vocabulary)
        both = list(zip(found.fields.tolist(), found.keys.tolist(), strict=True))
        ends = found.offsets.tolist()
        return [
            [pair for pair in both[begin:end] if pair[0] % FIELDS == Field.TEXT]
            for begin, end in pairwise(ends)
        ]

    assert texts() == [
        [(a + Field.TEXT, starts), (a + Field.TEXT, -1), (b + Field.TEXT, -1)],
        [(a + Field.TEXT, -1)],
    ]
    hold(vocabulary, "b starts with 'x'")
    assert texts()[0][2:] == [(b + Field.TEXT, starts), (b + Field.TEXT, -1)]


def test_the_version_stays_when_events_are_encoded_as_before() -> None:
    vocabulary = Vocabulary()
    hold(vocabulary, "a = 'x'")
    hold(vocabulary, "a starts with 'x'")
    before = vocabulary.version
    for text in ("a = 1", "a > 2.5", "a != 'x'", "a is present", "a = true", "a not starts with 'x'"):
        vocabulary.release(*hold(vocabulary, text))
    assert vocabulary.version == before


def test_two_vocabularies_never_have_one_version() -> None:
    assert Vocabulary().version != Vocabulary().version


# conjunctions


def decoded(encoded: EncodedConjunctions, vocabulary: Vocabulary) -> list[tuple[int, Conjunction]]:
    """Return the conjunctions that were encoded, each with its id."""
    found = []
    table = list(zip(encoded.tags.tolist(), encoded.lows.tolist(), encoded.highs.tolist(), strict=True))
    assert len(table) == encoded.offsets[-1]
    for row, id_ in enumerate(encoded.ids.tolist()):
        inside = table[encoded.offsets[row] : encoded.offsets[row + 1]]
        found.append((id_, tuple(normalised(vocabulary.decode(*each)) for each in inside)))
    return sorted(found, key=lambda pair: pair[0])


@given(st.lists(st.one_of(conditions(), crowded), max_size=3))
def test_conjunctions_are_decoded_as_they_were_given(several: list[Condition]) -> None:
    vocabulary = Vocabulary()
    batch = ConjunctionBatch.of(enumerate(map(to_dnf, several)))
    found = decoded(encode_conjunctions(batch, vocabulary), vocabulary)
    assert found == [(id_, tuple(map(normalised, conjunction))) for id_, conjunction in batch]


finite = st.one_of(st.integers(-3, 9), st.sampled_from([0.5, 2.0, 1e300, 2**53, 2**53 + 1, 2**70]))
cells: list[st.SearchStrategy[Value]] = [
    st.integers(-3, 9),
    st.sampled_from([0.5, -0.0, 2.0, 2.5]),
    st.sampled_from([2**53 - 1, 2**53, 2**53 + 1, 2**62]),
    finite,
    st.sampled_from(TEXTS),
    st.sampled_from(TIMES),
    st.booleans(),
    st.one_of(finite, st.sampled_from(TEXTS), st.booleans(), st.sampled_from(TIMES)),
]
TEMPLATES = [
    "a = :x and b != :y",
    "a < :x and b >= :y and a is present",
    "a between :x and :y",
    "a not between :x and :y or b = 3",
    "a between :x and :x and c between 1 and :y",
    "a in :many and b not in :many and c > :x",
    "a in (:x, :y, 7) and b = 'fixed'",
    "a = b and c = :x or a > b and c = :y",
]


@st.composite
def rows(draw: st.DrawFn) -> dict[str, list[Any]]:
    """Columns of values; the values of a column may be of one kind, which is the fast path, or of several."""
    size = draw(st.integers(1, 5))
    columns: dict[str, list[Any]] = {
        name: draw(st.lists(draw(st.sampled_from(cells)), min_size=size, max_size=size)) for name in "xy"
    }
    many = st.lists(draw(st.sampled_from(cells)), max_size=3)
    columns["many"] = draw(st.lists(many, min_size=size, max_size=size))
    return columns


@given(st.sampled_from(TEMPLATES), rows())
def test_a_group_encoded_by_the_column_equals_its_rows_encoded_one_by_one(
    text: str, columns: dict[str, list[Any]]
) -> None:
    bound = Template(text).bind_many(columns)
    group = ConjunctionBatch.of_rows(np.arange(len(bound), dtype=np.int64), bound)
    singles = ConjunctionBatch.of((id_, Dnf((conjunction,))) for id_, conjunction in group)
    by_column, by_row = Vocabulary(), Vocabulary()
    found = decoded(encode_conjunctions(group, by_column), by_column)
    assert found == decoded(encode_conjunctions(singles, by_row), by_row)


def test_a_group_of_patterns_is_encoded_by_their_meanings() -> None:
    bound = Template("name like :n").bind_many({"n": ["abc", "a%", "a_c"]})
    vocabulary = Vocabulary()
    encoded = encode_conjunctions(ConjunctionBatch.of_rows(np.arange(3), bound), vocabulary)
    assert [tag >> FIELD_BITS for tag in encoded.tags.tolist()] == [Op.EQ, Op.EQ, Op.EQ]
    assert [tag % FIELDS for tag in encoded.tags.tolist()] == [Field.STRING, Field.TEXT, Field.TEXT]
    assert decoded(encoded, vocabulary) == [
        (row, (_predicate(text),))
        for row, text in enumerate(["name = 'abc'", "name starts with 'a'", "name like 'a_c'"])
    ]


def decoded_clauses(encoded: EncodedClauses, vocabulary: Vocabulary) -> list[tuple[int, Clauses]]:
    """Return CNFs, decoded from the arrays."""
    predicates = [normalised(vocabulary.decode(*one)) for one in np.stack(encoded[3:], axis=1).tolist()]
    bounds, offsets = encoded.bounds.tolist(), encoded.offsets.tolist()
    clauses = [tuple(predicates[begin:end]) for begin, end in pairwise(bounds)]
    forms = [tuple(clauses[begin:end]) for begin, end in pairwise(offsets)]
    return list(zip(encoded.ids.tolist(), forms, strict=True))


@given(st.lists(st.one_of(conditions(), crowded), max_size=4))
def test_clause_forms_are_decoded_as_they_were_given(several: list[Condition]) -> None:
    vocabulary = Vocabulary()
    batch = ConjunctionBatch.of(enumerate(map(to_cnf, several)))
    assert decoded_clauses(encode_clauses(batch, vocabulary), vocabulary) == [
        (id_, tuple(tuple(map(normalised, clause)) for clause in form))
        for group in batch.clauses
        for id_, form in group
    ]


CLAUSE_TEMPLATES = [
    "(a = :x or b != :y) and (c = 1 or a > :x)",
    "(a in :many or b not in :many) and c > :x",
    "(a between :x and :y or b is missing) and (a = b or c = :y) and d is present",
]


@given(st.sampled_from(CLAUSE_TEMPLATES), rows())
def test_clauses_encoded_by_the_column_equal_their_rows_encoded_one_by_one(
    text: str, columns: dict[str, list[Any]]
) -> None:
    bound = Template(text).bind_many(columns, clauses=True)
    assert isinstance(bound.normal, Cnf)
    group = ConjunctionBatch.of_rows(np.arange(len(bound), dtype=np.int64), bound)
    singles = ConjunctionBatch.of((id_, Cnf(form)) for each in group.clauses for id_, form in each)
    by_column, by_row = Vocabulary(), Vocabulary()
    found = decoded_clauses(encode_clauses(group, by_column), by_column)
    assert found == decoded_clauses(encode_clauses(singles, by_row), by_row)


def test_clauses_of_groups_of_any_size_lie_where_their_predicates_do() -> None:
    few = ConjunctionBatch.of(
        [(7, to_cnf(parse_condition("(a = 1 or b = 2) and c = 3 and (d = 4 or e = 5 or f = 6)")))]
    )
    rows = Template("(a = :x or b = 2) and (c = :x or d = 4)").bind_many({"x": [1, 2, 3]}, clauses=True)
    many = ConjunctionBatch.of_rows(np.array([1, 2, 3]), rows)
    vocabulary = Vocabulary()
    encoded = encode_clauses(ConjunctionBatch((), (*few.clauses, *many.clauses)), vocabulary)
    assert encoded.ids.tolist() == [1, 2, 3, 7]
    assert encoded.offsets.tolist() == [0, 2, 4, 6, 9]
    assert np.diff(encoded.bounds).tolist() == [2, 2, 2, 2, 2, 2, 1, 2, 3]
    found = dict(decoded_clauses(encoded, vocabulary))
    assert found[7] == next(iter(few.clauses[0]))[1]
    assert found[2] == tuple(tuple(map(_predicate, c)) for c in (("a = 2", "b = 2"), ("c = 2", "d = 4")))


def test_no_clause_forms_are_encoded_too() -> None:
    nothing = encode_clauses(ConjunctionBatch.of([(1, to_dnf(parse_condition("a = 1")))]), Vocabulary())
    assert [part.tolist() for part in nothing] == [[], [0], [0], [], [], []]
    assert {part.dtype for part in nothing} == {np.dtype(np.int64)}


def test_empty_conjunctions_and_no_conjunctions_are_encoded_too() -> None:
    vocabulary = Vocabulary()
    nothing = encode_conjunctions(ConjunctionBatch.of([]), vocabulary)
    assert (nothing.ids.tolist(), nothing.offsets.tolist(), nothing.tags.tolist()) == ([], [0], [])
    ids = np.array([4, 5], dtype=np.int64)
    for batch in (
        ConjunctionBatch.of([(4, Dnf(((),))), (5, Dnf(((),)))]),
        ConjunctionBatch.of_shapes(ids, Dnf(((),)), {}),
    ):
        encoded = encode_conjunctions(batch, vocabulary)
        assert (encoded.ids.tolist(), encoded.offsets.tolist()) == ([4, 5], [0, 0, 0])


# events


def evaluated(vocabulary: Vocabulary, encoded: Encoded, events: EncodedEvents, event: int) -> bool:
    """Return, from integers alone, whether an event satisfies a predicate that is not residual."""
    op, wanted = Op(encoded.tag >> FIELD_BITS), encoded.tag & ((1 << FIELD_BITS) - 1)
    fields = events.fields[events.offsets[event] : events.offsets[event + 1]]
    keys = events.keys[events.offsets[event] : events.offsets[event + 1]]
    if op is Op.MISSING:
        return wanted // FIELDS not in fields // FIELDS
    if wanted % FIELDS == Field.TEXT:  # the only field with several pairs
        passed = keys[fields == wanted].tolist()
        return bool(passed) and (encoded.low in passed) is (op is Op.EQ)
    for place in range(events.offsets[event], events.offsets[event + 1]):
        field, key = int(events.fields[place]), int(events.keys[place])
        low, high = int(events.lows[place]), int(events.highs[place])
        # An integer that no float equals has a place in the order of numbers all the same.
        ordered = field + Field.NUMBER - Field.BIG if field % FIELDS == Field.BIG else field
        if op is Op.PRESENT:
            holds = field // FIELDS == wanted // FIELDS
        elif op is Op.EQ:
            holds = field == wanted and key == encoded.low
        elif op is Op.IN:
            holds = (field, key) in _members(vocabulary, encoded.low)
        elif op is Op.NE:
            holds = ordered == wanted and not (field == wanted and key == encoded.low)
        elif op is Op.NOT_IN:
            holds = ordered == wanted and (field, key) not in _members(vocabulary, encoded.low)
        else:
            holds = ordered == wanted and _in_order(op, encoded, low, high)
        if holds:
            return True
    return False


def _members(vocabulary: Vocabulary, code: int) -> set[tuple[int, int]]:
    fields, keys = vocabulary.members(code)
    return set(zip(fields.tolist(), keys.tolist(), strict=True))


def _in_order(op: Op, encoded: Encoded, low: int, high: int) -> bool:
    return {
        Op.LT: low < encoded.low,
        Op.LE: high <= encoded.low,
        Op.GT: high > encoded.low,
        Op.GE: low >= encoded.low,
        Op.BETWEEN: low >= encoded.low and high <= encoded.high,
        Op.NOT_BETWEEN: low < encoded.low or high > encoded.high,
    }[op]


any_events = st.builds(
    Event,
    id=st.just("e"),
    attributes=st.dictionaries(
        st.sampled_from(["a", "b", "c"]), st.one_of(constants, st.sampled_from([math.inf, -math.inf]))
    ),
)


@given(
    st.lists(some_predicates.map(normalised), min_size=1, max_size=6),
    st.lists(st.one_of(events, any_events), min_size=1, max_size=4),
)
def test_encoded_predicates_agree_with_their_meaning(several: list[Predicate], events: list[Event]) -> None:
    vocabulary = Vocabulary()
    encoded = [vocabulary.encode(predicate) for predicate in several]
    vocabulary.retain(*tags_and_lows(encoded))
    found = encode_events(EventBatch.of(events), vocabulary)
    for predicate, each in zip(several, encoded, strict=True):
        if each.tag >> FIELD_BITS != Op.RESIDUAL:
            wanted = [truth(predicate, event.attributes) is True for event in events]
            assert [evaluated(vocabulary, each, found, place) for place in range(len(events))] == wanted


def test_attributes_that_no_subscription_names_are_left_out() -> None:
    vocabulary = Vocabulary()
    hold(vocabulary, "a = 1")
    found = encode_events(EventBatch.of([Event("e", {"b": 1, "a": 2, "c": "x"}), Event("f", {})]), vocabulary)
    assert found.offsets.tolist() == [0, 1, 1]
    assert found.keys.tolist() == [key_of_number(2)]


def test_a_string_that_no_subscription_holds_equals_nothing() -> None:
    vocabulary = Vocabulary()
    hold(vocabulary, "a = 'x'")
    batch = EventBatch.of([Event("e", {"a": "y"}), Event("f", {"a": 2**60 + 1})])
    assert all(key < 0 for key in encode_events(batch, vocabulary).keys.tolist())


def test_a_batch_is_encoded_once_for_each_version() -> None:
    vocabulary = Vocabulary()
    hold(vocabulary, "a = 1")
    batch = EventBatch.of([Event("e", {"a": 1})])
    first = encode_events(batch, vocabulary)
    assert encode_events(batch, vocabulary) is first
    hold(vocabulary, "b = 1")
    assert encode_events(batch, vocabulary) is not first
    assert encode_events(batch, Vocabulary()).offsets.tolist() == [0, 0]
