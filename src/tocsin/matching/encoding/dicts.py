"""Plain dicts as events, checked and encoded in one pass."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from tocsin.matching.batches import REFUSED, EventBatch
from tocsin.matching.encoding.codes import EXACT, FIELDS
from tocsin.matching.encoding.events import EncodedEvents, RowEncoding
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.errors import EventError
from tocsin.model.event import flatten, is_plain
from tocsin.model.values import Value

_WIDE: Final = 2**63


class DictEvents(EventBatch):
    """Dicts as given; only nested or unusual ones are flattened and checked.

    A plain dict has ASCII names, and values that are ASCII strings, booleans, floats but NaN, or integers of 64 bits:
    flattening would return it unchanged.
    """

    def __init__(self, rows: Iterable[Mapping[str, object]]) -> None:
        self._found: dict[int, str] = {}
        super().__init__((), faults=self._found)
        self._given = list(rows)
        self._read: dict[int, Mapping[str, Value]] = {}
        self._is_read = False

    def __len__(self) -> int:
        return len(self._given)

    @property
    def faults(self) -> Mapping[int, str]:
        """Return the reason, by its position, why a row is not an event."""
        if not self._is_read:
            for position in range(len(self)):
                self.attributes(position)
            self._is_read = True
        return self._found

    def attributes(self, position: int) -> Mapping[str, Value]:
        """Return the attributes of one event, flat and checked."""
        found = self._read.get(position)
        if found is None:
            try:
                given = self._given[position]
                found = (
                    cast("dict[str, Value]", given)
                    if type(given) is dict and is_plain(given)
                    else flatten(given)
                )
            except EventError as fault:
                self._found[position] = str(fault)
                found = REFUSED
            except AttributeError:
                kind = type(self._given[position]).__name__
                self._found[position] = f"an event is a mapping of attributes, not {kind}"
                found = REFUSED
            self._read[position] = found
        return found

    def encode(self, vocabulary: Vocabulary) -> EncodedEvents:
        """Return the events as arrays."""
        encoding = RowEncoding(vocabulary)
        for position, row in enumerate(self._given):
            if type(row) is not dict or not _add_plain(encoding, row):
                encoding.add(self.attributes(position))
        self._is_read = True  # plain dicts have no fault
        return encoding.finish()


def _add_plain(encoding: RowEncoding, row: dict[Any, Any]) -> bool:
    """Encode a row if it is plain; else return False and encode nothing."""
    codes = encoding.codes
    fields: list[int] = []
    numbers: list[float] = []
    others: list[tuple[int, Value]] = []
    for name, value in row.items():
        kind = type(value)
        attribute = codes.get(name)
        if attribute is None and not (type(name) is str and name.isascii()):
            return False
        if kind is int:
            if -EXACT <= value <= EXACT:
                if attribute is not None:
                    fields.append(attribute * FIELDS)
                    numbers.append(value)
                continue
            if not -_WIDE < value < _WIDE:
                return False
        elif kind is float:
            if value != value:  # noqa: PLR0124 - NaN alone differs from itself
                return False
            if attribute is not None:
                fields.append(attribute * FIELDS)
                numbers.append(value)
            continue
        elif kind is str:
            if not value.isascii():
                return False
        elif kind is not bool:
            return False
        if attribute is not None:
            others.append((attribute, value))
    encoding.fields += fields
    encoding.numbers += numbers
    for attribute, value in others:
        encoding.add_other(attribute, value)
    encoding.offsets.append(len(encoding.fields))
    return True
