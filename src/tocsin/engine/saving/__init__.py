"""An engine as one file: its subscriptions, tables, kept events and options.

The file is an archive (`tocsin.structures.archive`). Its document has the format, the options, the declared ticks, the kept
events and a description of each table and of each run of subscriptions; their columns are its other members. Indexes are
not in it: they are built again, which takes less than reading them would save.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import msgspec
from msgspec import Struct

from tocsin.engine.clock import Clock, EventClock, SystemClock
from tocsin.engine.engine_options import EngineOptions
from tocsin.engine.history import History
from tocsin.engine.saving.runs import restore_run
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.model import Event
from tocsin.model.errors import SavedError, TocsinError
from tocsin.model.options import ALWAYS
from tocsin.model.version import VERSION
from tocsin.structures.archive import ArchiveReader, write_archive
from tocsin.subscriptions.runs import Run, read_run, runs_of, write_run
from tocsin.subscriptions.saved_columns import ColumnReader, ColumnWriter, event_of_plain, plain_event
from tocsin.views.table import StoredTable

FORMAT: Final = 1  # raised whenever an older Tocsin could misread a file
_SAVED: Final = "tocsin engine"
_GIVEN: Final = {
    "statistics": "the statistics of events: give them to `Engine.open(…, statistics=…)`",
    "on_late": "the callback for late events: give it to `Engine.open(…, on_late=…)`",
}
_log = logging.getLogger("tocsin")


class SavedEngine(Struct, frozen=True):
    """What a saved file holds; `left_out` says what of the engine is not in it, and what to do about that."""

    path: Path
    bytes: int
    subscriptions: int
    tables: int
    rows: int
    kept_events: int
    left_out: tuple[str, ...] = ()


class EngineContents(Struct, frozen=True):
    """The contents of an engine at one moment; nothing changes them later."""

    options: EngineOptions
    clock: Mapping[str, Any]
    ticks: Mapping[str, int]
    units: list[tuple[str | None, str]]  # of the numbers in streams' time fields
    runs: list[Run]
    tables: list[tuple[str, Mapping[str, Any], Any]]
    events: list[Event]
    generation: int
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls,
        options: EngineOptions,
        store: SubscriptionStore,
        history: History,
        clock: Clock,
        *,
        waiting: int,
        given: Mapping[str, bool],
    ) -> EngineContents:
        """Return the contents of an engine; called under its lock."""
        return cls(
            options,
            _clock_contents(clock),
            store.sequences.declared,
            store.sequences.ticks.fixed_units(),
            runs_of(store.registry, store.queries),
            [_table_contents(table) for table in store.views.tables],
            list(history),
            store.generation,
            tuple(_left_out(store, clock, waiting, given)),
        )


def _clock_contents(clock: Clock) -> dict[str, Any]:
    if type(clock) is EventClock:
        return {"kind": "EventClock", "now": clock.now()}
    is_system = type(clock) is SystemClock
    return {"kind": "SystemClock"} if is_system else {"kind": "other", "name": type(clock).__name__}


def _table_contents(table: StoredTable) -> tuple[str, Mapping[str, Any], Any]:
    arrays, rest = table.parts()
    return (
        table.name,
        arrays,
        msgspec.to_builtins(rest | {"shapes": [list(one or ()) for one in rest["shapes"]]}),
    )


def _left_out(
    store: SubscriptionStore, clock: Clock, waiting: int, given: Mapping[str, bool]
) -> Iterator[str]:
    """Yield what is not saved."""
    counts = [
        (store.sequences.stats().instances, "partial matches of sequences: sequences begin anew"),
        (
            waiting,
            "events that wait for their turn in sequences: `flush()` before saving to have them processed",
        ),
        (
            store.views.unreported,
            "last reported answers of views that did not apply since: the present ones count as reported",
        ),
        (
            store.deliveries.count,
            "subscriptions' callbacks: subscribe them again with `replace=True` and `deliver=…`",
        ),
        (
            store.deliveries.listeners,
            "callbacks and streams of all notifications: give them to the new engine",
        ),
    ]
    for count, what in counts:
        if count:
            yield f"{count:,} {what}"
    if type(clock) not in (SystemClock, EventClock):
        yield f"the clock, a {type(clock).__name__}: give one to `Engine.open(…, clock=…)`"
    for name, is_given in given.items():
        if is_given:
            yield _GIVEN[name]


def save_engine(contents: EngineContents, path: Path) -> SavedEngine:
    """Write an engine's contents to a file, in place of an engine that is saved there."""
    if path.is_dir():
        raise SavedError("this is a folder; an engine is saved to a file", str(path))
    if path.exists():
        try:
            with SavedEngineFile(path, any_format=True):
                pass
        except SavedError as fault:
            raise SavedError(
                f"there is another file, which is left as it is ({fault.reason}); save to another path",
                str(path),
            ) from None
    writer = ColumnWriter()
    tables = []
    for name, arrays, rest in contents.tables:
        written = {array: writer.column(column) for array, column in arrays.items()}
        tables.append({"name": name, "arrays": written, "rest": rest})
    try:
        events = [plain_event(event) for event in contents.events]
    except TypeError as fault:
        raise SavedError(f"an event that is kept has {fault}, which cannot be saved", str(path)) from None
    about = {
        "saved": _SAVED,
        "format": FORMAT,
        "tocsin": VERSION,
        "options": msgspec.to_builtins(contents.options),
        "clock": contents.clock,
        "ticks": contents.ticks,
        "units": contents.units,
        "generation": contents.generation,
        "tables": tables,
        "subscriptions": [write_run(run, writer) for run in contents.runs],
        "events": events,
    }
    size = write_archive(path, about, writer.members)
    if contents.left_out:
        _log.warning("%s: not saved are %s", path, "; ".join(contents.left_out))
    return SavedEngine(
        path,
        size,
        subscriptions=sum(len(run.ids) for run in contents.runs),
        tables=len(tables),
        rows=sum(len(arrays["ends"]) for _, arrays, _ in contents.tables),
        kept_events=len(events),
        left_out=contents.left_out,
    )


