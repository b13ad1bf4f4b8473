"""Fingerprints of subscriptions: two with the same one ask the same, in whatever form they came, in every process.

A query is read as its outline, in which each constant is a gap, and the constants of the gaps. The rows of a template share the
outline, so that their fingerprints are computed by the column. Validity and witness option count, owner and weight do not.
"""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Sequence as AbstractSequence
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from tocsin.language.sequence_shapes import SequenceShape, ShapedSequence
from tocsin.language.template.columns import Column
from tocsin.language.template.roles import ParameterRole, roles_of
from tocsin.matching import IdArray
from tocsin.model import Query, Sequence
from tocsin.model.terms import Literal, Parameter, Span, SpanUnit
from tocsin.model.timestamps import microseconds
from tocsin.structures.array_types import UInt64s
from tocsin.subscriptions.queries import QueryStore, StoredTemplate
from tocsin.subscriptions.registry import SubscriptionRegistry

_FIRST: Final = np.uint64(0x9E3779B97F4A7C15)  # odd numbers whose bits look random
_SECOND: Final = np.uint64(0xD6E8FEB86659FD93)
_EXACT: Final = 2**53  # up to here every integer is a float
_OUTLINED: Final = {ParameterRole.LIKE, ParameterRole.MANY}  # roles in which a constant changes the outline


def fingerprints_of(registry: SubscriptionRegistry, queries: QueryStore, numbers: IdArray) -> UInt64s:
    """Return the fingerprint of each of these subscriptions."""
    found = np.zeros(len(numbers), dtype=np.uint64)
    codes = queries.template_codes(numbers)
    for code in np.unique(codes[codes >= 0]).tolist():
        positions = np.flatnonzero(codes == code)
        template = queries.template_rows(numbers[positions])
        assert template is not None  # noqa: S101 - the code says so
        if not any(roles & _OUTLINED for roles in roles_of(template.template.query).values()):
            found[positions] = _of_template(template)
        else:
            found[positions] = _of_each(list(map(queries.query, numbers[positions].tolist())))
    alone = np.flatnonzero(codes < 0)
    found[alone] = _of_each(queries.sources(numbers[alone]))
    for bound in (registry.valid_from, registry.valid_until, registry.is_dated.astype(np.int64)):
        found = _mixed(found, bound[numbers].view(np.uint64))
    return _mixed(found, np.isin(numbers, queries.with_full_witness()).astype(np.uint64))


class _Outline(Struct, frozen=True):
    text: str
    gaps: list[Any]  # constants and parameters, in the order of the gaps


def _outline(query: Query) -> _Outline:
    text: list[str] = []
    gaps: list[Any] = []
    _read(query, text, gaps)
    return _Outline("".join(text), gaps)


def _read(node: object, text: list[str], gaps: list[Any]) -> None:
    if isinstance(node, (Literal, Parameter)):
        text.append("?")
        gaps.append(node.value if isinstance(node, Literal) else node)
    elif isinstance(node, Span):
        text.append(f"{node.unit}?")
        gaps.append(node.amount)
    elif isinstance(node, Sequence) and isinstance(node.within, Parameter):
        _read(replace(node, within=None), text, gaps)
        text.append(f"{SpanUnit.TICKS}?")
        gaps.append(node.within)
    elif isinstance(node, Sequence) and node.within is not None:
        _read(replace(node, within=None), text, gaps)
        _read(node.within, text, gaps)
    elif isinstance(node, Struct):
        text.append(f"{type(node).__name__}(")
        for name in node.__struct_fields__:
            _read(getattr(node, name), text, gaps)
        text.append(")")
    elif isinstance(node, tuple):
        text.append("[")
        for part in node:
            _read(part, text, gaps)
        text.append("]")
    else:
        text.append(f"{str(node) if isinstance(node, str) else node!r},")


