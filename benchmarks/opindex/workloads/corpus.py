"""Documents as the numbers of their words: from any JSON lines, or made up."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import Ragged
from benchmarks.workloads.distributions import zipf
from benchmarks.workloads.words import make_words
from tocsin.formats.files import format_of, is_readable, raw_records
from tocsin.formats.records import UnreadableRecord
from tocsin.model.errors import TocsinError

_WORD: Final = re.compile(r"[^\W_]+")
_SUFFIXES: Final = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".jsonl.zst", ".ndjson.zst")


class Corpus:
    """Documents; `short` has the words of their titles, `long` those of all their text.

    Words are numbered by their frequency, the most frequent first. What is not among the most frequent is left out.
    """

    def __init__(self, words: tuple[str, ...], short: Ragged, long: Ragged) -> None:
        self.words = words
        self.short = short
        self.long = long

    def __len__(self) -> int:
        return len(self.long)

    def document_frequencies(self) -> NDArray[np.int64]:
        """Return, of each word, how many documents have it."""
        owners = np.repeat(np.arange(len(self.long)), np.diff(self.long.offsets))
        pairs = np.unique(owners * len(self.words) + self.long.columns[0])
        return np.bincount(pairs % len(self.words), minlength=len(self.words))


def make_corpus(documents: int = 20_000, words: int = 50_000, seed: int = 1) -> Corpus:
    """Return made-up documents: words by Zipf, titles of about 5 words, texts of about 25."""
    random = np.random.default_rng([seed, documents, words])
    chosen = zipf(words, 1.0)
    short = _drawn(random, chosen.draw, 1 + random.poisson(4.4, documents))
    long = _drawn(random, chosen.draw, 1 + random.gamma(3.0, 8.0, documents).astype(np.int64))
    return Corpus(make_words(words), short, long)


def read_corpus(
    path: Path,
    attributes: Sequence[str] | None = ("title", "description"),
    words: int = 50_000,
    progress: Callable[[str], None] = lambda _: None,
) -> Corpus:
    """Return the documents of a file or a folder of JSON lines, by their most frequent words in lower case.

    A document's title is the first of `attributes`; its text is all of them or, if they are None, whatever strings
    it has, the first of which is its title. Raise `TocsinError` if there is nothing of that.
    """
    titles: list[list[str]] = []
    texts: list[list[str]] = []
    counts: Counter[str] = Counter()
    for record in _records(path):
        found = [_words(text) for text in _strings(record, attributes)]
        if not any(found):
            continue
        title, text = found[0], [word for part in found for word in part]
        titles.append(title)
        texts.append(text)
        counts.update(text)
        if len(texts) % 10_000 == 0:
            progress(f"{len(texts):,} documents of {path} read")
    if not texts:
        asked = "no strings" if attributes is None else f"none of {', '.join(attributes)}"
        raise TocsinError(f"{path} has no text: its records have {asked}; name the attributes that hold some")
    known = {word: number for number, (word, _) in enumerate(counts.most_common(words))}
    return Corpus(tuple(known), _numbered(titles, known), _numbered(texts, known))


def files_at(path: Path) -> list[Path]:
    """Return a file, or a folder's files of JSON lines, by name; raise `TocsinError` if there are none."""
    if path.is_dir():
        found = sorted(file for file in path.iterdir() if file.name.endswith(_SUFFIXES))
        if not found:
            raise TocsinError(
                f"the folder {path} has no JSON lines; it should have files like events.jsonl.gz"
            )
        return found
    if not is_readable(path):
        raise TocsinError(f"there is no file or folder {path}")
    return [path]


def _records(path: Path) -> Iterator[Mapping[str, object]]:
    """Return the records of files; one that cannot be read is no document."""
    for file in files_at(path):
        for _, record in raw_records(file, format_of(file)):
            if not isinstance(record, UnreadableRecord) and isinstance(record, Mapping):
                yield record


def _strings(record: Mapping[str, object], attributes: Sequence[str] | None) -> list[str]:
    if attributes is None:
        return [value for value in record.values() if isinstance(value, str)]
    values = (record.get(name) for name in attributes)
    return [value if isinstance(value, str) else "" for value in values]


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _numbered(documents: Sequence[Sequence[str]], known: Mapping[str, int]) -> Ragged:
    rows = [[known[word] for word in document if word in known] for document in documents]
    offsets = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum([len(row) for row in rows], out=offsets[1:])
    cells = np.fromiter((number for row in rows for number in row), dtype=np.int32, count=int(offsets[-1]))
    return Ragged(offsets, (cells,))


def _drawn(
    random: Generator, draw: Callable[[Generator, int], NDArray[np.int32]], sizes: NDArray[np.int64]
) -> Ragged:
    offsets = np.zeros(len(sizes) + 1, dtype=np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return Ragged(offsets, (draw(random, int(offsets[-1])),))
