"""Arrow columns as pairs: one column of keys for each field, then all of them by event.

A *leaf* is a column of values: a struct is not a leaf, but its fields are, under their dotted paths. A leaf is turned into keys
as a whole; only distinct strings, and distinct integers that no float equals, are looked up one by one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.formats.arrow_cells import plain_values as plain_values  # noqa: PLC0414 - for those who read columns
from tocsin.formats.arrow_cells import valid_cells, validity_bits
from tocsin.formats.column_blocks import integer_array
from tocsin.formats.opaque_columns import is_opaque
from tocsin.matching.encoding.codes import EXACT, FIELDS, Field, Keys, keys_of_numbers, string_key_bounds
from tocsin.matching.encoding.events import EncodedEvents, TextPairs
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.timestamps import microseconds, parse_timestamp

Mask: TypeAlias = NDArray[np.bool_]

_DAY: Final = 86_400_000_000
_MOST_DIGITS: Final = 22  # 10**22 is the largest power of ten that is a float
_PER_SECOND: Final = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
# Python's datetimes range from the year 1 to 9999. A day less at either end, and no time zone leads beyond.
_FIRST_SECOND: Final = -62_135_596_800 + 86_400
_LAST_SECOND: Final = 253_402_300_799 - 86_400


class FieldColumn(NamedTuple):
    """A pair for every event, or for those that `valid` marks; the keys of others are undefined."""

    field: int
    keys: Keys  # int64[events]
    valid: Mask | None = None  # [events]
    orders: tuple[Keys, Keys] | None = None  # lows and highs, where they are not the keys
    # Distinct strings to test, and each event's
    words: tuple[Sequence[str | None], NDArray[np.intp]] | None = None


def leaf_paths(schema: Iterable[Any]) -> list[str] | None:
    """Return the paths of the leaves, or None if rows of this schema must be read one by one."""
    fields = list(schema)
    paths: list[str] = []
    for field in fields:
        inner = leaf_paths(field.type) if pa.types.is_struct(field.type) else None
        if inner is not None:
            paths += [f"{field.name}.{path}" for path in inner]
        elif _is_leaf(field.type):
            paths.append(field.name)
        else:
            return None
    repeated = len({field.name for field in fields}) < len(fields) or len(set(paths)) < len(paths)
    return None if repeated else paths


def leaves(batch: Any) -> Iterator[Any]:
    """Yield the arrays of a record batch's leaves, in the order of their paths."""
    for array in batch.columns:
        yield from _leaves_of(array)