def _of_template(template: StoredTemplate) -> UInt64s:
    outline, columns = _outline(template.template.query), template.rows.columns
    size = len(template)
    gaps = [
        columns[gap.name] if isinstance(gap, Parameter) else _objects([gap] * size) for gap in outline.gaps
    ]
    return _of_columns(outline.text, gaps, size)


def _of_each(sources: AbstractSequence[Query | ShapedSequence | str]) -> UInt64s:
    """Return the fingerprints of queries one by one; those with one outline together."""
    found = np.zeros(len(sources), dtype=np.uint64)
    shapes: dict[SequenceShape, _Outline] = {}
    together: dict[str, tuple[list[int], list[list[Any]]]] = {}
    for position, source in enumerate(sources):
        if isinstance(source, str):
            found[position] = _digest("text", source)
            continue
        if isinstance(source, ShapedSequence):
            outline = shapes.get(source.shape)
            if outline is None:
                outline = shapes[source.shape] = _outline(source.shape.query)
            gaps = [
                source.constants[int(gap.name[1:])] if isinstance(gap, Parameter) else gap
                for gap in outline.gaps
            ]
        else:
            outline = _outline(source)
            gaps = outline.gaps
        positions, rows = together.setdefault(outline.text, ([], []))
        positions.append(position)
        rows.append(gaps)
    for text, (positions, rows) in together.items():
        columns = [_objects(column) for column in zip(*rows, strict=True)]
        found[positions] = _of_columns(text, columns, len(positions))
    return found


def _of_columns(text: str, columns: Iterable[Column], size: int) -> UInt64s:
    found = np.full(size, _digest("query", text), dtype=np.uint64)
    for column in columns:
        found = _mixed(found, _hashes(column))
    return found


def _hashes(column: Column) -> UInt64s:
    """Return a hash of each constant; numbers that are equal have the same."""
    if column.dtype.kind in "iuf":
        numbers = column.astype(np.float64) + 0.0  # -0.0 is 0.0
        found = numbers.view(np.uint64)
        if column.dtype.kind != "f":
            for position in np.flatnonzero(np.abs(numbers) >= _EXACT).tolist():
                found[position] = _hash(column.item(position))
        return found
    values = column.tolist()
    if set(map(type, values)) <= {int, float} and all(-_EXACT < value < _EXACT for value in values):
        return _hashes(np.array(values, dtype=np.float64))
    known: dict[Any, int] = {}
    hashes = []
    for value in values:
        key = type(value), value
        hashed = known.get(key)
        if hashed is None:
            hashed = _hash(value)
            if not isinstance(value, tuple):  # in which 1 and true would be one key
                known[key] = hashed
        hashes.append(hashed)
    return np.array(hashes, dtype=np.uint64)


def _hash(value: Any) -> int:
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if isinstance(value, float) or abs(value) < _EXACT or _is_float(value):
            return int((np.array([value], dtype=np.float64) + 0.0).view(np.uint64)[0])
        return _digest("integer", hex(value))
    if isinstance(value, str):
        return _digest("string", value)
    if isinstance(value, datetime):
        return _digest("time", str(microseconds(value)))
    if isinstance(value, tuple):
        return _digest("list", ",".join(str(_hash(one)) for one in value))
    return _digest(type(value).__name__, repr(value))


def _is_float(value: int) -> bool:
    try:
        return int(float(value)) == value
    except OverflowError:
        return False


def _digest(kind: str, text: str) -> int:
    data = f"{kind}:{text}".encode(errors="surrogatepass")
    return int.from_bytes(blake2b(data, digest_size=8).digest(), "little")


def _objects(values: AbstractSequence[Any]) -> Column:
    return np.fromiter(values, dtype=object, count=len(values))


def _mixed(one: UInt64s, other: UInt64s) -> UInt64s:
    """Return a hash of two hashes, in this order."""
    mixed = (one ^ (other + _FIRST)) * _SECOND
    mixed = (mixed ^ (mixed >> np.uint64(32))) * _FIRST
    return np.asarray(mixed ^ (mixed >> np.uint64(29)), dtype=np.uint64)
