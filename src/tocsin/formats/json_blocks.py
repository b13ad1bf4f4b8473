"""JSON lines in blocks: decoded into typed rows without a dictionary each, by the decoder of the row reader."""

from __future__ import annotations

from codecs import BOM_UTF8 as BOM
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto
from io import BytesIO
from itertools import groupby
from operator import attrgetter
from typing import IO, Annotated, Any, Final, TypeAlias, Union

import msgspec
import numpy as np
from msgspec import Meta, Struct

from tocsin.formats.column_blocks import ROW_SPECIFIC, BlockItem, ColumnBlock, LineBlocks, Lines, value_arrays
from tocsin.formats.opaque_columns import opaque_array
from tocsin.formats.records import NOT_JSON, decode_json, json_array, json_lines, json_record

_MOST_FIELDS: Final = 512  # of a shape; a record with more is read by itself
_MOST_LEVELS: Final = 16
_FEWEST_SEARCHED: Final = 128  # fields of a shape that are worth a look at their order
_MOST_LOOKED: Final = (
    90  # fields for each that is found; then a line takes as long by the column as by the row
)
_SAMPLE: Final = 1 << 13  # bytes of a block
_FEWEST_ROWS: Final = 16  # that are worth a block
_MOST_SKIPPED: Final = 63  # blocks that are read by the row before columns are tried again
_OPENING, _CLOSING, _RETURN = b"{}\r"

# Larger integers fail: they have no column.
_Wide: TypeAlias = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
_Scalar: TypeAlias = _Wide | float | str | bool | None


class _Leaf(Enum):
    NULL = auto()  # no record has had a value yet
    SCALAR = auto()
    ARRAY = auto()


_TYPES: Final[dict[_Leaf, Any]] = {_Leaf.NULL: None, _Leaf.SCALAR: _Scalar, _Leaf.ARRAY: list}
_OBJECTS: Final = 4096  # of an array that make a block
_RAW_OBJECTS: Final = msgspec.json.Decoder(list[msgspec.Raw]).decode
_Fields: TypeAlias = "dict[str, _Leaf | _Fields]"


def json_blocks(stream: IO[bytes]) -> Iterator[BlockItem]:
    """Yield the records of JSON lines in blocks; the records are those of `json_lines`."""
    shape = _Shape()
    skipped = to_skip = 0  # blocks that were read by the row since the last try, and how many are to be
    for first, text in LineBlocks(stream):
        if skipped < to_skip or shape.is_searched(text):
            skipped += 1
            yield from json_lines(BytesIO(text), first)
            continue
        alone = total = 0
        for item in _read(first, text.removeprefix(BOM) if first == 1 else text, shape):
            is_block = isinstance(item, ColumnBlock)
            alone += not is_block
            total += len(item) if is_block else 1
            yield item
        # Where most lines are not plain, as with names that vary without end, trying costs more than it gives.
        skipped, to_skip = 0, min(2 * to_skip + 1, _MOST_SKIPPED) if 2 * alone > total else 0


def json_array_blocks(stream: IO[bytes]) -> Iterator[BlockItem]:
    """Yield the objects of one array in blocks; the records, and their positions, are those of `json_array`."""
    text = stream.read().removeprefix(BOM)
    decoded = json_record(text)  # whether all of it is JSON is known before the first record
    if not isinstance(decoded, list) or any(type(one) is not dict for one in decoded):
        yield from json_array(text)
        return
    del decoded
    # Outside of strings, which hold no line break, one is as good as a blank.
    objects = [bytes(one).replace(b"\n", b" ") for one in _RAW_OBJECTS(text)]
    shape = _Shape()
    for begin in range(0, len(objects), _OBJECTS):
        part = b"\n".join(objects[begin : begin + _OBJECTS])
        if shape.is_searched(part):
            yield from json_lines(BytesIO(part), begin + 1)
        else:
            yield from _read(begin + 1, part, shape)


