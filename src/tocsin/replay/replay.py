"""Any matcher on a pair of interchange files, on which other systems can be measured, too."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from statistics import median
from typing import Final, TypeVar

import numpy as np
from msgspec import Struct

from tocsin.matching import EventBatch, Matcher, Matches, create_matcher
from tocsin.model.errors import TocsinError
from tocsin.model.values import Value
from tocsin.replay.interchange import read_events, read_header, read_subscriptions
from tocsin.replay.memory import resident_mb
from tocsin.replay.numbered import NumberedEvents, NumberedSubscriptions, add_to, prepared_for

Item = TypeVar("Item")
Result = TypeVar("Result")

_BATCH: Final = 1_000
_WARM_UP: Final = 10_000  # events
_SINGLE: Final = 2_000  # events that are given one by one
_TRIED: Final = 4_096  # subscriptions that set off compilation
_TRIED_EVENTS: Final = 100
_CHECKED: Final = 50  # events


class Replay(Struct, frozen=True):
    """The measurements of a matcher on a pair of files."""

    matcher: str
    subscriptions: int
    events: int
    build_s: float  # adding all subscriptions; reading the file is left out
    rss_mb: float  # the process, when all are added
    us_per_event: float  # matching alone, of events that are encoded already
    us_per_event_with_encoding: float  # from dicts
    latency_us: float  # the median of calls with one dict each
    matches_total: int
    first50_matches: int
    first50_checksum: int
    compile_s: float  # before all this, on a small part of the input
    options: Mapping[str, float | bool | str] = {}  # that the matcher was made with


def replay(
    subscriptions: Path,
    events: Path,
    matcher: str,
    progress: Callable[[str], None] = lambda _: None,
    options: Mapping[str, float | bool | str] | None = None,
) -> Replay:
    """Measure a matcher, made with `options`, on a pair of interchange files: one pass over the events, in batches of 1,000."""
    made_with = options or {}
    _check_pair(subscriptions, events)
    arriving = read_events(events)
    count = len(arriving.offsets) - 1
    progress("compiling")
    compile_s = _compile(create_matcher(matcher, **made_with), subscriptions, arriving)
    built = create_matcher(matcher, **made_with)
    build_s = _build(built, subscriptions, progress)
    rss_mb = resident_mb()
    progress("warming up")
    _match(built, _shuffle_values(arriving).slice(0, min(count, _WARM_UP)))
    progress("matching")
    seconds, matches = _match(built, arriving)
    progress("matching dicts")
    seconds_from_dicts = sum(_match_dicts(built, (part.to_dicts() for part in arriving.batches(_BATCH))))
    progress("matching dicts, one by one")
    singles = arriving.slice(0, min(count, _SINGLE)).to_dicts()
    latency = 1e6 * median([seconds for seconds, _ in _time_each(singles, built.match_one)] or [0.0])
    found, checksum = _checksum(matches)
    per_event = 1e6 / max(count, 1)
    return Replay(
        matcher=matcher,
        subscriptions=read_header(subscriptions).count,
        events=count,
        build_s=build_s,
        rss_mb=rss_mb,
        us_per_event=seconds * per_event,
        us_per_event_with_encoding=seconds_from_dicts * per_event,
        latency_us=latency,
        matches_total=sum(len(one.ids) for one in matches),
        first50_matches=found,
        first50_checksum=checksum,
        compile_s=compile_s,
        options=made_with,
    )


def _check_pair(subscriptions: Path, events: Path) -> None:
    stored, published = read_header(subscriptions), read_header(events)
    if (stored.lowest, stored.highest) != (published.lowest, published.highest):
        raise TocsinError(
            f"{subscriptions} and {events} do not belong together: values are {stored.lowest} to {stored.highest} in the one,"
            f" {published.lowest} to {published.highest} in the other"
        )


def _compile(matcher: Matcher, subscriptions: Path, events: NumberedEvents) -> float:
    """Run everything once, on a matcher that is thrown away; return the seconds."""
    sample = next(read_subscriptions(subscriptions, _TRIED), None)
    some = events.slice(0, min(len(events.offsets) - 1, _TRIED_EVENTS))
    start = time.perf_counter()
    if (warm_up := getattr(matcher, "warm_up", None)) is not None:
        warm_up()
    if sample is not None:
        add_to(matcher, sample)
        _match(matcher, some)
        matcher.remove(sample.ids)
    return time.perf_counter() - start


def _build(matcher: Matcher, subscriptions: Path, progress: Callable[[str], None]) -> float:
    """Add a file's subscriptions; return the seconds that the matcher took."""

    def add(batch: NumberedSubscriptions) -> int:
        add_to(matcher, batch)
        return int(batch.ids[-1]) + 1

    seconds = 0.0
    for taken, added in _time_each(read_subscriptions(subscriptions), add):
        seconds += taken
        progress(f"adding subscriptions: {added:,}")
    return seconds


def _match(matcher: Matcher, events: NumberedEvents) -> tuple[float, list[Matches]]:
    """Match events that are encoded already; return the seconds and the matches."""
    batches = (prepared_for(matcher, part) for part in events.batches(_BATCH))
    taken = list(_time_each(batches, matcher.match))
    return sum(seconds for seconds, _ in taken), [matches for _, matches in taken]


def _match_dicts(matcher: Matcher, batches: Iterable[list[dict[str, Value]]]) -> list[float]:
    """Match batches of events that are dicts; return the seconds of each."""
    return [
        seconds for seconds, _ in _time_each(batches, lambda rows: matcher.match(EventBatch.of_dicts(rows)))
    ]


def _time_each(items: Iterable[Item], work: Callable[[Item], Result]) -> Iterator[tuple[float, Result]]:
    """Yield the seconds and the result of some work on each item; making the items is not timed."""
    for item in items:
        start = time.perf_counter()
        result = work(item)
        yield time.perf_counter() - start, result


def _shuffle_values(events: NumberedEvents) -> NumberedEvents:
    """Return similar events for warming up: each attribute's values, shuffled among the events that have it."""
    random = np.random.default_rng(1)
    order = np.argsort(events.attributes, kind="stable")
    dealt = np.lexsort((random.random(len(order)), events.attributes))
    values = np.empty_like(events.values)
    values[order] = events.values[dealt]
    return events._replace(values=values)


def _checksum(matches: list[Matches]) -> tuple[int, int]:
    """Return the number of matches of the first 50 events, and their checksum."""
    first = [ids for one in matches[: -(-_CHECKED // _BATCH)] for ids in one.to_lists()][:_CHECKED]
    checksum = sum(event * 1_000_003 + id_ for event, ids in enumerate(first) for id_ in ids)
    return sum(map(len, first)), checksum % 2**32
