"""Reports of events that come too late for sequences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from tocsin.model import Event
from tocsin.model.ticks import StreamTicks

_log = logging.getLogger("tocsin")


class LateLog:
    """Logs the first late event, and what can be done about it; further ones are only counted."""

    def __init__(self, ticks: StreamTicks) -> None:
        self._ticks = ticks
        self._has_logged = False

    def __call__(self, event: Event) -> None:
        """Take a late event."""
        if not self._has_logged:
            self._has_logged = True
            _log.warning(
                "event `%s` of stream `%s` ended at %s, before one that has come already: it reaches no sequence. If "
                "events may come out of order, say by how much: `Engine(out_of_orderness=…)`; if streams count "
                "different ticks, declare them: `engine.stream(…, tick=…)`. Further ones are only counted: "
                "`stats().late`",
                event.id,
                event.stream,
                self._ticks.shown(event.end, event.stream),
            )


def report_late(events: Iterable[Event], on_late: Callable[[Event], object]) -> None:
    """Report each late event once; if a report fails, the failure is raised after the others are reported."""
    failure: Exception | None = None
    for event in events:
        try:
            on_late(event)
        except Exception as fault:  # noqa: BLE001 - whatever it is, each event is reported once
            failure = failure or fault
    if failure is not None:
        raise failure
