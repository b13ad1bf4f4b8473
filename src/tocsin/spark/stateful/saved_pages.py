"""The state of a shard in Spark's state store: in pages, of which only those are written that have changed.

Where a page ends depends on the bytes around it alone, so that a change in one place leaves the other pages as they are, also if
what follows moves.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from secrets import token_bytes
from typing import Any, Final, Protocol

import msgspec
import numpy as np
from msgspec import Struct

from tocsin.model.errors import SavedError
from tocsin.structures.array_types import Int64s

_FORMAT: Final = 1  # raised whenever an older Tocsin could misread a state
_INLINE: Final = 1 << 16  # bytes up to which a state has no pages
_SMALLEST: Final = 1 << 14  # bytes of a page, but for the last
_LARGEST: Final = 1 << 18
_ENDS: Final = 16  # a page ends where so many bits are 0: after 64 KB on average
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)
_MASK: Final = np.uint64(0xD6E8FEB86659FD93)


class ValueState(Protocol):
    """A value in Spark's state store."""

    def get(self) -> Any:
        """Return the value as a row; None if there is none."""

    def update(self, newValue: Any) -> None:  # noqa: N803 - Spark's name
        """Set the value."""


class MapState(Protocol):
    """A map in Spark's state store."""

    def getValue(self, key: Any) -> Any:  # noqa: N802 - Spark's name
        """Return the value of a key as a row; None if there is none."""

    def updateValue(self, key: Any, value: Any) -> None:  # noqa: N802
        """Set the value of a key."""

    def removeKey(self, key: Any) -> None:  # noqa: N802
        """Remove a key."""


class Head(Struct, frozen=True, array_like=True):
    """What the state store has of a shard besides its pages.

    No two states have the same `token`. `pages` are the digests of the pages in their order, `content` is the state of a shard
    that has none.
    """

    format: int
    token: bytes
    generation: int
    pages: tuple[bytes, ...] = ()
    content: bytes = b""


class Written(Struct, frozen=True):
    """What one write came to: the bytes of the state, and how many of them were written."""

    token: bytes
    size: int
    written: int


class SavedPages:
    """The state of one shard. `head` is what the store has, read once."""

    def __init__(self, head: ValueState, pages: MapState) -> None:
        self._head = head
        self._pages = pages
        found = head.get()
        self.head = None if found is None else read_head(found[0])

    def read(self) -> bytes:
        """Return the state."""
        assert self.head is not None  # noqa: S101 - there is a state
        return join_pages(self.head, self._page)

    def write(self, state: bytes, generation: int) -> Written:
        """Replace the state."""
        token = token_bytes(16)
        old = set() if self.head is None else set(self.head.pages)
        if len(state) <= _INLINE:
            new, written = Head(_FORMAT, token, generation, content=state), len(state)
        else:
            pages = [(blake2b(page, digest_size=16).digest(), page) for page in cut(state)]
            new, written = Head(_FORMAT, token, generation, tuple(digest for digest, _ in pages)), 0
            for digest, page in dict(pages).items():
                if digest not in old:
                    self._pages.updateValue((digest,), (page,))
                    written += len(page)
        self._head.update((msgspec.msgpack.encode(new),))
        for digest in old - set(new.pages):
            self._pages.removeKey((digest,))
        self.head = new
        return Written(token, len(state), written)

    def _page(self, digest: bytes) -> bytes | None:
        found = self._pages.getValue((digest,))
        return None if found is None else bytes(found[0])


def read_head(data: bytes) -> Head:
    """Return the head of which these are the bytes, or raise `SavedError`."""
    try:
        head = msgspec.msgpack.decode(bytes(data), type=Head)
    except msgspec.DecodeError as fault:
        raise SavedError(f"the state of a shard is damaged: {fault}") from None
    if head.format != _FORMAT:
        raise SavedError(f"the state of a shard is in format {head.format}, this version reads {_FORMAT}")
    return head


def join_pages(head: Head, page: Any) -> bytes:
    """Return the state of which this is the head; `page` returns a page by its digest."""
    if not head.pages:
        return head.content
    found = [page(digest) for digest in head.pages]
    if None in found:
        raise SavedError("the state of a shard is damaged: a page is missing")
    return b"".join(found)


def cut(state: bytes) -> Iterator[bytes]:
    """Yield the pages of a state."""
    begin = 0
    for end in _ends(state).tolist():
        while end - begin > _LARGEST:
            yield state[begin : begin + _LARGEST]
            begin += _LARGEST
        if end - begin >= _SMALLEST:
            yield state[begin:end]
            begin = end
    while begin < len(state):
        yield state[begin : begin + _LARGEST]
        begin += _LARGEST


def _ends(state: bytes) -> Int64s:
    """Return where pages may end: after eight bytes whose product with an odd number begins with enough zeros."""
    found = []
    for offset in range(8):
        words = np.frombuffer(state, dtype="<u8", offset=offset, count=(len(state) - offset) // 8)
        hashed = (words ^ _MASK) * _FACTOR >> np.uint64(64 - _ENDS)
        found.append(np.flatnonzero(hashed == 0) * 8 + (offset + 8))
    return np.sort(np.concatenate(found))
