"""Sequences at the command line."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow.parquet as pq
import pytest

from tests.cli.running import tocsin

EVENTS = """\
{"t": 1, "name": "IBM", "price": 100}
{"t": 2, "name": "MSFT", "price": 30}
{"t": 4, "name": "IBM", "price": 110}
{"t": 3, "name": "MSFT", "price": 40}
"""
JUMP = "from stock a next stock b on b.name = a.name where b.price > 1.05 * a.price"
AS_STOCK = ("--stream", "stock", "--time-field", "t", "--id-field", "t")


@pytest.fixture
def events(tmp_path: Path) -> Path:
    file = tmp_path / "events.jsonl"
    file.write_text(EVENTS)
    return file


def test_match_writes_a_sequence_with_its_witness_and_reports_late_events(events: Path) -> None:
    done = tocsin("match", events, "-s", JUMP, *AS_STOCK)
    assert done.returncode == 1
    (note,) = [msgspec.json.decode(line) for line in done.stdout.splitlines()]
    assert (note["event_ids"], note["start"], note["end"]) == (["1", "4"], 1, 4)
    assert note["witness"] == [
        {"alias": "a", "first": "1", "last": "1"},
        {"alias": "b", "first": "4", "last": "4"},
    ]
    assert done.stderr == (
        "3: it ended at 3, before an event that came earlier, and reaches no sequence; "
        "--out-of-orderness says by how much events may come out of order\n"
    )


def test_match_puts_events_in_order_within_a_bound(events: Path, tmp_path: Path) -> None:
    out = tmp_path / "notes.parquet"
    done = tocsin("match", events, "-s", JUMP, "--out-of-orderness", "1", "-o", out, *AS_STOCK)
    assert (done.returncode, done.stderr) == (0, "")
    rows = pq.read_table(out).to_pylist()
    assert [(row["event_id"], row["start"], row["end"]) for row in rows] == [("3", 2, 3), ("4", 1, 4)]
    assert msgspec.json.decode(rows[0]["witness"])[0] == {"alias": "a", "first": "2", "last": "2"}


def test_match_needs_to_know_how_long_a_tick_is(events: Path) -> None:
    within = ("match", events, "-s", JUMP + " within 3 seconds", "--out-of-orderness", "1", *AS_STOCK)
    done = tocsin(*within)
    assert (done.returncode, done.stdout) == (1, "")
    assert "--tick 'stock=1 second'" in done.stderr
    done = tocsin(*within, "--tick", "stock=1 second")
    assert (done.returncode, done.stderr) == (0, "")
    assert [msgspec.json.decode(line)["event_ids"] for line in done.stdout.splitlines()] == [["2", "3"]]
    for wrong in ("stock", "=1 second", "stock=a while"):
        done = tocsin(*within, "--tick", wrong)
        assert (done.returncode, done.stderr.startswith("--tick ")) == (2, True)


def test_match_takes_templates_of_sequences(events: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    rows.write_text("n,f\nIBM,1.05\nMSFT,2\nIBM,x\n")
    template = "from stock a where a.name = :n next stock b on b.name = :n where b.price > :f * a.price"
    done = tocsin(
        "match",
        events,
        "--template",
        template,
        "--parameters",
        rows,
        "--id",
        "{n}",
        "--out-of-orderness",
        "1",
        *AS_STOCK,
    )
    assert [msgspec.json.decode(line)["subscription"] for line in done.stdout.splitlines()] == ["IBM"]
    assert done.stderr == f"{rows}:4: parameter `:f`: its value must be a number\n"


def test_test_counts_how_often_a_sequence_would_have_fired(events: Path) -> None:
    done = tocsin("test", JUMP, events, "--out-of-orderness", "1", "-q", *AS_STOCK)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == [
        "2, 3: t=3, name='MSFT', price=40",
        "1, 4: t=4, name='IBM', price=110",
        "it would have fired 2 times in 4 events (50.00%)",
    ]


def test_explain_shows_the_automaton_and_draws_it(events: Path, tmp_path: Path) -> None:
    graph = tmp_path / "jump.svg"
    done = tocsin("explain", JUMP, events, "--out-of-orderness", "1", "--graph", graph, *AS_STOCK)
    assert (done.returncode, done.stderr) == (0, f"drawn in {graph}\n")
    lines = done.stdout.splitlines()
    assert lines[0] == "begins with stock a"
    assert "takes the next event with b.name = a.name" in done.stdout
    assert "goes on if b.price > 1.05 * a.price" in done.stdout
    assert lines[-1] == "completed 2 times in 4 events"
    assert graph.read_text().startswith("<svg")
    alone = tocsin("explain", JUMP + " within 3 minutes", "--graph", graph)
    assert (alone.returncode, "completed" in alone.stdout) == (0, False)
    never = tocsin("explain", JUMP, "-", *AS_STOCK, stdin='{"t": 1}')
    assert (never.returncode, never.stdout.splitlines()[-1]) == (1, "completed 0 times in 1 event")
    refused = tocsin("explain", "price > 1", "--graph", graph, stdin="{}")
    assert (refused.returncode, "only a sequence" in refused.stderr) == (2, True)


def test_check_finds_sequences_that_cannot_run(tmp_path: Path) -> None:
    file = tmp_path / "subs.txt"
    file.write_text(
        f"good: {JUMP}\n"
        "one: from s a publish as t\n"
        "two: from t a publish as s\n"
        "odd: from s a next s b within 0.5 microseconds\n"
        "view: select min(p), max(p) from table t\n"
    )
    done = tocsin("check", file)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert lines[0].startswith(f"{file}:3: subscription `two`: publishing as `s` closes a cycle: ")
    assert lines[1].startswith(f"{file}:4: subscription `odd`: ")
    assert lines[2].startswith(f"{file}:5: subscription `view`: a view has one answer: ")
    assert lines[3] == "5 subscriptions: 3 at fault, 0 warnings"


def test_apply_keeps_sequences_in_the_book(tmp_path: Path) -> None:
    wanted, book = tmp_path / "wanted.jsonl", tmp_path / "book.jsonl"
    wanted.write_bytes(msgspec.json.encode({"id": "jump", "text": JUMP, "witness": "full"}))
    assert tocsin("apply", wanted, "--to", book, "--yes").returncode == 0
    (held,) = [msgspec.json.decode(line) for line in book.read_bytes().splitlines()]
    assert (held["id"], held["witness"]) == ("jump", "full")
    again = tocsin("apply", wanted, "--to", book, "--yes")
    assert "0 added, 0 changed, 0 removed, 1 unchanged" in again.stdout


def test_parse_shows_a_sequence() -> None:
    done = tocsin("parse", JUMP.replace("from", "FROM").replace(" on ", " ON "))
    assert (done.returncode, done.stdout) == (0, JUMP.replace(" next", "\nnext") + "\n")
