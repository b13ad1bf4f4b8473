"""Views on the command line: tables are declared, answers are written, tables are kept between runs."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.cli.running import tocsin

BEST = "select min(per) from table stock where risk between 20 and 60"
QUOTES = [
    {"symbol": "A", "risk": 30, "per": 8},
    {"symbol": "B", "risk": 50, "per": 5},
    {"symbol": "C", "risk": 90, "per": 1},
    {"symbol": "B", "$delete": True},
]


@pytest.fixture
def quotes(tmp_path: Path) -> Path:
    file = tmp_path / "quotes.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in QUOTES))
    return file


def test_match_writes_the_answers_before_and_after(quotes: Path, tmp_path: Path) -> None:
    options = ("--stream", "stock", "--table", "stock=symbol")
    done = tocsin("match", quotes, "-s", BEST, *options)
    notes = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(note["old"], note["new"]) for note in notes] == [(None, 8), (8, 5), (5, 8)]
    shown = tocsin(
        "match", quotes, "-s", "select distinct risk from table stock", *options, "--format", "table"
    )
    assert [line.split(maxsplit=2)[2] for line in shown.stdout.splitlines()[1:]] == [
        "+ 30",
        "+ 50",
        "+ 90",
        "- 50",
    ]
    parquet = tmp_path / "notes.parquet"
    assert tocsin("match", quotes, "-s", BEST, *options, "-o", parquet).returncode == 0
    answers = pq.read_table(parquet).column("answer").to_pylist()
    assert [json.loads(text)["new"] for text in answers] == [8, 5, 8]


def test_tables_are_kept_between_runs(quotes: Path, tmp_path: Path) -> None:
    kept = tmp_path / "tables"
    common = ("match", "-s", BEST, "--stream", "stock")
    assert tocsin(*common, quotes, "--table", "stock=symbol", "--save-tables", kept).returncode == 0
    again = tocsin(*common, "--load-tables", kept, stdin='{"symbol":"D","risk":20,"per":3}\n')
    first, second = (json.loads(line) for line in again.stdout.splitlines())
    assert ("old" in first, first["new"], first["event_ids"]) == (False, 8, [])
    assert (second["old"], second["new"]) == (8, 3)


def test_explain_and_test_show_the_change(quotes: Path) -> None:
    options = ("--stream", "stock", "--table", "stock=symbol")
    why = tocsin("explain", BEST, quotes, *options)
    assert why.returncode == 0
    assert "after 3 events: 5" in why.stdout
    assert "it changes the answer to 8" in why.stdout
    trial = tocsin("test", BEST, quotes, *options)
    assert "it would have fired 3 times in 4 events" in trial.stdout
    other = tocsin("explain", BEST, *options, stdin='{"symbol": "Z", "risk": 1}')
    assert (other.returncode, "it does not change the answer" in other.stdout) == (1, True)


def test_errors_are_reported_in_one_line(quotes: Path) -> None:
    undeclared = tocsin("match", quotes, "-s", BEST)
    assert (undeclared.returncode, "there is no table `stock`" in undeclared.stderr) == (2, True)
    mistyped = tocsin("match", quotes, "-s", BEST, "--table", "stock")
    assert "--table is written as stream=key, such as stock=symbol, not 'stock'" in mistyped.stderr
    quotes.write_text('{"symbol":"A","risk":30,"per":8}\n{"risk":3}\n')
    keyless = tocsin("match", quotes, "-s", BEST, "--stream", "stock", "--table", "stock=symbol")
    assert keyless.returncode == 1
    assert f"{quotes}:2: attribute `symbol`: a row of the table `stock` needs it" in keyless.stderr
    assert len(keyless.stdout.splitlines()) == 1


def test_a_book_holds_views_without_their_tables(tmp_path: Path) -> None:
    wanted, book = tmp_path / "wanted.txt", tmp_path / "book.jsonl"
    wanted.write_text(f"best: {BEST}\n")
    assert tocsin("check", wanted).returncode == 0
    assert tocsin("apply", wanted, "--to", book, "--yes").returncode == 0
    assert tocsin("apply", wanted, "--to", book, "--yes").stdout.startswith(
        "0 added, 0 changed, 0 removed, 1 unchanged"
    )
