"""The truth of predicates for strings, kept from batch to batch."""

from __future__ import annotations

from typing import Final, NamedTuple

from tocsin.model.conditions import NEGATED, Predicate

_MOST_WORDS: Final = 1 << 14  # whose truth is kept, for each of so many predicates:
_MOST_PREDICATES: Final = 1 << 8


class _Known(NamedTuple):
    predicate: Predicate  # kept, so that no other gets its address
    opposite: Predicate
    words: dict[str, bool | None]


class WordTruths:
    """The truth of predicates for strings that came before, so that a string of many batches is tested once."""

    def __init__(self) -> None:
        self._known: dict[int, _Known] = {}

    def of(self, predicate: Predicate) -> dict[str, bool | None]:
        """Return the known truths of a predicate by string, to be read and added to."""
        words = self._of(predicate).words
        if len(words) > _MOST_WORDS:
            words.clear()
        return words

    def opposite(self, predicate: Predicate) -> Predicate:
        """Return the predicate that is true where this one is false, always the same object."""
        return self._of(predicate).opposite

    def _of(self, predicate: Predicate) -> _Known:
        found = self._known.get(id(predicate))
        if found is None:
            if len(self._known) >= _MOST_PREDICATES:
                self._known.clear()
            opposite = Predicate(
                predicate.subject, NEGATED.get(predicate.operator, predicate.operator), predicate.operands
            )
            found = self._known[id(predicate)] = _Known(predicate, opposite, {})
        return found
