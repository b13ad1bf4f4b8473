"""The interface of an operator's index, and its inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np

from tocsin.matching.encoding.codes import Keys
from tocsin.structures.array_types import UInt8s


class Patterns(NamedTuple):
    """Tests of one operator: their attributes, codes and constants."""

    attributes: Keys  # int64[tests]
    codes: Keys  # int64[tests]
    constants: Sequence[str]

    def __iter__(self) -> Iterator[tuple[int, int, str]]:  # type: ignore[override]
        return zip(self.attributes.tolist(), self.codes.tolist(), self.constants, strict=True)


class TextBytes(NamedTuple):
    """Strings in UTF-8, one after another. String i is `data[offsets[i]:offsets[i + 1]]`."""

    offsets: Keys  # int64[strings + 1]
    data: UInt8s  # with a byte or more behind the last string


class Texts:
    """Strings to be tested, each the value of an attribute."""

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


class PassedTests(NamedTuple):
    """String i passes the tests `codes[offsets[i]:offsets[i + 1]]`, without repeats."""

    offsets: Keys  # int64[strings + 1]
    codes: Keys  # int64[passed]

    @classmethod
    def of(cls, per_text: Sequence[Sequence[int]]) -> PassedTests:
        """Return the result for a list of codes per string."""
        offsets = np.zeros(len(per_text) + 1, dtype=np.int64)
        np.cumsum([len(codes) for codes in per_text], out=offsets[1:])
        return cls(offsets, np.array([code for codes in per_text for code in codes], dtype=np.int64))


def run_growing(count: int, find: Callable[[int, PassedTests], int]) -> PassedTests:
    """Return the result of a kernel over `count` strings, growing its output as needed.

    `find(start, found)` continues with string `start` and returns the number of strings done.
    """
    found = PassedTests(np.zeros(count + 1, dtype=np.int64), np.empty(max(64, 2 * count), dtype=np.int64))
    done = find(0, found)
    while done < count:
        more = np.empty(2 * len(found.codes), dtype=np.int64)
        more[: found.offsets[done]] = found.codes[: found.offsets[done]]
        found = PassedTests(found.offsets, more)
        done = find(done, found)
    return PassedTests(found.offsets, found.codes[: found.offsets[-1]])


class OperatorIndex(Protocol):
    """The tests of one operator, over all attributes.

    One caller uses it at a time. A test, which is an attribute and a constant, is removed before it is inserted again;
    its code may then be another test's.
    """

    def insert(self, tests: Patterns) -> None:
        """Add these tests; none may be present."""

    def remove(self, tests: Patterns) -> None:
        """Remove these tests; each must be present."""

    def passed(self, texts: Texts) -> PassedTests:
        """Return, for each string, the tests on its attribute that it passes."""


def text_bytes(strings: Sequence[str]) -> TextBytes:
    """Return strings as UTF-8."""
    offsets = np.zeros(len(strings) + 1, dtype=np.int64)
    joined = "".join(strings).encode()
    np.cumsum(np.fromiter(map(len, strings), dtype=np.int64, count=len(strings)), out=offsets[1:])
    if len(joined) != offsets[-1]:  # some characters take several bytes
        sizes = (len(string.encode()) for string in strings)
        np.cumsum(np.fromiter(sizes, dtype=np.int64, count=len(strings)), out=offsets[1:])
    # A read-only array would compile a second version of the kernels.
    return TextBytes(offsets, np.frombuffer(bytearray(joined + b"\0"), dtype=np.uint8))
