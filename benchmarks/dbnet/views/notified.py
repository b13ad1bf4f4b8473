"""From updates to the notified: where each update notifies very many, and where it notifies one at the most."""

from __future__ import annotations

from typing import Final

import numpy as np

from benchmarks.dbnet.views.session import Processed, ViewSession, process_updates
from tocsin.dissemination.scenarios.walks import Updates, in_batches
from tocsin.model.errors import TocsinError
from tocsin.views.changes import Floats, PointChanges
from tocsin.views.range_family import RangeFamily

_PASSES: Final = 20  # of leaving out rows whose updates notify several


def notified(session: ViewSession) -> None:
    """Measure spikes, which notify very many, updates of Table 1, and updates that notify one at the most."""
    scale = session.scale
    ranges = session.ranges(scale.notified)
    points, updates = session.updates(scale.rows)
    held = (points.x, points.y)
    family = session.family(held, ranges)
    session.check(family, held, ranges, updates.take(0, scale.checked).changes)
    done = process_updates(family, in_batches(updates.changes, scale.batch, scale.checked), scale.seconds)
    session.check_answers(
        family.answers.answer, updates.take(0, scale.checked + done.updates).applied_to(points), ranges
    )
    _record(session, "Table 1", done)
    _undo(family, updates.take(0, scale.checked + done.updates), scale.batch)

    _, spikes = session.updates(scale.rows, spikes=0.5)
    done = process_updates(family, in_batches(spikes.changes, scale.crowded), scale.seconds)
    session.check_answers(family.answers.answer, spikes.take(0, done.updates).applied_to(points), ranges)
    _record(session, "many notified", done)
    _undo(family, spikes.take(0, done.updates), scale.crowded)

    quiet = _at_most_one(session, family, len(points))
    done = process_updates(family, in_batches(quiet.changes, scale.batch), scale.seconds)
    if done.most > 1:
        raise TocsinError(f"an update that was to notify one at the most has notified {done.most:,}")
    session.check_answers(family.answers.answer, quiet.take(0, done.updates).applied_to(points), ranges)
    _record(session, "at most one notified", done)
    _undo(family, quiet.take(0, done.updates), scale.batch)

    done = process_updates(family, in_batches(quiet.take(0, scale.single).changes, 1), scale.seconds)
    _record(session, "at most one notified, one by one", done)


def _at_most_one(session: ViewSession, family: RangeFamily, rows: int) -> Updates:
    """Return updates that notify one subscription at the most; the family is as it was."""
    _, updates = session.updates(rows, spikes=0.0)
    for _ in range(_PASSES):
        noisy = np.zeros(rows, dtype=np.bool_)
        for first in range(0, len(updates), session.scale.batch):
            part = updates.take(first, first + session.scale.batch)
            told = family.change_points(part.changes)
            noisy[part.rows[np.bincount(told.rows, minlength=len(part)) > 1]] = True
        _undo(family, updates, session.scale.batch)
        if not noisy.any():
            return updates
        updates = updates.of_rows(~noisy)
    raise TocsinError(f"after {_PASSES} passes of leaving out rows, updates still notify several")


def _undo(family: RangeFamily, updates: Updates, batch: int) -> None:
    """Take updates back, the last one first."""
    there = updates.changes
    back = PointChanges(there.new_x[::-1], there.new_y[::-1], there.old_x[::-1], there.old_y[::-1])
    for changes in in_batches(back, batch):
        family.change_points(PointChanges(*map(np.ascontiguousarray, _columns(changes))))


def _columns(changes: PointChanges) -> tuple[Floats, ...]:
    return changes.old_x, changes.old_y, changes.new_x, changes.new_y


def _record(session: ViewSession, label: str, done: Processed) -> None:
    by_processor = done.updates / max(done.processor, 1e-9)
    session.record_rates(label, session.scale.notified, done, by_processor_time=by_processor)
