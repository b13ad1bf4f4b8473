"""Words to draw from: made of syllables, or read from a file."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from tocsin.formats.files import as_text, is_readable, open_decompressed
from tocsin.model.errors import TocsinError

_ONSETS: Final = (
    "b c ch d f fl g gr h j k l m n p pl qu r s sh st t tr v w z".split()  # noqa: SIM905 - a list would fill a page
)
_VOWELS: Final = "a e i o u ai ea ou".split()  # noqa: SIM905
_CODAS: Final = ["", "", "", "n", "r", "s", "l", "nd", "ck", "m"]
_TRIES: Final = 60  # rounds, after which the syllables are used up


def make_words(count: int, seed: int = 1) -> tuple[str, ...]:
    """Return so many different words of one to five syllables; the shorter ones tend to come first, as in languages.

    >>> make_words(4)
    ('traindfourpom', 'timceal', 'fourmond', 'zushundcol')
    """
    random = np.random.default_rng(seed)
    syllables = np.array([a + b + c for a in _ONSETS for b in _VOWELS for c in sorted(set(_CODAS))])
    found: dict[str, int] = {}
    for _ in range(_TRIES):
        if len(found) >= count:
            break
        wanted = count - len(found) + 16
        lengths = 1 + np.minimum(random.poisson(1.2, wanted), 4)
        drawn = random.integers(0, len(syllables), (wanted, 5))
        for length, row in zip(lengths.tolist(), syllables[drawn].tolist(), strict=True):
            found.setdefault("".join(row[:length]), length)
    words = list(found)[:count]
    if len(words) < count:
        raise ValueError(f"the syllables make about {len(words):,} words, not {count:,}")
    ranks = np.array([found[word] for word in words]) + random.normal(0.0, 0.7, count)
    return tuple(words[place] for place in np.argsort(ranks, kind="stable").tolist())


def read_words(path: Path) -> tuple[str, ...]:
    """Return a file's words, one a line (.gz and .zst too), in their order and without repeats."""
    if not is_readable(path):
        raise TocsinError(f"there is no file {path}; it should hold words, one a line")
    with path.open("rb") as raw, as_text(open_decompressed(raw, path.suffix)) as lines:
        words = tuple(dict.fromkeys(word for line in lines if (word := line.strip())))
    if not words:
        raise TocsinError(f"{path} holds no words; it should hold one a line")
    return words
