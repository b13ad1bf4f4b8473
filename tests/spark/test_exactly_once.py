"""Streams that are killed and started again: nothing is lost, nothing comes twice, and a batch keeps its generation."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.spark.streaming import SINKS
from tocsin.index import SubscriptionIndex
from tocsin.spark.sinks import read_committed

FILES, EACH = 12, 50


def test_killed_streams_lose_no_notification_and_send_none_twice(tmp_path: Path) -> None:
    _write_events(tmp_path / "events")
    index = SubscriptionIndex(tmp_path / "index", shards=2)
    wanted: dict[int, dict[str, str]] = {}

    def publish(**more: str) -> None:
        texts = {"every": "id >= 0", **more}
        index.apply(texts)
        wanted[index.publish()] = texts

    publish(even="odd = 0")
    _run_and_kill(tmp_path, batches=2)
    publish(odd="odd = 1")
    _run_and_kill(tmp_path, batches=5)
    publish(even="odd = 0", fives="id in (5, 55, 155, 255, 355, 455, 555, 655, 755, 855)")
    _run(tmp_path)
    for sink in SINKS:
        rows = _rows(tmp_path, sink)
        notified = [(row["subscription"], row["event_id"]) for row in rows]
        assert max(Counter(notified).values()) == 1, sink
        generation = {row["event_id"]: row["generation"] for row in rows if row["subscription"] == "every"}
        assert sorted(generation) == list(range(FILES * EACH)), sink
        assert {(row["event_id"], row["generation"]) for row in rows} == set(generation.items()), sink
        assert set(notified) == {
            (name, event)
            for event, number in generation.items()
            for name in wanted[number]
            if name == "every" or _holds(name, event)
        }, sink
        by_file = defaultdict(set)
        for event, number in generation.items():
            by_file[event // EACH].add(number)
        assert all(len(numbers) == 1 for numbers in by_file.values()), sink
        in_order = [min(by_file[file]) for file in range(FILES)]
        assert in_order == sorted(in_order), sink
        assert len(set(in_order)) > 1, sink  # it was killed in the midst
        assert set(_recorded(tmp_path, sink).values()) == set(in_order), sink


def _holds(name: str, event: int) -> bool:
    return {"even": event % 2 == 0, "odd": event % 2 == 1, "fives": event % 100 == 55 or event == 5}[name]


def _write_events(folder: Path) -> None:
    """A file for each batch, in order of their times, with a line that is no event in each."""
    folder.mkdir()
    for number in range(FILES):
        lines = [json.dumps({"id": id_, "odd": id_ % 2}) for id_ in range(number * EACH, (number + 1) * EACH)]
        file = folder / f"{number:02}.jsonl"
        file.write_text("\n".join([*lines, "{oops"]) + "\n")
        os.utime(file, (1_000_000 + number, 1_000_000 + number))


def _command(home: Path, how: str) -> list[str]:
    return [sys.executable, "-m", "tests.spark.streaming", str(home), how]


def _run(home: Path) -> None:
    done = subprocess.run(
        _command(home, "to the end"), capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _run_and_kill(home: Path, batches: int) -> None:
    """Run until one stream has committed so many batches more, and the other some; kill everything then."""
    before = {sink: _committed(home, sink) for sink in SINKS}
    with (home / "log.txt").open("w") as log:
        process = subprocess.Popen(
            _command(home, "on"), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            until = time.monotonic() + 200
            while not _is_in_the_midst(home, before, batches):
                assert process.poll() is None, (home / "log.txt").read_text()[-3000:]
                assert time.monotonic() < until
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _is_in_the_midst(home: Path, before: dict[str, int], batches: int) -> bool:
    more = [_committed(home, sink) - before[sink] for sink in SINKS]
    return max(more) >= batches and min(more) >= 1


def _committed(home: Path, sink: str) -> int:
    folder = home / f"{sink}-checkpoint" / "notifications" / "commits"
    return len([file for file in folder.iterdir() if file.name.isdigit()]) if folder.exists() else 0


def _recorded(home: Path, sink: str) -> dict[int, int]:
    """Return the generation of each batch of a sink's query."""
    metadata = json.loads((home / f"{sink}-checkpoint" / "notifications" / "metadata").read_text())
    folder = home / "index" / "batches" / metadata["id"]
    # What a killed writer left half-written begins with a dot.
    return {int(file.name): int(file.read_text()) for file in folder.iterdir() if file.name.isdigit()}


def _rows(home: Path, sink: str) -> list[dict[str, Any]]:
    if sink == "tocsin-arrow":
        return list(read_committed(str(home / sink)).to_pylist())
    # What Spark's file sink has committed is listed in its own log; other files are left-overs of killed tasks.
    files: dict[str, None] = {}
    for log in (home / sink / "_spark_metadata").iterdir():
        if not log.name.startswith("."):
            entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
            files.update((entry["path"].removeprefix("file://"), None) for entry in entries)
    return [row for file in files for row in pq.read_table(file).to_pylist()]


@pytest.fixture(autouse=True)
def _from_the_project_s_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[2])
