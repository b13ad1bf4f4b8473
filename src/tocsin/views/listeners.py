"""Who hears a message: subscriptions by their range, in whatever index holds them."""

from __future__ import annotations

from typing import Protocol

from tocsin.matching import IdArray, Matches
from tocsin.views.changes import Floats
from tocsin.views.messages import Messages


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


def new_listeners(matcher: str | None, type: str) -> Listeners:  # noqa: A002 - the paper's word
    """Return no listeners yet to messages of one type: in the registered matcher of that name, or as points.

    Raises `MatcherError` if there is no such matcher.
    """
    if matcher is not None:
        from tocsin.views.matcher_listeners import MatcherListeners  # noqa: PLC0415 - a choice of few

        return MatcherListeners(matcher, type)
    from tocsin.views.point_listeners import PointListeners  # noqa: PLC0415 - it brings the compiler

    return PointListeners()
