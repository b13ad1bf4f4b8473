"""The roll of a shard: the ids of its subscriptions by number, how long each applies, and what it selects."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.engine.book import ALWAYS, FOREVER
from tocsin.language import parse, to_text
from tocsin.language.template import TemplateRows
from tocsin.matching import IdArray
from tocsin.model import Filter
from tocsin.model.conditions import TRUE
from tocsin.model.errors import SavedIndexError
from tocsin.model.queries import SelectItem

NOTHING: Final = -1  # the select of a subscription that takes the whole event
_FILE: Final = "roll.arrow"
_SCHEMA: Final = pa.schema(
    [
        ("id", pa.large_string()),
        ("valid_from", pa.int64()),
        ("valid_until", pa.int64()),
        ("digest", pa.int64()),
        ("select", pa.int32()),
    ]
)


class SavedRoll(NamedTuple):
    """A roll as it was saved, mapped into memory. By number; a number that is free has no id."""

    ids: Any  # pa.LargeStringArray
    valid_from: NDArray[np.int64]
    valid_until: NDArray[np.int64]
    digest: NDArray[np.int64]
    select: NDArray[np.int32]
    selects: tuple[str, ...]
    has_terms: bool

    def items(self, code: int) -> tuple[SelectItem, ...]:
        """Return what a select is made of."""
        return selected(self.selects[code])


class Record(NamedTuple):
    """A subscription on a roll."""

    id: str
    digest: int
    select: str | None


class Roll:
    """Subscriptions by id and by number, to be changed and saved."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._ids: list[str | None] = []
        self._free: list[int] = []
        self._columns = np.zeros((4, 0), dtype=np.int64)  # valid_from, valid_until, digest, select
        self._selects: dict[str, int] = {}

    @classmethod
    def of(cls, saved: SavedRoll) -> Roll:
        """Return a saved roll, to be changed."""
        roll = cls()
        roll._ids = saved.ids.to_pylist()
        roll.numbers = {id_: number for number, id_ in enumerate(roll._ids) if id_ is not None}
        roll._free = [number for number, id_ in enumerate(roll._ids) if id_ is None]
        roll._columns = np.stack(
            [saved.valid_from, saved.valid_until, saved.digest, saved.select.astype(np.int64)]
        )
        roll._selects = {text: code for code, text in enumerate(saved.selects)}
        return roll

    def __len__(self) -> int:
        return len(self.numbers)

    def enter(
        self,
        ids: Sequence[str],
        terms: tuple[Any, Any],
        digests: Any,
        selects: Sequence[str | None],
    ) -> IdArray:
        """Enter subscriptions and return their numbers; `terms` are when they begin and cease to apply."""
        taken = [self._free.pop() for _ in range(min(len(self._free), len(ids)))]
        fresh = len(ids) - len(taken)
        taken += range(len(self._ids), len(self._ids) + fresh)
        self._ids.extend([None] * fresh)
        self._grow(len(self._ids))
        for id_, number in zip(ids, taken, strict=True):
            self._ids[number] = id_
        self.numbers.update(zip(ids, taken, strict=True))
        numbers = np.array(taken, dtype=np.int64)
        self._columns[0, numbers] = terms[0]
        self._columns[1, numbers] = terms[1]
        self._columns[2, numbers] = digests
        self._columns[3, numbers] = [
            NOTHING if text is None else self._selects.setdefault(text, len(self._selects))
            for text in selects
        ]
        return numbers

    def strike(self, id_: str) -> int:
        """Strike out a subscription and return the number it had."""
        number = self.numbers.pop(id_)
        self._ids[number] = None
        self._free.append(number)
        return number

    def holds(self, id_: str, terms: tuple[int, int], digest: int) -> bool:
        """Tell whether a subscription asks what has this digest, for exactly this time."""
        return bool(self._columns[:3, self.numbers[id_]].tolist() == [*terms, digest])

    def records(self) -> dict[tuple[int, int], list[Record]]:
        """Return all subscriptions, by when they begin and cease to apply."""
        selects = list(self._selects)
        found: dict[tuple[int, int], list[Record]] = {}
        for id_, number in self.numbers.items():
            begin, end, digest, select = self._columns[:, number].tolist()
            text = None if select == NOTHING else selects[select]
            found.setdefault((begin, end), []).append(Record(id_, digest, text))
        return found

    def over(self, now: int) -> list[str]:
        """Return the ids of the subscriptions whose time is over."""
        if not len(self.numbers):
            return []
        gone = np.flatnonzero(self._columns[1, : len(self._ids)] <= now).tolist()
        return [id_ for number in gone if (id_ := self._ids[number]) is not None]

    def save(self, folder: Path) -> None:
        """Write the roll into a shard's folder."""
        size = len(self._ids)
        begin, end, digest, select = (self._columns[i, :size] for i in range(4))
        held = np.array([id_ is not None for id_ in self._ids], dtype=np.bool_)
        has_terms = bool(np.any(held & ((begin != ALWAYS) | (end != FOREVER)))) if size else False
        columns = [pa.array(self._ids, pa.large_string()), begin, end, digest, select.astype(np.int32)]
        table = pa.table([pa.array(column) for column in columns], schema=_SCHEMA).replace_schema_metadata(
            {"has_terms": str(int(has_terms))}
        )
        with pa.OSFile(str(folder / _FILE), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
            writer.write_table(table.combine_chunks())
        texts = pa.table({"select": pa.array(list(self._selects), pa.large_string())})
        with (
            pa.OSFile(str(folder / "selects.arrow"), "wb") as file,
            pa.ipc.new_file(file, texts.schema) as out,
        ):
            out.write_table(texts)

    def _grow(self, size: int) -> None:
        more = size - self._columns.shape[1]
        if more > 0:
            room = np.zeros((4, max(more, self._columns.shape[1] // 2)), dtype=np.int64)
            self._columns = np.concatenate([self._columns, room], axis=1)


def open_roll(folder: Path) -> SavedRoll:
    """Return the roll in a shard's folder, mapped."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(folder / _FILE))).read_all()
        texts = pa.ipc.open_file(pa.memory_map(str(folder / "selects.arrow"))).read_all()
    except (OSError, pa.ArrowException) as fault:
        raise SavedIndexError(f"the roll of subscriptions cannot be read: {fault}", str(folder)) from None
    arrays = [
        table.column(name).chunk(0) if table.num_rows else pa.array([], table.schema.field(name).type)
        for name in table.schema.names
    ]
    begin, end, digest, select = (array.to_numpy() for array in arrays[1:])
    terms = (table.schema.metadata or {}).get(b"has_terms") == b"1"
    selects = tuple(texts.column("select").to_pylist())
    return SavedRoll(arrays[0], begin, end, digest, select, selects, terms)


def digest_of(query: Filter, text: str | None = None) -> int:
    """Return a number that tells a query from others; if it was read from a text, that text from others."""
    return _digest(to_text(query) if text is None else text)


def digests_of(rows: TemplateRows) -> list[int]:
    """Return a number for each of a template's rows that tells it from others."""
    text = to_text(rows.query)
    columns = [rows.columns[name].tolist() for name in sorted(rows.columns)]
    return [_digest(f"{text}{values!r}") for values in zip(*columns, strict=True)]


def select_text(query: Filter) -> str | None:
    """Return a query that selects the same of every event, as text; None if it takes the whole event."""
    return to_text(Filter(TRUE, query.stream, query.select)) if query.select else None


def selected(text: str) -> tuple[SelectItem, ...]:
    """Return what such a query selects."""
    query = parse(text)
    return query.select if isinstance(query, Filter) else ()


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True)
