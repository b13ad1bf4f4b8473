from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.cli.running import tocsin
from tocsin.matching import EventBatch, Oracle, registered_matchers
from tocsin.model.errors import TocsinError
from tocsin.replay.interchange import read_events, read_subscriptions
from tocsin.replay.replay import replay

LOWEST, HIGHEST, ATTRIBUTES = 1, 9, 6


def numbers(path: Path, words: list[int]) -> Path:
    np.array(words, dtype="<i4").tofile(path)
    return path


def subscriptions_file(folder: Path, count: int = 300) -> Path:
    """Write subscriptions of one to four predicates with every operator."""
    random = np.random.default_rng(5)
    words = [count, ATTRIBUTES, LOWEST, HIGHEST]
    for _ in range(count):
        attributes = sorted(random.permutation(ATTRIBUTES)[: random.integers(1, 5)].tolist())
        words.append(len(attributes))
        for attribute in attributes:
            op, low, high = int(random.integers(4)), *sorted(random.integers(LOWEST, HIGHEST + 1, 2).tolist())
            low = {0: high, 1: LOWEST}.get(op, low)
            words += [attribute, op, low, HIGHEST if op == 2 else high]
    return numbers(folder / "small.subs", words)


def events_file(folder: Path, count: int = 120) -> Path:
    random = np.random.default_rng(6)
    words = [count, ATTRIBUTES, LOWEST, HIGHEST]
    for _ in range(count):
        attributes = sorted(random.permutation(ATTRIBUTES)[: random.integers(0, ATTRIBUTES + 1)].tolist())
        words.append(len(attributes))
        for attribute in attributes:
            words += [attribute, int(random.integers(LOWEST, HIGHEST + 1))]
    return numbers(folder / "small.events", words)


def rows(path: Path, width: int) -> list[NDArray[np.int32]]:
    """Read a file the slow way."""
    words = np.fromfile(path, dtype="<i4")
    place, found = 4, []
    for _ in range(words[0]):
        end = place + 1 + width * words[place]
        found.append(words[place + 1 : end].reshape(-1, width))
        place = end
    return found


def expected_matches(subscriptions: Path, events: Path) -> list[list[int]]:
    asked = rows(subscriptions, 4)
    found = []
    for event in rows(events, 2):
        values = dict(event.tolist())
        found.append(
            [
                id_
                for id_, predicates in enumerate(asked)
                if all(a in values and low <= values[a] <= high for a, _, low, high in predicates.tolist())
            ]
        )
    return found


def test_the_oracle_on_a_pair_of_files_finds_values_from_low_to_high(tmp_path: Path) -> None:
    subscriptions, events = subscriptions_file(tmp_path), events_file(tmp_path)
    oracle = Oracle()
    for batch in read_subscriptions(subscriptions, batch=77):
        oracle.add(batch.to_batch())
    found = oracle.match(EventBatch(read_events(events).to_dicts()))
    assert found.to_lists() == expected_matches(subscriptions, events)


@pytest.mark.parametrize("name", sorted(registered_matchers()))
def test_every_matcher_finds_the_ids_of_the_files(tmp_path: Path, name: str) -> None:
    subscriptions, events = subscriptions_file(tmp_path), events_file(tmp_path)
    expected = expected_matches(subscriptions, events)
    done = replay(subscriptions, events, name)
    assert done.matches_total == sum(map(len, expected))
    assert done.first50_matches == sum(map(len, expected[:50]))
    checksum = sum(e * 1_000_003 + i for e, ids in enumerate(expected[:50]) for i in ids) % 2**32
    assert done.first50_checksum == checksum
    assert (done.subscriptions, done.events) == (300, 120)


def test_bench_replay_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    subscriptions, events = subscriptions_file(tmp_path, 20), events_file(tmp_path, 10)
    file = tmp_path / "replay.json"
    done = tocsin("bench", "replay", subscriptions, events, "--matcher", "oracle", "--json", file)
    assert done.returncode == 0, done.stderr
    assert "us_per_event_with_encoding" in done.stdout
    figures = json.loads(file.read_text())
    assert figures["matches_total"] == sum(map(len, expected_matches(subscriptions, events)))
    assert {"build_s", "rss_mb", "us_per_event", "latency_us", "compile_s"} <= figures.keys()


