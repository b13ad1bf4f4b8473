"""Generations: immutable versions of an index, numbered from 1.

| in the index's folder | contents |
|---|---|
| `index.json` | the constants of the index: the format, the number of shards |
| `generations/000000000007.json` | a generation: the names of its shards. The highest number is current |
| `shards/…`, `routers/…` | folders of arrays that generations name; consecutive generations share unchanged folders |
| `stateful/…` | folders with the sequences and views of generations, shared likewise |
| `batches/<query>/<batch>` | the generation that a stream's micro-batch was first matched with |
"""

from __future__ import annotations

import time
from itertools import pairwise
from secrets import token_hex
from typing import Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tocsin.index.placement import Placement
from tocsin.index.stateful import FILE as STATEFUL_FILE
from tocsin.index.storage import Storage
from tocsin.model.errors import SavedIndexError
from tocsin.model.version import VERSION

FORMAT: Final = 2  # of an index that has ever held sequences, views, or what they need
FIRST_FORMAT: Final = 1  # of one with filters only, which older versions read too
_HOME: Final = "index.json"
_GENERATIONS: Final = "generations"
_BATCHES: Final = "batches"
_FOLDERS: Final = {
    "shards": "roll.arrow",
    "routers": "entries.json",
    "stateful": STATEFUL_FILE,
}  # each with a file whose time is the folder's age
_REPLAYED: Final = 100  # batches that a checkpoint may go back to: Spark's default
_RECORDED: Final = 10 * _REPLAYED  # batches of a stream whose generation stays written down
_HOUR: Final = 3600.0
_MONTH: Final = 30 * 24 * _HOUR  # after which a stream that has recorded nothing is taken to be gone


class Home(Struct, frozen=True):
    """The constants of an index; `token` distinguishes it from earlier indexes in the same folder."""

    saved: str
    format: int
    tocsin: str
    shards: int
    matcher: str | None
    token: str = ""


class ShardEntry(Struct, frozen=True):
    """A shard of a generation."""

    folder: str
    subscriptions: int
    bytes: int


class StatefulEntry(Struct, frozen=True):
    """The sequences and views of a generation, and how many filters see what they publish.

    Subscriptions that are added later get numbers from `next_number` on.
    """

    folder: str
    digest: str
    subscriptions: int
    linked_filters: int
    next_number: int


class Generation(Struct, frozen=True, omit_defaults=True):
    """A version of an index: its shards and its router; `attributes` are all that its filters mention."""

    number: int
    created: float
    shards: tuple[ShardEntry, ...]
    router: str | None
    attributes: tuple[str, ...] | None
    placement: Placement
    stateful: StatefulEntry | None = None  # not written for an index with filters only

    @property
    def subscriptions(self) -> int:
        """Return the number of subscriptions."""
        others = 0 if self.stateful is None else self.stateful.subscriptions
        return sum(shard.subscriptions for shard in self.shards) + others


