"""One event at a time, encoded into arrays that the next event overwrites."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import repeat
from operator import itemgetter
from struct import Struct, error
from typing import Any, Final

import numpy as np

from tocsin.matching.encoding.codes import EXACT, FIELDS, Field, Keys, key_of_number
from tocsin.matching.encoding.events import EncodedEvents, encode_rows
from tocsin.matching.encoding.vocabulary import Vocabulary
from tocsin.model.values import Value

_STRING: Final = int(Field.STRING)
_WIDE: Final = 12  # attributes from which on the plan of an event's shape is worth looking up
_FEW: Final = 4  # attributes that are encoded sooner one by one
_SHAPES: Final = 1_024  # that are remembered


# Entries of `EventBuffer.raw`
INTEGERS: Final = 0  # pairs that come first, and have an integer where their key is to be
FLOATS: Final = 1  # pairs behind them, likewise with a float


class EventBuffer:
    """Encodes one event at a time, into arrays that the next event overwrites.

    There are two sets of them: `plain` for events whose keys are their values' places in the order, and `unusual` for the
    others. The numbers of a wide event are written as they are, in one go, and `raw` says how many: the kernel makes keys of
    them, or says that one is an integer that no float may equal. Then `encode_exactly` is the way.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self.raw: Keys = np.zeros(2, dtype=np.int64)
        self._raw = memoryview(self.raw)  # type: ignore[arg-type]
        self._shapes: dict[tuple[str, ...], _Shape | None] = {}
        self._names_version = -1
        self._make_room(64)

    def _make_room(self, pairs: int) -> None:
        keys = np.zeros(pairs, dtype=np.int64)
        fields = np.zeros(pairs, dtype=np.int32)
        self.plain = EncodedEvents(np.zeros(2, dtype=np.int64), fields, keys, keys, keys)
        self.unusual = EncodedEvents(
            np.zeros(2, dtype=np.int64),
            np.zeros(pairs, dtype=np.int32),
            *np.zeros((3, pairs), dtype=np.int64),
        )
        # Python writes into a memory view in half the time that it takes for an array.
        self._offsets = memoryview(self.plain.offsets)  # type: ignore[arg-type]
        self._fields = memoryview(fields)  # type: ignore[arg-type]
        self._keys = memoryview(keys)  # type: ignore[arg-type]
        self._numbers = memoryview(keys.view(np.float64))  # type: ignore[arg-type]
        self._written: _Plan | None = None  # whose fields and offsets are in the arrays

    def encode(self, row: Mapping[str, Value]) -> EncodedEvents:
        """Return flat attributes as arrays, valid until the next call; `offsets` says how much of them is used."""
        if len(row) < _WIDE:
            return self._encode_each(row, row.items())
        if len(row) > len(self._keys):
            self._make_room(2 * len(row))
        shape = self._shape(row)
        if shape is None:
            return self._encode_each(row, row.items())
        if shape.values is None:
            return self._encode_each(row, [(name, row[name]) for name in shape.names])
        values = shape.values(row)
        plan = shape.plan(tuple(map(type, values)))
        if plan is None or not self._write(plan, values):
            return self._encode_each(row, zip(shape.names, values, strict=True))
        return self.plain

    def encode_exactly(self, row: Mapping[str, Value]) -> EncodedEvents:
        """Do what `encode` does, and leave no number to the kernel."""
        return self._encode_each(row, row.items())

    def _encode_each(self, row: Mapping[str, Value], items: Iterable[tuple[str, Value]]) -> EncodedEvents:
        """Encode attributes one by one: all of the row that the vocabulary names."""
        fields, keys, numbers = self._fields, self._keys, self._numbers
        vocabulary = self._vocabulary
        codes, symbols = vocabulary.names.codes, vocabulary.symbols.codes
        tested, timed, is_ordered = (
            vocabulary.tests.attributes,
            vocabulary.timed,
            vocabulary.ordered_texts > 0,
        )
        place, self._written = 0, None
        for name, value in items:
            attribute = codes.get(name)
            if attribute is None:
                continue
            kind = type(value)
            if kind is float or (kind is int and -EXACT <= value <= EXACT):  # type: ignore[operator]
                fields[place] = attribute * FIELDS
                if value > 0:  # type: ignore[operator]
                    numbers[place] = value  # type: ignore[assignment]  # its bits are its key
                else:
                    keys[place] = key_of_number(value) if value else 0  # type: ignore[arg-type]
            elif kind is str and not (is_ordered or attribute in tested or attribute in timed):
                fields[place] = attribute * FIELDS + _STRING
                keys[place] = symbols.get(value, -1)  # type: ignore[arg-type]
            else:
                return self._encode_unusual(row)
            place += 1
        self._offsets[1] = place
        self._raw[INTEGERS] = self._raw[FLOATS] = 0
        return self.plain

    def _encode_unusual(self, row: Mapping[str, Value]) -> EncodedEvents:
        """Encode an event with values whose keys do not give their place, or that are several pairs."""
        encoded = encode_rows((row,), self._vocabulary)
        count = len(encoded.fields)
        if count > len(self._keys):
            self._make_room(2 * count)
        room = self.unusual
        room.fields[:count], room.keys[:count] = encoded.fields, encoded.keys
        room.lows[:count], room.highs[:count] = encoded.lows, encoded.highs
        room.offsets[1] = count
        self._raw[INTEGERS] = self._raw[FLOATS] = 0
        return self.unusual

    # shapes

    def _shape(self, row: Mapping[str, Value]) -> _Shape | None:
        """Return what is known of events with these names in this order, or None if they come for the first time."""
        names = tuple(row)
        version = self._vocabulary.names.version
        if version != self._names_version or len(self._shapes) > _SHAPES:
            self._shapes.clear()
            self._names_version = version
        shape = self._shapes.get(names)
        if shape is None:
            # Most events of a stream have one shape; where each has another, plans would be made in vain.
            self._shapes[names] = _Shape(names, self._vocabulary) if names in self._shapes else None
        return shape

    def _write(self, plan: _Plan, values: tuple[Any, ...]) -> bool:
        """Write the keys of an event's values; return False if they are not as the plan has it."""
        vocabulary = self._vocabulary
        attributes = plan.text_attributes
        try:
            if not attributes:
                plan.pack(self._keys, 0, *plan.numbers(values))
            elif (
                vocabulary.ordered_texts > 0
                or not attributes.isdisjoint(vocabulary.tests.attributes)
                or not attributes.isdisjoint(vocabulary.timed)
            ):
                return False
            else:
                symbols = map(vocabulary.symbols.codes.get, plan.texts(values), repeat(-1))
                plan.pack(self._keys, 0, *plan.numbers(values), *symbols)
        except error:  # an integer of more than 64 bits
            return False
        if plan is not self._written:
            self._fields[: plan.pairs] = plan.fields
            self._offsets[1] = plan.pairs
            self._written = plan
        self._raw[INTEGERS], self._raw[FLOATS] = plan.integers, plan.floats
        return True


