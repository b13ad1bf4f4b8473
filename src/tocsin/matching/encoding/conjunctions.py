"""Conjunctions, CNF expressions and the lists in them as arrays of encoded predicates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tocsin.language.normal.predicates import rewrite
from tocsin.language.template.binding import bind_predicate
from tocsin.language.template.template import constant_at
from tocsin.matching.batches import ClauseGroup, ConjunctionBatch, ConjunctionGroup, IdArray
from tocsin.matching.encoding.codes import EXACT, FIELD_BITS, FIELDS, OPS, Field, Keys, Op, keys_of_numbers
from tocsin.matching.encoding.vocabulary import Encoded, Vocabulary
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.terms import Attribute, Parameter, subterms
from tocsin.structures.array_types import Int64s

_FEW: Final = 2  # rows up to which encoding by column is not worth it
_REWRITTEN: Final = (Operator.LIKE, Operator.NOT_LIKE)  # to other operators, depending on the constant
_NOTHING: Final = np.empty(0, dtype=np.int64)
_COMPARED: Final = (Op.EQ, Op.NE, Op.LT, Op.LE, Op.GT, Op.GE, Op.BETWEEN, Op.NOT_BETWEEN)


class EncodedConjunctions(NamedTuple):
    """The predicates of conjunction i are those from `offsets[i]` to `offsets[i + 1]`."""

    ids: IdArray  # int64[conjunctions] the subscription of each
    offsets: Keys  # int64[conjunctions + 1]
    tags: Keys  # int64[predicates] operator and field
    lows: Keys  # int64[predicates]
    highs: Keys  # int64[predicates]


class EncodedClauses(NamedTuple):
    """The clauses of CNF expression i are those from `offsets[i]` to `offsets[i + 1]`.

    The predicates of clause c are those from `bounds[c]` to `bounds[c + 1]`.
    """

    ids: IdArray  # int64[expressions] the subscription of each
    offsets: Keys  # int64[expressions + 1]
    bounds: Keys  # int64[clauses + 1]
    tags: Keys  # int64[predicates] operator and field
    lows: Keys  # int64[predicates]
    highs: Keys  # int64[predicates]


class EncodedLists(NamedTuple):
    """The members of list `which[q]` are those from `starts[which[q]]` to `starts[which[q] + 1]`."""

    which: Keys  # int64[predicates], -1 where a predicate has no list
    starts: Keys  # int64[lists + 1]
    fields: Keys  # int64[members]
    keys: Keys  # int64[members]


def encode_conjunctions(batch: ConjunctionBatch, vocabulary: Vocabulary) -> EncodedConjunctions:
    """Return a batch's conjunctions as arrays; their names and strings are interned, but not retained."""
    return _encode_groups(batch.groups, vocabulary)


def encode_clauses(batch: ConjunctionBatch, vocabulary: Vocabulary) -> EncodedClauses:
    """Return a batch's CNF expressions as arrays; their names and strings are interned, but not retained."""
    # In the order in which groups are encoded, so that clauses and predicates are in the same order.
    groups = sorted(batch.clauses, key=_is_small)
    flat = _encode_groups([_flattened(group) for group in groups], vocabulary)
    rows = [len(group.ids) for group in groups]
    offsets = _summed(np.repeat([len(group.shape) for group in groups], rows))
    sizes = [np.tile([len(c) for c in group.shape], count) for group, count in zip(groups, rows, strict=True)]
    bounds = _summed(np.concatenate(sizes) if sizes else ())
    return EncodedClauses(flat.ids, offsets, bounds, flat.tags, flat.lows, flat.highs)


def encode_lists(vocabulary: Vocabulary, tags: Keys, lows: Keys) -> EncodedLists:
    """Return the lists of `in` and `not in` in encoded predicates; predicates may share a list."""
    ops = tags >> FIELD_BITS
    in_lists = np.flatnonzero((ops == Op.IN) | (ops == Op.NOT_IN))
    which = np.full(len(tags), -1, dtype=np.int64)
    if not len(in_lists):
        return EncodedLists(which, _summed(()), _NOTHING, _NOTHING)
    codes, which[in_lists] = np.unique(lows[in_lists], return_inverse=True)
    members = [vocabulary.members(code) for code in codes.tolist()]
    fields = np.concatenate([_NOTHING, *(fields for fields, _ in members)])
    keys = np.concatenate([_NOTHING, *(keys for _, keys in members)])
    return EncodedLists(which, _summed([len(keys) for _, keys in members]), fields, keys)


def _flattened(group: ClauseGroup) -> ConjunctionGroup:
    """Return a group's predicates as if each row were one conjunction; their layout is the same."""
    return ConjunctionGroup(tuple(p for clause in group.shape for p in clause), group.ids, group.columns)


