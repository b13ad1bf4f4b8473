"""The server's side: reformulating updates, finding the affected subscriptions, and writing a message to each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.dbnet.views.session import ViewSession
from tocsin.dissemination.scenarios.ranges import Ranges, draw_ranges
from tocsin.dissemination.scenarios.walks import TablePoints, Updates, in_batches
from tocsin.matching import Matches
from tocsin.views.aggregates.base import Reformulator
from tocsin.views.aggregates.extremes import Extremes
from tocsin.views.changes import PointChanges
from tocsin.views.messages import Messages
from tocsin.views.range_family import RangeFamily
from tocsin.views.state import Influence

_WORKLOADS: Final = {"non-ignorable": 0.0, "as they come": None}
_SENT: Final = np.dtype([("subscription", np.int64), ("value", np.float64)])
"""A message to one subscription, as it would be written to the network."""


class Phases(Struct):
    """The seconds of updates by the parts of the work, and their messages."""

    updates: int = 0
    messages: int = 0
    most: int = 0  # messages of one update
    affected: int = 0
    ignorable: int = 0
    reformulating: float = 0.0  # seconds
    hearing: float = 0.0
    assembling: float = 0.0

    @property
    def seconds(self) -> float:
        """Return the seconds of all parts."""
        return self.reformulating + self.hearing + self.assembling

    def count(self, messages: Messages, updates: int) -> None:
        """Count the messages that updates were reformulated into."""
        counts = np.bincount(messages.change, minlength=updates)
        self.updates += updates
        self.messages += len(messages)
        self.most = max(self.most, int(counts.max()))
        self.ignorable += int(np.count_nonzero(counts == 0))


def reformulate(session: ViewSession) -> None:
    """Record the cost of reformulating updates by the number of rows; there are no subscriptions."""
    for rows in session.scale.reformulated:
        for label, ignorable in _WORKLOADS.items():
            points, updates = session.updates(rows, ignorable=ignorable)
            session.tell(label, f"{rows:,} rows")
            server = Extremes()
            begun = time.perf_counter()
            server.load(points.x, points.y)
            loading = time.perf_counter() - begun
            spent, classes = _reformulated(session, server, updates.changes)
            _check_server(session, server, points, updates, spent.updates)
            each = spent.reformulating / spent.updates
            session.record("time", label, rows, each * 1e6, "us an update", updates=float(spent.updates))
            session.record(
                "messages", label, rows, spent.messages / spent.updates, "an update", most=float(spent.most)
            )
            for influence in Influence:
                share = 100 * classes[influence] / spent.updates
                session.record(influence.name.lower(), label, rows, share, "%")
            session.record("memory", label, rows, server.nbytes / rows, "bytes a row")
            session.record("building", label, rows, rows / max(loading, 1e-9), "rows/s")


def database_size(session: ViewSession) -> None:
    """Vary the rows (figure 6, table 2)."""
    ranges = session.ranges(session.scale.heard)
    for rows in session.scale.database:
        _measure(session, rows, ranges, rows)


def subscriptions(session: ViewSession) -> None:
    """Vary the subscriptions (figure 8, table 3)."""
    for count in session.scale.subscriptions:
        _measure(session, session.scale.few_rows, session.ranges(count), count)


def trace(session: ViewSession) -> None:
    """Follow the quotes of stocks (figure 13's workload)."""
    quotes = session.quotes
    ranges = draw_ranges(session.scale.compared, domain=quotes.domain)
    points, label = (quotes.x, quotes.y), "quotes"
    family = session.family(points, ranges)
    checked = session.scale.checked
    session.check(family, points, ranges, next(in_batches(quotes.changes, checked)))
    spent = _processed(session, family, in_batches(quotes.changes, session.scale.batch, checked))
    at = len(quotes.x)
    _record_sides(session, spent, at)
    share = 100 * (1 - spent.ignorable / spent.updates)
    session.record("non-ignorable", label, at, share, "%", updates=float(spent.updates))


def _measure(session: ViewSession, rows: int, ranges: Ranges, at: int) -> None:
    points, updates = session.updates(rows)
    held = (points.x, points.y)
    family = session.family(held, ranges)
    checked = session.scale.checked
    session.check(family, held, ranges, updates.take(0, checked).changes)
    spent = _processed(session, family, in_batches(updates.changes, session.scale.batch, checked))
    _check_server(session, family.server, points, updates, checked + spent.updates)
    _record_sides(session, spent, at)
    stats = family.stats()
    listening, answering = stats.index_bytes / len(ranges), stats.answer_bytes / len(ranges)
    session.record("memory", "multicast", at, listening, "bytes each", answers=answering)


def _record_sides(session: ViewSession, spent: Phases, at: int) -> None:
    """Record the cost of a server that only reformulates, that finds the affected, or that writes to each of them."""
    so_far = 0.0
    for label, seconds, outgoing in (
        ("S-CN", spent.reformulating, spent.messages),
        ("multicast", spent.hearing, None),
        ("unicast", spent.assembling, spent.affected),
    ):
        so_far += seconds
        each = so_far / spent.updates * 1e6
        session.record("time", label, at, each, "us an update", updates=float(spent.updates))
        if outgoing is not None:
            session.record("outgoing", label, at, outgoing / spent.updates, "messages an update")


def _processed(session: ViewSession, family: RangeFamily, batches: Iterable[PointChanges]) -> Phases:
    """Process updates through all parts of the work, as many batches as the time allows."""
    spent = Phases()
    for changes in batches:
        begun = time.perf_counter()
        messages = family.server.reformulate(changes)
        reformulated = time.perf_counter()
        found = family.index.match(messages)
        heard = time.perf_counter()
        outgoing = _assembled(messages, found)
        spent.assembling += time.perf_counter() - heard
        spent.hearing += heard - reformulated
        spent.reformulating += reformulated - begun
        spent.count(messages, len(changes))
        spent.affected += len(outgoing)
        if spent.seconds > session.scale.seconds:
            break
    return spent


def _reformulated(
    session: ViewSession, server: Extremes, changes: PointChanges
) -> tuple[Phases, Counter[Influence]]:
    """Reformulate updates, as many batches as the time allows; return the cost, and the number of each class."""
    spent, classes = Phases(), Counter[Influence]()
    for batch in in_batches(changes, session.scale.batch):
        influence = np.empty(len(batch), dtype=np.int8)
        begun = time.perf_counter()
        messages = server.reformulate(batch, influence)
        spent.reformulating += time.perf_counter() - begun
        spent.count(messages, len(batch))
        classes.update(map(Influence, influence.tolist()))
        if spent.seconds > session.scale.seconds:
            break
    return spent, classes


def _assembled(messages: Messages, found: Matches) -> NDArray[np.void]:
    """Return a message to each subscription that is affected."""
    outgoing = np.empty(len(found.ids), dtype=_SENT)
    outgoing["subscription"] = found.ids
    outgoing["value"] = np.repeat(messages.payload["value"], np.diff(found.offsets))
    return outgoing


def _check_server(
    session: ViewSession, server: Reformulator, points: TablePoints, updates: Updates, done: int
) -> None:
    """Raise `MatcherError` if the server's answers after so many updates differ from the recomputed ones."""
    after = updates.take(0, done).applied_to(points)
    ranges = session.ranges(session.scale.compared)

    def answer(number: int) -> float:
        one = slice(number, number + 1)
        return float(server.present(ranges.lows[one], ranges.highs[one])["value"][0])

    session.check_answers(answer, after, ranges, "the server")