def _read(first: int, text: bytes, shape: _Shape) -> Iterator[BlockItem]:
    """Yield the records of some lines; the shape learns what is new in them."""
    whole = Lines(text)
    rows = _decode_whole(whole, shape)
    if rows is not None:
        yield _JsonBlock(rows, shape.compiled, whole, range(first, first + len(rows)))
        return
    lines = BytesIO(text).readlines()
    read = _decode_each(lines, shape)
    numbered = zip(range(first, first + len(lines)), lines, read, strict=True)
    for is_plain, run in groupby(
        (one for one in numbered if one[1] and not one[1].isspace()), key=lambda one: one[2] is not None
    ):
        found = list(run)
        if is_plain and len(found) >= _FEWEST_ROWS:
            rows = [row for *_, row in found]
            numbers = [number for number, *_ in found]
            yield _JsonBlock(rows, shape.compiled, [line for _, line, _ in found], numbers)
        else:
            for number, line, _ in found:
                yield from json_lines([BOM + line if number == 1 else line], number)


def _decode_whole(lines: Lines, shape: _Shape) -> list[Any] | None:
    """Return the rows of a block in which every line is an object of the known shape, else None."""
    # An object does not end at a `}` that `{` follows, and a string holds no line break: if each line begins and ends
    # with a brace, no object spans two lines, and one that shares its line makes the rows too many.
    bounds, characters = lines.bounds, np.frombuffer(lines.text, dtype=np.uint8)
    if not len(characters) or not shape.compiled.paths or (characters[bounds[:-1]] != _OPENING).any():
        return None
    before = characters[bounds[1:-1] - 2]
    if (before != _CLOSING).any():
        before = np.where(before == _RETURN, characters[bounds[1:-1] - 3], before)
        if (before != _CLOSING).any():
            return None
    try:
        rows: list[Any] = shape.compiled.decoder.decode_lines(lines.text)
    except NOT_JSON:
        return None
    return rows if len(rows) == len(lines) else None


def _decode_each(lines: list[bytes], shape: _Shape) -> list[Any]:
    """Return the row of each line, None for a line that is not plain; the shape learns from plain ones first."""
    before = shape.compiled
    read = [_decode_line(line, before) for line in lines]
    unknown = [
        line for line, row in zip(lines, read, strict=True) if row is None and line and not line.isspace()
    ]
    if not unknown or not shape.learn(unknown):
        return read
    return [_decode_line(line, shape.compiled) for line in lines]


def _decode_line(line: bytes, compiled: _CompiledShape) -> Any:
    try:
        return compiled.decoder.decode(line)
    except NOT_JSON:
        return None


class _CompiledShape(Struct, frozen=True):
    """The decoder of records of one shape, and where the values at a path are."""

    decoder: Any
    paths: dict[str, tuple[str, ...]]  # -> the names of the fields that lead to a scalar
    arrays: dict[str, tuple[str, ...]]  # -> the names of the fields that lead to an array


class _Shape:
    """The fields of all plain records that were seen, nested as they are."""

    def __init__(self) -> None:
        self._fields: _Fields = {}
        self._paths: set[str] = set()
        self.compiled = _compile(self._fields)

    def learn(self, lines: Sequence[bytes]) -> bool:
        """Add the fields of some lines, as far as they have a column, and return whether some are new."""
        is_new = False
        for line in lines:
            try:
                record = decode_json(line)
            except NOT_JSON:
                continue
            if isinstance(record, dict) and ROW_SPECIFIC.isdisjoint(record):
                is_new |= self._add(record, self._fields, "", 0)
        if is_new:
            self.compiled = _compile(self._fields)
        return is_new

    def is_searched(self, text: bytes) -> bool:
        """Tell whether the decoder would look long for the fields of these lines, so that dictionaries are quicker.

        The decoder looks for a field among those of the shape one after another, from the one that it found last. With
        hundreds of names in no order, that takes longer than all the rest.
        """
        count = len(self._fields)
        if count < _FEWEST_SEARCHED:
            return False
        places = {name: place for place, name in enumerate(self._fields)}
        looked = names = 0
        for line in text[:_SAMPLE].split(b"\n")[:-1]:
            try:
                record = decode_json(line)
            except NOT_JSON:
                continue
            last = -1
            for name in record if isinstance(record, dict) else ():
                place = places.get(name)
                names += 1
                looked += count if place is None else (place - last - 1) % count
                last = last if place is None else place
        return looked > _MOST_LOOKED * names

    def _add(self, record: Mapping[str, object], fields: _Fields, prefix: str, level: int) -> bool:
        """Add the fields of a record, and return whether some are new."""
        is_new = False
        for name, value in record.items():
            path = prefix + name if prefix else name
            known = fields.get(name)
            if known is None:
                if not self._has_room(path, name):
                    continue
                known = fields[name] = _Leaf.NULL
                is_new = True
            if known is _Leaf.NULL and value is not None and level < _MOST_LEVELS:
                is_new = True
                kind = _Leaf.ARRAY if isinstance(value, list) else _Leaf.SCALAR
                known = fields[name] = {} if isinstance(value, dict) else kind
            if isinstance(known, dict) and isinstance(value, dict):
                is_new |= self._add(value, known, f"{path}.", level + 1)
        return is_new

    def _has_room(self, path: str, name: str) -> bool:
        """Tell whether a field can be added, and count it; two that read alike would be given twice."""
        is_usual = name.isprintable() and "\\" not in name and '"' not in name
        if path in self._paths or len(self._paths) >= _MOST_FIELDS or not is_usual:
            return False
        self._paths.add(path)
        return True


