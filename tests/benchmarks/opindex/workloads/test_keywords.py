from __future__ import annotations

import gzip
import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from benchmarks.opindex.workloads.keywords import (
    Corpus,
    KeywordParameters,
    KeywordWorkload,
    make_corpus,
    read_corpus,
)
from benchmarks.workloads.blocks import Ragged
from tocsin.matching.encoding.codes import Op
from tocsin.model.errors import TocsinError

NEWS = [
    {"title": "The Fed and the Bank", "description": "The Fed said: the bank!", "time": 1},
    {"title": "A bank", "description": None, "link": "http://bank.example/the"},
    {"title": 7, "description": "the snake_case word"},
    {"time": 4},
]


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus(documents=1_000, words=3_000)


@pytest.fixture
def news(tmp_path: Path) -> Path:
    path = tmp_path / "news.jsonl.gz"
    lines = [json.dumps(one) for one in NEWS] + ["{broken", "[]", "3"]
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    return path


def documents(corpus: Corpus) -> list[list[str]]:
    words = [corpus.words[number] for number in corpus.long.columns[0]]
    return [words[begin:end] for begin, end in pairwise(corpus.long.offsets.tolist())]


def test_a_corpus_is_read_from_json_lines(news: Path) -> None:
    corpus = read_corpus(news)
    assert corpus.words[0] == "the"
    assert documents(corpus) == [
        ["the", "fed", "and", "the", "bank", "the", "fed", "said", "the", "bank"],
        ["a", "bank"],
        ["the", "snake", "case", "word"],
    ]
    assert np.diff(corpus.short.offsets).tolist() == [5, 2, 0]
    assert dict(zip(corpus.words, corpus.document_frequencies().tolist(), strict=True))["the"] == 2
    assert len(read_corpus(news.parent)) == 3


def test_any_strings_may_be_the_text_and_rare_words_are_left_out(news: Path) -> None:
    corpus = read_corpus(news, None, words=2)
    assert set(corpus.words) == {"the", "bank"}
    assert documents(corpus)[1] == ["bank", "bank", "the"]


def test_missing_data_is_reported(news: Path, tmp_path: Path) -> None:
    with pytest.raises(
        TocsinError, match=r"news\.jsonl\.gz has no text: its records have none of body, text"
    ):
        read_corpus(news, ("body", "text"))
    with pytest.raises(TocsinError, match="there is no file or folder"):
        read_corpus(tmp_path / "none")
    (tmp_path / "empty").mkdir()
    with pytest.raises(TocsinError, match="has no JSON lines; it should have files like"):
        read_corpus(tmp_path / "empty")


def test_queries_have_one_to_four_different_words_that_are_there(corpus: Corpus) -> None:
    (found,) = KeywordWorkload(corpus, KeywordParameters()).subscriptions(0, 10_000)
    sizes = np.diff(found.offsets)
    assert np.bincount(sizes)[1:] / 10_000 == pytest.approx([0.25, 0.35, 0.25, 0.15], abs=0.02)
    for begin, end in pairwise(found.offsets.tolist()):
        assert len(set(found.attributes[begin:end].tolist())) == end - begin
    assert (found.ops == Op.EQ).all()
    assert (found.lows == 1).all()
    assert (found.highs == 1).all()
    assert (corpus.document_frequencies()[np.unique(found.attributes)] > 0).all()


def test_nearly_ubiquitous_words_are_queried_less_than_frequent_ones() -> None:
    # Word 0 is in every document, word 1 in a third of them, and each of the others in one.
    rows = [[0] + [1] * (i % 3 == 0) + [2 + i] for i in range(300)]
    offsets = np.cumsum([0, *map(len, rows)])
    text = Ragged(offsets, (np.concatenate(rows).astype(np.int32),))
    workload = KeywordWorkload(Corpus(tuple(map(str, range(302))), text, text), KeywordParameters())
    (found,) = workload.subscriptions(0, 30_000)
    often = np.bincount(found.attributes, minlength=302)
    assert often[0] == 0
    assert 1.5 < often[1] / often[2:].mean() < 2.5


def test_intervals_are_of_how_often_a_word_stands_there(corpus: Corpus) -> None:
    workload = KeywordWorkload(corpus, KeywordParameters(intervals=True, long=True))
    (found,) = workload.subscriptions(0, 2_000)
    assert (found.ops == Op.BETWEEN).all()
    assert (found.lows <= found.highs).all()
    assert (set(found.lows.tolist()), set(found.highs.tolist())) == ({1, 2}, {1, 2, 3, 4})
    (events,) = workload.events(0, 200)
    assert events.values.max() > 1


def test_documents_are_titles_or_texts_put_together(corpus: Corpus) -> None:
    (short,) = KeywordWorkload(corpus, KeywordParameters()).events(0, 300)
    assert np.diff(short.offsets).mean() == pytest.approx(5.3, abs=0.5)
    assert (short.values == 1).all()
    parameters = KeywordParameters(intervals=True, long=True, document_words=100)
    (long,) = KeywordWorkload(corpus, parameters).events(0, 300)
    totals = np.add.reduceat(long.values, long.offsets[:-1])
    assert totals.min() >= 100
    for begin, end in pairwise(long.offsets.tolist()):
        assert len(set(long.attributes[begin:end].tolist())) == end - begin


def test_the_same_seed_draws_the_same(corpus: Corpus) -> None:
    first, second = (KeywordWorkload(corpus, KeywordParameters(), seed=4) for _ in range(2))
    (whole,) = first.subscriptions(0, 40_000, batch=40_000)
    parts = list(second.subscriptions(0, 40_000, batch=9_000))
    assert np.array_equal(np.concatenate([part.attributes for part in parts]), whole.attributes)
    (events,) = first.events(0, 1_500, batch=1_500)
    (later,) = second.events(1_000, 1_500)
    assert np.array_equal(later.attributes, events.slice(1_000, 1_500).attributes)
