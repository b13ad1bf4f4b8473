"""`check`, `explain`, `test` and `apply`, as their users meet them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from benchmarks.language.experiments import filter_texts
from tests.cli.running import tocsin

EVENTS = '{"symbol":"IBM","price":101.5}\n{"symbol":"MSFT","price":25}\n'


def test_check_reports_exactly_the_bad_ones_among_many_with_positions(tmp_path: Path) -> None:
    texts = [f"q{i}: {text}" for i, text in enumerate(filter_texts(3_000))]
    texts[10] = "q10: price => 1"
    texts[999] = "q999: symbol = 'IBM"
    texts[2_999] = "q2999: a = 1 and"
    file = tmp_path / "subscriptions.txt"
    file.write_text("\n".join(texts) + "\n")
    done = tocsin("check", file)
    assert (done.returncode, done.stdout) == (1, "")
    heads = [line for line in done.stderr.splitlines() if line.startswith(str(file))]
    assert heads == [
        f"{file}:11:12: subscription `q10`: a comparison is missing, found `=>`",
        f"{file}:1000:16: subscription `q999`: the string that begins here has no closing `'`",
        f"{file}:3000:17: subscription `q2999`: a condition is missing after `and`, found the end of the text",
    ]
    assert done.stderr.splitlines()[-1] == "3,000 subscriptions: 3 at fault, 0 warnings"


def test_check_knows_tables_json_and_repeated_ids(tmp_path: Path) -> None:
    csv = tmp_path / "subscriptions.csv"
    csv.write_text("id,text,valid_until\na,price > 1,500\nb,price >,\na,price > 2,\n")
    jsonl = tmp_path / "subscriptions.jsonl"
    jsonl.write_text('{"id":"c","query":{"=":[{"attribute":["x"]}]}}\n{"txt":"a = 1"}\nbroken\n{"id":"d"}\n')
    done = tocsin("check", csv, jsonl, "-q")
    assert done.returncode == 1
    wanted = [
        f"{csv}:3:8: subscription `b`: a value is missing, found the end of the text",
        f"{csv}:4: the id `a` is given at {csv}:2 already",
        f"{jsonl}:1: subscription `c`: `=` takes 2 arguments, got 1 - at `$.=`",
        f"{jsonl}:2: unknown key `txt`; did you mean `text`? Known are id, owner, query, text, valid_from, valid_until, weight, witness",
        f"{jsonl}:3: not JSON: invalid character (byte 0): broken",
        f"{jsonl}:4: a subscription needs either a `text`, or a `query` in JSON",
    ]
    assert [line for line in done.stderr.splitlines() if line.startswith(str(tmp_path))] == wanted


def test_check_against_events_warns_of_attributes_and_kinds_they_lack(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text(EVENTS)
    done = tocsin(
        "check", "--against", events,
        "-s", "symbl = 'IBM'", "-s", "price = '100'", "-s", "price > 1 and symbol like 'I%'", "-s", "volume is missing",
        "-s", "from stock a next stock b on b.pric > 1 and b.price > a.price",
    )  # fmt: skip
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "warning: -s:1: subscription `s1`: no event has the attribute `symbl`; did you mean `symbol`?",
        "warning: -s:2: subscription `s2`: `price = '100'` never matches: `price` is a number in the events, not a string",
        "warning: -s:5: subscription `s5`: no event was of stream `stock`; they are of `events`",
        "warning: -s:5: subscription `s5`: no event has the attribute `pric`; did you mean `price`?",
        "5 subscriptions: 0 at fault, 4 warnings",
    ]


def test_check_needs_something_to_check() -> None:
    done = tocsin("check")
    assert (done.returncode, done.stderr) == (
        2,
        "nothing to check: name files of subscriptions, or give -s TEXT\n",
    )


def test_explain_shows_each_predicate_and_answers_by_its_exit_code(tmp_path: Path) -> None:
    hit = tocsin("explain", "symbol = 'IBM' and price > 100", EVENTS.splitlines()[0])
    assert (hit.returncode, hit.stdout.splitlines()[-1]) == (0, "it matches")
    file = tmp_path / "event.json"
    file.write_text(EVENTS.splitlines()[1])
    miss = tocsin("explain", "from stock where symbol = 'IBM' and (price > 100 or volume > 5)", file)
    assert miss.returncode == 1
    assert [line.strip(" │├└─") for line in miss.stdout.splitlines()] == [
        "✗ and",
        "✗ symbol = 'IBM'  it is 'MSFT'",
        "? or",
        "✗ price > 100  it is 25",
        "? volume > 5  absent",
        "✗ it reads stream `stock`, the event is of stream `event`",
        "it does not match: symbol = 'IBM' (it is 'MSFT'), price > 100 (it is 25), volume > 5 (absent)",
    ]
    assert tocsin("explain", "a = 1", "-", stdin='{"a":1}').returncode == 0
    for bad in ("nonsense", "{broken", '{"a":[}'):
        assert tocsin("explain", "a = 1", bad).returncode == 2
    foreign = tocsin("explain", "a = 1", '{"a":"\udcff"}')  # a byte that is no UTF-8
    assert (foreign.returncode, foreign.stderr) == (
        2,
        "the event is not valid Unicode: a lone surrogate at position 6; write it in UTF-8\n",
    )


def test_explain_counts_over_several_events(tmp_path: Path) -> None:
    file = tmp_path / "events.jsonl"
    file.write_text(EVENTS + "broken\n" + '{"price":null}\n')
    done = tocsin("explain", "symbol = 'IBM' and (price > 100 or volume is missing)", file)
    assert [line.strip(" │├└─") for line in done.stdout.splitlines()] == [
        "and  ✓ 1  ✗ 1  ? 1",
        "symbol = 'IBM'  ✓ 1  ✗ 1  ? 1",
        "or  ✓ 3  ✗ 0  ? 0",
        "price > 100  ✓ 1  ✗ 1  ? 1",
        "volume is missing  ✓ 3  ✗ 0  ? 0",
        f"it matches 1 of 3 events, first {file}:1",
    ]
    assert (done.returncode, done.stderr.startswith(f"{file}:3: not JSON")) == (1, True)  # one was left out
    piped = tocsin("explain", "price > 1", "-", stdin=EVENTS)
    assert (piped.returncode, piped.stdout.splitlines()[-1]) == (0, "it matches 2 of 2 events, first stdin:1")
    other = tocsin("explain", "from stock where price > 100", file, "--stream", "trades")
    assert other.returncode == 1
    assert "it reads stream `stock`, the event is of stream `trades`  3 events" in other.stdout
    table = tmp_path / "events.csv"
    table.write_text("symbol,price\nIBM,101\nXOM,3\n")
    assert tocsin("explain", "price > 1000", table).stdout.splitlines()[-1] == "it matches 0 of 2 events"


@pytest.mark.parametrize("name", ["event.json", "event", "event.txt"])
def test_explain_reads_one_event_over_several_lines(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_text('{\n  "price": 101\n}\n')
    assert tocsin("explain", "price > 100", file).stdout.splitlines()[-1] == "it matches"
    file.write_text("")
    assert tocsin("explain", "price > 100", file).stderr == "there is no event to explain by\n"


def test_test_counts_how_often_it_would_have_fired() -> None:
    done = tocsin("test", "price > 1", "-", "--limit", "1", stdin=EVENTS)
    assert done.returncode == 0
    assert done.stdout.splitlines() == [
        "stdin:1: symbol='IBM', price=101.5",
        "… and 1 more",
        "it would have fired 2 times in 2 events (100.00%)",
    ]
    none = tocsin("test", "price > 1000", "-", stdin=EVENTS)
    assert (none.returncode, none.stdout) == (1, "it would have fired 0 times in 2 events (0.00%)\n")


def test_every_command_warns_of_a_condition_that_cannot_hold(tmp_path: Path) -> None:
    text, events = "content-type = 'x'", tmp_path / "e.jsonl"
    events.write_text('{"content": 1}\n')
    wanted = tmp_path / "wanted.jsonl"
    wanted.write_text(json.dumps({"id": "a", "text": text}) + "\n")
    for arguments in (
        ["check", wanted],
        ["test", text, events],
        ["match", events, "-s", text],
        ["match", events, "-f", wanted],
        ["explain", text, '{"content": 1}'],
        ["apply", wanted, "--to", tmp_path / "book.jsonl", "--dry-run"],
    ):
        done = tocsin(*arguments)
        said = " ".join((done.stdout + done.stderr).split())
        assert "can never match: `content - type = 'x'` compares a number with a string" in said, arguments


def test_apply_shows_the_difference_first_and_changes_all_or_nothing(tmp_path: Path) -> None:
    book, wanted = tmp_path / "book.jsonl", tmp_path / "wanted.txt"
    wanted.write_text("x: a = 1\ny: a = 2\n")
    shown = tocsin("apply", wanted, "--to", book, "--dry-run")
    assert (shown.returncode, book.exists()) == (1, False)
    assert shown.stdout.splitlines() == [
        "+ x: a = 1",
        "+ y: a = 2",
        "2 added, 0 changed, 0 removed, 0 unchanged",
    ]
    unasked = tocsin("apply", wanted, "--to", book)
    assert (unasked.returncode, book.exists()) == (2, False)
    assert "give --yes" in unasked.stderr
    assert tocsin("apply", wanted, "--to", book, "--yes").returncode == 0
    assert tocsin("apply", wanted, "--to", book).stdout == "0 added, 0 changed, 0 removed, 2 unchanged\n"
    wanted.write_text("x: a = 3\nz: a = 4\n")
    other = tmp_path / "other.jsonl"
    other.write_text('{"id":"o","text":"b = 1","valid_until":"2030-01-01T00:00:00Z"}\n')
    assert tocsin("apply", other, "--to", book, "--owner", "ann", "--yes").returncode == 0
    changed = tocsin("apply", wanted, "--to", book, "--yes")
    assert changed.stdout.splitlines() == [
        "- y: a = 2",
        "- x: a = 1",
        "+ x: a = 3",
        "+ z: a = 4",
        "1 added, 1 changed, 1 removed, 0 unchanged",
    ]
    held = [json.loads(line) for line in book.read_text().splitlines()]
    assert sorted((one["id"], one["owner"], one["text"]) for one in held) == [
        ("o", "ann", "b = 1"),
        ("x", "default", "a = 3"),
        ("z", "default", "a = 4"),
    ]
    wanted.write_text("x: a => 3\nz: from s a next s b\n")
    before = book.read_bytes()
    faulty = tocsin("apply", wanted, "--to", book, "--yes")
    assert faulty.returncode == 2
    assert f"{wanted}:1:6: subscription `x`" in faulty.stderr
    assert book.read_bytes() == before
    matched = tocsin("match", "-f", book, stdin='{"a":3}\n')
    assert json.loads(matched.stdout)["subscription"] == "x"


def test_a_damaged_book_is_not_overwritten(tmp_path: Path) -> None:
    book, wanted = tmp_path / "book.jsonl", tmp_path / "wanted.txt"
    wanted.write_text("x: a = 1\n")
    book.write_text("broken\n")
    done = tocsin("apply", wanted, "--to", book, "--yes")
    assert done.returncode == 2
    assert "has subscriptions that cannot be read and would be lost; correct them first" in done.stderr
    assert book.read_text() == "broken\n"


def test_apply_reads_the_wanted_file_once(tmp_path: Path) -> None:
    book, pipe = tmp_path / "book.jsonl", tmp_path / "wanted.txt"
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=("x: select min(a) from table t\n",))
    writer.start()
    done = tocsin("apply", pipe, "--to", book, "--yes")
    writer.join()
    assert (done.returncode, json.loads(book.read_text())["text"]) == (0, "select min(a) from table t")


def test_check_refuses_views_that_are_too_large_in_every_form() -> None:
    clauses = " and ".join(f"(a{n} = 1 or b{n} = 2)" for n in range(14))
    conjunctions = " or ".join(f"c{n} = 1 and d{n} = 2" for n in range(14))
    for what in ("*", "min(a)"):
        query = f"select {what} from table t where {clauses}"
        assert tocsin("check", "-s", query).returncode == 0
        done = tocsin("check", "-s", f"{query} and ({conjunctions})")
        assert done.returncode == 1
        assert "more than 1,024 clauses" in done.stderr


@pytest.mark.parametrize(
    "command", ["match", "check", "explain", "test", "apply", "parse", "demo", "version", "spark", "bench"]
)
def test_every_command_helps(command: str) -> None:
    done = tocsin(command, "--help")
    assert done.returncode == 0
    assert "Usage: " in done.stdout


def test_the_place_of_an_error_is_its_line_whatever_stands_before(tmp_path: Path) -> None:
    file = tmp_path / "s.txt"
    file.write_text("ok: x = 1\njump:\n  select x\n  from a\n  where x >> 3\n")
    assert f"{file}:5:12: subscription `jump`" in tocsin("check", file).stderr


def test_check_refuses_the_same_as_match(tmp_path: Path) -> None:
    file = tmp_path / "s.jsonl"
    file.write_text(
        '{"id":"a","text":"x = 1","valid_until":"soon"}\n{"id":"","text":"x = 1"}\n{"id":"b","text":"x = 1"}\n"x"\n'
    )
    done = tocsin("check", file)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "4 subscriptions: 3 at fault, 0 warnings"


def test_an_indented_first_line_is_reported_and_removes_no_subscription(tmp_path: Path) -> None:
    file, book = tmp_path / "s.txt", tmp_path / "book.jsonl"
    book.write_text('{"id":"x","text":"a = 1","owner":"default"}\n')
    file.write_text("  x = 1\n")
    done = tocsin("apply", file, "--to", book, "--yes")
    assert done.returncode == 2
    assert f"{file}:1: an indented line continues a subscription, but none has begun" in done.stderr
    assert "a = 1" in book.read_text()


def test_a_book_has_one_format_and_keeps_its_link_and_mode(tmp_path: Path) -> None:
    wanted, book, link = tmp_path / "w.txt", tmp_path / "book.jsonl", tmp_path / "link.jsonl"
    wanted.write_text("x: a = 1\n")
    refused = tocsin("apply", wanted, "--to", tmp_path / "book.csv", "--yes")
    assert (refused.returncode, refused.stderr) == (
        2,
        f"stored subscriptions are JSON lines; name the file {book}\n",
    )
    book.write_text("")
    book.chmod(0o640)
    link.symlink_to(book)
    assert tocsin("apply", wanted, "--to", link, "--yes").returncode == 0
    assert link.is_symlink()
    assert '"x"' in book.read_text()
    assert book.stat().st_mode & 0o777 == 0o640
    timed = tmp_path / "w.jsonl"
    timed.write_text('{"id":"x","text":"a = 1","valid_until":500}\n')
    shown = tocsin("apply", timed, "--to", book, "--dry-run").stdout.splitlines()
    assert shown[:2] == ["- x: a = 1", "+ x: a = 1  (valid until 500)"]


@pytest.mark.parametrize(
    "arguments",
    [
        ("match", "-s", "a = 1", "-o", "/nonexistent/a.jsonl"),
        ("match", "-s", "a = 1", "-o", "/nonexistent/a.parquet"),
        ("match", "-s", "a = 1", "--faults", "/nonexistent/a"),
        ("match", "-s", "a = 1", "--save-tables", "/nonexistent/a"),
        ("compile", "-o", "/nonexistent/a"),
        ("match", "--template", "a = :p and " + "b = 1 and " * 60 + "c = 2", "--parameters", "/nonexistent"),
        ("explain", "a = 1", "[" * 500),
    ],
)
def test_problems_with_files_are_reported_in_one_line(arguments: tuple[str, ...]) -> None:
    done = tocsin(*arguments, stdin='{"a":1}\n')
    assert (done.returncode, done.stdout) == (2, "")
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_file_and_a_pipe_give_the_same_answer(tmp_path: Path) -> None:
    events, subscriptions = tmp_path / "e.jsonl", tmp_path / "s.jsonl"
    events.write_text('{"t":200}\n{"t":50}\n')
    subscriptions.write_text('{"id":"x","text":"true","valid_until":100}\n')
    options = ("-f", subscriptions, "--time-field", "t")
    file, pipe = tocsin("match", events, *options), tocsin("match", *options, stdin=events.read_text())
    assert len(file.stdout.splitlines()) == len(pipe.stdout.splitlines()) == 1


def test_a_folder_or_a_csv_with_semicolons_is_named_as_such(tmp_path: Path) -> None:
    folder = tmp_path / "events"
    folder.mkdir()
    commands: list[list[str | Path]] = [
        ["match", folder, "-s", "a > 1"],
        ["match", tmp_path / "e.csv", "-f", folder],
        ["check", folder],
        ["test", "a > 1", folder],
        ["explain", "a > 1", folder],
        ["apply", folder, "--to", tmp_path / "book.jsonl", "--yes"],
    ]
    for arguments in commands:
        (tmp_path / "e.csv").write_text("a\n1\n")
        done = tocsin(*arguments)
        assert f"{folder} is a folder; name a file in it" in " ".join(done.stderr.split()), arguments
        assert done.returncode
    (folder / "more.jsonl").write_text("")
    assert f"such as {folder / 'more.jsonl'}" in " ".join(tocsin("check", folder).stderr.split())
    for text, shown in (("a;b\n1;2\n", "it seems by `;`"), ("a\tb\n1\t2\n", "it seems by tabs")):
        (tmp_path / "e.csv").write_text(text)
        commands = [["match", tmp_path / "e.csv", "-s", "a > 1"], ["test", "a > 1", tmp_path / "e.csv"]]
        for arguments in commands:
            done = tocsin(*arguments)
            assert "columns are separated by commas" in done.stderr
            assert shown in " ".join(done.stderr.split())
            assert done.returncode


def test_a_filter_is_explained_for_one_event_of_any_file(tmp_path: Path) -> None:
    for name, text in (
        ("one.json", '{\n  "mag": 7\n}'),
        ("one.jsonl", '{"mag": 7}\n'),
        ("one.csv", "mag\n7\n"),
    ):
        (tmp_path / name).write_text(text)
        assert "it matches" in tocsin("explain", "mag > 6", tmp_path / name).stdout, name


def test_events_in_json_are_an_object_or_an_array_and_explain_filters() -> None:
    assert (
        tocsin("explain", "mag > 6", '[{"mag": 5}, {"mag": 7}]')
        .stdout.splitlines()[-1]
        .startswith("it matches 1 of 2 events")
    )
    for query in ("from s a next s b", "select max(mag) from table s"):
        done = tocsin("explain", query, '{"mag": 7}', "--table", "s=mag")
        assert (done.returncode, done.stdout) == (2, "")
        assert (
            "an event in JSON explains a filter; a sequence and a view take events from a file" in done.stderr
        )


def test_nothing_is_said_of_the_time_of_a_file_that_is_not_there(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none.jsonl"):
        done = tocsin("backtest", path, "-s", "a > 1")
        assert "time" not in done.stderr.replace(str(path), "")


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such terminals")
@pytest.mark.parametrize("arguments", [("match", "-s", "a = 1"), ("test", "a = 1"), ("explain", "a = 1")])
def test_a_command_that_waits_for_a_terminal_says_so(arguments: tuple[str, ...]) -> None:
    import pty  # noqa: PLC0415 - there is none on Windows

    master, terminal = pty.openpty()
    try:
        os.write(master, b'{"a":1}\n\x04')
        done = subprocess.run(
            [sys.executable, "-m", "tocsin", *arguments], stdin=terminal, capture_output=True, text=True,
            encoding="utf-8", check=False, timeout=120,
        )  # fmt: skip
    finally:
        os.close(master)
        os.close(terminal)
    assert done.returncode == 0
    assert "reading events from the terminal, one in JSON on each line, until Ctrl-D" in done.stderr
    assert "reading events" not in tocsin(*arguments, stdin='{"a":1}\n').stderr