class _Shape:
    """The names of events, in an order, and which of them the vocabulary has."""

    def __init__(self, names: tuple[str, ...], vocabulary: Vocabulary) -> None:
        codes = vocabulary.names.codes
        self.names = tuple(name for name in names if name in codes)
        # Takes the values of those; None if there are few.
        self.values: Any = itemgetter(*self.names) if len(self.names) > _FEW else None
        self._attributes = [codes[name] for name in self.names]
        self._plans: dict[tuple[type, ...], _Plan | None] = {}

    def plan(self, kinds: tuple[type, ...]) -> _Plan | None:
        """Return how values of these types are written, or None if they are not numbers and texts alone."""
        try:
            return self._plans[kinds]
        except KeyError:
            if len(self._plans) > _SHAPES:
                self._plans.clear()
            plan = self._plans[kinds] = _Plan.of(self._attributes, kinds)
            return plan


class _Plan:
    """How values of known types are written: the integers first, then the floats, then the codes of texts."""

    def __init__(
        self, attributes: list[int], integers: list[int], floats: list[int], texts: list[int]
    ) -> None:
        numbers = integers + floats
        self.numbers, self.texts = _taking(numbers, len(attributes)), _taking(texts, len(attributes))
        self.integers, self.floats, self.pairs = len(integers), len(floats), len(attributes)
        self.text_attributes = frozenset(attributes[i] for i in texts)
        fields = [attributes[i] * FIELDS for i in numbers]
        fields += [attributes[i] * FIELDS + _STRING for i in texts]
        self.fields = memoryview(np.array(fields, dtype=np.int32))  # type: ignore[arg-type]
        self.pack = Struct(f"={len(integers)}q{len(floats)}d{len(texts)}q").pack_into

    @classmethod
    def of(cls, attributes: list[int], kinds: tuple[type, ...]) -> _Plan | None:
        """Return the plan for values of these types, or None if some are neither numbers nor texts."""
        by_kind: dict[type, list[int]] = {int: [], float: [], str: []}
        for i, kind in enumerate(kinds):
            if kind not in by_kind:
                return None
            by_kind[kind].append(i)
        return cls(attributes, by_kind[int], by_kind[float], by_kind[str])


def _taking(places: list[int], count: int) -> Callable[[tuple[Any, ...]], tuple[Any, ...]]:
    """Return what takes the values at these places of a tuple of so many."""
    if places == list(range(count)):
        return tuple  # that returns a tuple itself
    if len(places) > 1:
        return itemgetter(*places)
    return lambda values: tuple(values[place] for place in places)
