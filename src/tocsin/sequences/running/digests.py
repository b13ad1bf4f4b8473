"""Digests of conditions and constants: places with equal digests are shared.

A digest is two numbers of 64 bits: two integers for a part that all rows of a template share, or else two arrays with a
number for each row. Digests are the same in every process, because snapshots name places by them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import Enum
from functools import lru_cache
from hashlib import blake2b
from typing import Any, Final, TypeAlias

import numpy as np
from msgspec import Struct
from msgspec.structs import astuple

from tocsin.language.normal import Cnf, Dnf
from tocsin.language.template.columns import Column
from tocsin.matching.encoding.codes import is_exact
from tocsin.matching.encoding.conjunctions import is_exact_column
from tocsin.model.conditions import Predicate
from tocsin.model.terms import Alternatives, Literal, Parameter, Term
from tocsin.model.values import Opaque
from tocsin.structures.array_types import Int64s, UInt64s

Word: TypeAlias = int | UInt64s
Digest: TypeAlias = tuple[Word, Word]

_FACTORS: Final = (0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93)
_STEPS: Final = (0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
_SHIFT: Final = 31
_MASK: Final = 2**64 - 1


@lru_cache(maxsize=1 << 12)  # most are of forms, and of what a form lacks
def digest_of(number: int) -> Digest:
    """Return the digest of one number, for all rows."""
    word = number & _MASK
    return _mix(word, 0), _mix(word, 1)


def combine(digests: Sequence[Digest]) -> Digest:
    """Return the digest of several digests in this order."""
    if all(type(digest[0]) is int for digest in digests):
        return _combine_integers(digests)
    lanes: list[Word] = []
    for lane in (0, 1):
        result: Word = len(digests)
        for digest in digests:
            result = _mix(_sum(_product(result, _FACTORS[1 - lane]), digest[lane]), lane)
        lanes.append(result)
    return lanes[0], lanes[1]


def _combine_integers(digests: Sequence[Digest]) -> Digest:
    """Return what `combine` does of digests that are the same for all rows, without a call for each step."""
    lanes = []
    for lane in (0, 1):
        result, factor, step = len(digests), _FACTORS[lane], _STEPS[lane]
        other = _FACTORS[1 - lane]
        for digest in digests:
            result = ((result * other & _MASK) + int(digest[lane]) & _MASK) * factor & _MASK
            result ^= result >> _SHIFT
            result = result * step & _MASK
            result ^= result >> _SHIFT
        lanes.append(result)
    return lanes[0], lanes[1]


def digest_of_parts(whole: object) -> Digest:
    """Return the digest of text, bytes, numbers, enumerations, and tuples and structs of these."""
    return _words(b"".join(_plain(whole)))


def digest_of_value(term: Literal | Parameter, columns: Mapping[str, Column]) -> Digest:
    """Return the digest of a constant or parameter; equal numbers have equal digests, whatever their type."""
    if isinstance(term, Literal):
        first, second = _words_of_value(term.value)
        return _mix(first, 0), _mix(second, 1)
    column = columns[term.name]
    if len(column) == 1 and column.dtype == np.object_:
        first, second = _words_of_value(column[0])
        return _mix(first, 0), _mix(second, 1)
    if is_exact_column(column):
        words = (column.astype(np.float64) + 0.0).view(np.uint64)
        return _mix(words, 0), _mix(words, 1)
    rows = _rows_of_words(column)
    return _mix(rows[:, 0], 0), _mix(rows[:, 1], 1)


def _rows_of_words(column: Column) -> UInt64s:
    """Return the two words of each value of a column; those of a repeated string are computed once."""
    values = column.tolist()
    if set(map(type, values)) != {str}:
        return np.array(list(map(_words_of_value, values)), dtype=np.uint64).reshape(-1, 2)
    known: dict[str, int] = {}
    positions = [known.setdefault(value, len(known)) for value in values]
    return np.array(list(map(_words_of_value, known)), dtype=np.uint64)[positions]


def digest_of_normal(normal: Dnf | Cnf, columns: Mapping[str, Column]) -> Digest:
    """Return the digest of a normal form; the order of its parts makes no difference."""
    is_dnf = isinstance(normal, Dnf)
    groups = normal.conjunctions if isinstance(normal, Dnf) else normal.clauses
    parts = [_combine_unordered([_predicate_digest(p, columns) for p in group]) for group in groups]
    return combine([digest_of(1 if is_dnf else 2), _combine_unordered(parts)])


def digest_rows(digest: Digest, rows: int) -> tuple[Int64s, Int64s]:
    """Return the two numbers of each row, as signed integers."""
    first, second = (np.full(rows, word, dtype=np.uint64).view(np.int64) for word in digest)
    return first, second


def _predicate_digest(predicate: Predicate, columns: Mapping[str, Column]) -> Digest:
    return _cached_digest(predicate) if not columns else _digest(predicate, columns)


@lru_cache(maxsize=1 << 14)  # templates repeat the same predicates
def _cached_digest(predicate: Predicate) -> Digest:
    return _digest(predicate, {})


def _digest(predicate: Predicate, columns: Mapping[str, Column]) -> Digest:
    parts = [_term_digest(operand, columns) for operand in predicate.operands]
    return combine(
        [_digest_of_name(predicate.operator.value), _term_digest(predicate.subject, columns), *parts]
    )


def _term_digest(term: Term, columns: Mapping[str, Column]) -> Digest:
    """Return the digest of a term; a parameter gives one digest per row."""
    if isinstance(term, (Literal, Parameter)):
        return digest_of_value(term, columns)
    if isinstance(term, Alternatives):
        return _combine_unordered([_predicate_digest(one, columns) for one in term.predicates])
    inner = [getattr(term, name) for name in ("left", "right", "term") if hasattr(term, name)]
    if not inner:
        return digest_of_parts(term)
    operator = getattr(term, "operator", "-")
    return combine([_digest_of_name(str(operator)), *(_term_digest(part, columns) for part in inner)])


@lru_cache(maxsize=1 << 8)
def _digest_of_name(name: str) -> Digest:
    return digest_of_parts(name)


def _combine_unordered(digests: list[Digest]) -> Digest:
    """Return a digest that does not depend on the order of `digests`."""
    lanes: list[Word] = []
    for lane in (0, 1):
        total: Word = len(digests)
        for digest in digests:
            total = _sum(total, digest[lane])
        lanes.append(_mix(total, lane))
    return lanes[0], lanes[1]


def _mix(word: Word, lane: int) -> Word:
    """Return the word with its bits mixed; each of the two lanes of a digest mixes differently."""
    word = _product(word, _FACTORS[lane])
    if isinstance(word, int):
        word ^= word >> _SHIFT
        word = word * _STEPS[lane] & _MASK
        return word ^ word >> _SHIFT
    word = (word ^ word >> np.uint64(_SHIFT)) * np.uint64(_STEPS[lane])
    return np.asarray(word ^ word >> np.uint64(_SHIFT))


def _product(word: Word, factor: int) -> Word:
    return word * factor & _MASK if isinstance(word, int) else word * np.uint64(factor)


def _sum(one: Word, other: Word) -> Word:
    if isinstance(one, int) and isinstance(other, int):
        return one + other & _MASK
    return np.asarray(_as_unsigned(one) + _as_unsigned(other))


def _as_unsigned(word: Word) -> Any:
    return np.uint64(word) if isinstance(word, int) else word


def _words_of_value(value: object) -> tuple[int, int]:
    """Return two words for a value; equal numbers have equal words."""
    if type(value) is float or (type(value) is int and is_exact(value)):
        bits: int = struct.unpack("<Q", struct.pack("<d", value + 0.0))[0]
        return bits, bits
    if isinstance(value, tuple):
        return _words(b"".join(struct.pack("<QQ", *_words_of_value(member)) for member in value))
    return _words(b"".join(_plain(value)))


def _words(data: bytes) -> tuple[int, int]:
    # Two strings with one digest would read each other's matches: only a hash that resists is safe from malice.
    first, second = struct.unpack("<QQ", blake2b(data, digest_size=16).digest())
    return first, second


def _plain(part: object) -> list[bytes]:
    """Return a part as bytes that differ from those of any part that is not equal to it."""
    if isinstance(part, Enum):
        return _plain(part.value)
    if isinstance(part, Struct):
        return [b"{", *_plain(type(part).__name__), *_plain(astuple(part))]
    if isinstance(part, (tuple, list)):
        return [b"(%d:" % len(part), *(piece for one in part for piece in _plain(one))]
    if isinstance(part, float):
        kind, data = b"n", (hex(int(part)) if part.is_integer() else part.hex()).encode()
    elif type(part) is int:
        kind, data = b"n", hex(part).encode()
    elif isinstance(part, str):
        kind, data = b"s", part.encode(errors="surrogatepass")
    elif isinstance(part, bytes):
        kind, data = b"b", part
    elif isinstance(part, datetime):
        kind, data = b"d", part.isoformat().encode()
    elif isinstance(part, Opaque):
        kind, data = b"o", part.type.encode()
    else:
        assert part is None or isinstance(part, bool)  # noqa: S101 - conditions and programs have no other parts
        kind, data = b"t", str(part).encode()
    return [kind, b"%d:" % len(data), data]
