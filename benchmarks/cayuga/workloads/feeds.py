"""Feeds of news (Cayuga 4.2): articles of many sites in the order of their publication, made up or read, and four templates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import pyarrow as pa
from msgspec import Struct
from numpy.typing import NDArray

from benchmarks.workloads.distributions import zipf
from benchmarks.workloads.tabular import FilledTemplate
from benchmarks.workloads.words import make_words
from tocsin.formats.files import format_of, is_readable, raw_records
from tocsin.model.errors import TocsinError

STREAM: Final = "rss"
TIME: Final = "t"
SITES: Final = 415
ARTICLES: Final = 26_623
POPULARITY: Final = 100  # the most: it is a whole number from 1 on

Kind = Literal["Stateless", "Concatenation", "Parameterization", "Iteration"]

_WITHIN: Final = 100  # events
TEMPLATES: Final[Mapping[Kind, str]] = {
    "Stateless": "from rss a where a.website = :w and a.popularity > :x within {d}",
    "Concatenation": (
        "from rss a where a.website = :w and a.popularity > :x"
        " next rss b on b.website = :w and b.popularity > :x"
        " next rss c on c.website = :w and c.popularity > :x within {d}"
    ),
    "Parameterization": (
        "from rss a where a.website = :w"
        " next rss b on b.website = :w and b.channel = a.channel where b.popularity > a.popularity"
        " next rss c on c.website = :w and c.channel = b.channel where c.popularity > b.popularity within {d}"
    ),
    "Iteration": (
        "from rss a where a.website = :w"
        " fold rss b on b.website = :w and b.channel = a.channel while b.popularity > last.popularity within {d}"
    ),
}
"""Table 5. An event is a tick, so that a duration counts events."""

_OPTIONAL: Final = ("author", "description", "category", "comments", "guid")
_SHARES: Final = (0.5, 0.8, 0.7, 0.3, 0.6)  # of articles that have these
_ASKED: Final = (
    "link",
    "author",
    "description",
    "category",
    "publisher",
    "story",
)  # read where an article has them


class Feed(Struct, frozen=True):
    """Articles, one a tick, and the sites they are of, the one with the most articles first."""

    articles: pa.Table
    sites: tuple[str, ...]

    def batches(self, begin: int = 0, end: int | None = None, *, batch: int = 1_000) -> Iterator[pa.Table]:
        """Return the articles from number `begin` to `end`, in batches."""
        end = self.articles.num_rows if end is None else min(end, self.articles.num_rows)
        for first in range(begin, end, batch):
            yield self.articles.slice(first, min(batch, end - first))

    def subscriptions(
        self, kind: Kind, count: int, *, within: int = _WITHIN, seed: int = 1
    ) -> list[FilledTemplate]:
        """Return subscriptions of one kind, each to one site and, where it asks so, above one popularity."""
        random = np.random.default_rng([seed, list(TEMPLATES).index(kind)])
        text = TEMPLATES[kind].format(d=within)
        sites = np.array(self.sites, dtype=object)
        columns: dict[str, NDArray[Any]] = {"w": sites[random.integers(0, len(sites), count)]}
        above = random.integers(0, POPULARITY, count)
        if ":x" in text:
            columns["x"] = above
        return [FilledTemplate(text, np.arange(count, dtype=np.int64), columns)]


def make_feed(articles: int = ARTICLES, sites: int = SITES, seed: int = 1) -> Feed:
    """Return a made-up feed: an article has 6 to 11 attributes, and a site some of 20 channels."""
    random = np.random.default_rng([seed, articles, sites])
    names = np.array([f"{word}.example" for word in make_words(sites)], dtype=object)
    channels = np.array(make_words(20, seed=2), dtype=object)
    words = np.array(make_words(2_000, seed=3), dtype=object)
    site = zipf(sites, 0.6).draw(random, articles)
    own = random.integers(1, 6, sites)  # channels of a site
    channel = (site * 7 + random.integers(0, 1 << 30, articles) % own[site]) % len(channels)
    title = [" ".join(row) for row in words[random.integers(0, len(words), (articles, 5))].tolist()]
    link = [f"https://{names[of]}/{number}" for number, of in enumerate(site.tolist())]
    columns: dict[str, Any] = {
        TIME: np.arange(1, articles + 1),
        "title": title,
        "link": link,
        "published": np.cumsum(random.integers(1, 600, articles)),
        "website": names[site],
        "channel": channels[channel],
        "popularity": random.integers(1, POPULARITY + 1, articles),
    }
    for name, share in zip(_OPTIONAL, _SHARES, strict=True):
        texts = words[random.integers(0, len(words), articles)]
        texts[random.random(articles) >= share] = None
        columns[name] = texts
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    return Feed(table, _by_articles(columns["website"]))


def read_feed(path: Path, articles: int = ARTICLES, sites: int = SITES, seed: int = 1) -> Feed:
    """Return the first articles of a file of JSON lines that are of its sites with the most articles.

    An article has `time`, `site` and `title`; its channel is its `category`, its popularity is drawn. Raise
    `TocsinError` if the file has none.
    """
    if not is_readable(path):
        raise TocsinError(f"there is no file {path}; name none, and the feed is made up")
    found = [
        record
        for _, record in raw_records(path, format_of(path))
        if isinstance(record, Mapping)
        and all(isinstance(record.get(name), str) for name in ("time", "site", "title"))
    ]
    frequent = dict(Counter(str(record["site"]) for record in found).most_common(sites))
    kept = sorted((one for one in found if one["site"] in frequent), key=lambda one: str(one["time"]))
    kept = kept[:articles]
    if not kept:
        raise TocsinError(f"{path} has no articles: a record needs time, site and title")
    random = np.random.default_rng([seed, len(kept)])
    columns: dict[str, Any] = {
        TIME: np.arange(1, len(kept) + 1),
        "title": [one["title"] for one in kept],
        "published": [one["time"] for one in kept],
        "website": [one["site"] for one in kept],
        "channel": [one.get("category") for one in kept],
        "popularity": random.integers(1, POPULARITY + 1, len(kept)),
    }
    for name in _ASKED:
        columns[name] = [one.get(name) for one in kept]
    return Feed(pa.table(columns), _by_articles(columns["website"]))


def _by_articles(websites: Any) -> tuple[str, ...]:
    """Return the sites, the one with the most articles first."""
    return tuple(name for name, _ in Counter(list(websites)).most_common())
