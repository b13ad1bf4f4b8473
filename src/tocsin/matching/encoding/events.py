"""Events as arrays of (field, key) pairs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.batches import EventBatch
from tocsin.matching.encoding.codes import (
    EXACT,
    FIELDS,
    Field,
    Keys,
    is_exact,
    key_of_number,
    keys_of_numbers,
    neighbours,
    string_key_bounds,
)
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.timestamps import microseconds, parse_timestamp
from tocsin.model.values import Opaque, Value


class EncodedEvents(NamedTuple):
    """The pairs of event i are those from `offsets[i]` to `offsets[i + 1]`.

    An attribute that no subscription names has no pair. `lows` and `highs` bound a value's place in the order where its
    key does not give it; elsewhere they equal the key. A string of an attribute with text tests has neighbouring pairs in
    the field TEXT: one for each test that it passes, then one with the key -1. An opaque value is a pair of the field OPAQUE,
    which says no more than that it is there.
    """

    offsets: Keys  # int64[events + 1]
    fields: NDArray[np.int32]  # [pairs]
    keys: Keys  # int64[pairs]
    lows: Keys  # int64[pairs]
    highs: Keys  # int64[pairs]


def encode_events(batch: EventBatch, vocabulary: Vocabulary) -> EncodedEvents:
    """Return a batch as arrays; the batch caches them for the vocabulary's current version."""
    version = vocabulary.version
    if batch.encoded is not None and batch.encoded[0] == version:
        return cast("EncodedEvents", batch.encoded[1])
    encode = getattr(batch, "encode", None)
    encoded: EncodedEvents = encode(vocabulary) if encode is not None else encode_rows(batch.rows, vocabulary)
    batch.encoded = (version, encoded)
    return encoded


def encode_rows(rows: Iterable[Mapping[str, Value]], vocabulary: Vocabulary) -> EncodedEvents:
    """Return flat attributes as arrays."""
    encoding = RowEncoding(vocabulary)
    for row in rows:
        encoding.add(row)
    return encoding.finish()


class RowEncoding:
    """The pairs of the rows encoded so far.

    Plain numbers are turned into keys all at once by `finish`. A string that no predicate has gets the key -1, which
    equals nothing.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.codes = vocabulary.names.codes
        self.fields: list[int] = []
        self.numbers: list[float] = []  # 0 where the pair is not a plain number
        self.offsets = [0]
        self._vocabulary = vocabulary
        self._symbols: Mapping[Any, int] = vocabulary.symbols.codes
        self._texts: TextPairs | None = None  # made for the first string with text tests
        self._places: list[int] = []  # of the pairs that are not plain numbers
        self._keys: list[int] = []
        self._orders: list[tuple[int, int, int]] = []  # place, low and high, where they are not the key

    def add(self, row: Mapping[str, Value]) -> None:
        """Encode a row of flat attributes."""
        for name, value in row.items():
            attribute = self.codes.get(name)
            if attribute is None:
                continue
            kind = type(value)
            if kind is float or (kind is int and -EXACT <= value <= EXACT):  # type: ignore[operator]
                self.fields.append(attribute * FIELDS)
                self.numbers.append(value)  # type: ignore[arg-type]
            else:
                self.add_other(attribute, value)
        self.offsets.append(len(self.fields))

    def add_other(self, attribute: int, value: Any) -> None:
        """Encode one value that is not a plain number."""
        base, place, kind = attribute * FIELDS, len(self.fields), type(value)
        if kind is str:
            self._append(base + Field.STRING, self._symbols.get(value, -1))
            if attribute in self._vocabulary.tests.attributes:
                if self._texts is None:
                    self._texts = TextPairs(self._vocabulary)
                self._texts.add(attribute, value, place)
            if self._vocabulary.ordered_texts > 0:
                self._orders.append((place, *string_key_bounds(value)))
            if self._vocabulary.is_timed(attribute) and (time := parse_timestamp(value)) is not None:
                self._append(base + Field.TIMESTAMP, microseconds(time))
        elif kind is bool:
            self._append(base + Field.BOOLEAN, int(value))
        elif isinstance(value, datetime):
            self._append(base + Field.TIMESTAMP, microseconds(value))
        elif kind is Opaque:
            self._append(base + Field.OPAQUE, 0)
        elif is_exact(value):
            self._append(base + Field.NUMBER, key_of_number(float(value)))
        else:
            self._append(base + Field.BIG, self._symbols.get(value, -1))
            self._orders.append((place, *neighbours(value)))

    def _append(self, field: int, key: int) -> None:
        self._places.append(len(self.fields))
        self._keys.append(key)
        self.fields.append(field)
        self.numbers.append(0.0)

    def finish(self) -> EncodedEvents:
        """Return all pairs as arrays."""
        keys = keys_of_numbers(np.array(self.numbers, dtype=np.float64))
        if self._places:
            keys[self._places] = self._keys
        lows = highs = keys
        if self._orders:
            lows, highs = keys.copy(), keys.copy()
            places, lows_there, highs_there = np.array(self._orders, dtype=np.int64).T
            lows[places], highs[places] = lows_there, highs_there
        offsets, fields = np.array(self.offsets, dtype=np.int64), np.array(self.fields, dtype=np.int32)
        events = EncodedEvents(offsets, fields, keys, lows, highs)
        return events if self._texts is None else self._texts.spliced_into(events)


class TextPairs:
    """The strings of a batch in attributes with text tests, each tested once, and the places of their pairs."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._tests = vocabulary.tests
        self._numbers: dict[tuple[int, str], int] = {}  # of distinct strings
        self._places: list[int] = []
        self._which: list[int] = []
        self._columns: list[tuple[Keys, Keys]] = []  # places, and which string stands there

    def add(self, attribute: int, text: str, place: int) -> None:
        """Add a string whose pair stands at `place`; places ascend."""
        self._which.append(self._numbers.setdefault((attribute, text), len(self._numbers)))
        self._places.append(place)

    def add_column(self, attribute: int, words: Iterable[str], which: Keys, places: Keys) -> None:
        """Add the strings of one attribute: distinct `words`, and which of them stands at each place."""
        numbers = self._numbers
        known = [numbers.setdefault((attribute, word), len(numbers)) for word in words]
        self._columns.append((places, np.array(known, dtype=np.int64)[which]))

    def spliced_into(self, events: EncodedEvents) -> EncodedEvents:
        """Return the events with the TEXT pairs inserted behind each of the places."""
        if not self._numbers:
            return events
        attributes = np.array([attribute for attribute, _ in self._numbers], dtype=np.int64)
        passed = self._tests.passed(attributes, [text for _, text in self._numbers])
        if self._columns:
            places, which = (np.concatenate(parts) for parts in zip(*self._columns, strict=True))
            if len(self._columns) > 1:
                order = np.argsort(places)
                places, which = places[order], which[order]
        else:
            places, which = np.array(self._places, dtype=np.int64), np.array(self._which, dtype=np.int64)
        from tocsin.matching.encoding._kernels.splicing import splice  # noqa: PLC0415 - it imports the compiler

        count = len(events.keys) + int((passed.offsets[which + 1] - passed.offsets[which]).sum())
        fields, keys = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.int64)
        ordered = events.lows is not events.keys
        lows, highs = (np.empty_like(keys), np.empty_like(keys)) if ordered else (keys, keys)
        spliced = EncodedEvents(np.empty_like(events.offsets), fields, keys, lows, highs)
        splice(events, places, which, passed, ordered, spliced)
        return spliced
