"""Hashes of ids and values that are the same in every process and on every machine.

Values that the language calls equal have equal hashes: 1 and 1.0 do, and a large integer and a float that equals it
exactly; `true` and 1 are of different kinds. An absent value and one that cannot be compared have none.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, TypeAlias
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.formats.opaque_columns import is_opaque
from tocsin.matching.batches import EventBatch
from tocsin.matching.encoding.arrow import ArrowEvents
from tocsin.matching.encoding.columns import distinct_texts, in_microseconds, is_text, plain_values
from tocsin.model.timestamps import microseconds
from tocsin.model.values import Opaque, read_value
from tocsin.structures.array_types import Bools

Hashes: TypeAlias = NDArray[np.uint64]

_WIDE: Final = 2**63
_LOW: Final = 2**64 - 1
_WHOLE, _FLOAT, _HUGE, _BOOLEAN, _TEXT, _MOMENT = (np.uint64(tag << 59) for tag in range(1, 7))
_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)  # the odd numbers of SplitMix64
_SECOND: Final = np.uint64(0x94D049BB133111EB)
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)


class HashedColumn(NamedTuple):
    """The hash of each event's value, and which events have one."""

    hashes: Hashes
    present: Bools


def mixed(numbers: Hashes) -> Hashes:
    """Return 64 bits for each number, each of which depends on all bits of the number (SplitMix64)."""
    state = numbers + _STEP
    state = (state ^ (state >> np.uint64(30))) * _FIRST
    state = (state ^ (state >> np.uint64(27))) * _SECOND
    found: Hashes = state ^ (state >> np.uint64(31))
    return found


def text_hashes(texts: Iterable[str]) -> Hashes:
    """Return the hash of each text.

    >>> (text_hashes(["IBM", "XOM"]) % 4).tolist()
    [0, 3]
    """
    return mixed(np.array([_text(text) for text in texts], dtype=np.uint64) ^ _TEXT)


def value_hashes(values: Iterable[object]) -> HashedColumn:
    """Return the hashes of values as events have them; None is absent.

    >>> hashes, present = value_hashes([1, 1.0, True, None, 2**70, float(2**70)])
    >>> bool(hashes[0] == hashes[1]), bool(hashes[0] == hashes[2]), bool(hashes[4] == hashes[5]), present.tolist()
    (True, False, True, [True, True, True, False, True, True])
    """
    words = [_word(value) for value in values]
    present = np.array([word is not None for word in words], dtype=np.bool_)
    plain = np.array([0 if word is None else word for word in words], dtype=np.uint64)
    return HashedColumn(mixed(plain), present)


def event_hashes(events: EventBatch, path: str) -> HashedColumn:
    """Return the hashes of the values that events have at a path."""
    if not isinstance(events, ArrowEvents):
        return value_hashes(events.attributes(row).get(path) for row in range(len(events)))
    parts = [_leaf(leaf) for leaf in events.leaves_at(path)]
    if not parts:
        return HashedColumn(np.zeros(len(events), dtype=np.uint64), np.zeros(len(events), dtype=np.bool_))
    if len(parts) == 1:
        return parts[0]
    return HashedColumn(*map(np.concatenate, zip(*parts, strict=True)))


def constant_hashes(column: NDArray[Any]) -> HashedColumn:
    """Return the hashes of a template's constants."""
    if column.dtype.kind == "f":
        return _floats(column.astype(np.float64), np.ones(len(column), dtype=np.bool_))
    if column.dtype.kind == "i":
        present = np.ones(len(column), dtype=np.bool_)
        return HashedColumn(mixed(column.astype(np.int64).view(np.uint64) ^ _WHOLE), present)
    return value_hashes(column.tolist())


def repeated_hash(value: object, count: int) -> HashedColumn:
    """Return the hash of a value so many times."""
    hashes, present = value_hashes([value])
    return HashedColumn(
        np.full(count, hashes[0], dtype=np.uint64), np.full(count, present[0], dtype=np.bool_)
    )


def combined(columns: Sequence[HashedColumn]) -> HashedColumn:
    """Return the hashes of several columns together; an event has one if it has a value in each."""
    hashes, present = columns[0]
    for more, there in columns[1:]:
        hashes, present = mixed(hashes ^ (more + _STEP)), present & there
    return HashedColumn(hashes, present)


