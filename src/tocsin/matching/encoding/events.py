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
    text_order,
)
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.timestamps import microseconds, parse_rfc3339
from tocsin.model.values import Value


class EncodedEvents(NamedTuple):
    """The pairs of event i are those from `offsets[i]` to `offsets[i + 1]`.

    An attribute that no subscription names has no pair. `lows` and `highs` bound a value's place in the order where its
    key does not give it; elsewhere they equal the key. A string of an attribute with text tests has neighbouring pairs in
    the field TEXT: one for each test that it passes, then one with the key -1.
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
    encoded: EncodedEvents = (
        encode(vocabulary)
        if encode is not None
        else encode_rows((batch.attributes(i) for i in range(len(batch))), vocabulary)
    )
    batch.encoded = (version, encoded)
    return encoded


def encode_rows(rows: Iterable[Mapping[str, Value]], vocabulary: Vocabulary) -> EncodedEvents:
    """Return flat attributes as arrays."""
    encoding = RowEncoding(vocabulary)
    for row in rows:
        encoding.add(row)
    return encoding.finish()


class RowEncoding:
    """The pairs of the rows encoded so far."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        self.codes = vocabulary.names.codes
        self.fields: list[int] = []
        self.numbers: list[float] = []  # 0 where the pair is no plain number
        self.offsets = [0]
        self._rest = OtherPairs(vocabulary)

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

    def add_other(self, attribute: int, value: Value) -> None:
        """Encode one value that is not a plain number."""
        for field in self._rest.add(attribute, value, len(self.fields)):
            self.fields.append(field)
            self.numbers.append(0.0)

    def finish(self) -> EncodedEvents:
        """Return all pairs as arrays."""
        keys = keys_of_numbers(np.array(self.numbers, dtype=np.float64))
        lows, highs = self._rest.finish(keys)
        events = EncodedEvents(
            np.array(self.offsets, dtype=np.int64), np.array(self.fields, dtype=np.int32), keys, lows, highs
        )
        return self._rest.tested.spliced_into(events)


class OtherPairs:
    """The pairs of a batch that are not plain numbers.

    A string that no predicate has gets the key -1, which equals nothing.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.tested = TextPairs(vocabulary)
        self._symbols: Mapping[Any, int] = vocabulary.symbols.codes
        self._ordered = vocabulary.ordered_texts > 0
        self._tests = vocabulary.tests.attributes
        self._places: list[int] = []
        self._keys: list[int] = []
        self._order_places: list[int] = []
        self._orders: list[tuple[int, int]] = []

    def add(self, attribute: int, value: Value, place: int) -> tuple[int, ...]:
        """Encode a value whose pair stands at `place`; return the fields of its pairs, one or two."""
        base = attribute * FIELDS
        kind = type(value)
        self._places.append(place)
        if kind is str:
            self._keys.append(self._symbols.get(value, -1))
            if attribute in self._tests:
                self.tested.add(attribute, value, place)  # type: ignore[arg-type]
            if self._ordered:
                self._order_places.append(place)
                self._orders.append(text_order(value))  # type: ignore[arg-type]
            if self._vocabulary.is_timed(attribute):
                read = parse_rfc3339(value)  # type: ignore[arg-type]
                if read is not None:
                    self._places.append(place + 1)
                    self._keys.append(microseconds(read))
                    return base + Field.STRING, base + Field.TIMESTAMP
            return (base + Field.STRING,)
        if kind is bool:
            self._keys.append(int(value))  # type: ignore[arg-type]
            return (base + Field.BOOLEAN,)
        if isinstance(value, datetime):
            self._keys.append(microseconds(value))
            return (base + Field.TIMESTAMP,)
        return (self._add_integer(base, cast("int", value), place),)

    def _add_integer(self, base: int, value: int, place: int) -> int:
        """Encode an integer beyond 2**53; a float may still equal it."""
        if is_exact(value):
            self._keys.append(key_of_number(float(value)))
            return base + Field.NUMBER
        self._keys.append(self._symbols.get(value, -1))
        self._order_places.append(place)
        self._orders.append(neighbours(value))
        return base + Field.BIG

    def finish(self, keys: Keys) -> tuple[Keys, Keys]:
        """Write the collected keys into `keys` and return the lows and the highs."""
        if self._places:
            keys[self._places] = self._keys
        if not self._orders:
            return keys, keys
        orders = np.array(self._orders, dtype=np.int64)
        lows, highs = keys.copy(), keys.copy()
        lows[self._order_places] = orders[:, 0]
        highs[self._order_places] = orders[:, 1]
        return lows, highs


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
