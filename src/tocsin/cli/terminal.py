"""What the commands share at the terminal: consoles, progress, faults that are told but not drowned in."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import IO, Protocol, TypeVar

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TaskProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)
from rich.text import Text

from tocsin.language.printer import value_text
from tocsin.model import Notification
from tocsin.model.subscription import Answer, Told

Item = TypeVar("Item")

errors = Console(stderr=True, highlight=False)

_SHOWN = 20
_STEP = 256  # items between two looks at the progress


class Sized(Protocol):
    """Something that is read: how much there is, and how much has been read."""

    @property
    def size(self) -> int | None:
        """Return how much there is, if that is known."""

    @property
    def position(self) -> int:
        """Return how much has been read."""


class FaultLog:
    """Tells the first faults at the terminal and counts the rest; `file` takes them all."""

    def __init__(self, file: Path | None = None) -> None:
        self.count = 0
        self._file: IO[str] | None = file.open("w", encoding="utf-8") if file else None

    def __call__(self, fault: object) -> None:
        """Take a fault."""
        self.count += 1
        if self._file is not None:
            self._file.write(f"{fault}\n")
        if self.count <= _SHOWN:
            complain(str(fault))
        elif self.count == _SHOWN + 1:
            note(
                "further faults are counted only" + ("" if self._file else "; --faults FILE writes them all")
            )

    def __enter__(self) -> FaultLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()


def complain(text: object) -> None:
    """Tell an error."""
    errors.print(str(text), style="red", markup=False, soft_wrap=True)


def warn(text: str) -> None:
    """Tell a warning."""
    errors.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)


def note(text: str) -> None:
    """Tell something in passing."""
    errors.print(text, style="dim", markup=False, soft_wrap=True)


def counted(count: int, what: str) -> str:
    """Return a number of things in words: `1 event`, `2 events`."""
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def shown(text: str, width: int) -> str:
    """Return a text cut to a width, with a mark where it was cut."""
    return text if len(text) <= width else text[: width - 1] + "…"


def told(notification: Notification) -> str:
    """Return what a notification tells, in one line: a view's answers, the selected values, or else the event."""
    if notification.view:
        return _answers(notification)
    values = notification.events[-1].attributes if notification.values is None else notification.values
    return ", ".join(f"{k}={'null' if v is None else value_text(v)}" for k, v in values.items())


def _answers(note: Notification) -> str:
    """Return how an answer changed; of several values or rows, those that went and those that came."""
    if note.removed or note.added:
        parts = [f"- {shown_answer(one)}" for one in note.removed]
        return ", ".join([*parts, *(f"+ {shown_answer(one)}" for one in note.added)])
    new = shown_answer(note.new)
    return f"{shown_answer(note.old)} → {new}" if note.event_ids else new


def shown_answer(answer: Answer | Told) -> str:
    """Return an answer, or one of its values or rows, in one line."""
    if answer is None:
        return "null"
    if isinstance(answer, tuple):
        return f"({', '.join(map(shown_answer, answer))})"
    if isinstance(answer, Mapping):
        return f"{{{', '.join(f'{name}={shown_answer(one)}' for name, one in answer.items())}}}"
    return value_text(answer)


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[Progress]:
    """Show progress on standard error, if somebody is looking: a bar, the rate, the time left."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        _Rate(what),
        TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=quiet or not errors.is_terminal,
    )
    with bar:
        yield bar


def watched(items: Iterable[Item], bar: Progress, description: str, source: Sized) -> Iterator[Item]:
    """Go through `items` and show how far `source` has been read."""
    task = bar.add_task(description, total=None, count=0)
    count = 0
    for item in items:
        yield item
        count += 1
        if count % _STEP == 0:
            bar.update(task, total=source.size, completed=source.position, count=count)
    bar.update(task, total=source.size, completed=source.position, count=count)


class _Rate(ProgressColumn):
    """How many things there were, and how many a second."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def render(self, task: Task) -> Text:
        """Return the count and the rate."""
        count = task.fields.get("count", 0)
        elapsed = task.elapsed or 0
        rate = f", {count / elapsed:,.0f}/s" if elapsed > 0.5 else ""
        return Text(f"{count:,} {self._what}{rate}", style="cyan")


class _Notes(logging.Handler):
    """Shows what the library has to say as notes."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def show_log() -> None:
    """Show what the library tells of long work, such as compiling."""
    log = logging.getLogger("tocsin")
    if not any(isinstance(handler, _Notes) for handler in log.handlers):
        log.addHandler(_Notes())
        log.setLevel(logging.INFO)