class SavedEngineFile:
    """A saved engine that is open for reading; a context manager."""

    def __init__(self, path: Path, *, any_format: bool = False) -> None:
        self._path = path
        if path.is_dir():
            raise SavedError("this is a folder; `Engine.save` writes one file", str(path))
        self._archive = ArchiveReader(path)
        self._about = about = self._archive.about
        fault = None
        if about.get("saved") != _SAVED:
            fault = f"this is no saved engine, but a `{about.get('saved')}`"
        elif about.get("format") != FORMAT and not any_format:
            fault = (
                f"it was saved by Tocsin {about.get('tocsin')} in format {about.get('format')}, and Tocsin {VERSION} reads "
                f"format {FORMAT}; open it with that version"
            )
        if fault is not None:
            self.__exit__(None, None, None)
            raise SavedError(fault, str(path))

    def options(self) -> dict[str, Any]:
        """Return the arguments that the engine was made with."""
        try:
            options = msgspec.convert(self._about.get("options"), EngineOptions)
        except msgspec.ValidationError as fault:
            raise self._archive.damaged(f"its options are others ({fault})") from None
        return msgspec.structs.asdict(options)

    def clock(self, given: Clock | None) -> Clock | None:
        """Return the clock for the engine; None for that of the system."""
        if given is not None:
            return given
        about = self._about.get("clock") or {}
        kind, now = about.get("kind"), about.get("now", ALWAYS)
        if kind == "EventClock" and isinstance(now, int):
            return EventClock(now)
        if kind != "SystemClock":
            raise SavedError(
                f"its engine had a clock of its own, a {about.get('name')}; give one: `Engine.open(…, clock=…)`",
                str(self._path),
            )
        return None

    def restore(self, store: SubscriptionStore, history: History) -> None:
        """Fill a new engine, which is nobody's yet and is let go if this fails."""
        try:
            self._restore(store, history)
        except SavedError:
            raise
        except TocsinError as fault:
            raise SavedError(
                f"this version of Tocsin refuses what is in it: {fault}", str(self._path)
            ) from fault
        except Exception as fault:  # what readers of damaged contents may raise
            raise self._archive.damaged(f"{type(fault).__name__}: {fault}") from fault

    def _restore(self, store: SubscriptionStore, history: History) -> None:
        about, reader = self._about, ColumnReader(self._archive)
        for stream, tick in about["ticks"].items():
            store.sequences.declare(stream, int(tick))
        store.sequences.ticks.fix_units(about["units"])
        for table in about["tables"]:
            arrays = {name: reader.column(column) for name, column in table["arrays"].items()}
            store.views.tables.by_name[table["name"]] = StoredTable.of_parts(
                table["name"], arrays, table["rest"]
            )
        for run in about["subscriptions"]:
            restore_run(read_run(run, reader), store)
        store.generation = int(about["generation"])
        for event in map(event_of_plain, about["events"]):  # last, so that no filter meets them a second time
            history.add(event, ALWAYS)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.__exit__(kind, error, trace)
