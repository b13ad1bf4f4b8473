"""The registry of a shard: ids, numbers and validity of its subscriptions, their select lists and digests."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tocsin.language import parse, to_text
from tocsin.language.template import TemplateRows
from tocsin.matching import IdArray
from tocsin.model import Filter
from tocsin.model.conditions import TRUE
from tocsin.model.errors import SavedIndexError
from tocsin.model.options import Validity
from tocsin.model.queries import SelectItem
from tocsin.structures.growth import grown
from tocsin.subscriptions.registry import SubscriptionRegistry

WHOLE_EVENT: Final = -1  # the select code of a subscription that selects nothing in particular
_FILE: Final = "roll.arrow"  # as format 1 of an index names it
_SELECTS_FILE: Final = "selects.arrow"
_SCHEMA: Final = pa.schema(
    [
        ("id", pa.large_string()),
        ("valid_from", pa.int64()),
        ("valid_until", pa.int64()),
        ("digest", pa.int64()),
        ("select", pa.int32()),
    ]
)


class SavedRegistry(NamedTuple):
    """The registry of a saved shard, mapped into memory: columns by number; a free number has no id."""

    ids: Any  # pa.LargeStringArray
    valid_from: NDArray[np.int64]
    valid_until: NDArray[np.int64]
    digest: NDArray[np.int64]
    select: NDArray[np.int32]
    selects: tuple[str, ...]
    has_validity: bool

    def select_items(self, code: int) -> tuple[SelectItem, ...]:
        """Return the select list with this code."""
        return parse_select(self.selects[code])


class _Columns(NamedTuple):
    digest: NDArray[np.int64]  # [number]
    select: NDArray[np.int32]  # [number]


class Record(NamedTuple):
    """A subscription of a shard."""

    id: str
    digest: int
    select: str | None


class ShardRegistry:
    """The registry of a shard that is being built: with the digest of each query, and its select list as text.

    A digest tells whether a subscription's query has changed, without the query itself being stored.
    """

    def __init__(self, registry: SubscriptionRegistry | None = None) -> None:
        self.subscriptions = SubscriptionRegistry() if registry is None else registry
        self._columns = _Columns(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int32))
        self._selects: dict[str, int] = {}

    @classmethod
    def restore(cls, saved: SavedRegistry) -> ShardRegistry:
        """Return the registry of a saved shard, to be changed."""
        restored = SubscriptionRegistry.restore(saved.ids.to_pylist(), saved.valid_from, saved.valid_until)
        registry = cls(restored)
        registry._columns = _Columns(saved.digest.copy(), saved.select.copy())
        registry._selects = {text: code for code, text in enumerate(saved.selects)}
        return registry

    def __len__(self) -> int:
        return len(self.subscriptions)

    def add(
        self, ids: Sequence[str], validity: Validity, digests: Sequence[int], selects: Sequence[str | None]
    ) -> IdArray:
        """Enter subscriptions and return their numbers."""
        reserved = self.subscriptions.reserve(len(ids))
        self.subscriptions.enter(reserved, ids, validity)
        numbers = np.array(reserved, dtype=np.int64)
        self._columns = grown(self._columns, _Columns._fields, self.subscriptions.capacity)
        self._columns.digest[numbers] = digests
        self._columns.select[numbers] = [
            WHOLE_EVENT if text is None else self._selects.setdefault(text, len(self._selects))
            for text in selects
        ]
        return numbers

    def is_unchanged(self, id_: str, validity: Validity, digest: int) -> bool:
        """Tell whether a subscription has exactly this validity and a query with this digest."""
        number = self.subscriptions.number(id_)
        is_same_query = bool(self._columns.digest[number] == digest)
        stored = self.subscriptions.validity(number)  # a saved one does not say whether it is dated
        return is_same_query and stored.in_ticks(1) == validity.in_ticks(1)

    def records(self) -> dict[Validity, list[Record]]:
        """Return all subscriptions by their validity."""
        selects = list(self._selects)
        found: dict[Validity, list[Record]] = {}
        for id_, number in self.subscriptions.items():
            code = int(self._columns.select[number])
            select = None if code == WHOLE_EVENT else selects[code]
            record = Record(id_, int(self._columns.digest[number]), select)
            found.setdefault(self.subscriptions.validity(number), []).append(record)
        return found

    def save(self, folder: Path) -> None:
        """Write the registry into a shard's folder."""
        registry, size = self.subscriptions, self.subscriptions.capacity
        columns = [
            pa.array(registry.ids(), pa.large_string()),
            *(column[:size] for column in (registry.valid_from, registry.valid_until, *self._columns)),
        ]
        table = pa.table([pa.array(column) for column in columns], schema=_SCHEMA)
        limited = {"has_terms": str(int(registry.is_any_limited()))}
        _write(folder / _FILE, table.replace_schema_metadata(limited))
        _write(folder / _SELECTS_FILE, pa.table({"select": pa.array(list(self._selects), pa.large_string())}))


def _write(path: Path, table: pa.Table) -> None:
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table.combine_chunks())


def open_registry(folder: Path) -> SavedRegistry:
    """Return the registry in a shard's folder, mapped."""
    try:
        table = pa.ipc.open_file(pa.memory_map(str(folder / _FILE))).read_all()
        texts = pa.ipc.open_file(pa.memory_map(str(folder / _SELECTS_FILE))).read_all()
    except (OSError, pa.ArrowException) as fault:
        raise SavedIndexError(f"the registry of subscriptions cannot be read: {fault}", str(folder)) from None
    arrays = [
        table.column(name).chunk(0) if table.num_rows else pa.array([], table.schema.field(name).type)
        for name in table.schema.names
    ]
    valid_from, valid_until, digest, select = (array.to_numpy() for array in arrays[1:])
    has_validity = (table.schema.metadata or {}).get(b"has_terms") == b"1"
    selects = tuple(texts.column("select").to_pylist())
    return SavedRegistry(arrays[0], valid_from, valid_until, digest, select, selects, has_validity)


def digest_of(query: Filter, text: str | None = None) -> int:
    """Return a digest of a query, or of the text that it was read from."""
    return _digest(to_text(query) if text is None else text)


def digests_of(rows: TemplateRows) -> list[int]:
    """Return a digest for each row of a template."""
    text = to_text(rows.query)
    columns = [rows.columns[name].tolist() for name in sorted(rows.columns)]
    return [_digest(f"{text}{values!r}") for values in zip(*columns, strict=True)]


def select_text(query: Filter) -> str | None:
    """Return the select list as the text of a query; None for the whole event."""
    return to_text(Filter(TRUE, query.stream, query.select)) if query.select else None


def parse_select(text: str) -> tuple[SelectItem, ...]:
    """Return the select list of such a text."""
    query = parse(text)
    return query.select if isinstance(query, Filter) else ()


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True)