HEADER = [1, ATTRIBUTES, LOWEST, HIGHEST]
FAULTY_SUBSCRIPTIONS = {
    "no header": [1, 2],
    "no count, number of attributes": [1, 0, 1, 9],
    "ends within subscription 0": [*HEADER, 2, 0, 0, 3, 3],
    "ends within subscription 1, after 9 integers": [2, *HEADER[1:], 1, 0, 0, 3, 3],
    "subscription 0 says that it has -1 cells": [*HEADER, -1],
    "2 more integers follow the last of 1 subscriptions": [*HEADER, 1, 0, 0, 3, 3, 7, 7],
    "operator 4 from 3 to 3, which is no operator": [*HEADER, 1, 0, 4, 3, 3],
    "`=` has one constant": [*HEADER, 1, 0, 0, 3, 4],
    "`<=` begins at the lowest value, 1": [*HEADER, 1, 0, 1, 2, 4],
    "`>=` ends at the highest value, 9": [*HEADER, 1, 0, 2, 2, 4],
    "on attribute 6; the file says 0 to 5": [*HEADER, 1, 6, 0, 3, 3],
}


@pytest.mark.parametrize("reason", FAULTY_SUBSCRIPTIONS)
def test_a_faulty_file_of_subscriptions_is_named_with_the_reason(tmp_path: Path, reason: str) -> None:
    path = numbers(tmp_path / "faulty.subs", FAULTY_SUBSCRIPTIONS[reason])
    with pytest.raises(TocsinError) as raised:
        list(read_subscriptions(path))
    assert str(raised.value).startswith(str(path))
    assert reason in str(raised.value)


FAULTY_EVENTS = {
    "ends within event 0": [*HEADER, 2, 0, 3],
    "a value is 10; the file says 1 to 9": [*HEADER, 1, 0, 10],
    "event 0 has attribute 3 twice": [*HEADER, 2, 3, 1, 3, 2],
    "a pair is on attribute -1": [*HEADER, 1, -1, 3],
}


@pytest.mark.parametrize("reason", FAULTY_EVENTS)
def test_a_faulty_file_of_events_is_named_with_the_reason(tmp_path: Path, reason: str) -> None:
    path = numbers(tmp_path / "faulty.events", FAULTY_EVENTS[reason])
    with pytest.raises(TocsinError, match=reason) as raised:
        read_events(path)
    assert str(raised.value).startswith(str(path))


def test_bytes_that_are_no_integers_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "cut.subs"
    path.write_bytes(b"twenty-one bytes here")
    with pytest.raises(TocsinError, match="21 bytes are no header and whole 32-bit integers"):
        list(read_subscriptions(path))


def test_files_with_different_ranges_of_values_are_no_pair(tmp_path: Path) -> None:
    subscriptions = subscriptions_file(tmp_path)
    events = numbers(tmp_path / "other.events", [0, ATTRIBUTES, 1, 1_000])
    with pytest.raises(
        TocsinError, match="do not belong together: values are 1 to 9 in the one, 1 to 1000 in the other"
    ):
        replay(subscriptions, events, "oracle")


def test_a_matcher_is_made_with_the_options_that_are_given(tmp_path: Path) -> None:
    pair = str(subscriptions_file(tmp_path)), str(events_file(tmp_path))
    written = tmp_path / "figures.json"
    asked = (
        "bench",
        "replay",
        *pair,
        "--matcher",
        "be-tree",
        "--option",
        "capacity=20",
        "--option",
        "alpha=0.5",
    )
    assert tocsin(*asked, "--json", str(written)).returncode == 0
    assert json.loads(written.read_text())["options"] == {"capacity": 20, "alpha": 0.5}


def test_a_matcher_that_takes_several_threads_is_measured_with_them(tmp_path: Path) -> None:
    pair = str(subscriptions_file(tmp_path)), str(events_file(tmp_path))
    written = tmp_path / "figures.json"
    asked = "bench", "replay", *pair, "--threads", "2", "--json", str(written), "--matcher"
    assert tocsin(*asked, "adaptive").returncode == 0
    assert json.loads(written.read_text())["options"] == {"threads": 2}
    refused = tocsin(*asked, "opindex")
    assert refused.returncode == 2
    assert "the matcher `opindex` matches with one thread; `adaptive` takes more" in refused.stderr


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("capacity", "`capacity` is no option of a matcher; write it as `name=value`, such as `capacity=10`"),
        ("capacty=20", "the matcher `be-tree` has no option `capacty`; did you mean `capacity`? Its options: "),
    ],
)  # fmt: skip
def test_an_option_that_the_matcher_has_not_is_refused(tmp_path: Path, option: str, message: str) -> None:
    pair = str(subscriptions_file(tmp_path)), str(events_file(tmp_path))
    ended = tocsin("bench", "replay", *pair, "--matcher", "be-tree", "--option", option)
    assert ended.returncode == 2
    assert message in " ".join(ended.stderr.split())
