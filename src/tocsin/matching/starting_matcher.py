"""The default matcher of engine and index: brute force while there is little to do, an index from then on."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum, auto
from math import inf
from typing import TYPE_CHECKING, Final

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
from tocsin.matching.direct_evaluation import DirectEvaluation
from tocsin.matching.registry import thread_options
from tocsin.matching.statistics import Statistics
from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.structures.answering import always_compiles_first, compiling_first

if TYPE_CHECKING:
    from tocsin.structures.background_compiler import Job

INDEX: Final = "adaptive"
INDEX_KERNELS: Final = "tocsin.matching.adaptive._kernels.adaptation"  # compiled wherever it has run

MAX_STORED: Final = 1_000  # conjunctions that brute force may hold
MAX_FEW: Final = 100  # conjunctions up to which no index is quicker
MAX_TRIED: Final = (
    20_000_000  # conjunctions that it may try, over all events, before an index is worth its loading
)

# While the index is compiled, which takes ten seconds. Brute force takes 0.6 µs for a conjunction and an event.
_MOST_MEANWHILE: Final = 100_000  # conjunctions that it may hold: one event takes it 60 ms
_TRIED_MEANWHILE: Final = 15_000_000  # that it may try, until waiting would have been quicker
_NEVER_WAITS: Final = 5_000  # conjunctions up to which an event never waits: it takes 3 ms at most


class Compiling(Enum):
    """When the index is compiled, if this machine never did it before."""

    IN_BACKGROUND = auto()  # unless there is so much to try that waiting is quicker
    AT_ONCE = auto()
    NEVER = auto()  # brute force goes on until another process has compiled it


class StartingMatcher:
    """Starts as the oracle, which costs nothing to load, and hands over to the index when there is work for it.

    Both give the same answers. `max_stored` is how many conjunctions brute force may hold, `max_tried` how many it may try over
    all events before the index is worth loading; it keeps `max_few` for ever. The index matches with `threads`. The caller's lock guards the matcher.
    """

    def __init__(
        self,
        oracle: Oracle | None = None,
        *,
        compiling: Compiling = Compiling.IN_BACKGROUND,
        max_stored: int = MAX_STORED,
        max_tried: float = MAX_TRIED,
        max_few: int = MAX_FEW,
        statistics: Statistics | None = None,
        threads: int = 1,
    ) -> None:
        self._oracle: Oracle | None = Oracle() if oracle is None else oracle
        self._direct = DirectEvaluation(self._oracle)
        self.index: Matcher | None = None  # once it has taken over; a caller may then use it directly
        self._when = compiling
        self._max_stored = max_stored
        self._max_tried = max_tried
        self._max_few = max_few
        self._statistics = statistics
        self._threads = thread_options(INDEX, threads)
        self._tried = 0
        self._compiling: Job | None = None
        self._tried_meanwhile = 0  # while it is compiled

    @property
    def current(self) -> Matcher:
        """Return the matcher that answers now."""
        found = self.index if self._oracle is None else self._oracle
        assert found is not None  # noqa: S101 - it is one or the other
        return found

    def add(self, subscriptions: ConjunctionBatch) -> None:
        """Add conjunctions and CNFs; any one of the expressions that carry an id satisfies it."""
        if self._oracle is not None and len(self._oracle) + len(subscriptions) > self._max_stored:
            self._hand_over(len(self._oracle) + len(subscriptions))
        self.current.add(subscriptions)

    def remove(self, ids: IdArray) -> None:
        """Remove all conjunctions of these ids."""
        self.current.remove(ids)

    def match(self, events: EventBatch) -> Matches:
        """Return, per event, the ids of the subscriptions it satisfies, ascending and without repeats."""
        self._count(len(events))
        return self.index.match(events) if self.index is not None else self._direct.match(events)

    def match_one(self, attributes: Mapping[str, Value]) -> IdArray:
        """Return the ids of the subscriptions that one event satisfies, ascending and without repeats."""
        self._count(1)
        index = self.index
        return self._direct.match_one(attributes) if index is None else index.match_one(attributes)

    @property
    def is_about_to_index(self) -> bool:
        """Tell whether the next event makes the index worth its loading."""
        oracle = self._oracle
        if oracle is None or len(oracle) <= self._max_few:
            return False
        is_compiled = self._compiling is not None and self._compiling.is_done
        return is_compiled or self._tried + len(oracle) > self._max_tried

    def _count(self, events: int) -> None:
        """Count what brute force has to try, and hand over when it was enough."""
        oracle = self._oracle
        if oracle is not None and len(oracle) > self._max_few:
            self._tried += events * len(oracle)
            if self._compiling is not None:
                self._tried_meanwhile += events * len(oracle)
            if self._compiling is not None or self._tried > self._max_tried:
                self._hand_over(len(oracle))

    def explain(self, event: Event, id: int) -> Explanation:
        """Return why subscription `id` matches `event` or does not."""
        return self.current.explain(event, id)

    def stats(self) -> MatcherStats:
        """Return how much is stored and what that costs."""
        return self.current.stats()

    def _hand_over(self, size: int) -> None:
        """Replace the oracle by the index, unless that has to be compiled first."""
        if self._oracle is None or not self._can_index(size):
            return
        with compiling_first:  # of so many conjunctions, each by itself is a lot
            index = create_matcher(INDEX, statistics=self._statistics, **self._threads)
            index.add(
                ConjunctionBatch(
                    tuple(ConjunctionGroup(c, ids, {}) for ids, c in self._oracle.conjunctions()),
                    tuple(ClauseGroup(c, ids, {}) for ids, c in self._oracle.clauses()),
                )
            )
        self.index, self._oracle = index, None

    def _can_index(self, size: int) -> bool:
        """Tell whether the index is to be used now, for so many conjunctions."""
        job = self._compiling
        if job is None:
            return self._begin(size)
        if job.is_done or size > _MOST_MEANWHILE:
            return True
        return size > _NEVER_WAITS and self._tried_meanwhile > _TRIED_MEANWHILE

    def _begin(self, size: int) -> bool:
        """Have the index compiled as this matcher is to do it; return whether it can be used now."""
        from tocsin.structures.jit import is_compiled_before  # noqa: PLC0415 - it brings the compiler

        if is_compiled_before(INDEX_KERNELS):
            return True
        if self._when is Compiling.NEVER:
            self._tried = 0  # looked up again after as much work
            return False
        if self._when is Compiling.AT_ONCE or always_compiles_first() or size > _MOST_MEANWHILE:
            with compiling_first:
                _warm_up()
            return True
        from tocsin.structures.background_compiler import Job, compiler  # noqa: PLC0415

        self._compiling = Job("the index of filters", _warm_up, is_urgent=False)
        compiler.add(self._compiling)
        return False


def saving_matcher(oracle: Oracle) -> StartingMatcher:
    """Return a starting matcher for subscriptions that are saved, and matched elsewhere.

    It is compiled here, once, rather than by every process that opens the saved matcher.
    """
    return StartingMatcher(oracle, compiling=Compiling.AT_ONCE, max_tried=inf)


def _warm_up() -> None:
    create_matcher(INDEX).warm_up()  # type: ignore[attr-defined]