def doubtful(leaf: Any) -> Mask | None:
    """Return the cells whose rows must be read to know whether they are valid; None if there are none.

    Raise `ValueError` if any cell may be such.
    """
    kind = leaf.type
    if pa.types.is_dictionary(kind):
        leaf.validate(full=True)
        return None if is_text(kind.value_type) else doubtful(leaf.dictionary_decode())
    if is_text(kind):
        leaf.validate(full=True)
        return None
    if not pa.types.is_temporal(kind):
        return None
    ticks, valid = plain_values(leaf)
    if pa.types.is_date32(kind):
        return _outside(ticks, valid, _FIRST_SECOND // 86_400 + 1, _LAST_SECOND // 86_400)
    if kind.tz is not None:
        _check_zone(kind)
    if kind.unit == "ns":
        if (ticks % 1_000).any():
            raise ValueError("a timestamp lies between two microseconds")
        return None
    per = _PER_SECOND[kind.unit]
    return _outside(ticks, valid, _FIRST_SECOND * per, _LAST_SECOND * per)


def field_columns(leaf: Any, attribute: int, vocabulary: Vocabulary) -> Iterator[FieldColumn]:
    """Yield a leaf's values by field."""
    kind, base = leaf.type, attribute * FIELDS
    if pa.types.is_null(kind) or leaf.null_count == len(leaf):
        return
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        yield from field_columns(leaf.dictionary_decode(), attribute, vocabulary)
    elif pa.types.is_dictionary(kind) or is_text(kind):
        words, positions, valid = distinct_texts(leaf)
        yield from _texts(words, positions, valid, attribute, vocabulary)
    elif is_opaque(kind):
        yield FieldColumn(base + Field.OPAQUE, np.zeros(len(leaf), dtype=np.int64), valid_cells(leaf))
    elif pa.types.is_boolean(kind):
        values, valid = plain_values(leaf)
        yield FieldColumn(base + Field.BOOLEAN, values.astype(np.int64), valid)
    elif pa.types.is_temporal(kind):
        ticks, valid = plain_values(leaf)
        yield FieldColumn(base + Field.TIMESTAMP, in_microseconds(ticks, kind), valid)
    elif pa.types.is_floating(kind):
        values, valid = plain_values(leaf)
        yield FieldColumn(base + Field.NUMBER, keys_of_numbers(values.astype(np.float64)), valid)
    else:
        values, valid = plain_values(leaf)
        yield from _integers(values, valid, base, vocabulary.symbols.codes)


def constant_columns(text: str, count: int, attribute: int, vocabulary: Vocabulary) -> Iterator[FieldColumn]:
    """Return the columns of a string that all events share."""
    return _texts([text], np.zeros(count, dtype=np.intp), None, attribute, vocabulary)


def pairs(
    count: int, columns: Sequence[FieldColumn], kept: Mask | None, vocabulary: Vocabulary
) -> EncodedEvents:
    """Return the columns of `count` events as pairs by event; events that `kept` does not mark have none."""
    events = _by_event(count, columns, kept)
    tested = TextPairs(vocabulary)
    for column in columns:
        if column.words is not None:
            words, which = column.words
            positions = np.flatnonzero(events.fields == column.field)
            if kept is not None or column.valid is not None:
                valid = (
                    kept if column.valid is None else column.valid if kept is None else kept & column.valid
                )
                which = which[valid]
            tested.add_column(column.field // FIELDS, [word or "" for word in words], which, positions)
    return tested.spliced_into(events)


def _by_event(count: int, columns: Sequence[FieldColumn], kept: Mask | None) -> EncodedEvents:
    """Return the pairs of `columns` sorted by event; a missing value has no pair."""
    keys = _rows_of([column.keys for column in columns], count)
    lows = highs = keys
    if any(column.orders is not None for column in columns):
        lows = _rows_of([column.orders[0] if column.orders else column.keys for column in columns], count)
        highs = _rows_of([column.orders[1] if column.orders else column.keys for column in columns], count)
    fields = np.tile(np.array([column.field for column in columns], dtype=np.int32), count)
    if kept is None and all(column.valid is None for column in columns):
        return EncodedEvents(np.arange(count + 1, dtype=np.int64) * len(columns), fields, keys, lows, highs)
    valid = np.ones((count, len(columns)), dtype=np.bool_)
    for j, column in enumerate(columns):
        if column.valid is not None:
            valid[:, j] = column.valid
    if kept is not None:
        valid &= kept[:, np.newaxis]
    offsets = np.zeros(count + 1, dtype=np.int64)
    np.cumsum(np.count_nonzero(valid, axis=1), out=offsets[1:])
    positions = np.flatnonzero(valid)
    taken = keys[positions]
    if lows is keys:
        return EncodedEvents(offsets, fields[positions], taken, taken, taken)
    return EncodedEvents(offsets, fields[positions], taken, lows[positions], highs[positions])


def _is_leaf(kind: Any) -> bool:
    """Tell whether an Arrow type has a columnar encoding."""
    if pa.types.is_dictionary(kind):
        words = kind.value_type
        return not (pa.types.is_dictionary(words) or pa.types.is_decimal(words)) and _is_leaf(words)
    return (
        is_text(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_floating(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_timestamp(kind)
        or pa.types.is_date32(kind)
        or pa.types.is_null(kind)
        or pa.types.is_decimal(kind)
        or is_opaque(kind)
    )


def is_text(kind: Any) -> bool:
    """Tell whether a column of this type holds strings."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _leaves_of(array: Any) -> Iterator[Any]:
    if pa.types.is_struct(array.type):
        for inner in array.flatten():  # a field is null where its struct is
            yield from _leaves_of(inner)
    elif pa.types.is_decimal(array.type):
        yield decimal_numbers(array)
    else:
        yield array


def has_decimals(fields: Iterable[Any]) -> bool:
    """Tell whether some field has decimals."""
    return any(
        has_decimals(field.type) if pa.types.is_struct(field.type) else pa.types.is_decimal(field.type)
        for field in fields
    )


def decimal_numbers(array: Any) -> Any:
    """Return decimals as integers or floats; raise `ValueError` if some float would not be the nearest.

    A quotient of two numbers that are floats is rounded once, as Python's `float` of the decimal is.
    """
    kind = array.type
    if not pa.types.is_decimal128(kind) or not 0 <= kind.scale <= _MOST_DIGITS:
        raise ValueError(f"numbers of {kind} are read one by one")
    stored = array.buffers()[1]
    if stored is None:
        return pa.nulls(len(array), pa.int64())
    words = np.frombuffer(stored, dtype=np.int64).reshape(-1, 2)[array.offset : array.offset + len(array)]
    valid = valid_cells(array)
    low, high = words[:, 0], words[:, 1]
    if valid is not None:
        low, high = np.where(valid, low, 0), np.where(valid, high, 0)
    if (high != low >> 63).any() or np.abs(low).max(initial=0) > EXACT:
        raise ValueError("a decimal has more digits than a float")
    bits = None if valid is None else validity_bits(valid)
    if not kind.scale:
        return pa.Array.from_buffers(pa.int64(), len(array), [bits, pa.py_buffer(np.ascontiguousarray(low))])
    floats = low.astype(np.float64) / 10.0**kind.scale
    return pa.Array.from_buffers(pa.float64(), len(array), [bits, pa.py_buffer(floats)])


def _check_zone(kind: Any) -> None:
    try:
        zone = pa.lib.string_to_tzinfo(kind.tz)
    except LookupError:
        zone = None
    if zone is None:
        raise ValueError(f"there is no time zone {kind.tz}")


def _outside(ticks: NDArray[Any], valid: Mask | None, first: int, last: int) -> Mask | None:
    return _if_any((ticks < first) | (ticks > last), valid)


def _if_any(mask: Mask, valid: Mask | None) -> Mask | None:
    found = mask if valid is None else mask & valid
    return found if found.any() else None


def _strings(leaf: Any) -> list[str | None]:
    """Return a column of strings as a list."""
    large = leaf.cast(pa.large_string())
    _, bounds, data = large.buffers()
    if large.null_count or not len(large) or data is None:
        found: list[str | None] = large.to_pylist()
        return found
    ends = np.frombuffer(bounds, dtype=np.int64, count=len(large) + 1, offset=8 * large.offset)
    first = int(ends[0])
    text = data.slice(first, int(ends[-1]) - first).to_pybytes()
    if not text.isascii():
        return large.to_pylist()  # type: ignore[no-any-return]
    ascii_text, cuts = text.decode("ascii"), (ends - first).tolist()
    return [ascii_text[begin:end] for begin, end in pairwise(cuts)]


def in_microseconds(ticks: NDArray[Any], kind: Any) -> Keys:
    """Return the times of a column in microseconds."""
    if pa.types.is_date32(kind):
        return ticks.astype(np.int64) * _DAY
    if kind.unit == "ns":
        return ticks // 1_000
    return ticks * (1_000_000 // _PER_SECOND[kind.unit])


def _integers(
    values: NDArray[Any], valid: Mask | None, base: int, codes: Mapping[Any, int]
) -> Iterator[FieldColumn]:
    """Yield a column of the integers that a double represents, and one of the larger integers by their symbols."""
    numbers = values.astype(np.float64)
    keys = keys_of_numbers(numbers)
    if values.dtype.itemsize < 8 or (values.max() <= EXACT and values.min() >= -EXACT):
        yield FieldColumn(base + Field.NUMBER, keys, valid)
        return
    limit = float(2 ** (64 if values.dtype.kind == "u" else 63))
    beyond = numbers >= limit  # rounded up to what no such integer reaches
    back = np.where(beyond, 0.0, numbers).astype(values.dtype)
    big = beyond | (back != values)
    yield FieldColumn(base + Field.NUMBER, keys, ~big if valid is None else valid & ~big)
    if big.any():
        distinct, positions = np.unique(values[big], return_inverse=True)
        symbols = np.full(len(values), -1, dtype=np.int64)
        symbols[big] = np.array([codes.get(n, -1) for n in distinct.tolist()], dtype=np.int64)[positions]
        lows = keys - (beyond | (back > values))
        yield FieldColumn(base + Field.BIG, symbols, big if valid is None else valid & big, (lows, lows + 1))


def distinct_texts(leaf: Any) -> tuple[list[str | None], NDArray[np.intp], Mask | None]:
    """Return a leaf's distinct strings, the index of each cell's string, and which cells are valid."""
    if pa.types.is_string_view(leaf.type):
        leaf = leaf.cast(pa.large_string())
    encoded = leaf if pa.types.is_dictionary(leaf.type) else leaf.dictionary_encode()
    indices, valid = plain_values(encoded.indices)
    positions = indices.astype(np.intp)
    words = encoded.dictionary
    if pa.types.is_string_view(words.type):
        words = words.cast(pa.large_string())
    if len(words) > len(leaf):  # few of many: only those are looked at
        used, positions = np.unique(positions, return_inverse=True)
        words = words.take(integer_array(used.astype(np.int64)))
    if words.null_count:
        named = valid_cells(words)
        assert named is not None  # noqa: S101 - some are null
        valid = named[positions] if valid is None else valid & named[positions]
    return _strings(words), positions, valid


def _texts(
    words: Sequence[str | None],
    positions: NDArray[np.intp],
    valid: Mask | None,
    attribute: int,
    vocabulary: Vocabulary,
) -> Iterator[FieldColumn]:
    """Yield a column of strings, and one of timestamps if the attribute is compared with timestamps."""
    base, codes = attribute * FIELDS, vocabulary.symbols.codes
    known = np.array([-1 if word is None else codes.get(word, -1) for word in words], dtype=np.int64)
    orders = None
    if vocabulary.ordered_texts > 0:
        both = np.array([string_key_bounds(word or "") for word in words], dtype=np.int64)
        orders = both[:, 0][positions], both[:, 1][positions]
    tested = (words, positions) if attribute in vocabulary.tests.attributes else None
    yield FieldColumn(base + Field.STRING, known[positions], valid, orders, tested)
    if vocabulary.is_timed(attribute):
        times = [None if word is None else parse_timestamp(word) for word in words]
        timed = np.array([time is not None for time in times], dtype=np.bool_)[positions]
        if timed.any():
            ticks = np.array([0 if time is None else microseconds(time) for time in times], dtype=np.int64)
            yield FieldColumn(
                base + Field.TIMESTAMP, ticks[positions], timed if valid is None else valid & timed
            )


def _rows_of(columns: Sequence[Keys], count: int) -> Keys:
    """Return the columns' values by row, one row after another."""
    rows = np.empty((count, len(columns)), dtype=np.int64)
    for j, column in enumerate(columns):
        rows[:, j] = column
    return rows.reshape(-1)
