"""An engine as one file: its subscriptions, its state and its options.

The file is an archive (`tocsin.structures.archive`). Its document has the format, the options, the declared ticks and a description
of each run of subscriptions; their columns are its other members, and the state, packed, is one. Indexes are not in it:
they are built again, which takes less than reading them would save.
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
from tocsin.engine.saving.runs import restore_run
from tocsin.engine.saving.state import EngineParts, SavedState, clock_contents
from tocsin.engine.subscription_store import SubscriptionStore
from tocsin.matching import IdArray
from tocsin.matching.statistics import Statistics
from tocsin.model.errors import SavedError, TocsinError
from tocsin.model.options import ALWAYS
from tocsin.model.version import VERSION
from tocsin.structures.archive import ArchiveReader, Parts, pack, unpack, write_archive
from tocsin.subscriptions.runs import Run, read_run, runs_of, write_run
from tocsin.subscriptions.saved_columns import ColumnReader, ColumnWriter, event_of_plain
from tocsin.views.saved_views import read_views
from tocsin.views.table import StoredTable

FORMAT: Final = 2  # raised whenever an older Tocsin could misread a file; those before can be read, too
_SAVED: Final = "tocsin engine"
_STATE: Final = "state"
_log = logging.getLogger("tocsin")


class SavedEngine(Struct, frozen=True):
    """What a saved file holds; `left_out` says what of the engine is not in it, and what to do about that."""

    path: Path
    bytes: int
    subscriptions: int
    tables: int
    rows: int
    kept_events: int
    partial_matches: int = 0
    waiting: int = 0
    left_out: tuple[str, ...] = ()


class EngineContents(Struct, frozen=True):
    """The contents of an engine at one moment; nothing changes them later."""

    about: Mapping[str, Any]
    numbers: IdArray  # of the subscriptions, in the order of the runs
    free: IdArray
    runs: list[Run]
    state: Parts
    counts: Mapping[str, int]
    left_out: tuple[str, ...]

    @classmethod
    def of(
        cls, engine: EngineParts, options: EngineOptions, statistics: Statistics | None, *, has_on_late: bool
    ) -> EngineContents:
        """Return the contents of an engine; called under its lock."""
        store, views = engine.store, engine.store.views.stats()
        about = {
            "options": msgspec.to_builtins(options),
            "statistics": None if statistics is None else statistics.to_document(),
            "clock": clock_contents(engine.clock),
            "ticks": dict(store.sequences.declared),
            "generation": store.generation,
        }
        counts = {
            "subscriptions": len(store.registry),
            "tables": views.tables,
            "rows": views.rows,
            "kept_events": len(engine.pipeline.history),
            "partial_matches": store.sequences.stats().instances,
            "waiting": engine.buffer.waiting,
        }
        left_out = tuple(_left_out(store, engine.clock, has_on_late=has_on_late))
        state = engine.snapshot(*engine.stateful())
        numbers = store.registry.numbers()
        return cls(
            about,
            numbers,
            store.registry.free,
            runs_of(store.registry, store.queries),
            state,
            counts,
            left_out,
        )


def _left_out(store: SubscriptionStore, clock: Clock, *, has_on_late: bool) -> Iterator[str]:
    """Yield what is not saved."""
    if count := store.deliveries.count:
        yield f"{count:,} subscriptions' callbacks: subscribe them again with `replace=True` and `deliver=…`"
    if count := store.deliveries.listeners:
        yield f"{count:,} callbacks and streams of all notifications: give them to the new engine"
    if type(clock) not in (SystemClock, EventClock):
        yield f"the clock, a {type(clock).__name__}: give one to `Engine.open(…, clock=…)`"
    if has_on_late:
        yield "the callback for late events: give it to `Engine.open(…, on_late=…)`"


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
    about = {
        "saved": _SAVED,
        "format": FORMAT,
        "tocsin": VERSION,
        **contents.about,
        "numbers": writer.column(contents.numbers),
        "free": writer.column(contents.free),
        "subscriptions": [write_run(run, writer) for run in contents.runs],
    }
    size = write_archive(path, about, {**writer.members, _STATE: pack(contents.state)})
    if contents.left_out:
        _log.warning("%s: not saved are %s", path, "; ".join(contents.left_out))
    return SavedEngine(path, size, **contents.counts, left_out=contents.left_out)


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
        elif about.get("format") not in range(1, FORMAT + 1) and not any_format:
            fault = (
                f"it was saved by Tocsin {about.get('tocsin')} in format {about.get('format')}, and Tocsin {VERSION} reads "
                f"formats up to {FORMAT}; open it with that version"
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

    def statistics(self) -> Statistics | None:
        """Return the statistics that the engine was made with."""
        document = self._about.get("statistics")
        return None if document is None else Statistics.from_document(document)

    def restore(self, engine: EngineParts) -> None:
        """Fill a new engine, which is nobody's yet and is let go if this fails."""
        try:
            self._restore(engine)
        except SavedError as fault:
            raise SavedError(fault.reason, str(self._path)) from fault
        except TocsinError as fault:
            raise SavedError(
                f"this version of Tocsin refuses what is in it: {fault}", str(self._path)
            ) from fault
        except Exception as fault:  # what readers of damaged contents may raise
            raise self._archive.damaged(f"{type(fault).__name__}: {fault}") from fault

    def _restore(self, engine: EngineParts) -> None:
        about, store, reader = self._about, engine.store, ColumnReader(self._archive)
        for stream, tick in about["ticks"].items():
            store.sequences.declare(stream, int(tick))
        if about["format"] == 1:
            self._restore_first(engine, reader)
            return
        saved = SavedState.of(unpack(self._archive.bytes(_STATE)))
        views = read_views(saved.parts.part("views"))
        store.views.tables.by_name.update(views.tables)
        store.registry.plan(reader.column(about["numbers"]), reader.column(about["free"]))
        self._restore_runs(store, reader)
        sequences, numbers = engine.stateful()
        store.views.restore_reports(views, numbers)
        saved.restore_events(engine, sequences)
        saved.restore_counts(engine)

    def _restore_runs(self, store: SubscriptionStore, reader: ColumnReader) -> None:
        for run in self._about["subscriptions"]:
            restore_run(read_run(run, reader), store)
        store.generation = int(self._about["generation"])

    def _restore_first(self, engine: EngineParts, reader: ColumnReader) -> None:
        """Restore what a file of the first format has: tables, subscriptions and kept events."""
        about, store = self._about, engine.store
        store.sequences.ticks.fix_units(about["units"])
        for table in about["tables"]:
            arrays = {name: reader.column(column) for name, column in table["arrays"].items()}
            store.views.tables.by_name[table["name"]] = StoredTable.of_parts(
                table["name"], arrays, table["rest"]
            )
        self._restore_runs(store, reader)
        engine.pipeline.history.restore(map(event_of_plain, about["events"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._archive.__exit__(kind, error, trace)
