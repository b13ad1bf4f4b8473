"""The server's side: what it takes to reformulate updates, to find who is affected, and to write a message to each."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.dbnet.views.recomputation import check_server
from benchmarks.dbnet.views.session import LEAST, Session
from tocsin.dissemination.scenarios.ranges import Ranges, draw_ranges
from tocsin.dissemination.scenarios.recomputation import Recomputation, sampled
from tocsin.dissemination.scenarios.walks import TablePoints, Updates, in_batches
from tocsin.matching import Matches
from tocsin.views.aggregates.base import Reformulator
from tocsin.views.aggregates.extremes import Extremes
from tocsin.views.changes import Influence, PointChanges
from tocsin.views.messages import Messages
from tocsin.views.range_family import RangeFamily

_WORKLOADS: Final = {"non-ignorable": 0.0, "as they come": None}
_SENT: Final = np.dtype([("subscription", np.int64), ("value", np.float64)])
"""A message to one subscription, as it would be written to the network."""


class Phases(Struct):
    """What updates took by the parts of the work, and what came of them."""

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
        """Take down what updates were reformulated into."""
        counts = np.bincount(messages.change, minlength=updates)
        self.updates += updates
        self.messages += len(messages)
        self.most = max(self.most, int(counts.max()))
        self.ignorable += int(np.count_nonzero(counts == 0))


def reformulate(session: Session) -> None:
    """Reformulate updates of ever more rows; nobody hears of them."""
    for rows in session.scale.reformulated:
        for label, ignorable in _WORKLOADS.items():
            points, updates = session.material.updates(rows, ignorable=ignorable)
            contender = session.called(label)
            session.tell(contender, f"{rows:,} rows")
            server = Extremes()
            begun = time.perf_counter()
            server.load(points.x, points.y)
            loading = time.perf_counter() - begun
            spent, classes = _reformulated(session, server, updates.changes)
            _check_server(session, server, points, updates, spent.updates)
            each = spent.reformulating / spent.updates
            session.record(
                "time", contender, rows, (each * 1e6, "us an update"), updates=float(spent.updates)
            )
            session.record(
                "messages",
                contender,
                rows,
                (spent.messages / spent.updates, "an update"),
                most=float(spent.most),
            )
            for influence in Influence:
                share = 100 * classes[influence] / spent.updates
                session.record(influence.name.lower(), contender, rows, (share, "%"))
            session.record("memory", contender, rows, (server.nbytes / rows, "bytes a row"))
            session.record("building", contender, rows, (rows / max(loading, 1e-9), "rows/s"))


def database_size(session: Session) -> None:
    """Vary the rows (figure 6, table 2)."""
    ranges = session.material.ranges(session.scale.heard)
    for rows in session.scale.database:
        _measure(session, rows, ranges, rows)


def subscriptions(session: Session) -> None:
    """Vary the subscriptions (figure 8, table 3)."""
    for count in session.scale.subscriptions:
        _measure(session, session.scale.few_rows, session.material.ranges(count), count)


def trace(session: Session) -> None:
    """Follow the quotes of stocks (figure 13's workload)."""
    quotes = session.material.trace
    ranges = draw_ranges(session.scale.compared, domain=quotes.domain)
    points, contender = (quotes.x, quotes.y), session.called("quotes")
    family = session.family(points, ranges)
    checked = session.scale.checked
    session.check(family, points, ranges, next(in_batches(quotes.changes, checked)))
    spent = _followed(session, family, in_batches(quotes.changes, session.scale.batch, checked))
    at = len(quotes.x)
    _record_sides(session, spent, at)
    share = 100 * (1 - spent.ignorable / spent.updates)
    session.record("non-ignorable", contender, at, (share, "%"), updates=float(spent.updates))


def _measure(session: Session, rows: int, ranges: Ranges, at: int) -> None:
    points, updates = session.material.updates(rows)
    held = (points.x, points.y)
    family = session.family(held, ranges)
    checked = session.scale.checked
    session.check(family, held, ranges, updates.take(0, checked).changes)
    spent = _followed(session, family, in_batches(updates.changes, session.scale.batch, checked))
    _check_server(session, family.server, points, updates, checked + spent.updates)
    _record_sides(session, spent, at)
    stats = family.stats()
    listening, answering = stats.index_bytes / len(ranges), stats.answer_bytes / len(ranges)
    session.record("memory", session.called("multicast"), at, (listening, "bytes each"), answers=answering)


def _record_sides(session: Session, spent: Phases, at: int) -> None:
    """Record what a server does that hands messages to the network, that finds who hears them, or that writes to each."""
    so_far = 0.0
    for label, seconds, outgoing in (
        ("S-CN", spent.reformulating, spent.messages),
        ("multicast", spent.hearing, None),
        ("unicast", spent.assembling, spent.affected),
    ):
        so_far += seconds
        contender = session.called(label)
        each = so_far / spent.updates * 1e6
        session.record("time", contender, at, (each, "us an update"), updates=float(spent.updates))
        if outgoing is not None:
            session.record("outgoing", contender, at, (outgoing / spent.updates, "messages an update"))


def _followed(session: Session, family: RangeFamily, batches: Iterable[PointChanges]) -> Phases:
    """Let updates go through all parts of the work, as many batches as the time allows."""
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
    session: Session, server: Extremes, changes: PointChanges
) -> tuple[Phases, Counter[Influence]]:
    """Reformulate updates, as many batches as the time allows; return what that took, and how many are of each class."""
    spent, classes = Phases(), Counter[Influence]()
    for batch in in_batches(changes, session.scale.batch):
        begun = time.perf_counter()
        messages, influence = server.follow(batch)
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
    session: Session, server: Reformulator, points: TablePoints, updates: Updates, done: int
) -> None:
    """Raise `MatcherError` if the server's answers after so many updates are not those that are recomputed."""
    after = updates.take(0, done).applied_to(points)
    ranges = session.material.ranges(session.scale.compared)
    numbers = sampled(len(ranges), session.scale.sample)
    check_server(server, Recomputation(LEAST, after.x, after.y), ranges.lows[numbers], ranges.highs[numbers])
