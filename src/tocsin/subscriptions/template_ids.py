"""The ids of subscriptions that come from a template's rows."""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from uuid import uuid4

import numpy as np

from tocsin.language import TemplateRows
from tocsin.language.template.columns import Column, Rows, values_of
from tocsin.model.errors import TemplateError
from tocsin.structures.array_types import Int64s
from tocsin.structures.packed_strings import LazyStrings, PackedStrings
from tocsin.subscriptions.options import is_encodable

_SLICE = 1 << 14  # ids that are checked at a time


class PatternIds(LazyStrings):
    """Ids by a pattern over columns: nothing is stored for an id.

    >>> ids = PatternIds(["alert-", np.arange(3), "-", np.array(["x", "y", "z"], dtype=object)])
    >>> ids.at(1), list(ids), list(ids.take(np.array([2])))
    ('alert-1-y', ['alert-0-x', 'alert-1-y', 'alert-2-z'], ['alert-2-z'])
    """

    __slots__ = ("_column", "_columns", "_format", "parts")

    def __init__(self, parts: Sequence[str | Column]) -> None:
        self.parts = parts
        self._columns = [part for part in parts if not isinstance(part, str)]
        self._column = self._columns[0] if len(self._columns) == 1 else None
        literals = (
            part.replace("{", "{{").replace("}", "}}") if isinstance(part, str) else "{}" for part in parts
        )
        self._format = "".join(literals).format

    def __len__(self) -> int:
        return len(self._columns[0])

    def at(self, position: int) -> str:
        """Return the id at a position from 0 on."""
        if self._column is not None:
            return self._format(self._column.item(position))
        return self._format(*[column.item(position) for column in self._columns])

    def listed(self, begin: int, end: int) -> list[str]:
        """Return the ids from `begin` to `end`."""
        return list(map(self._format, *(column[begin:end].tolist() for column in self._columns)))

    def at_all(self, positions: Int64s) -> list[str]:
        """Return the ids at these positions as a list."""
        return list(map(self._format, *(column[positions].tolist() for column in self._columns)))

    def take(self, positions: Int64s, /) -> PatternIds:
        """Return the ids at these positions."""
        return PatternIds([part if isinstance(part, str) else part[positions] for part in self.parts])


def hashes_of(ids: LazyStrings) -> Int64s:
    """Return the hash of each id."""
    hashes = np.empty(len(ids), dtype=np.int64)
    for begin in range(0, len(ids), _SLICE):
        names = ids.listed(begin, min(begin + _SLICE, len(ids)))
        hashes[begin : begin + len(names)] = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
    return hashes


def row_ids(
    rule: str | None, table: Rows, rows: TemplateRows
) -> tuple[LazyStrings, Int64s, list[TemplateError]]:
    """Return the ids of the kept rows, their hashes, and an error for each row without an id or with an earlier row's.

    `rule` names the column that holds the ids, or is a pattern such as `"alert-{s}-{row}"`; without it, ids
    are generated. The rows with an error have no id in the result.
    """
    if rule is None:
        made: LazyStrings = PatternIds([f"{uuid4().hex[:16]}-", rows.rows])
    else:
        has_braces = "{" in rule or "}" in rule
        made = _from_pattern(rule, rows) if has_braces else _from_column(rule, table, rows)
    hashes = np.empty(len(made), dtype=np.int64)
    faults: dict[int, str] = {}  # by position
    for begin in range(0, len(made), _SLICE):
        names = made.listed(begin, begin + _SLICE)
        hashes[begin : begin + _SLICE] = np.fromiter(map(hash, names), dtype=np.int64, count=len(names))
        if not all(names) or not all(map(str.isprintable, names)):
            for position, name in enumerate(names, begin):
                if not name:
                    faults[position] = "it has no id"
                elif not is_encodable(name):
                    faults[position] = f"its id {name!r} has half of a character"
    for position in _repeated(made, hashes, faults):
        faults[position] = f"another row has made the id `{made.at(position)}` already"
    if not faults:
        return made, hashes, []
    errors = [
        TemplateError(reason, row=int(rows.rows[position])) for position, reason in sorted(faults.items())
    ]
    kept = np.delete(np.arange(len(made)), list(faults))
    return made.take(kept), hashes[kept], errors


def _repeated(ids: LazyStrings, hashes: Int64s, faults: dict[int, str]) -> list[int]:
    """Return the positions of ids that an earlier one without a fault equals."""
    order = np.argsort(hashes, kind="stable")
    is_same = hashes[order[1:]] == hashes[order[:-1]]
    if not is_same.any():
        return []
    shared = np.zeros(len(order), dtype=np.bool_)
    shared[1:] |= is_same
    shared[:-1] |= is_same
    known: set[str] = set()
    found = []
    for position in np.sort(order[shared]).tolist():
        if position not in faults:
            name = ids.at(position)
            if name in known:
                found.append(position)
            known.add(name)
    return found


def _from_pattern(pattern: str, rows: TemplateRows) -> LazyStrings:
    """Return an id per row from a pattern with the names of columns in braces."""
    try:
        parts = list(Formatter().parse(pattern))
    except ValueError as fault:
        raise TemplateError(f"the id's pattern `{pattern}` cannot be read: {fault}") from None
    if any(style or conversion for _, _, style, conversion in parts):
        raise TemplateError(f"the id's pattern `{pattern}` may hold plain names only, such as {{row}}")
    names = {name for _, name, _, _ in parts if name is not None}
    unknown = names - set(rows.columns) - {"row"}
    if unknown:
        known = ", ".join(["row", *rows.columns])
        raise TemplateError(f"the id's pattern names `{{{min(unknown)}}}`; known are {known}")
    columns = {"row": rows.rows} | dict(rows.columns)
    found: list[str | Column] = []
    for text, name, _, _ in parts:
        found += [text] if text else []
        found += [columns[name]] if name is not None else []
    # A pattern without a name makes one id for all rows.
    return PatternIds(found) if names else PackedStrings(["".join(map(str, found))] * len(rows))


def _from_column(name: str, table: Rows, rows: TemplateRows) -> PackedStrings:
    """Return an id per row from the column `name`."""
    try:
        values = values_of(table, name)
    except TemplateError:
        raise TemplateError(
            f"no column `{name}` holds the ids; a pattern has braces, such as `alert-{{row}}`"
        ) from None
    return PackedStrings(["" if values[row] is None else str(values[row]) for row in rows.rows.tolist()])
