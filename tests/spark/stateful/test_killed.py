"""A stream with sequences and views that is killed three times, with subscriptions that change in between."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from tests.sharding.shards import Told, normal, told
from tests.spark.stateful.workload import TABLES, TEXTS, Row, engine, events, publish
from tocsin.index import SubscriptionIndex

FILES, EACH = 12, 40
# When rows are published among others of a table, events that wait make it depend on the micro-batches.
WHOLE = {id_: text for id_, text in TEXTS.items() if id_ not in ("view3", "view4")}
CHANGES: list[dict[str, str]] = [
    {id_: text for id_, text in WHOLE.items() if id_ not in ("keyed0", "view1", "filter1")},
    WHOLE,
    {id_: text for id_, text in WHOLE.items() if id_ not in ("keyed3", "view0", "filter0")},
    {**WHOLE, "keyed3": "from s a next s b on b.g = a.g select b.x as x"},
]


def test_a_killed_stream_has_the_engines_notifications(tmp_path: Path) -> None:
    rows = events(8, FILES * EACH)
    files = [rows[begin : begin + EACH] for begin in range(0, len(rows), EACH)]
    _write(tmp_path / "events", files)
    index = SubscriptionIndex(tmp_path / "index")
    for name, key in TABLES.items():
        index.table(name, key=key)
    sets: dict[int, dict[str, str]] = {}
    for part, texts in enumerate(CHANGES):
        index.apply(texts)
        sets[index.publish()] = texts
        if part < len(CHANGES) - 1:
            _run_and_kill(tmp_path, batches=2)
    _run(tmp_path)
    generations, batches = _generations(tmp_path), _batches(tmp_path, files)
    in_order = [generations[batch] for batch in range(len(batches))]
    assert in_order == sorted(in_order)
    assert len(set(in_order)) == len(CHANGES)
    assert _notified(tmp_path) == _expected(batches, [sets[number] for number in in_order])


def _batches(home: Path, files: list[list[Row]]) -> list[list[Row]]:
    """Return the rows of each micro-batch: of one file, or of two where the stream was killed after it had noted the next file."""
    offsets = home / "checkpoint" / "notifications" / "offsets"
    logs = sorted(
        (file for file in offsets.iterdir() if file.name.isdigit()), key=lambda file: int(file.name)
    )
    ends = [1 + int(json.loads(log.read_text().splitlines()[-1])["logOffset"]) for log in logs]
    assert ends[-1] == len(files)
    return [[row for file in files[begin:end] for row in file] for begin, end in pairwise([0, *ends])]


def _expected(batches: list[list[Row]], texts: list[dict[str, str]]) -> Told:
    """Return the notifications of an engine whose subscriptions are those of each micro-batch."""
    beside, found = engine(out_of_orderness=4), Told()
    present: dict[str, str] = {}
    for rows, wanted in zip(batches, texts, strict=True):
        for id_ in [id_ for id_, text in present.items() if wanted.get(id_) != text]:
            beside.unsubscribe(id_)
            del present[id_]
        for id_ in wanted.keys() - present.keys():
            found += told(beside.subscribe(wanted[id_], id=id_).notifications)
        present = dict(wanted)
        found += publish(beside, rows)
    return found


def _write(folder: Path, files: list[list[Row]]) -> None:
    """Write a file for each micro-batch, in the order of their times."""
    folder.mkdir()
    for number, rows in enumerate(files):
        file = folder / f"{number:02}.csv"
        file.write_text(
            "".join(",".join("" if cell is None else str(cell) for cell in row) + "\n" for row in rows)
        )
        os.utime(file, (1_000_000 + number, 1_000_000 + number))


def _command(home: Path, how: str) -> list[str]:
    return [sys.executable, "-m", "tests.spark.stateful.killed", str(home), how]


def _run(home: Path) -> None:
    done = subprocess.run(
        _command(home, "to the end"), capture_output=True, text=True, check=False, timeout=400
    )
    assert done.returncode == 0, done.stderr[-3000:]


def _run_and_kill(home: Path, batches: int) -> None:
    """Run until so many micro-batches more were committed, and kill everything in the midst of another."""
    wanted = _committed(home) + batches
    with (home / "log.txt").open("w") as log:
        process = subprocess.Popen(
            _command(home, "on"), stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        try:
            until = time.monotonic() + 300
            while _committed(home) < wanted:
                assert process.poll() is None, (home / "log.txt").read_text()[-3000:]
                assert time.monotonic() < until
                time.sleep(0.02)
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _committed(home: Path) -> int:
    folder = home / "checkpoint" / "notifications" / "commits"
    return len([file for file in folder.iterdir() if file.name.isdigit()]) if folder.exists() else 0


def _generations(home: Path) -> dict[int, int]:
    """Return the generation of each micro-batch."""
    metadata = json.loads((home / "checkpoint" / "notifications" / "metadata").read_text())
    folder = home / "index" / "batches" / metadata["id"]
    return {int(file.name): int(file.read_text()) for file in folder.iterdir() if file.name.isdigit()}


def _notified(home: Path) -> Told:
    """Return what the sink has committed; other files are left-overs of killed tasks."""
    found = Told()
    files: dict[str, None] = {}
    for log in (home / "notes" / "_spark_metadata").iterdir():
        if not log.name.startswith("."):
            entries = [json.loads(line) for line in log.read_text().splitlines()[1:]]
            files.update((entry["path"].removeprefix("file://"), None) for entry in entries)
    for file in files:
        found.update(map(_told, pq.read_table(file).to_pylist()))
    return found


def _told(row: dict[str, Any]) -> tuple[Any, ...]:
    assert row["reason"] is None
    texts = (None if row[name] is None else normal(row[name]) for name in ("values", "old", "new"))
    end = row["time"] if row["event_ids"] else None
    return (row["subscription"], tuple(row["event_ids"]), row["start"], end, *texts)


@pytest.fixture(autouse=True)
def _from_the_project_s_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(Path(__file__).parents[3])
