"""The results of the engine as HTML tables and charts, of which only the first and last rows become objects."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from tocsin.display.charts import bar_chart, bars_over_time
from tocsin.display.html import box, head, table
from tocsin.display.text import counted, shortened
from tocsin.language.printer import value_text
from tocsin.model import Notification
from tocsin.views.explanation_tree import answer_text

if TYPE_CHECKING:
    from tocsin.engine.notifications import Notifications
    from tocsin.engine.results import DryRun, NamedAnswerChanges, NamedMatches, NamedSequenceMatches

_FIRST: Final = 10
_LAST: Final = 5
_WIDTH: Final = 90  # of values
_DAYS: Final = 12 * 86_400_000_000  # microseconds since 1970 below which a time is a count of ticks


def notifications_table(notifications: Notifications) -> str:
    """Return the first and last notifications."""
    columns = ("", "subscription", "stream", "end", "values")
    rows = _ends(len(notifications), lambda i: (i, *_row(notifications[i])))
    return box(head(counted(len(notifications), "notification")), table(columns, rows))


def _row(note: Notification) -> tuple[object, ...]:
    stream = note.events[-1].stream if note.events else None
    end = None if note.end is None else str(note.end)
    return note.subscription, stream, end, notification_values(note)


def notification_values(note: Notification, width: int = _WIDTH) -> str:
    """Return the answers of a view's notification, the selected values, or the attributes of the event."""
    if note.view:
        new = answer_text(note.new, width)
        return f"{answer_text(note.old, width)} → {new}" if note.old is not None else new
    values: Any = note.values
    if values is None:
        values = note.events[-1].attributes if note.events else {}
    return values_text(values, width)


def values_text(values: Any, width: int = _WIDTH) -> str:
    """Return values by name in one line; those beyond the width are not read."""
    parts: list[str] = []
    room = width
    for name, value in values.items():
        parts.append(f"{name}={'null' if value is None else shortened(value_text(value), width)}")
        room -= len(parts[-1])
        if room < 0:
            break
    return shortened(", ".join(parts), width)


def matches_table(matches: NamedMatches) -> str:
    """Return the first and last matches, and how many there are."""
    rows = len(matches)

    def one(i: int) -> tuple[object, ...]:
        row = int(np.searchsorted(matches.offsets, i, side="right")) - 1
        scores = () if matches.scores is None else (matches.scores[i],)
        return row, matches.ids[i], *scores

    columns = ("row", "subscription", *(() if matches.scores is None else ("score",)))
    title = f"{counted(len(matches.ids), 'match')} of {counted(rows, 'row')}"
    if matches.faults:
        title += f", {counted(len(matches.faults), 'row')} refused"
    return box(head(title), table(columns, _ends(len(matches.ids), one)))


def sequence_matches_table(matches: NamedSequenceMatches) -> str:
    """Return the first and last sequences."""

    def one(i: int) -> tuple[object, ...]:
        times = str(matches.starts[i]), str(matches.ends[i])
        return int(matches.rows[i]), matches.subscriptions[i], *times, values_text(matches.values[i] or {})

    columns = ("row", "subscription", "start", "end", "values")
    return box(head(counted(len(matches), "sequence")), table(columns, _ends(len(matches), one)))


def answer_changes_table(changes: NamedAnswerChanges) -> str:
    """Return the first and last changes of answers."""

    def one(i: int) -> tuple[object, ...]:
        answers = (_answer(changes.old[i]), _answer(changes.new[i]))
        return int(changes.rows[i]), changes.subscriptions[i], *answers

    columns = ("row", "subscription", "old", "new")
    return box(head(counted(len(changes), "changed answer")), table(columns, _ends(len(changes), one)))


def _answer(answer: Any) -> str:
    """Return an answer as text; columns of numbers have NaN for null."""
    value = answer.item() if isinstance(answer, np.generic) else answer
    return answer_text(None if isinstance(value, float) and value != value else value, _WIDTH)  # noqa: PLR0124 - NaN


def _ends(count: int, row: Callable[[int], Sequence[object]]) -> list[Sequence[object] | None]:
    """Return the first and the last rows of so many, with None where some are left out."""
    if count <= _FIRST + _LAST + 1:
        return list(map(row, range(count)))
    return [*map(row, range(_FIRST)), None, *map(row, range(count - _LAST, count))]


def dry_run_chart(run: DryRun) -> str:
    """Return how often a query would have fired, by day, and the first times."""
    fired = run.fired
    ends = np.array([note.end for note in run.notifications if note.end is not None], dtype=np.int64)
    if not run.notifications:
        ends = np.fromiter((event.end for event in run.events), dtype=np.int64, count=len(run.events))
    is_counted = run.tick == 1 and len(ends) > 0 and -_DAYS < int(ends.min()) <= int(ends.max()) < _DAYS
    bars = bars_over_time(ends, None if is_counted else run.tick)
    title = f"would have fired {counted(fired, 'time')} in {counted(run.examined, 'event')}"
    more = [f"{counted(len(run.faults), 'record')} refused"] if run.faults else []
    more += [f"{counted(len(run.late), 'event')} late"] if run.late else []
    legend = ", ".join([*([bars.unit] if fired else []), *more])
    notes = [legend] if legend else []
    notes += [escape(warning) for warning in run.warnings]
    quiet = "".join(f'<p class="quiet">{note}</p>' for note in notes)
    return box(head(title), bar_chart(bars, "time"), quiet)
