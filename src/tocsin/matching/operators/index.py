"""The interface of an operator's index, and what goes into it and comes out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from tocsin.matching.encoding.codes import Keys


class Patterns(NamedTuple):
    """Tests of one operator: the attribute that is tested, the constant, and the code of the test."""

    attributes: Keys  # int64[tests]
    codes: Keys  # int64[tests]
    constants: Sequence[str]

    def __iter__(self) -> Iterator[tuple[int, int, str]]:  # type: ignore[override]
        return zip(self.attributes.tolist(), self.codes.tolist(), self.constants, strict=True)


class TextBytes(NamedTuple):
    """Strings in UTF-8, one after another. String i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: Keys  # int64[strings + 1]
    data: NDArray[np.uint8]  # with a byte or more behind the last string


class Texts:
    """Strings that are to be tested, each with the attribute whose value it is."""

    def __init__(self, attributes: Keys, strings: Sequence[str]) -> None:
        self.attributes = attributes
        self.strings = strings

    def __len__(self) -> int:
        return len(self.strings)

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return zip(self.attributes.tolist(), self.strings, strict=True)

    @cached_property
    def bytes(self) -> TextBytes:
        """Return the strings as bytes, for kernels."""
        return text_bytes(self.strings)


class Passed(NamedTuple):
    """String i passes the tests with the codes `codes[offsets[i]:offsets[i + 1]]`, each named once."""

    offsets: Keys  # int64[strings + 1]
    codes: Keys  # int64[passed]

    @classmethod
    def of(cls, per_text: Sequence[Sequence[int]]) -> Passed:
        """Return the answer that is given as a list of codes for each string."""
        offsets = np.zeros(len(per_text) + 1, dtype=np.int64)
        np.cumsum([len(codes) for codes in per_text], out=offsets[1:])
        return cls(offsets, np.array([code for codes in per_text for code in codes], dtype=np.int64))


def gathered(count: int, ask: Callable[[int, Passed], int]) -> Passed:
    """Return what a kernel finds of `count` strings: asked from one of them on, it says how far it came."""
    found = Passed(np.zeros(count + 1, dtype=np.int64), np.empty(max(64, 2 * count), dtype=np.int64))
    done = ask(0, found)
    while done < count:
        more = np.empty(2 * len(found.codes), dtype=np.int64)
        more[: found.offsets[done]] = found.codes[: found.offsets[done]]
        found = Passed(found.offsets, more)
        done = ask(done, found)
    return Passed(found.offsets, found.codes[: found.offsets[-1]])


class OperatorIndex(Protocol):
    """The tests of one operator that are held, over all attributes.

    One caller at a time uses it. A test, which is an attribute and a constant, is inserted once, and removed
    before it is inserted again; its code may be another test's after that.
    """

    def insert(self, tests: Patterns) -> None:
        """Hold these tests, of which none is held."""

    def remove(self, tests: Patterns) -> None:
        """Hold these tests, all of which are held, no longer."""

    def passed(self, texts: Texts) -> Passed:
        """Return which of the tests of its attribute each string passes."""


def text_bytes(strings: Sequence[str]) -> TextBytes:
    """Return strings as UTF-8."""
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    joined = "".join(strings).encode()
    np.cumsum(np.fromiter(map(len, strings), dtype=np.int64, count=len(strings)), out=offsets[1:])
    if len(joined) != offsets[-1]:  # some characters take several bytes
        sizes = (len(string.encode()) for string in strings)
        np.cumsum(np.fromiter(sizes, dtype=np.int64, count=len(strings)), out=offsets[1:])
    # Kernels are compiled once more for an array that they may not write to.
    return TextBytes(offsets, np.frombuffer(bytearray(joined + b"\0"), dtype=np.uint8))
