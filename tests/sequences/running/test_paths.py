"""Paths of places: the same in every process, whatever else is there."""

from __future__ import annotations

from datetime import UTC, datetime
from random import Random

import numpy as np
from hypothesis import given, settings

from tests.sequences.outcomes import compiled, ids, query_of
from tests.sequences.paths import matcher_paths, paths_elsewhere, paths_of_texts
from tests.sequences.strategies import sequences
from tocsin.language import to_text
from tocsin.language.template.columns import Column
from tocsin.sequences.compiling.compiler import compile_sequence
from tocsin.sequences.running.matcher import AutomatonMatcher

_TEXTS = [
    "from s a where a.w = 'IBM' next s b on b.w = a.w where b.x > a.x or b.w like 'x%' within 9",
    "from s a where a.y in (1, 2.5, 'x') and a.w ~ 'b$' fold s b on b.x > last.x compute m = max(b.x) where m > 3.5",
    "from s a where (a.x = 1 or a.y = 2) and (a.x = 3 or a.y = 4) next t b on b.y > '2026-01-01T00:00:00Z'",
    "from (from s a where a.w = 'x' next s b) c next s d on d.w contains 'x' and d.y != 340282366920938463463374607431",
]


def _random_texts(count: int) -> list[str]:
    texts: list[str] = []

    @settings(max_examples=count, derandomize=True)
    @given(sequences())
    def draw(query: object) -> None:
        texts.append(to_text(query))  # type: ignore[arg-type]

    draw()
    return texts


def test_another_process_has_the_same_paths() -> None:
    texts = [*_TEXTS, *_random_texts(40)]
    own = paths_of_texts(texts)
    assert paths_elsewhere(texts, "1") == paths_elsewhere(texts, "2") == own
    assert len({path for each in own for path in each}) > len(_TEXTS)


def test_paths_do_not_depend_on_what_came_before_or_on_the_matcher() -> None:
    texts = [*_TEXTS, *_random_texts(60)]
    alone = {path for each in paths_of_texts(texts) for path in each}
    for matcher in ("oracle", "amkh"):
        random = Random(7)  # noqa: S311 - nothing secret
        random.shuffle(texts)
        runner = AutomatonMatcher(matcher=matcher)
        for number, text in enumerate(texts):
            runner.add(ids(number), compiled(text), {})
        assert {path.hex() for path in matcher_paths(runner)} == alone


def test_rows_have_their_paths_whichever_other_rows_there_are() -> None:
    """A row with a timestamp is compiled by itself; the rows beside it are not."""
    template = compile_sequence(query_of("from s a where a.x > :p next s b on b.y = :q or b.x > :p * a.x"))
    values = [(2, 5), (2, 2), (3, datetime(2026, 1, 1, tzinfo=UTC)), (4, "2026-01-01T00:00:00Z")]
    every: dict[str, Column] = {
        name: np.array([row[i] for row in values], dtype=object) for i, name in enumerate("pq")
    }
    runner, other = AutomatonMatcher(matcher="oracle"), AutomatonMatcher(matcher="oracle")
    runner.add(ids(0, 1, 2, 3), template, every)
    for row in (2, 0, 3, 1):
        other.add(ids(row), template, {name: column[row : row + 1] for name, column in every.items()})
    assert matcher_paths(runner) == matcher_paths(other)
    assert len(matcher_paths(runner)) == 4


def test_equal_numbers_have_equal_paths_whatever_their_type() -> None:
    texts = [
        f"from s a where a.x > {number} next s b"
        for number in ("1152921504606846976", "1152921504606846976.0")
    ]
    one, other = paths_of_texts(texts)
    assert one == other
