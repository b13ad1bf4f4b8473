"""Prefixes of words (OpIndex 7.7): many numeric attributes, a few string ones, the operators `=` and `starts with`."""

from __future__ import annotations

from functools import cached_property
from itertools import pairwise
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from benchmarks.workloads.blocks import Ragged, check_parameters
from benchmarks.workloads.distributions import Choice, zipf
from benchmarks.workloads.pooled import PooledWorkload, RecordEvents
from benchmarks.workloads.words import make_words
from tocsin.model.conditions import Operator, Predicate
from tocsin.model.terms import Attribute, literal
from tocsin.model.values import Value

_NUMBER, _WORD, _PREFIX = range(3)  # the operand of a predicate
_CONSTANT: Final = 1 << 32


class PrefixParameters(Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters that the paper gives, and the ones it leaves open.

    It tells the attributes, the operators, and that words come from a text. It does not tell what events look
    like. Its generator draws attributes alike, so that one pair in 101 of an event is a word: that is
    `word_share=None`. Few events then meet a prefix at all, so the hard case is to be looked at too, in which
    most pairs are words: `word_share=0.9`, say.
    """

    numbers: int = 10_000  # attributes whose values are numbers
    texts: int = 100  # attributes whose values are words
    most_predicates: int = 8  # a subscription has 1 to so many, on different attributes
    prefix_share: float = 0.4  # of predicates `starts with`, on a text; the rest are `=`, on any attribute
    prefix_length: int = 3  # of the word that is asked for; a shorter word is asked for as a whole
    most_pairs: int = 40  # an event has 1 to so many
    word_share: float | None = None  # of an event's pairs; None: any attribute is as likely as another
    values: int = 50  # numbers are 1 to so many
    words: int = 20_000  # different words, unless a list is given
    zipf: float = 1.0  # exponent of the words' frequency

    def __post_init__(self) -> None:
        shares = (self.prefix_share, 0.0 if self.word_share is None else self.word_share)
        faults = {
            "a subscription needs a predicate, an event a pair, and a prefix a letter": min(
                self.most_predicates, self.most_pairs, self.prefix_length, self.values
            )
            < 1,
            "a subscription or an event may need more attributes of a kind than there are": max(
                self.most_predicates, self.most_pairs
            )
            > min(self.numbers, self.texts),
            "a share is from 0 to 1": not all(0 <= share <= 1 for share in shares),
        }
        check_parameters(faults)

    @property
    def usual_share(self) -> float:
        """Return how much of the attributes are texts."""
        return self.texts / (self.texts + self.numbers)


class PrefixWorkload(PooledWorkload):
    """Subscriptions and events drawn by `parameters`; the same seed draws the same ones, whatever the batches.

    `words` come in the order of their frequency. Attribute `a7` is a number, `s7` a text.
    """

    parameters: PrefixParameters
    event_block = 1 << 12

    def __init__(
        self, parameters: PrefixParameters, seed: int = 1, *, words: tuple[str, ...] | None = None
    ) -> None:
        self.words = make_words(parameters.words) if words is None else words
        starts = [word[: parameters.prefix_length] for word in self.words]
        self._prefixes = list(dict.fromkeys(starts))
        places = {prefix: place for place, prefix in enumerate(self._prefixes)}
        self._prefix_of = np.array([places[start] for start in starts], dtype=np.int64)
        super().__init__(parameters, seed)

    def _events_of(self, rows: Ragged) -> RecordEvents:
        is_text, attributes, values = (column.tolist() for column in rows.columns)
        pairs = [
            (f"s{attribute}", self.words[value]) if text else (f"a{attribute}", value + 1)
            for text, attribute, value in zip(is_text, attributes, values, strict=True)
        ]
        bounds = pairwise(rows.offsets.tolist())
        made: list[dict[str, Value]] = [dict(pairs[begin:end]) for begin, end in bounds]
        return RecordEvents(made)

    @cached_property
    def _texts(self) -> Choice:
        return Choice(self.parameters.texts)

    @cached_property
    def _numbers(self) -> Choice:
        return Choice(self.parameters.numbers)

    @cached_property
    def _drawn_words(self) -> Choice:
        return zipf(len(self.words), self.parameters.zipf)

    def _draw_attributes(self, random: Generator, is_text: NDArray[np.bool_]) -> NDArray[np.int32]:
        """Return the attributes of rows, none twice: a text's number where that is asked for, else a number's."""
        texts, numbers = (choice.distinct(random, *is_text.shape) for choice in (self._texts, self._numbers))
        return np.where(is_text, texts, numbers)

    def _draw_subscriptions(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        shape = count, p.most_predicates
        sizes = random.integers(1, p.most_predicates + 1, count)
        is_prefix = random.random(shape) < p.prefix_share
        is_text = is_prefix | (random.random(shape) < p.usual_share)
        attributes = self._draw_attributes(random, is_text).astype(np.int64)
        words = self._drawn_words.draw(random, shape)
        numbers = random.integers(0, p.values, shape)
        kinds = np.where(is_prefix, _PREFIX, np.where(is_text, _WORD, _NUMBER))
        constants = np.where(is_prefix, self._prefix_of[words], np.where(is_text, words, numbers))
        return Ragged.first(sizes, (attributes * 3 + kinds) * _CONSTANT + constants)

    def _draw_events(self, random: Generator, count: int) -> Ragged:
        p = self.parameters
        shape = count, p.most_pairs
        sizes = random.integers(1, p.most_pairs + 1, count)
        is_text = random.random(shape) < (p.usual_share if p.word_share is None else p.word_share)
        attributes = self._draw_attributes(random, is_text)
        words = self._drawn_words.draw(random, shape)
        numbers = random.integers(0, p.values, shape)
        return Ragged.first(sizes, is_text, attributes, np.where(is_text, words, numbers))

    def _predicate(self, code: int) -> Predicate:
        which, constant = divmod(code, _CONSTANT)
        attribute, kind = divmod(which, 3)
        if kind == _NUMBER:
            return Predicate(Attribute(f"a{attribute}"), Operator.EQ, (literal(constant + 1),))
        if kind == _WORD:
            return Predicate(Attribute(f"s{attribute}"), Operator.EQ, (literal(self.words[constant]),))
        prefix = literal(self._prefixes[constant])
        return Predicate(Attribute(f"s{attribute}"), Operator.STARTS_WITH, (prefix,))