def shards_of(hashes: Hashes, shards: int) -> NDArray[np.int32]:
    """Return the shard of each hash."""
    return (hashes % np.uint64(shards)).astype(np.int32)


def _text(text: str) -> int:
    encoded = text.encode()
    return crc32(encoded) | (len(encoded) & 0xFFFF) << 32


def _word(value: object) -> int | None:
    """Return 64 bits that equal values share; None if the value equals nothing."""
    kind = type(value)
    if kind is str:
        return _text(value) ^ int(_TEXT)  # type: ignore[arg-type]
    if kind is int:
        return _integer(value)  # type: ignore[arg-type]
    if kind is float:
        return _number(value)  # type: ignore[arg-type]
    if value is None or isinstance(value, Opaque):
        return None
    if isinstance(value, bool):
        return int(value) ^ int(_BOOLEAN)
    if isinstance(value, datetime):
        return (microseconds(value) & _LOW) ^ int(_MOMENT)
    read = read_value(value)  # a value of NumPy, among a template's constants
    return None if read is None or type(read) is kind else _word(read)


def _integer(value: int) -> int:
    if -_WIDE <= value < _WIDE:
        return (value & _LOW) ^ int(_WHOLE)
    try:
        nearest = float(value)
    except OverflowError:
        nearest = math.nan
    if nearest == value:
        return _bits(nearest)
    return crc32(value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)) ^ int(_HUGE)


def _number(value: float) -> int | None:
    if value != value:  # noqa: PLR0124 - NaN alone differs from itself
        return None
    if value.is_integer() and -_WIDE <= value < _WIDE:
        return _integer(int(value))
    return _bits(value)


def _bits(value: float) -> int:
    word: int = struct.unpack("<Q", struct.pack("<d", value))[0]
    return word ^ int(_FLOAT)


def _leaf(leaf: Any) -> HashedColumn:
    """Return the hashes of an Arrow array."""
    kind = leaf.type
    if is_opaque(kind) or leaf.null_count == len(leaf):
        return HashedColumn(np.zeros(len(leaf), dtype=np.uint64), np.zeros(len(leaf), dtype=np.bool_))
    if pa.types.is_dictionary(kind) and not is_text(kind.value_type):
        return _leaf(leaf.dictionary_decode())
    if pa.types.is_dictionary(kind) or is_text(kind):
        texts, positions, valid = distinct_texts(leaf)
        return HashedColumn(text_hashes(text or "" for text in texts)[positions], _mask(valid, leaf))
    if pa.types.is_uint64(kind):
        return value_hashes(leaf.to_pylist())
    numbers, valid = plain_values(leaf)
    present = _mask(valid, leaf)
    if pa.types.is_boolean(kind):
        return HashedColumn(mixed(numbers.astype(np.uint64) ^ _BOOLEAN), present)
    if pa.types.is_temporal(kind):
        moments = np.ascontiguousarray(in_microseconds(numbers, kind), dtype=np.int64)
        return HashedColumn(mixed(moments.view(np.uint64) ^ _MOMENT), present)
    if pa.types.is_floating(kind):
        return _floats(np.ascontiguousarray(numbers, dtype=np.float64), present)
    return HashedColumn(mixed(numbers.astype(np.int64).view(np.uint64) ^ _WHOLE), present)


def _floats(numbers: NDArray[np.float64], present: Bools) -> HashedColumn:
    """Return the hashes of floats; whole ones have those of integers."""
    is_whole = (np.floor(numbers) == numbers) & (numbers >= -float(_WIDE)) & (numbers < float(_WIDE))
    whole = np.where(is_whole, numbers, 0.0).astype(np.int64).view(np.uint64) ^ _WHOLE
    words = np.where(is_whole, whole, numbers.view(np.uint64) ^ _FLOAT)
    return HashedColumn(mixed(words), present & ~np.isnan(numbers))


def _mask(valid: Bools | None, leaf: Any) -> Bools:
    return np.ones(len(leaf), dtype=np.bool_) if valid is None else valid
