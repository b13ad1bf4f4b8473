"""`tocsin sample`: the same files everywhere, with something to find in them, and no other file replaced."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from tests.cli.running import tocsin
from tocsin.cli.sample_data import sample_files
from tocsin.formats import Fault, open_events

DIGESTS = {
    "flights.csv": "56ee33ca369474f0",
    "quotes.csv": "e50a4c946fe99b2d",
    "trades.csv": "b6cfc87e7ef42f52",
    "alerts.csv": "3f5711a4fad3e153",
    "subscriptions.txt": "75c40bffbc315938",
}


def test_the_files_are_the_same_on_every_machine() -> None:
    digests = {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in sample_files().items()}
    assert digests == DIGESTS


def test_files_are_written_and_others_are_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    done = tocsin("sample", folder)
    assert done.returncode == 0
    assert sorted(path.name for path in folder.iterdir()) == sorted(DIGESTS)
    assert (
        done.stdout.splitlines()[0]
        == f"{folder}/flights.csv  {len(sample_files()['flights.csv'].splitlines()):,} lines"
    )
    assert sum(path.stat().st_size for path in folder.iterdir()) < 250_000
    assert tocsin("sample", folder).returncode == 0  # the same files
    (folder / "trades.csv").write_text("mine")
    (folder / "alerts.csv").unlink()
    refused = tocsin("sample", folder)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr.startswith(f"{folder}/trades.csv is there already, and is another file")
    assert not (folder / "alerts.csv").exists()
    assert tocsin("sample", folder, "--force").returncode == 0
    assert (folder / "trades.csv").read_text() == sample_files()["trades.csv"]


def test_every_subscription_finds_something_and_nothing_is_at_fault(tmp_path: Path) -> None:
    tocsin("sample", tmp_path)
    for name in ("flights.csv", "quotes.csv", "trades.csv"):
        events = list(open_events(tmp_path / name))
        assert not any(isinstance(event, Fault) for event in events)
        times = [str(event.attributes["time"]) for event in events if not isinstance(event, Fault)]
        assert times == sorted(times)
    done = tocsin(
        "backtest", tmp_path / "flights.csv", "-f", tmp_path / "subscriptions.txt", "--time-field", "time", "--json", "-"
    )  # fmt: skip
    found = json.loads(done.stdout)
    assert min(found["subscriptions"].values()) > 0
    assert len(found["days"]) >= 14
    jumps = tocsin(
        "test", "from t a next t b on b.symbol = a.symbol where b.price > 1.05 * a.price", tmp_path / "trades.csv",
        "--stream", "t", "--time-field", "time", "--json", "-",
    )  # fmt: skip
    assert 2 <= json.loads(jumps.stdout)["fired"] <= 50
