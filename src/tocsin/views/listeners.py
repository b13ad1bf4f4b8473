"""Who hears a message: subscriptions by their range, in whatever index holds them."""

from __future__ import annotations

from typing import Protocol

from tocsin.matching import IdArray, Matches
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages

__all__ = ["Listeners", "new_listeners"]


class Listeners(Protocol):
    """Ranges by place, and for each message the places of those that hear it."""

    def add(self, places: IdArray, lows: Floats, highs: Floats) -> None:
        """Add ranges, both ends included, finite, low <= high; no place is held already."""

    def remove(self, places: IdArray) -> None:
        """Remove ranges; places that are not held are passed over."""

    def hear(self, messages: Messages) -> Matches:
        """Return, per message, the places of those that hear it, in any order and without repeats."""

    @property
    def nbytes(self) -> int:
        """Return the bytes of all that is held."""


def new_listeners(matcher: str | None, type: str) -> Listeners:  # noqa: A002 - the messages' own word
    """Return an empty index of listeners for messages of a type: a registered matcher by name, or the best there is."""
    raise NotImplementedError
