"""A matcher whose two phases are told apart."""

from __future__ import annotations

import time

from benchmarks.runner.subject import Subject
from tocsin.matching import EventBatch
from tocsin.matching.encoding.events import encode_events
from tocsin.matching.le_subscribe._kernels.matching import observe_all
from tocsin.matching.le_subscribe.matcher import ClusteredMatcher


class PhasedSubject(Subject):
    """Times the first phase, in which predicates are told, by itself."""

    def _first_phase(self, batch: EventBatch) -> float | None:
        if not isinstance(self.matcher, ClusteredMatcher):
            return None
        events = encode_events(batch, self.matcher.vocabulary)
        start = time.perf_counter()
        observe_all(self.matcher._state, events)  # noqa: SLF001 - no user asks for half a match
        return time.perf_counter() - start