def _summed(sizes: Sequence[int] | Int64s) -> Keys:
    """Return the offsets of consecutive ranges of these sizes."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


def _is_small(group: ConjunctionGroup | ClauseGroup) -> bool:
    return len(group.ids) <= _FEW


def _encode_groups(groups: Iterable[ConjunctionGroup], vocabulary: Vocabulary) -> EncodedConjunctions:
    """Return conjunctions as arrays, the groups of many rows before the small ones.

    Large groups are encoded by column. The rows of small groups are collected first, since there may be very many.
    """
    parts: list[EncodedConjunctions] = []
    ids: list[int] = []
    sizes: list[int] = []
    flat: list[Encoded] = []
    known: dict[Predicate, Encoded] = {}  # predicates repeat often
    for group in groups:
        if _is_small(group):
            for id_, conjunction in group:
                ids.append(id_)
                sizes.append(len(conjunction))
                for predicate in conjunction:
                    encoded = known.get(predicate)
                    if encoded is None:
                        encoded = known[predicate] = _encode(predicate, vocabulary)
                    flat.append(encoded)
        else:
            parts.append(_encode_group(group, vocabulary))
    if ids:
        parts.append(_joined(np.array(ids, dtype=np.int64), sizes, flat))
    return parts[0] if len(parts) == 1 else _concatenated(parts)


def _joined(ids: IdArray, sizes: list[int], flat: list[Encoded]) -> EncodedConjunctions:
    offsets = np.array([0, *accumulate(sizes)], dtype=np.int64)
    columns = zip(*flat, strict=True) if flat else ((), (), ())
    return EncodedConjunctions(ids, offsets, *(np.array(column, dtype=np.int64) for column in columns))


def _concatenated(parts: list[EncodedConjunctions]) -> EncodedConjunctions:
    """Return these batches as one."""
    if not parts:
        return EncodedConjunctions(_NOTHING, np.zeros(1, dtype=np.int64), _NOTHING, _NOTHING, _NOTHING)
    offsets = _summed(np.concatenate([np.diff(part.offsets) for part in parts]))
    ids, tags, lows, highs = (
        np.concatenate([getattr(part, name) for part in parts]) for name in ("ids", "tags", "lows", "highs")
    )
    return EncodedConjunctions(ids, offsets, tags, lows, highs)


def _encode_group(group: ConjunctionGroup, vocabulary: Vocabulary) -> EncodedConjunctions:
    """Return the encoding of conjunctions that differ in their constants only, column by column."""
    rows, width = len(group.ids), len(group.shape)
    table = np.empty((3, rows, width), dtype=np.int64)
    for position, predicate in enumerate(group.shape):
        table[:, :, position] = _encode_column(predicate, group, vocabulary)
    offsets = np.arange(0, rows * width + 1, max(width, 1), dtype=np.int64)[: rows + 1]
    if not width:
        offsets = np.zeros(rows + 1, dtype=np.int64)
    # A read-only array would compile a second version of the kernels.
    ids = np.require(group.ids, dtype=np.int64, requirements=["C", "W"])
    return EncodedConjunctions(ids, offsets, *(np.ascontiguousarray(part.reshape(-1)) for part in table))


def _encode_column(predicate: Predicate, group: ConjunctionGroup, vocabulary: Vocabulary) -> Int64s:
    """Return the tags, lows and highs of one predicate of the shape in every row."""
    names = [operand.name for operand in predicate.operands if type(operand) is Parameter]
    rows = len(group.ids)
    op = OPS.get(predicate.operator)
    parameters = _parameters(predicate)
    if not parameters:
        return np.repeat(np.array(vocabulary.encode(predicate), dtype=np.int64), rows).reshape(3, rows)
    columns = [group.columns[name] for name in names]
    if op in _COMPARED and type(predicate.subject) is Attribute and len(names) == len(predicate.operands):
        base = vocabulary.names.code(predicate.subject.path) * FIELDS
        if all(is_exact_column(column) for column in columns):
            keys = [keys_of_numbers(column.astype(np.float64)) for column in columns]
            tag = (op << FIELD_BITS) | (base + Field.NUMBER)
            return np.stack([np.full(rows, tag, dtype=np.int64), keys[0], keys[-1]])
        if op in (Op.EQ, Op.NE) and set(map(type, columns[0].tolist())) == {str}:
            code = vocabulary.symbols.code
            symbols = np.fromiter(map(code, columns[0].tolist()), dtype=np.int64, count=rows)
            tag = (op << FIELD_BITS) | (base + Field.STRING)
            return np.stack([np.full(rows, tag, dtype=np.int64), symbols, symbols])
    if op is None and predicate.operator not in _REWRITTEN and type(predicate.subject) is Attribute and names:
        encoded = vocabulary.encode_tests(predicate.subject.path, predicate.operator, columns[0].tolist())
        if encoded is not None:
            return encoded
    table = np.empty((rows, 3), dtype=np.int64)
    for row in range(rows):
        values: dict[str, Any] = {name: constant_at(group.columns[name], row) for name in parameters}
        table[row] = _encode(bind_predicate(predicate, values), vocabulary)
    return table.T


def _encode(predicate: Predicate, vocabulary: Vocabulary) -> Encoded:
    """Encode a predicate over constants after constant folding."""
    folded = rewrite(predicate)
    return vocabulary.encode(folded if isinstance(folded, Predicate) else predicate)


def is_exact_column(column: NDArray[Any]) -> bool:
    """Tell whether a float equals every number of a column."""
    if column.dtype.kind == "f":
        return True
    if column.dtype.kind not in "iu":
        return False
    return not len(column) or (int(column.max()) <= EXACT and int(column.min()) >= -EXACT)


def _parameters(predicate: Predicate) -> set[str]:
    terms = (predicate.subject, *predicate.operands)
    return {inner.name for term in terms for inner in subterms(term) if isinstance(inner, Parameter)}
