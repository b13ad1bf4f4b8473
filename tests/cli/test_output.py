"""`-` is standard input and output wherever an option takes a file."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
from rich.text import Text

from tests.cli.running import tocsin
from tocsin.cli.console import new_console

SMALL = (
    *("--nodes", "6", "--physical", "40", "--subscriptions", "20", "--rows", "20", "--events", "30"),
    *("--strategy", "CN", "-q"),
)
EVENT = '{"price": 101}'


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_simulate_writes_figures_or_a_page_to_standard_output() -> None:
    done = tocsin("simulate", *SMALL, "--json", "-")
    assert [one["strategy"] for one in json.loads(done.stdout)["strategies"]] == ["CN"]
    page = tocsin("simulate", *SMALL, "--html", "-")
    assert page.stdout.startswith("<!")
    assert page.stdout.rstrip().endswith("</html>")
    both = tocsin("simulate", *SMALL, "--html", "-", "--json", "-")
    assert (both.returncode, both.stderr) == (2, "--json and --html are both -; name two files\n")
    assert list(Path().iterdir()) == []


def test_match_writes_notifications_and_faults_to_standard_output() -> None:
    done = tocsin("match", "-", "-s", "price > 100", "-o", "-", "--faults", "-", stdin=f"{EVENT}\nbroken\n")
    note, fault = sorted(done.stdout.splitlines(), key=lambda line: not line.startswith("{"))
    assert json.loads(note)["subscription"] == "s1"
    assert fault.startswith("stdin:2: not JSON")
    table = tocsin("match", "-", "-s", "price > 100", "-o", "-", "--format", "table", stdin=EVENT)
    assert table.stdout.split() == ["SUBSCRIPTION", "EVENT", "VALUES", "s1", "stdin:1", "price=101"]
    assert list(Path().iterdir()) == []


def test_an_automaton_is_drawn_on_standard_output() -> None:
    done = tocsin("explain", "from a x next a y", "--graph", "-")
    assert done.stdout.startswith("<svg")
    assert done.stdout.rstrip().endswith("</svg>")
    assert done.stderr == ""


@pytest.mark.parametrize(
    "arguments",
    [
        ("match", "-s", "true", "-o", "-", "--format", "parquet"),
        ("match", "-s", "true", "--save-tables", "-"),
        ("compile", "-o", "-"),
        ("apply", "x.txt", "--to", "-"),
        ("spark", "stats", "x.jsonl", "-o", "-"),
    ],
)
def test_what_is_no_text_is_not_written_to_standard_output(arguments: tuple[str, ...]) -> None:
    Path("x.txt").write_text("a = 1\n")
    before = sorted(Path().iterdir())
    done = tocsin(*arguments, stdin=EVENT)
    assert (done.returncode, done.stdout) == (2, "")
    assert "file" in done.stderr
    assert sorted(Path().iterdir()) == before


def test_subscriptions_and_rows_are_read_from_standard_input() -> None:
    Path("events.jsonl").write_text(EVENT)
    text = "high: price > 100\nlow:\n  price < 100\nbad: price >\n"
    done = tocsin("match", "events.jsonl", "-f", "-", stdin=text)
    assert [json.loads(line)["subscription"] for line in done.stdout.splitlines()] == ["high"]
    assert done.stderr.startswith("stdin:4:13: subscription `bad`: a value is missing")
    lines = '\n{"id": "high", "text": "price > 100"}\n{"id": "low"}\n'
    done = tocsin("check", "-", stdin=lines)
    assert done.stderr.startswith("stdin:3: a subscription needs either")
    rows = tocsin(
        "match",
        "events.jsonl",
        "--template",
        "price > :p",
        "--parameters",
        "-",
        "--id",
        "{p}",
        stdin='{"p":7}',
    )
    assert [json.loads(line)["subscription"] for line in rows.stdout.splitlines()] == ["7"]
    applied = tocsin("apply", "-", "--to", "stored.jsonl", "--yes", stdin=text.rpartition("bad")[0])
    assert "2 added" in applied.stdout


def test_only_one_thing_is_read_from_standard_input() -> None:
    for arguments in (("match", "-f", "-"), ("check", "-", "--against", "-")):
        done = tocsin(*arguments, stdin=EVENT)
        assert (done.returncode, done.stderr) == (
            2, "only one thing can be read from standard input (-); name files for the others\n"
        )  # fmt: skip


def test_control_characters_are_shown_at_a_terminal_and_not_obeyed() -> None:
    for is_terminal, shown in ((True, "a␛[31mb\nc�"), (False, "a\x1b[31mb\nc\x9b")):
        file = StringIO()
        console = new_console(file=file, force_terminal=is_terminal, color_system=None, _environ={})
        console.print(Text("a\x1b[31mb\nc\x9b"), soft_wrap=True)
        assert file.getvalue() == f"{shown}\n"


def test_a_file_that_cannot_be_written_is_named() -> None:
    for option in ("--output", "--faults"):
        done = tocsin("match", "-", "-s", "price > 100", option, "nowhere/x.jsonl", stdin=EVENT)
        assert (done.returncode, done.stdout) == (2, "")
        assert "there is no folder nowhere; make it first" in " ".join(done.stderr.split())
    Path("event.jsonl").symlink_to("event.jsonl")
    loop = tocsin("match", "event.jsonl", "-s", "price > 100")
    assert (loop.returncode, "Errno" in loop.stderr) == (2, False)
