"""Values as tags and integers; strings and very large integers by codes, which are reused once nothing refers to them."""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import numpy as np

from tocsin.matching.encoding.codes import is_exact, neighbours, number_of
from tocsin.model.timestamps import from_microseconds, microseconds
from tocsin.model.values import Opaque, Value
from tocsin.sequences._kernels.instructions import Tag
from tocsin.sequences.running.state import Bigs, State, Texts
from tocsin.structures.array_types import Int64s, zeros
from tocsin.structures.growth import grown
from tocsin.structures.interning import InterningTable

WIDE: Final = 2**63
_FEWEST: Final = 4096  # strings below which no garbage is collected
_MISSING: Final = (int(Tag.MISSING), 0)


class ValueCodec:
    """Encodes and decodes values; constants of programs are pinned, all other strings are subject to collection."""

    def __init__(self) -> None:
        self.strings: InterningTable[str] = InterningTable()
        self._string_pins: Counter[int] = Counter()
        self._used = 0  # bytes
        self.integers: InterningTable[int] = InterningTable()
        self._integer_pins: Counter[int] = Counter()
        self._is_ranked = True
        self.opaque: InterningTable[Opaque] = InterningTable()  # few, and kept
        self.has_changed = True  # since the last `into`; a string that fits the arrays is written in place
        self.threshold = _FEWEST  # with more strings and integers than this, a collection pays
        self._texts = zeros(Texts, 1024)
        self._bigs = zeros(Bigs, 0)

    def into(self, state: State) -> State:
        """Return the state with the strings and integers that are known now."""
        if not self._is_ranked:
            self._rank()
        self.has_changed = False
        return state._replace(texts=self._texts, bigs=self._bigs)

    @property
    def bytes(self) -> int:
        """Return how many bytes the strings take, with their tables."""
        return sum(array.nbytes for array in (*self._texts, *self._bigs)) + 100 * len(self.strings)

    @property
    def passing_bytes(self) -> int:
        """Return about how many bytes the strings and large integers take that are not pinned."""
        known = len(self.strings)
        bigs = len(self.integers) - len(self._integer_pins)
        return (known - len(self._string_pins)) * (116 + self._used // max(1, known)) + 132 * bigs

    def encode(self, value: Value | None) -> tuple[int, int]:
        """Return a value's tag and integer."""
        kind = type(value)
        if value is None:
            return _MISSING
        if kind is str:
            return Tag.STRING, self.code(value)  # type: ignore[arg-type]
        if kind is bool:
            return Tag.BOOLEAN, int(value)  # type: ignore[arg-type]
        if kind is int:
            is_wide = not -WIDE <= value < WIDE  # type: ignore[operator]
            return self._encode_wide(value) if is_wide else (Tag.INTEGER, value)  # type: ignore[arg-type, return-value]
        if kind is float:
            return Tag.FLOAT, float_bits(value)  # type: ignore[arg-type]
        if isinstance(value, Opaque):
            return Tag.OPAQUE, self.opaque.code(value)
        assert isinstance(value, datetime)  # noqa: S101 - there is no further kind
        return Tag.TIMESTAMP, microseconds(value)

    def decode(self, tag: int, value: int) -> Value | None:
        """Return the value with this tag and integer."""
        if tag == Tag.INTEGER:
            return value
        if tag == Tag.FLOAT:
            number: float = struct.unpack("<d", struct.pack("<q", value))[0]
            return number
        if tag == Tag.STRING:
            return self.strings.values[value]
        if tag == Tag.BOOLEAN:
            return bool(value)
        if tag == Tag.TIMESTAMP:
            return from_microseconds(value)
        if tag == Tag.OPAQUE:
            return self.opaque.values[value]
        return self.integers.values[value] if tag == Tag.BIG else None

    def code(self, text: str) -> int:
        """Return the code of a string; a new string gets one."""
        code = self.strings.codes.get(text)
        return self._new_string(text) if code is None else code

    def codes(self, texts: Sequence[str]) -> Int64s:
        """Return the codes of strings; new ones are stored together."""
        known = self.strings.codes
        self._new_strings([text for text in texts if text not in known])
        return np.fromiter((known[text] for text in texts), dtype=np.int64, count=len(texts))

    def _new_strings(self, texts: list[str]) -> None:
        """Store different strings that are not known."""
        raw = [text.encode() for text in texts]
        codes = np.fromiter(map(self.strings.code, texts), dtype=np.int64, count=len(texts))
        lengths = np.fromiter(map(len, raw), dtype=np.int64, count=len(raw))
        fresh = grown(self._texts, ("offsets", "lengths"), self.strings.top)
        fresh = grown(fresh, ("bytes",), self._used + int(lengths.sum()))
        if fresh is not self._texts:
            self._texts, self.has_changed = fresh, True
        fresh.offsets[codes] = self._used + np.cumsum(lengths) - lengths
        fresh.lengths[codes] = lengths
        joined = b"".join(raw)
        fresh.bytes[self._used : self._used + len(joined)] = np.frombuffer(joined, dtype=np.uint8)
        self._used += len(joined)

    def _new_string(self, text: str) -> int:
        """Store a string's bytes, and return its code."""
        raw = text.encode()
        code = self.strings.code(text)
        texts = grown(self._texts, ("offsets", "lengths"), code + 1)
        texts = grown(texts, ("bytes",), self._used + len(raw))
        if texts is not self._texts:
            self._texts, self.has_changed = texts, True
        texts.offsets[code], texts.lengths[code] = self._used, len(raw)
        texts.bytes[self._used : self._used + len(raw)] = np.frombuffer(raw, dtype=np.uint8)
        self._used += len(raw)
        return code

    def _encode_wide(self, value: int) -> tuple[int, int]:
        if is_exact(value):
            return Tag.FLOAT, float_bits(float(value))
        code = self.integers.codes.get(value)
        return Tag.BIG, self._new_integer(value) if code is None else code

    def _new_integer(self, value: int) -> int:
        """Store an integer beyond 64 bits with its neighbouring doubles, and return its code."""
        code = self.integers.code(value)
        bigs = self._bigs = grown(self._bigs, Bigs._fields, code + 1)
        low, high = neighbours(value)
        bigs.low[code], bigs.high[code] = number_of(low), number_of(high)
        try:
            bigs.nearest[code] = float(value)
        except OverflowError:
            bigs.nearest[code] = math.nan
        self._is_ranked = False
        self.has_changed = True
        return code

    def _rank(self) -> None:
        """Rank all large integers, once for all that are new."""
        codes = [self.integers.codes[value] for value in sorted(self.integers.codes)]
        self._bigs.rank[codes] = np.arange(len(codes))
        self._is_ranked = True

    def pin(self, values: Int64s) -> None:
        """Keep the strings and large integers of these rows of tags and integers until they are unpinned."""
        for pins, code in self._pins_of(values):
            pins[code] += 1

    def unpin(self, values: Int64s) -> None:
        """Undo `pin` of the same rows."""
        for pins, code in self._pins_of(values):
            pins[code] -= 1
            if not pins[code]:
                del pins[code]

    def _pins_of(self, values: Int64s) -> Iterator[tuple[Counter[int], int]]:
        """Yield each string and large integer in these rows, as its counter of pins and its code."""
        rows = values.reshape(-1, 2)
        for tag, pins in ((Tag.STRING, self._string_pins), (Tag.BIG, self._integer_pins)):
            for code in rows[rows[:, 0] == tag, 1].tolist():
                yield pins, code

    def collect(self, values: Int64s) -> None:
        """Forget all strings and large integers but those that are pinned or in these rows of tags and integers."""
        self.strings.forget_except({*self._string_pins, *values[values[:, 0] == Tag.STRING, 1].tolist()})
        self.integers.forget_except({*self._integer_pins, *values[values[:, 0] == Tag.BIG, 1].tolist()})
        self._compact()
        self.threshold = max(_FEWEST, 2 * (len(self.strings) + len(self.integers)))

    def _compact(self) -> None:
        """Move the bytes of the strings that are left together."""
        old, self._used = self._texts, 0
        total = int(old.lengths[list(self.strings.codes.values())].sum()) if self.strings.codes else 0
        fresh = np.zeros(max(1024, total + total // 2), dtype=np.uint8)
        for code, _ in self.strings:
            begin, length = int(old.offsets[code]), int(old.lengths[code])
            fresh[self._used : self._used + length] = old.bytes[begin : begin + length]
            old.offsets[code] = self._used
            self._used += length
        self._texts, self.has_changed = old._replace(bytes=fresh), True


def float_bits(number: float) -> int:
    """Return the bits of a float."""
    bits: int = struct.unpack("<q", struct.pack("<d", number))[0]
    return bits
