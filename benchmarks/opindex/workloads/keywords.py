"""Keyword queries over documents (OpIndex 7.4): each word is an attribute, its value how often a document has it."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from msgspec import Struct
from numpy.random import Generator

from benchmarks.opindex.workloads.corpus import Corpus
from benchmarks.workloads.blocks import NumberedWorkload, Ragged
from benchmarks.workloads.distributions import Choice
from tocsin.matching.encoding.codes import Op


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
        return Ragged(
            offsets, (np.concatenate(words), values if self.parameters.intervals else np.ones_like(values))
        )
