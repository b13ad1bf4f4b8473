from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from benchmarks.workloads.words import make_words, read_words
from tocsin.model.errors import TocsinError


def test_words_are_distinct_and_the_same_each_time() -> None:
    words = make_words(3_000)
    assert len(set(words)) == 3_000
    assert words == make_words(3_000)
    assert words != make_words(3_000, seed=2)
    assert sum(map(len, words[:300])) < sum(map(len, words[-300:]))


def test_words_are_read_from_a_file_compressed_or_not(tmp_path: Path) -> None:
    plain, packed = tmp_path / "words.txt", tmp_path / "words.txt.gz"
    plain.write_text("the\nof\n\n and \nthe\n", encoding="utf-8")
    packed.write_bytes(gzip.compress("naïve\nçà\n".encode()))
    assert read_words(plain) == ("the", "of", "and")
    assert read_words(packed) == ("naïve", "çà")


def test_a_file_without_words_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(TocsinError, match=r"empty\.txt holds no words; it should hold one a line"):
        read_words(tmp_path / "empty.txt")
    with pytest.raises(TocsinError, match=r"there is no file .*none\.txt"):
        read_words(tmp_path / "none.txt")