class Generations:
    """The generations in an index's folder."""

    def __init__(self, storage: Storage) -> None:
        self.storage = storage

    def home(self) -> Home | None:
        """Return the constants of the index, or None if the folder has no index."""
        content = self.storage.read(_HOME)
        if content is None:
            return None
        try:
            home = msgspec.json.decode(content, type=Home)
        except msgspec.MsgspecError as fault:
            raise self.fault(f"its {_HOME} says something else ({fault})") from None
        if home.saved != "tocsin index":
            raise self.fault(f"its {_HOME} is of a `{home.saved}`")
        if home.format > FORMAT:
            raise self.fault(
                f"it was made by Tocsin {home.tocsin} in format {home.format}, and this is Tocsin {VERSION}, which reads "
                f"formats up to {FORMAT}; update Tocsin"
            )
        return home

    def found(self, shards: int, matcher: str | None) -> Home:
        """Create an index and return its constants, or those of an index that another process created just before."""
        home = Home("tocsin index", FIRST_FORMAT, VERSION, shards, matcher, token_hex(8))
        self.storage.create(_HOME, _written(home))
        return self.home() or home

    def require_format(self, number: int) -> None:
        """Raise the format of the index, so that versions that could misread it refuse it."""
        home = self.home()
        if home is not None and home.format < number:
            self.storage.replace(_HOME, _written(replace(home, format=number, tocsin=VERSION)))

    def current(self) -> int:
        """Return the number of the newest generation; 0 if there is none."""
        return max(self._numbers(), default=0)

    def read(self, number: int) -> Generation:
        """Return a generation."""
        content = self.storage.read(_file(number))
        if content is None:
            there = ", ".join(map(str, self._numbers()))
            raise self.fault(f"it has no generation {number}; there are: {there or 'none'}")
        try:
            return msgspec.json.decode(content, type=Generation)
        except msgspec.MsgspecError as fault:
            raise self.fault(f"generation {number} cannot be read: {fault}") from None

    def publish(self, generation: Generation) -> None:
        """Make a generation current; raise `SavedIndexError` if another process was quicker."""
        if not self.storage.create(_file(generation.number), msgspec.json.encode(generation)):
            raise self.fault(
                f"generation {generation.number} is there already: another process has changed the index meanwhile; "
                "open it again and repeat the change"
            )

    def of_batch(self, query: str, batch: int, *, may_decide: bool = True) -> int | None:
        """Return the generation that a micro-batch is matched with; it is the same for all tasks and reruns.

        The first call records the current generation. With `may_decide=False`, return None until it is
        recorded. Raise `SavedIndexError` if the index has no generation.
        """
        path = f"{_BATCHES}/{query}/{batch:012d}"
        while True:
            content = self.storage.read(path)
            if content:
                return int(content)
            if not may_decide:
                return None
            current = self.current()
            if not current:  # the index was removed, and no file may be created in its folder
                raise self.fault("it has no generation; restore the index, or start the stream with another")
            if self.storage.create(path, str(current).encode()) and batch >= _RECORDED:
                self.storage.remove(f"{_BATCHES}/{query}/{batch - _RECORDED:012d}")

    def vacuum(self, *, older_than: float = _HOUR) -> list[str]:
        """Remove unused generations, shards and routers, and return the removed paths.

        The current generation stays, and so do the generations of the last batches of every stream, which a
        restart may replay, and generations that were current less than `older_than` seconds ago, since a process
        may still use them. A stream that has begun no batch for a month is forgotten.
        """
        now = time.time()
        numbers = self._numbers()
        needed = set(numbers[-1:])
        followed = pairwise(numbers)
        needed |= {one for one, other in followed if self.storage.age(_file(other), now) <= older_than}
        removed = []
        for query in self.storage.names(_BATCHES):
            batches = self.storage.names(f"{_BATCHES}/{query}")[-_REPLAYED:]
            if batches and self.storage.age(f"{_BATCHES}/{query}/{batches[-1]}", now) > _MONTH:
                removed.append(f"{_BATCHES}/{query}")
                continue
            for batch in batches:
                content = self.storage.read(f"{_BATCHES}/{query}/{batch}")
                needed |= {int(content)} if content else set()
        used: set[str] = set()
        for number in numbers:
            if number not in needed:
                removed.append(_file(number))
                continue
            generation = self.read(number)
            used |= {shard.folder for shard in generation.shards} | {generation.router or ""}
            used |= set() if generation.stateful is None else {generation.stateful.folder}
        for folder, file in _FOLDERS.items():
            for name in self.storage.names(folder):
                path = f"{folder}/{name}"
                if path not in used and self.storage.age(f"{path}/{file}", now) > older_than:
                    removed.append(path)
        removed += [path for path in self.storage.leftovers() if self.storage.age(path, now) > older_than]
        for path in removed:
            self.storage.remove(path)
        return removed

    def _numbers(self) -> list[int]:
        """Return the numbers of all generations, in order; other files in the folder are ignored."""
        names = (name.partition(".") for name in self.storage.names(_GENERATIONS))
        return sorted(int(stem) for stem, _, ending in names if ending == "json" and stem.isdecimal())

    def fault(self, reason: str) -> SavedIndexError:
        """Return an error that names the index."""
        return SavedIndexError(reason, self.storage.uri)


def _written(home: Home) -> bytes:
    return msgspec.json.format(msgspec.json.encode(home)) + b"\n"


def _file(number: int) -> str:
    return f"{_GENERATIONS}/{number:012d}.json"
