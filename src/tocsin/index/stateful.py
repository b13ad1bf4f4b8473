"""The sequences and views of a generation, with what they need to run: written by an index, read by any process."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.errors import SavedError, SavedIndexError, TocsinError
from tocsin.model.options import SubscriptionOptions
from tocsin.structures.archive import ArchiveReader, write_archive
from tocsin.structures.array_types import Int64s
from tocsin.subscriptions.runs import Run, read_run, write_run
from tocsin.subscriptions.saved_columns import ColumnReader, ColumnWriter

FILE: Final = "subscriptions.zip"
_SAVED: Final = "tocsin sequences and views"
_FORMAT: Final = 1  # raised whenever an older Tocsin could misread a file


class StatefulSubscription(NamedTuple):
    """A subscription with its query as text."""

    number: int
    added: int
    id: str
    text: str
    options: SubscriptionOptions


class StatefulRun(Struct, frozen=True, eq=False):
    """Subscriptions that came one after another: a template with its rows, or texts.

    `numbers` are those of the subscriptions in the index, which never gives one again. `added` are the generations in
    which they were added, or their query or options last changed, when they got new numbers.
    """

    run: Run
    numbers: Int64s
    added: Int64s
    publishes: tuple[str | None, ...] = (None,)  # names that sequences publish under
    which: Int64s = np.zeros(0, dtype=np.int64)  # of `publishes`, for each; none if there is but one

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[StatefulSubscription]:
        for position, id_ in enumerate(self.run.ids):
            number, added = self.numbers.item(position), self.added.item(position)
            yield StatefulSubscription(
                number, added, id_, self.run.text(position), self.run.options_of(position)
            )

    def take(self, positions: IdArray) -> StatefulRun:
        """Return the subscriptions at these positions."""
        which = self.which[positions] if len(self.which) else self.which
        return StatefulRun(
            self.run.take(positions), self.numbers[positions], self.added[positions], self.publishes, which
        )


class StatefulSubscriptions(Struct, frozen=True, eq=False):
    """The sequences and views of a generation; nothing changes them.

    `linked_filters` are the filters on streams that these sequences publish, which only those see who run the sequences;
    like all filters they are also on the index's shards. `tables` have the attributes of their keys, `ticks` are the
    microseconds of a tick of each stream that was declared. Generations with the same contents have the same `digest`.
    """

    digest: str
    runs: tuple[StatefulRun, ...]
    linked_filters: tuple[StatefulRun, ...]
    tables: Mapping[str, tuple[str, ...]]
    ticks: Mapping[str, int]
    linked_streams: frozenset[str] = frozenset()  # the streams of the linked filters

    def __len__(self) -> int:
        return sum(map(len, self.runs))

    def subscriptions(self) -> Iterator[StatefulSubscription]:
        """Yield the sequences and views one by one, in the order they came."""
        for run in self.runs:
            yield from run

    def take(self, numbers: Iterable[int] | IdArray) -> StatefulSubscriptions:
        """Return the subscriptions with these numbers, linked filters among them; unknown numbers are passed over.

        Tables and ticks stay, and so does the digest, which is that of the whole.
        """
        wanted = np.unique(
            np.asarray(numbers if isinstance(numbers, np.ndarray) else list(numbers), np.int64)
        )
        return StatefulSubscriptions(
            self.digest,
            tuple(_chosen(self.runs, wanted)),
            tuple(_chosen(self.linked_filters, wanted)),
            self.tables,
            self.ticks,
            self.linked_streams,
        )


def _chosen(runs: Iterable[StatefulRun], wanted: Int64s) -> Iterator[StatefulRun]:
    """Yield what is wanted of runs."""
    for run in runs:
        places = np.searchsorted(wanted, run.numbers)
        places[places == len(wanted)] = 0
        is_wanted = wanted[places] == run.numbers if len(wanted) else np.zeros(len(run), dtype=np.bool_)
        if is_wanted.all():
            yield run
        elif is_wanted.any():
            yield run.take(np.flatnonzero(is_wanted))


class StatefulParts(NamedTuple):
    """Sequences and views as the document and the members of an archive."""

    about: dict[str, Any]
    members: Mapping[str, Any]

    @classmethod
    def of(
        cls,
        runs: Iterable[StatefulRun],
        linked: Iterable[StatefulRun],
        tables: Mapping[str, tuple[str, ...]],
        ticks: Mapping[str, int],
        linked_streams: Iterable[str],
    ) -> StatefulParts:
        """Return subscriptions and what they need as parts."""
        writer = ColumnWriter()
        about = {
            "saved": _SAVED,
            "format": _FORMAT,
            "runs": [_written(run, writer) for run in runs],
            "linked": [_written(run, writer) for run in linked],
            "linked_streams": sorted(linked_streams),
            "tables": {name: list(key) for name, key in sorted(tables.items())},
            "ticks": dict(sorted(ticks.items())),
        }
        return cls(about, writer.members)

    def digest(self) -> str:
        """Return a digest of the contents."""
        digest = blake2b(json.dumps(self.about).encode(), digest_size=16)
        for name, content in self.members.items():
            digest.update(name.encode())
            digest.update(content if isinstance(content, bytes) else np.ascontiguousarray(content).data)
        return digest.hexdigest()

    def write(self, folder: Path) -> None:
        """Write the parts to a new folder."""
        folder.mkdir(parents=True)
        write_archive(folder / FILE, self.about, self.members)


def read_stateful(folder: Path, digest: str) -> StatefulSubscriptions:
    """Return the subscriptions in a folder; raise `SavedIndexError` if they are damaged, or of a newer format."""
    try:
        with ArchiveReader(folder / FILE) as archive:
            return _read(archive, digest)
    except SavedIndexError:
        raise
    except SavedError as fault:
        raise SavedIndexError(
            f"its sequences and views cannot be read: {fault.reason}", fault.path
        ) from fault
    except TocsinError as fault:
        raise SavedIndexError(
            f"this version of Tocsin refuses its sequences and views: {fault}", str(folder)
        ) from fault
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as fault:
        raise SavedIndexError(
            f"its sequences and views are damaged: {type(fault).__name__}: {fault}", str(folder)
        ) from fault


def _read(archive: ArchiveReader, digest: str) -> StatefulSubscriptions:
    about, reader = archive.about, ColumnReader(archive)
    if about["saved"] != _SAVED:
        raise archive.damaged(f"it holds a `{about['saved']}`")
    if about["format"] != _FORMAT:
        raise TocsinError(
            f"they are in format {about['format']}, this version reads {_FORMAT}; update Tocsin"
        )
    return StatefulSubscriptions(
        digest,
        tuple(_read_run(run, reader) for run in about["runs"]),
        tuple(_read_run(run, reader) for run in about["linked"]),
        {name: tuple(key) for name, key in about["tables"].items()},
        {stream: int(tick) for stream, tick in about["ticks"].items()},
        frozenset(about["linked_streams"]),
    )


def _written(run: StatefulRun, writer: ColumnWriter) -> dict[str, Any]:
    about = write_run(run.run, writer)
    about |= {"numbers": writer.column(run.numbers), "added": _written_added(run.added, writer)}
    if run.publishes != (None,):
        about["publishes"] = list(run.publishes)
        if len(run.publishes) > 1:
            about["named"] = writer.column(run.which)
    return about


def _written_added(added: Int64s, writer: ColumnWriter) -> Any:
    """Return the generations of a run; mostly all are the same."""
    first = added.item(0)
    return first if (added == first).all() else writer.column(added)


def _read_run(about: Mapping[str, Any], reader: ColumnReader) -> StatefulRun:
    run = read_run(about, reader)
    numbers = reader.column(about["numbers"])
    added = about["added"]
    found = np.full(len(run), added, dtype=np.int64) if isinstance(added, int) else reader.column(added)
    publishes = tuple(about.get("publishes", (None,)))
    which = reader.column(about["named"]) if "named" in about else np.zeros(0, dtype=np.int64)
    if {len(run)} != {len(numbers), len(found), len(which) if len(publishes) > 1 else len(run)}:
        raise TocsinError("the numbers of subscriptions do not fit")
    return StatefulRun(run, numbers, found, publishes, which)
