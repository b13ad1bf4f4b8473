"""What the experiments give to matchers, and where the data behind it comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from benchmarks.opindex.scales import Scale
from benchmarks.opindex.workloads.catalogue import Catalogue, make_catalogue, read_catalogue
from benchmarks.opindex.workloads.corpus import Corpus, make_corpus, read_corpus
from benchmarks.workloads.words import read_words
from tocsin.model.errors import TocsinError
from tocsin.replay.numbered import Events, Subscriptions

_MADE_UP: Final = "made up"
_TEXT: Final = ("title", "description")


class DrawEvents(Protocol):
    """What draws events by number, in batches."""

    def __call__(self, begin: int, end: int, *, batch: int) -> Iterator[Events]:
        """Return those from number `begin` to `end`."""


class DrawSubscriptions(Protocol):
    """What draws subscriptions by number, in batches."""

    def __call__(self, begin: int, end: int) -> Iterator[Subscriptions]:
        """Return those from number `begin` to `end`."""


class Input(Struct, frozen=True):
    """Subscriptions, and kinds of events to match with them; a kind that is the only one has no name.

    Where only events are varied, a kind is a number, and what it is measured at.
    """

    subscriptions: DrawSubscriptions
    events: Mapping[str | int, DrawEvents]


class Data(Struct, frozen=True):
    """Where documents, products and words are read from; what is None is made up."""

    documents: Path | None = None
    catalogue: Path | None = None
    words: Path | None = None
    text_attributes: tuple[str, ...] | None = _TEXT  # None: all strings

    @classmethod
    def of(
        cls,
        folder: Path | None = None,
        *,
        documents: Path | None = None,
        catalogue: Path | None = None,
        words: Path | None = None,
        text: Sequence[str] = (),
    ) -> Data:
        """Return the data of these files and, for what is not among them, what a folder has under its usual names.

        `text` names the attributes that hold text; `*` alone is all strings.

        Raise `TocsinError` if something is not there.
        """
        if folder is not None:
            documents = documents or folder / "news.jsonl.gz"
            catalogue = catalogue or folder / "products.jsonl.zst"
        missing = [
            str(path) for path in (documents, catalogue, words) if path is not None and not path.exists()
        ]
        if missing:
            raise TocsinError(
                f"there is no {' and no '.join(missing)}; name other files with --documents, --catalogue and --words,"
                " or name none, and the data is made up"
            )
        attributes = None if tuple(text) == ("*",) else tuple(text) or _TEXT
        return cls(documents, catalogue, words, attributes)


class Material:
    """Documents, products and words, read or made when they are first needed."""

    def __init__(self, data: Data, scale: Scale, progress: Callable[[str], None]) -> None:
        self._data = data
        self._scale = scale
        self._progress = progress

    @cached_property
    def corpus(self) -> Corpus:
        """Return the documents."""
        if self._data.documents is None:
            return make_corpus(self._scale.documents, self._scale.words)
        return read_corpus(
            self._data.documents, self._data.text_attributes, self._scale.words, self._progress
        )

    @cached_property
    def catalogue(self) -> Catalogue:
        """Return the products."""
        if self._data.catalogue is None:
            return make_catalogue(self._scale.catalogue, self._scale.catalogue_attributes)
        return read_catalogue(self._data.catalogue, progress=self._progress)

    @cached_property
    def words(self) -> tuple[str, ...] | None:
        """Return the words that were given, if any were."""
        return None if self._data.words is None else read_words(self._data.words)

    def described(self) -> dict[str, str]:
        """Return where everything comes from, in words."""
        given = {
            "documents": self._data.documents,
            "catalogue": self._data.catalogue,
            "words": self._data.words,
        }
        return {name: _MADE_UP if path is None else path.name for name, path in given.items()}
