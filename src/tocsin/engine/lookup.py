"""Which of the filters that are held does an event satisfy, and which of them best?"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tocsin.engine.holdings import Holdings
from tocsin.engine.ranked import best_of, native_best
from tocsin.formats import EventReader, Fault
from tocsin.matching import EventBatch
from tocsin.matching.ranking import RankingMatcher
from tocsin.model import Event
from tocsin.model.errors import EventError
from tocsin.model.event import is_deletion, matchable


class Lookup:
    """Asks the matcher about events; one that is refused is counted by the reader. Called under the engine's lock."""

    def __init__(self, held: Holdings, reader: EventReader) -> None:
        self._held = held
        self._reader = reader

    def match(
        self,
        events: list[Event],
        report: Callable[[Fault], object] | None = None,
        check: Callable[[Event], None] | None = None,
    ) -> list[list[int] | None]:
        """Return, per event, the numbers of the filters it satisfies; None if it is refused and that is reported.

        `check` refuses events too.
        """
        seen = self._seen(events, report, check)
        if not self._held.has_filters:
            return [None if event is None else [] for event in seen]
        found = self._held.matcher.match(EventBatch.of(e for e in seen if e is not None))
        matches = iter(found.to_lists())
        return [None if event is None else next(matches) for event in seen]

    def names(self, numbers: list[int] | None, event: Event) -> tuple[str, ...]:
        """Return the ids of those that apply to an event, in order."""
        if numbers is None or is_deletion(event):
            return ()
        return tuple(sorted(self._held.book.id(number) for number in self._held.valid(numbers, event.end)))

    def rank(
        self,
        events: list[Event],
        top: int,
        weights: Sequence[Mapping[str, float]],
        report: Callable[[Fault], object],
    ) -> list[list[tuple[int, float]]]:
        """Return, per event, the best numbers with their scores; none if it is refused and that is reported."""
        matcher, book = self._held.matcher, self._held.book
        if not isinstance(matcher, RankingMatcher) or book.has_terms:
            return self._scored(events, top, weights, report)
        seen = self._seen(events, report)
        kept = [given for event, given in zip(seen, weights, strict=True) if event is not None]
        batch = EventBatch.of(event for event in seen if event is not None)
        best = iter(native_best(matcher, book, batch, top, kept))
        ranked = [[] if event is None else next(best) for event in seen]
        undecided = [place for place, row in enumerate(ranked) if row is None]
        left = [events[place] for place in undecided], top, [weights[place] for place in undecided], report
        scored = iter(self._scored(*left) if undecided else ())
        rows = [next(scored) if row is None else row for row in ranked]
        return [[] if is_deletion(event) else row for event, row in zip(events, rows, strict=True)]

    def _scored(
        self,
        events: list[Event],
        top: int,
        weights: Sequence[Mapping[str, float]],
        report: Callable[[Fault], object],
    ) -> list[list[tuple[int, float]]]:
        """Return the same as `rank`, by looking at all that an event satisfies."""
        held = self._held
        return [
            []
            if found is None or is_deletion(event)
            else best_of(held.valid(found, event.end), matchable(event), held.book, top, given)
            for event, found, given in zip(events, self.match(events, report), weights, strict=True)
        ]

    def _seen(
        self,
        events: list[Event],
        report: Callable[[Fault], object] | None,
        check: Callable[[Event], None] | None = None,
    ) -> list[Event | None]:
        """Return events as matchers see them; None for one that is refused and reported."""
        seen: list[Event | None] = []
        for event in events:
            try:
                made = matchable(event)
                if check is not None:
                    check(event)
                seen.append(made)
            except EventError as fault:
                if report is None:
                    raise
                self._reader.refuse()
                report(Fault(event.id, 0, str(fault)))
                seen.append(None)
        return seen
