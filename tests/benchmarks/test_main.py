import json
from pathlib import Path

from tests.cli.running import run_module


def test_language_prints_a_table_and_writes_json(tmp_path: Path) -> None:
    file = tmp_path / "language.json"
    done = run_module("benchmarks", "language", "--filters", "50", "--rows", "500", "--json", file)
    assert done.returncode == 0, done.stderr
    assert "parse and normalise" in done.stdout
    report = json.loads(file.read_text())
    assert report["benchmark"] == "language"
    assert {m["name"]: m["target"] for m in report["measurements"]}["parse and normalise"] == 10_000
    assert all(m["value"] > 0 for m in report["measurements"])


def test_opindex_says_which_data_is_missing(tmp_path: Path) -> None:
    done = run_module("benchmarks", "opindex", "--data", tmp_path)
    assert done.returncode == 2
    assert "news.jsonl.gz and no" in done.stderr
    assert "or name none, and the data is made up" in done.stderr


def test_cayuga_says_which_data_is_missing(tmp_path: Path) -> None:
    done = run_module("benchmarks", "cayuga", "--data", tmp_path)
    assert done.returncode == 2
    assert "news.jsonl.gz and no" in done.stderr
    assert "leave out --data, and the data is made up" in done.stderr


def test_views_says_which_data_is_missing(tmp_path: Path) -> None:
    done = run_module("benchmarks", "views", "--data", tmp_path)
    assert done.returncode == 2
    assert "stock_quotes.jsonl.gz; leave out --data, and the quotes are made up" in done.stderr
