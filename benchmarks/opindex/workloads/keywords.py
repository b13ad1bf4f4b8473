"""Documents, read or made up, and keyword queries over them (OpIndex 7.4): a word is an attribute, its value how often a document has it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import NumberedWorkload, Ragged
from benchmarks.workloads.distributions import Choice, zipf
from benchmarks.workloads.words import make_words
from tocsin.formats.files import format_of, is_readable, raw_records
from tocsin.formats.records import UnreadableRecord
from tocsin.matching.encoding.codes import Op
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
            raise TocsinError(f"the folder {path} has no JSON lines; it should have files like a.jsonl.gz")
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


class KeywordParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of queries and documents.

    A query has one to four words, as often as `lengths` says. A word is drawn by the square root of its document
    frequency times the logarithm of all documents over it: frequent words are asked for more often, but far from
    as often as they are written, and those that stand in nearly every document hardly ever. `a17` is the
    corpus's word number 17.
    """

    intervals: bool = False  # False: `word = 1`; True: `word between x and y`, of how often a document has it
    lengths: tuple[float, ...] = (0.25, 0.35, 0.25, 0.15)
    most_often: int = 4  # an interval goes from 1 or 2 to so many at most
    long: bool = False  # documents: their titles, or all their text
    document_words: int = 0  # so many words at the least; short texts are put together


class KeywordWorkload(NumberedWorkload):
    """Queries over a corpus's words and documents of it as events; the same seed draws the same ones.

    A word's value is 1 if queries ask for its presence, and its frequency if they ask for that.
    """

    parameters: KeywordParameters
    event_block = 1 << 10

    def __init__(self, corpus: Corpus, parameters: KeywordParameters, seed: int = 1) -> None:
        self.corpus = corpus
        super().__init__(parameters, seed)

    @cached_property
    def _words(self) -> Choice:
        found = self.corpus.document_frequencies()
        weights = np.sqrt(found) * np.log(np.maximum(len(self.corpus), 2) / np.maximum(found, 1))
        if np.count_nonzero(weights) < len(self.parameters.lengths):  # a corpus of hardly any documents
            weights = np.maximum(found, 1)
        return Choice(len(found), weights.astype(np.float64))

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        sizes = 1 + random.choice(len(p.lengths), count, p=np.array(p.lengths) / sum(p.lengths))
        attributes = self._words.distinct(random, count, len(p.lengths))
        ones = np.ones(attributes.shape, dtype=np.int32)
        if not p.intervals:
            ops = np.full(attributes.shape, Op.EQ, dtype=np.int8)
            return Ragged.first(sizes, attributes, ops, ones, ones)
        lows = random.integers(1, min(2, p.most_often) + 1, attributes.shape, dtype=np.int32)
        highs = random.integers(lows, p.most_often + 1, dtype=np.int32)
        ops = np.full(attributes.shape, Op.BETWEEN, dtype=np.int8)
        return Ragged.first(sizes, attributes, ops, lows, highs)

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        texts = self.corpus.long if self.parameters.long else self.corpus.short
        sizes = np.diff(texts.offsets)
        usable = np.flatnonzero(sizes)
        least = max(self.parameters.document_words, 1)
        words: list[np.ndarray[tuple[int], np.dtype[np.int32]]] = []
        often: list[np.ndarray[tuple[int], np.dtype[np.int32]]] = []
        for _ in range(count):
            drawn: list[int] = []
            while not drawn or int(sizes[drawn].sum()) < least:
                drawn.append(int(usable[random.integers(len(usable))]))
            cells = [texts.columns[0][texts.offsets[one] : texts.offsets[one + 1]] for one in drawn]
            found, counts = np.unique(np.concatenate(cells), return_counts=True)
            words.append(found.astype(np.int32))
            often.append(counts.astype(np.int32))
        offsets = np.zeros(count + 1, dtype=np.int64)
        np.cumsum([len(row) for row in words], out=offsets[1:])
        values = np.concatenate(often)
        shown = values if self.parameters.intervals else np.ones_like(values)
        return Ragged(offsets, (np.concatenate(words), shown))
