"""The engine's own matcher: brute force while there is little to do, an index from then on."""

from __future__ import annotations

from threading import Thread
from typing import Final

from tocsin.matching import (
    ClauseGroup,
    ConjunctionBatch,
    ConjunctionGroup,
    EventBatch,
    Explanation,
    IdArray,
    Matcher,
    MatcherStats,
    Matches,
    Oracle,
    create_matcher,
)
from tocsin.matching.statistics import Statistics
from tocsin.model.event import Event

INDEX: Final = "dynamic"
INDEX_KERNELS: Final = "tocsin.matching.le_subscribe._kernels.adaptation"  # compiled wherever it has run

_FEW: Final = 1_000  # conjunctions that brute force may hold
_WORTH: Final = 300_000  # conjunctions that it may try, over all events, before an index is worth its loading
_TOO_MANY: Final = 5_000  # conjunctions for which no event waits on brute force while the index is compiled


class StartingMatcher:
    """Begins as the oracle, which costs nothing to start, and becomes the index when there is work for it.

    Both answer alike. Where the index has never been compiled on this machine, that is done in the background,
    unless there are so many subscriptions that to wait for it is quicker; if it may not be compiled at all, it is
    used only where it has been. The engine's lock guards it.
    """

    def __init__(
        self,
        oracle: Oracle | None = None,
        *,
        may_compile: bool = True,
        statistics: Statistics | None = None,
    ) -> None:
        self._statistics = statistics
        self._oracle: Oracle | None = oracle or Oracle()
        self._may_compile = may_compile
        self._index: Matcher | None = None
        self._tried = 0
        self._compiling: Thread | None = None

    @property
    def current(self) -> Matcher:
        """Return the matcher that answers now."""
        found = self._index if self._oracle is None else self._oracle
        assert found is not None  # noqa: S101 - it is one or the other
        return found

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions; any one of those that carry an id satisfies it.

        Clause forms are expanded, or refused, at once: the index could not hold them later.
        """
        subscriptions = subscriptions.in_conjunctions()
        if self._oracle is not None and len(self._oracle) + len(subscriptions) > _FEW:
            self._grow(len(self._oracle) + len(subscriptions))
        self.current.add(subscriptions)

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        self.current.remove(ids)

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        if self._oracle is not None:
            self._tried += len(events) * len(self._oracle)
            if self._tried > _WORTH:
                self._grow(len(self._oracle))
        return self.current.match(events)

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        return self.current.explain(event, id)

    def stats(self) -> MatcherStats:
        """Return what is held and what that costs."""
        return self.current.stats()

    def _grow(self, size: int) -> None:
        """Become the index, at once if it is compiled or urgent, else as soon as it is compiled."""
        from tocsin.structures.jit import is_compiled_before  # noqa: PLC0415 - it brings the compiler

        oracle = self._oracle
        if oracle is None:
            return
        if not self._may_compile and not is_compiled_before(INDEX_KERNELS):
            self._tried = 0  # asked again after as much work
            return
        if self._compiling is None and not is_compiled_before(INDEX_KERNELS) and size <= _TOO_MANY:
            self._compiling = Thread(target=_warm_up, daemon=True)
            self._compiling.start()
        if self._compiling is not None and self._compiling.is_alive() and size <= _TOO_MANY:
            return
        index = create_matcher(INDEX, statistics=self._statistics)
        index.add(held_by(oracle))
        self._index, self._oracle = index, None


def _warm_up() -> None:
    create_matcher(INDEX).warm_up()  # type: ignore[attr-defined]


def held_by(oracle: Oracle) -> ConjunctionBatch:
    """Return all that brute force holds, to be added to an index."""
    return ConjunctionBatch(
        tuple(ConjunctionGroup(c, ids, {}) for ids, c in oracle.conjunctions()),
        tuple(ClauseGroup(c, ids, {}) for ids, c in oracle.clauses()),
    )
