"""Terminal output that the commands share: messages, progress, fault logs, notifications as text."""

from __future__ import annotations

import logging
import sys
import zlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import IO, Final, Protocol, TypeVar

import pyarrow as pa
import rich.progress
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from tocsin.cli.console import new_console
from tocsin.display.text import counted as counted  # noqa: PLC0414 - for the commands
from tocsin.display.text import shortened as shortened  # noqa: PLC0414
from tocsin.display.trees import Branch, Style
from tocsin.engine import Engine
from tocsin.formats.event_blocks import EventBlock
from tocsin.formats.files import is_standard
from tocsin.language.printer import value_text
from tocsin.model import Notification
from tocsin.model.errors import TocsinError
from tocsin.views.explanation_tree import answer_text

Item = TypeVar("Item")

REPORTED: Final = (TocsinError, OSError, EOFError, zlib.error, UnicodeError, pa.ArrowException)
"""The errors that end a command with 2 and a message."""

errors = new_console(stderr=True)

_COLOURS = {
    Style.PLAIN: "",
    Style.GOOD: "green",
    Style.BAD: "red",
    Style.UNKNOWN: "yellow",
    Style.QUIET: "dim",
    Style.STRONG: "bold",
    Style.COUNT: "cyan",
}

_SHOWN = 20
_STEP = 256  # items between two updates of the progress


class Sized(Protocol):
    """A source with a size and a reading position."""

    @property
    def size(self) -> int | None:
        """Return the size of the source, if it is known."""

    @property
    def position(self) -> int:
        """Return how much has been read."""


class FaultLog(AbstractContextManager["FaultLog"]):
    """Prints the first faults and counts all of them; `file` receives them all."""

    def __init__(self, file: Path | None = None) -> None:
        self.count = 0
        self.first: list[object] = []  # as many as are printed
        self._is_own = file is not None and not is_standard(file)
        self._file: IO[str] | None = None
        if file is not None:
            self._file = (
                file.open("w", encoding="utf-8", errors="backslashreplace") if self._is_own else sys.stdout
            )

    def __call__(self, fault: object) -> None:
        """Log a fault."""
        self.count += 1
        if self._file is not None:
            self._file.write(f"{fault}\n")
        if self.count <= _SHOWN:
            self.first.append(fault)
            complain(str(fault))
        elif self.count == _SHOWN + 1:
            note(
                "further faults are counted only" + ("" if self._file else "; --faults FILE writes them all")
            )

    def __exit__(self, *_: object) -> None:
        if self._file is not None and self._is_own:
            self._file.close()


def complain(text: object) -> None:
    """Print an error."""
    errors.print(str(text), style="red", markup=False, soft_wrap=True)


def error_text(error: BaseException) -> str:
    """Return what an error says; of a file that cannot be opened its name and the reason."""
    if isinstance(error, OSError) and error.filename is not None and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return str(error) or type(error).__name__


def warn(text: str) -> None:
    """Print a warning."""
    errors.print(f"warning: {text}", style="yellow", markup=False, soft_wrap=True)


def note(text: str) -> None:
    """Print a remark."""
    errors.print(text, style="dim", markup=False, soft_wrap=True)


def print_trees(trees: Sequence[Branch], to: Console) -> None:
    """Print trees; a line alone is not wrapped."""
    for tree in trees:
        if tree.branches:
            to.print(_rich_tree(tree))
        else:
            to.print(_rich_line(tree), soft_wrap=True)


def _rich_tree(branch: Branch, tree: Tree | None = None) -> Tree:
    made = Tree(_rich_line(branch)) if tree is None else tree.add(_rich_line(branch))
    for one in branch.branches:
        _rich_tree(one, made)
    return made


def _rich_line(branch: Branch) -> Text:
    line = Text.assemble(*((span.text, _COLOURS[span.style]) for span in branch.line))
    line.rstrip()
    return line


def flushed(engine: Engine) -> Iterator[Notification]:
    """Return the notifications of buffered events; the buffer is flushed when the first one is taken."""
    yield from engine.flush()


def notification_text(notification: Notification) -> str:
    """Return a notification in one line: a view's answers, the selected values, or the event's attributes."""
    if notification.view:
        return _answers(notification)
    values = notification.events[-1].attributes if notification.values is None else notification.values
    return ", ".join(f"{k}={'null' if v is None else value_text(v)}" for k, v in values.items())


def _answers(note: Notification) -> str:
    """Return the change of an answer; of a list of values or rows, the removed and added ones."""
    if note.removed or note.added:
        parts = [f"- {answer_text(one)}" for one in note.removed]
        return ", ".join([*parts, *(f"+ {answer_text(one)}" for one in note.added)])
    new = answer_text(note.new)
    return f"{answer_text(note.old)} → {new}" if note.event_ids else new


@contextmanager
def progress(what: str, *, quiet: bool = False) -> Iterator[rich.progress.Progress]:
    """Show progress on standard error if it is a terminal: a bar, the rate, the time left."""
    bar = rich.progress.Progress(
        rich.progress.SpinnerColumn(),
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.TaskProgressColumn(),
        _Rate(what),
        rich.progress.TimeRemainingColumn(),
        console=errors,
        transient=True,
        disable=quiet or not errors.is_terminal,
    )
    with bar:
        yield bar


def watched(
    items: Iterable[Item], bar: rich.progress.Progress, description: str, source: Sized
) -> Iterator[Item]:
    """Return `items`, and show the reading position of `source` while they are taken; a block counts its events."""
    task = bar.add_task(description, total=None, count=0)
    count = shown = 0
    for item in items:
        yield item
        count += len(item) if isinstance(item, EventBlock) else 1
        if count - shown >= _STEP:
            shown = count
            bar.update(task, total=source.size, completed=source.position, count=count)
    bar.update(task, total=source.size, completed=source.position, count=count)


class _Rate(rich.progress.ProgressColumn):
    """The count of items, and the rate per second."""

    def __init__(self, what: str) -> None:
        super().__init__()
        self._what = what

    def render(self, task: rich.progress.Task) -> Text:
        """Return the count and the rate."""
        count = task.fields.get("count", 0)
        elapsed = task.elapsed or 0
        rate = f", {count / elapsed:,.0f}/s" if elapsed > 0.5 else ""
        return Text(f"{count:,} {self._what}{rate}", style="cyan")


class _LogPrinter(logging.Handler):
    """Prints the library's log messages."""

    def emit(self, record: logging.LogRecord) -> None:
        note(record.getMessage())


def show_log() -> None:
    """Print the library's log messages about long work, such as compiling."""
    log = logging.getLogger("tocsin")
    if not any(isinstance(handler, _LogPrinter) for handler in log.handlers):
        log.addHandler(_LogPrinter())
        log.setLevel(logging.INFO)
