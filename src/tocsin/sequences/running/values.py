"""Values as tags and integers; strings and very large integers by codes, which are given again once nobody uses them."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable
from datetime import datetime
from typing import Final

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import is_exact, neighbours, number_of
from tocsin.model.timestamps import from_microseconds, microseconds
from tocsin.model.values import Value
from tocsin.sequences.programs import Tag
from tocsin.sequences.running.state import Bigs, State, Texts
from tocsin.structures.growth import grown

_WIDE: Final = 2**63
_FEWEST: Final = 4096  # strings below which none are looked for that could go
_MISSING: Final = (int(Tag.MISSING), 0)


class ValueCodec:
    """Strings by code and codes by string; constants are pinned, all others go when they are collected."""

    def __init__(self) -> None:
        self.codes: dict[str, int] = {}
        self._texts: list[str | None] = []
        self._free: list[int] = []
        self._pins: dict[int, int] = {}
        self._used = 0  # bytes
        self._threshold = _FEWEST
        self._bigs: dict[int, int] = {}
        self._big_list: list[int | None] = []
        self._big_free: list[int] = []
        self._big_pins: dict[int, int] = {}
        self._is_ranked = True
        self.texts = Texts(
            np.zeros(64, dtype=np.int64), np.zeros(64, dtype=np.int64), np.zeros(1024, dtype=np.uint8)
        )
        none = np.zeros(0, dtype=np.float64)
        self.bigs = Bigs(none, none, none, np.zeros(0, dtype=np.int64))

    def into(self, state: State) -> State:
        """Return the state with the strings and integers that are known now."""
        if not self._is_ranked:
            self._rank()
        return state._replace(texts=self.texts, bigs=self.bigs)

    @property
    def bytes(self) -> int:
        """Return how many bytes the strings take, with their tables."""
        return sum(array.nbytes for array in (*self.texts, *self.bigs)) + 100 * len(self.codes)

    @property
    def passing_bytes(self) -> int:
        """Return about how many bytes the strings and large integers take that are not pinned."""
        known, pinned = len(self.codes), len(self._pins)
        bigs = len(self._bigs) - len(self._big_pins)
        return (known - pinned) * (116 + self._used // max(1, known)) + 132 * bigs

    def encoded(self, value: Value | None) -> tuple[int, int]:
        """Return a value's tag and integer."""
        kind = type(value)
        if value is None:
            return _MISSING
        if kind is str:
            return Tag.STRING, self.code(value)  # type: ignore[arg-type]
        if kind is bool:
            return Tag.BOOLEAN, int(value)  # type: ignore[arg-type]
        if kind is int:
            return self._integer(value)  # type: ignore[arg-type]
        if kind is float:
            return Tag.FLOAT, float_bits(value)  # type: ignore[arg-type]
        assert isinstance(value, datetime)  # noqa: S101 - there is no further kind
        return Tag.TIMESTAMP, microseconds(value)

    def decoded(self, tag: int, value: int) -> Value | None:
        """Return the value with this tag and integer."""
        if tag == Tag.INTEGER:
            return value
        if tag == Tag.FLOAT:
            number: float = struct.unpack("<d", struct.pack("<q", value))[0]
            return number
        if tag == Tag.STRING:
            return self._texts[value]
        if tag == Tag.BOOLEAN:
            return bool(value)
        if tag == Tag.TIMESTAMP:
            return from_microseconds(value)
        return self._big_list[value] if tag == Tag.BIG else None

    def code(self, text: str) -> int:
        """Return the code of a string, a new one if it has none."""
        code = self.codes.get(text)
        return self._new(text) if code is None else code

    def _new(self, text: str) -> int:
        raw = text.encode()
        if self._free:
            code = self._free.pop()
            self._texts[code] = text
        else:
            code = len(self._texts)
            self._texts.append(text)
            self.texts = grown(self.texts, ("offsets", "lengths"), code + 1)
        self.texts = grown(self.texts, ("bytes",), self._used + len(raw))
        self.texts.offsets[code], self.texts.lengths[code] = self._used, len(raw)
        self.texts.bytes[self._used : self._used + len(raw)] = np.frombuffer(raw, dtype=np.uint8)
        self._used += len(raw)
        self.codes[text] = code
        return code

    def _integer(self, value: int) -> tuple[int, int]:
        if -_WIDE <= value < _WIDE:
            return Tag.INTEGER, value
        if is_exact(value):
            return Tag.FLOAT, float_bits(float(value))
        code = self._bigs.get(value)
        if code is None:
            if self._big_free:
                code = self._big_free.pop()
                self._big_list[code] = value
            else:
                code = len(self._big_list)
                self._big_list.append(value)
            self._bigs[value] = code
            self._new_big(code, value)
        return Tag.BIG, code

    def _new_big(self, code: int, value: int) -> None:
        self.bigs = grown(self.bigs, Bigs._fields, code + 1)
        low, high = neighbours(value)
        self.bigs.low[code], self.bigs.high[code] = number_of(low), number_of(high)
        try:
            self.bigs.nearest[code] = float(value)
        except OverflowError:
            self.bigs.nearest[code] = math.nan
        self._is_ranked = False

    def _rank(self) -> None:
        """Give the large integers their places in the order, once for all that have come since."""
        codes = [self._bigs[value] for value in sorted(self._bigs)]
        self.bigs.rank[codes] = np.arange(len(codes))
        self._is_ranked = True

    def pin(self, values: NDArray[np.int64]) -> None:
        """Keep the strings and large integers of these rows of tags and integers until they are let go."""
        for pins, code in self._pinned(values):
            pins[code] = pins.get(code, 0) + 1

    def let_go(self, values: NDArray[np.int64]) -> None:
        """Take back what `pin` did with the same rows."""
        for pins, code in self._pinned(values):
            pins[code] -= 1
            if not pins[code]:
                del pins[code]

    def _pinned(self, values: NDArray[np.int64]) -> Iterable[tuple[dict[int, int], int]]:
        rows = values.reshape(-1, 2)
        for tag, pins in ((Tag.STRING, self._pins), (Tag.BIG, self._big_pins)):
            for code in rows[rows[:, 0] == tag, 1].tolist():
                yield pins, code

    @property
    def is_full(self) -> bool:
        """Tell whether so many strings have come that it is worth while to look for those that can go."""
        return len(self.codes) + len(self._bigs) > self._threshold

    def collect(self, values: NDArray[np.int64]) -> None:
        """Forget all strings and large integers but those that are pinned, or in these rows of tags and integers."""
        kept = {*self._pins, *values[values[:, 0] == Tag.STRING, 1].tolist()}
        old, self._used = self.texts, 0
        total = int(old.lengths[list(kept)].sum()) if kept else 0
        fresh = np.zeros(max(1024, total + total // 2), dtype=np.uint8)
        for text, code in list(self.codes.items()):
            if code not in kept:
                del self.codes[text]
                self._texts[code] = None
                self._free.append(code)
                continue
            begin, length = int(old.offsets[code]), int(old.lengths[code])
            fresh[self._used : self._used + length] = old.bytes[begin : begin + length]
            old.offsets[code] = self._used
            self._used += length
        self.texts = old._replace(bytes=fresh)
        bigs = {*self._big_pins, *values[values[:, 0] == Tag.BIG, 1].tolist()}
        for value, code in list(self._bigs.items()):
            if code not in bigs:
                del self._bigs[value]
                self._big_list[code] = None
                self._big_free.append(code)
        self._threshold = max(_FEWEST, 2 * (len(self.codes) + len(self._bigs)))


def float_bits(number: float) -> int:
    """Return the bits of a float."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits
