"""Columns of constants, ids and texts as the members of an archive, and back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.language.template.columns import Column
from tocsin.model import Event
from tocsin.model.plain_values import plain_value, value_of_plain
from tocsin.structures.packed_strings import LazyStrings, PackedStrings
from tocsin.subscriptions.template_ids import PatternIds

_FLAT: Final = "iufb"  # kinds of dtype that NumPy writes as they are
_FEW: Final = 64  # cells up to which a column is in the description: a member takes 250 bytes and some time


class ColumnWriter:
    """Collects the members of an archive; each call returns the description that reads its column again.

    A column that is given twice, such as one that is in the ids and in the constants of a template, is written once.
    """

    def __init__(self) -> None:
        self.members: dict[str, NDArray[Any] | bytes] = {}
        self._written: dict[int, dict[str, Any]] = {}  # by the address of a column
        self._kept: list[object] = []  # so that no two have the same

    def column(self, column: Column) -> dict[str, Any]:
        """Write a column of a template."""
        if id(column) not in self._written:
            self._kept.append(column)
            self._written[id(column)] = self._column(column)
        return self._written[id(column)]

    def _column(self, column: Column) -> dict[str, Any]:
        if len(column) <= _FEW:
            return {"cells": [plain_value(one) for one in column.tolist()], "type": column.dtype.str}
        if column.dtype.kind in _FLAT:
            if column.dtype == np.int64 and len(column) and (np.diff(column) == 1).all():
                return {"from": int(column[0]), "to": int(column[-1]) + 1}
            return {"array": self._add(column)}
        cells = column.tolist()
        if set(map(type, cells)) == {str}:
            known: dict[str, int] = {}
            codes = np.fromiter((known.setdefault(one, len(known)) for one in cells), np.int32, len(cells))
            return {"codes": self._add(codes), "of": self.strings(list(known))}
        return {"json": self._add(json.dumps([plain_value(one) for one in cells]).encode())}

    def strings(self, strings: Sequence[str]) -> dict[str, Any]:
        """Write strings; ids by a pattern are written as the pattern and its columns."""
        if isinstance(strings, PatternIds):
            parts = [part if isinstance(part, str) else self.column(part) for part in strings.parts]
            return {"pattern": parts}
        if len(strings) <= _FEW:
            return {"strings": list(strings)}
        packed = strings if isinstance(strings, PackedStrings) else PackedStrings(strings)
        return {"text": self._add(packed.data), "ends": self._add(packed.offsets)}

    def _add(self, content: NDArray[Any] | bytes) -> str:
        name = f"{len(self.members)}.{'json' if isinstance(content, bytes) else 'npy'}"
        self.members[name] = content
        return name


class ReadMembers(Protocol):
    """The members of an archive, or of parts in memory."""

    def array(self, name: str, /) -> NDArray[Any]:
        """Return a member that is an array."""

    def bytes(self, name: str, /) -> bytes:
        """Return a member that is bytes."""


class ColumnReader:
    """Reads columns from their descriptions."""

    def __init__(self, archive: ReadMembers) -> None:
        self._archive = archive
        self._read: dict[
            str, Column
        ] = {}  # columns by their description: one that was written once is one again

    def column(self, written: Mapping[str, Any]) -> Column:
        """Return a column of a template."""
        key = json.dumps(written)
        if key not in self._read:
            self._read[key] = self._column(written)
        return self._read[key]

    def _column(self, written: Mapping[str, Any]) -> Column:
        if "cells" in written:
            return _cells(written["cells"], np.dtype(written["type"]))
        if "from" in written:
            return np.arange(written["from"], written["to"], dtype=np.int64)
        if "array" in written:
            return self._archive.array(written["array"])
        if "codes" in written:
            texts = np.array([*self.strings(written["of"]), None], dtype=object)[:-1]
            column: Column = texts[self._archive.array(written["codes"])]
            return column
        return _cells(json.loads(self._archive.bytes(written["json"])), np.dtype(object))

    def strings(self, written: Mapping[str, Any]) -> LazyStrings:
        """Return strings."""
        if "pattern" in written:
            parts = written["pattern"]
            return PatternIds([part if isinstance(part, str) else self.column(part) for part in parts])
        if "strings" in written:
            return PackedStrings(written["strings"])
        return PackedStrings.of_parts(
            self._archive.bytes(written["text"]), self._archive.array(written["ends"])
        )


def _cells(plain: Sequence[Any], kind: np.dtype[Any]) -> Column:
    column = np.empty(len(plain), dtype=kind)
    for row, one in enumerate(plain):  # a tuple is one cell, and no row of an array
        column[row] = value_of_plain(one)
    return column


def event_of_plain(plain: Sequence[Any]) -> Event:
    """Return a kept event of a file of the first format."""
    id_, attributes, *rest = plain
    return Event(id_, {name: value_of_plain(value) for name, value in attributes.items()}, *rest)
