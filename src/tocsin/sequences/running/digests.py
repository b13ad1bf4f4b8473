"""Digests of conditions and constants, a row each: equal ones have equal digests, by which places are shared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tocsin.language.normal import Cnf, Dnf
from tocsin.language.template.columns import Column
from tocsin.model.conditions import Predicate
from tocsin.model.terms import Literal, Parameter, Term
from tocsin.model.values import Value, kind_of

__all__ = ["Digest", "combined", "digest_of_normal", "digest_of_value", "plain"]

Digest: TypeAlias = NDArray[np.uint64]
"""Two numbers a row."""

_FACTORS: Final = np.array([0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93], dtype=np.uint64)
_STEPS: Final = np.array([0xBF58476D1CE4E5B9, 0x94D049BB133111EB], dtype=np.uint64)
_SHIFT: Final = np.uint64(31)
_WORD: Final = 2**64
_EXACT: Final = 2**53


def plain(number: int) -> Digest:
    """Return the digest of one number, for all rows."""
    return _mixed(np.array([[number % _WORD, number % _WORD]], dtype=np.uint64))


def combined(*digests: Digest) -> Digest:
    """Return the digest of several things in this order."""
    result = plain(len(digests))
    for digest in digests:
        result = _mixed(result * _FACTORS + digest)
    return result


def digest_of_value(term: Literal | Parameter | int, columns: Mapping[str, Column]) -> Digest:
    """Return the digest of a constant, which a parameter may give; of numbers, their value alone counts."""
    if isinstance(term, int):
        return plain(term)
    if isinstance(term, Literal):
        return _of_words([_word(term.value)])
    column = columns[term.name]
    if column.dtype.kind == "f" or (column.dtype.kind in "iu" and _is_exact(column)):
        words = (column.astype(np.float64) + 0.0).view(np.uint64)
        return _mixed(np.stack([words, words], axis=1))
    return _of_words([_word(value) for value in column.tolist()])


def digest_of_normal(normal: Dnf | Cnf, columns: Mapping[str, Column]) -> Digest:
    """Return the digest of a normal form; the order of its parts does not count."""
    groups = normal.conjunctions if isinstance(normal, Dnf) else normal.clauses
    return combined(
        plain(1 if isinstance(normal, Dnf) else 2),
        _unordered([_unordered([_of_predicate(p, columns) for p in group]) for group in groups]),
    )


def _of_predicate(predicate: Predicate, columns: Mapping[str, Column]) -> Digest:
    parts = [_of_term(operand, columns) for operand in predicate.operands]
    return combined(plain(hash(predicate.operator.value)), _of_term(predicate.subject, columns), *parts)


def _of_term(term: Term, columns: Mapping[str, Column]) -> Digest:
    if isinstance(term, (Literal, Parameter)):
        return digest_of_value(term, columns)
    inner = [getattr(term, name) for name in ("left", "right", "term") if hasattr(term, name)]
    if not inner:
        return plain(hash(term))
    operator = getattr(term, "operator", "-")
    return combined(plain(hash(str(operator))), *(_of_term(part, columns) for part in inner))


def _unordered(digests: list[Digest]) -> Digest:
    total = plain(len(digests))
    for digest in digests:
        total = total + digest
    return _mixed(total)


def _mixed(digest: Digest) -> Digest:
    result = digest * _FACTORS
    result ^= result >> _SHIFT
    result = result * _STEPS
    result ^= result >> _SHIFT
    return np.asarray(result)


def _of_words(words: list[int]) -> Digest:
    row = np.array(words, dtype=np.uint64)
    return _mixed(np.stack([row, row], axis=1))


def _word(value: Value | tuple[Any, ...]) -> int:
    # Python's hash of an integer is its remainder, the same for many: their digits are hashed instead.
    if isinstance(value, tuple):
        return hash(tuple(str(_word(member)) for member in value)) % _WORD
    if isinstance(value, float) or (type(value) is int and -_EXACT <= value <= _EXACT):
        return int(np.array([value + 0.0], dtype=np.float64).view(np.uint64)[0])
    return hash((kind_of(value), str(value) if type(value) is int else value)) % _WORD


def _is_exact(column: Column) -> bool:
    return not len(column) or (int(column.max()) <= _EXACT and int(column.min()) >= -_EXACT)
