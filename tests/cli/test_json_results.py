"""The documents that `--json` writes: their shapes are those of docs/reference/command-line.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import tocsin

EVENTS = '{"symbol":"IBM","price":101.5,"at":"2026-01-01T10:00:00Z"}\n\nbroken\n{"symbol":"XOM","price":25,"at":"2026-01-02T10:00:00Z"}\n'
FAULT = {"file": "events.jsonl", "line": 3, "message": "not JSON: invalid character (byte 0): broken"}


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("events.jsonl").write_text(EVENTS)


def document(code: int, *arguments: str, stdin: str = "") -> dict[str, Any]:
    """Run a command with `--json -` and with `--json FILE`; both must agree, and the first prints nothing else."""
    done = tocsin(*arguments, "--json", "-", stdin=stdin)
    assert done.returncode == code, done.stderr
    to_file = tocsin(*arguments, "--json", "result.json", stdin=stdin)
    assert to_file.returncode == code
    assert Path("result.json").read_text() == done.stdout
    assert to_file.stderr == done.stderr
    found = json.loads(done.stdout)
    assert found["command"] == arguments[0]
    assert list(found)[:3] == ["command", "errors", "warnings"]
    return {name: value for name, value in found.items() if name != "command"}


def test_check_lists_errors_and_warnings_with_their_places() -> None:
    Path("subs.txt").write_text(
        "high: price > 100\nbad:\n  price > 100 adn volume < 5\nnever: a > 2 and a < 1\n"
    )
    Path("subs.jsonl").write_text('{"id": "x", "query": {"=": [1]}}\n{"id": "y"}\n')
    found = document(1, "check", "subs.txt", "subs.jsonl", "-s", "a =")
    assert found == {
        "subscriptions": 6,
        "errors": [
            {
                "message": "a value is missing, found the end of the text",
                "file": "-s", "line": 1, "subscription": "s1", "column": 4,
                "expected": found["errors"][0]["expected"],
            },
            {
                "message": "the condition before is complete, found `adn`",
                "file": "subs.txt", "line": 3, "subscription": "bad", "column": 15,
                "expected": ["the end of the text", "`and`", "`or`"], "hint": "did you mean `and`?",
            },
            {"message": "`=` takes 2 arguments, got 1", "file": "subs.jsonl", "line": 1, "subscription": "x", "path": "$.="},
            {"message": "a subscription needs either a `text`, or a `query` in JSON", "file": "subs.jsonl", "line": 2},
        ],
        "warnings": [
            {
                "message": found["warnings"][0]["message"],
                "file": "subs.txt", "line": 4, "subscription": "never",
            }
        ],
    }  # fmt: skip
    assert "it can never match" in found["warnings"][0]["message"]


def test_an_error_that_ends_a_command_is_a_document_too() -> None:
    error = {
        "message": "a value is missing, found the end of the text", "line": 1, "column": 8,
    }  # fmt: skip
    for command in (
        ("test", "price >", "events.jsonl"),
        ("explain", "price >", "events.jsonl"),
        ("backtest", "events.jsonl", "-s", "price >", "--time-field", "at"),
    ):
        found = document(2, *command)
        place = {"file": "-s", "subscription": "s1"} if command[0] == "backtest" else {}
        told = {name: value for name, value in found["errors"][0].items() if name != "expected"}
        assert told == error | place, command
        assert found["warnings"] == []
    missing = document(2, "test", "a = 1", "nowhere.jsonl")
    assert missing == {"errors": [{"message": "there is no file nowhere.jsonl"}], "warnings": []}


def test_test_counts_and_shows_notifications() -> None:
    found = document(
        0, "test", "price > 1 and price > 0", "events.jsonl", "--limit", "1", "--time-field", "at"
    )
    at = "2026-01-01T10:00:00Z"
    assert found == {
        "errors": [], "warnings": [], "events": 2, "fired": 2,
        "notifications": [
            {
                "subscription": "it", "event_ids": ["events.jsonl:1"], "start": at, "end": at, "generation": 1,
                "events": [
                    {
                        "id": "events.jsonl:1", "stream": "events", "start": at, "end": at,
                        "attributes": {"symbol": "IBM", "price": 101.5, "at": "2026-01-01T10:00:00Z"},
                    }
                ],
            }
        ],
        "refused": 1, "faults": [FAULT],
    }  # fmt: skip


def test_explain_of_a_filter_has_the_truth_of_each_part() -> None:
    found = document(1, "explain", "from stock where price > 100 and not volume < 5", '{"price": 99}')
    price = {"text": "price > 100", "truth": False, "value": 99}
    volume = {"text": "volume < 5", "truth": None, "value": None}
    assert found == {
        "errors": [], "warnings": [], "kind": "filter", "matches": False,
        "condition": {
            "text": "price > 100 and not volume < 5", "truth": False, "connective": "and",
            "parts": [price, {"text": "not volume < 5", "truth": None, "connective": "not", "parts": [volume]}],
        },
        "failed": [price, volume],
        "outside": ["it reads stream `stock`, the event is of no stream"],
        "event": {"id": "event:1", "start": 0, "end": 0, "attributes": {"price": 99}},
        "refused": 0, "faults": [],
    }  # fmt: skip


def test_explain_of_a_filter_counts_over_several_events() -> None:
    found = document(1, "explain", "price > 100 or volume > 5", "events.jsonl")
    assert found == {
        "errors": [], "warnings": [{"message": "no event has the attribute `volume`"}],
        "kind": "filter", "events": 2, "matched": 1, "first_match": "events.jsonl:1",
        "condition": {
            "text": "price > 100 or volume > 5", "true": 1, "false": 0, "unknown": 1, "connective": "or",
            "parts": [
                {"text": "price > 100", "true": 1, "false": 1, "unknown": 0},
                {"text": "volume > 5", "true": 0, "false": 0, "unknown": 2},
            ],
        },
        "outside": {}, "refused": 1, "faults": [FAULT],
    }  # fmt: skip


def test_explain_of_a_sequence_has_its_automaton() -> None:
    text = "from trades a next trades b on b.symbol = a.symbol where b.price > a.price within 3 days"
    arguments = ("--stream", "trades", "--time-field", "at")
    found = document(1, "explain", text, "events.jsonl", *arguments)
    node = found["automaton"].pop("nodes")[0]
    assert found == {
        "errors": [], "warnings": [], "kind": "sequence", "events": 2, "completed": 0,
        "automaton": {
            "stream": "trades", "alias": "a", "inner": {},
            "if": {"text": "true", "by_index": None, "by_instance": None},
        },
        "refused": 1, "faults": [FAULT],
    }  # fmt: skip
    assert (node["stream"], node["alias"], node["ticks"]) == ("trades", "b", 3 * 86_400_000_000)
    assert node["with"]["text"] == "b.symbol = a.symbol"
    assert node["instances"] == len(node["samples"]) == 2
    assert sorted(one["values"]["a.symbol"] for one in node["samples"]) == ["IBM", "XOM"]
    assert (node["ended"], node["last_ended"]) == ({}, None)
    bare = document(0, "explain", text, "--graph", "graph.svg")
    assert "completed" not in bare
    assert "instances" in bare["automaton"]["nodes"][0]


def test_explain_of_a_view_has_its_change() -> None:
    arguments = ("--stream", "stock", "--table", "stock=symbol")
    Path("rows.jsonl").write_text('{"symbol":"IBM","price":1}\n{"symbol":"IBM","price":3}\n')
    found = document(
        0, "explain", "select max(price) from table stock where price > 0", "rows.jsonl", *arguments
    )
    maintenance = found.pop("maintenance")
    assert "max" in maintenance
    assert found == {
        "errors": [], "warnings": [], "kind": "view", "changes": True, "answer": 1, "new_answer": 3, "events": 1,
        "condition": {"text": "price > 0", "truth": True, "value": 3},
        "before": {"text": "price > 0", "truth": True, "value": 1},
        "outside": [], "refused": 0, "faults": [],
    }  # fmt: skip


def test_apply_lists_the_difference() -> None:
    Path("wanted.txt").write_text("x: a = 1\ny: a = 2\n")
    shown = document(1, "apply", "wanted.txt", "--to", "book.jsonl", "--dry-run")
    rows = [{"id": "x", "text": "a = 1"}, {"id": "y", "text": "a = 2"}]
    none: dict[str, Any] = {"errors": [], "warnings": [], "changed": [], "removed": [], "unchanged": 0}
    assert shown == {**none, "added": rows, "applied": False, "stored": 0}
    tocsin("apply", "wanted.txt", "--to", "book.jsonl", "--yes")
    Path("wanted.txt").write_text("x: a = 3\n")
    done = tocsin("apply", "wanted.txt", "--to", "book.jsonl", "--yes", "--json", "-")
    assert json.loads(done.stdout) == {
        "command": "apply", **none, "added": [], "changed": [{"id": "x", "old": "a = 1", "new": "a = 3"}],
        "removed": [{"id": "y", "text": "a = 2"}], "applied": True, "stored": 1,
    }  # fmt: skip
    Path("wanted.txt").write_text("x: a =\ny: b >\n")
    faulty = document(2, "apply", "wanted.txt", "--to", "book.jsonl", "--yes")
    assert [(one["file"], one["line"], one["column"]) for one in faulty["errors"]] == [
        ("wanted.txt", 1, 7), ("wanted.txt", 2, 7)
    ]  # fmt: skip
    assert faulty["applied"] is False


def test_backtest_counts_by_day() -> None:
    found = document(1, "backtest", "events.jsonl", "-s", "price > 100", "-s", "true", "--time-field", "at")
    assert found == {
        "errors": [], "warnings": [], "events": 2, "total": 3, "rows_left_out": 1,
        "subscriptions": {"s1": 1, "s2": 2},
        "days": [
            {"day": "2026-01-01", "events": 1, "notifications": {"s1": 1, "s2": 1}},
            {"day": "2026-01-02", "events": 1, "notifications": {"s2": 1}},
        ],
        "refused": 1, "faults": [FAULT],
    }  # fmt: skip