def _compile(fields: _Fields) -> _CompiledShape:
    """Return the decoder of a shape."""
    paths: dict[str, tuple[str, ...]] = {}
    arrays: dict[str, tuple[str, ...]] = {}
    record = _struct(fields, "", (), paths, arrays)
    return _CompiledShape(msgspec.json.Decoder(record), paths, arrays)


def _struct(
    fields: _Fields,
    prefix: str,
    leading: tuple[str, ...],
    paths: dict[str, tuple[str, ...]],
    arrays: dict[str, tuple[str, ...]],
) -> type[Struct]:
    """Return the class of a record with these fields; where each path leads is added to `paths` and `arrays`."""
    members: list[tuple[str, Any, Any]] = []
    for number, (name, kind) in enumerate(fields.items()):
        path, to = prefix + name if prefix else name, (*leading, f"f{number}")
        if isinstance(kind, dict):
            inner: Any = _struct(kind, f"{path}.", to, paths, arrays)
        else:
            inner = _TYPES[kind]
            (arrays if kind is _Leaf.ARRAY else paths)[path] = to
        members.append((f"f{number}", Union[inner, None], None))  # noqa: UP007 - of types that are computed
    names = {f"f{number}": name for number, name in enumerate(fields)}
    return msgspec.defstruct("Record", members, rename=names, forbid_unknown_fields=True, gc=False)


class _JsonBlock(ColumnBlock):
    """The rows of lines, decoded; a line is decoded again where its record is asked for."""

    def __init__(
        self,
        rows: list[Any],
        compiled: _CompiledShape,
        raw: list[bytes] | Lines,
        lines: Sequence[int],
    ) -> None:
        super().__init__((*compiled.paths, *compiled.arrays), lines)
        self._rows = rows
        self._compiled = compiled
        self._raw = raw

    def leaves_at(self, path: str) -> Sequence[Any]:
        """Return the Arrow arrays with the values at a path."""
        if path in self._compiled.arrays:
            there = [one is not None for one in self._values(self._compiled.arrays[path])]
            return [opaque_array("list", np.array(there, dtype=np.bool_))] if any(there) else []
        fields = self._compiled.paths.get(path)
        return [] if fields is None else value_arrays(self._values(fields))

    def has_integers(self, path: str) -> bool:
        """Tell whether integers stand among the floats at a path."""
        return int in set(map(type, self._values(self._compiled.paths[path])))

    def record(self, row: int) -> Mapping[str, object]:
        """Return a record as the row reader gives it."""
        found: Mapping[str, object] = decode_json(self._raw[row])
        return found

    def opaque(self) -> Mapping[str, int]:
        """Return how many values cannot be compared, which are arrays, by path."""
        arrays = self._compiled.arrays
        counts = {path: sum(one is not None for one in self._values(to)) for path, to in arrays.items()}
        return Counter({path: count for path, count in counts.items() if count})

    def _values(self, fields: tuple[str, ...]) -> list[Any]:
        first, *rest = fields
        values = list(map(attrgetter(first), self._rows))
        for field in rest:
            values = [None if one is None else getattr(one, field) for one in values]
        return values
