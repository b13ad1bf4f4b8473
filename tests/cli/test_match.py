from __future__ import annotations

import gzip
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import tocsin

IBM = '{"symbol":"IBM","price":101.5}\n'


def lines(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_an_event_from_a_pipe_gives_a_notification() -> None:
    done = tocsin("match", "-s", "symbol = 'IBM' and price > 100", stdin=IBM)
    assert (done.returncode, done.stderr) == (0, "")
    (note,) = lines(done.stdout)
    assert note["subscription"] == "s1"
    assert note["event_ids"] == ["stdin:1"]
    assert note["events"][0]["attributes"] == {"symbol": "IBM", "price": 101.5}  # type: ignore[index]


def test_a_misspelt_operator_gets_a_caret_under_it() -> None:
    done = tocsin("match", "-s", "symbol == 'IBM'", stdin=IBM)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[:3] == [
        "line 1, column 8: a comparison is missing, found `==`",
        "    symbol == 'IBM'",
        "           ^^",
    ]


def test_a_broken_line_is_reported_with_its_place_and_the_rest_goes_on(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"a":1}\n{"a":\n{"a":NaN}\n[1]\n\n{"a":2}\n"x"\n')
    faults = tmp_path / "faults.txt"
    done = tocsin("match", events, "-s", "a > 0", "--faults", faults)
    assert done.returncode == 1
    assert [note["event_ids"] for note in lines(done.stdout)] == [[f"{events}:1"], [f"{events}:6"]]
    reported = [line.removeprefix(f"{events}:") for line in done.stderr.splitlines()]
    assert reported == [
        '2: not JSON: Input data was truncated: {"a":',
        '3: not JSON (it has no NaN and no Infinity: write null): invalid character (byte 5): {"a":NaN}',
        "4: an event is an object with attributes, not a number",
        "7: an event is an object with attributes, not a string",
    ]
    assert faults.read_text() == done.stderr


def test_many_faults_do_not_drown_the_terminal(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text("broken\n" * 100)
    done = tocsin("match", events, "-s", "a > 0")
    assert len(done.stderr.splitlines()) == 21
    assert "--faults FILE writes them all" in done.stderr


def test_csv_parquet_and_compressed_files_are_read(tmp_path: Path) -> None:
    rows = {"a": [1, 2, 3], "s": ["x", "007", None]}
    csv = tmp_path / "events.csv"
    csv.write_text("a,s\n1,x\n2,007\n3,\n")
    parquet = tmp_path / "events.parquet"
    pq.write_table(pa.table(rows), parquet)
    packed = tmp_path / "events.jsonl.zst"
    with pa.CompressedOutputStream(str(packed), "zstd") as out:
        out.write(b'{"a":1,"s":"x"}\n{"a":2,"s":"007"}\n{"a":3}\n')
    for file in (csv, parquet, packed):
        done = tocsin("match", file, "-s", "a > 1 and (s = '007' or s is missing)", "--id-field", "a")
        assert [note["event_ids"] for note in lines(done.stdout)] == [["2"], ["3"]], file.name


def test_results_go_to_parquet_and_to_a_table(tmp_path: Path) -> None:
    out = tmp_path / "notes.parquet"
    text = "select price * 2 as twice, gone from stock where price > 100"
    assert tocsin("match", "-s", text, "--stream", "stock", "-o", out, stdin=IBM).returncode == 0
    (row,) = pq.read_table(out).to_pylist()
    assert row["subscription"] == "s1"
    assert json.loads(row["values"]) == {"twice": 203.0, "gone": None}
    table = tocsin("match", "-s", text, "--stream", "stock", "--format", "table", stdin=IBM).stdout
    assert table.splitlines()[1].split() == ["s1", "stdin:1", "twice=203.0,", "gone=null"]
    assert tocsin("match", "-s", text, "--format", "parquet", stdin=IBM).returncode == 2


def test_subscriptions_from_a_file_have_their_ids_and_bad_ones_are_left_out(tmp_path: Path) -> None:
    subscriptions = tmp_path / "subscriptions.txt"
    subscriptions.write_text(
        "-- mine\nhigh: price > 100\nbad: price => 1\nlow:\n  price < 100\n  or price is missing\nprice = 101.5\n"
    )
    done = tocsin("match", "-f", subscriptions, stdin=IBM)
    assert done.returncode == 1
    assert [note["subscription"] for note in lines(done.stdout)] == ["high", "subscriptions.txt:7"]
    assert (
        done.stderr.splitlines()[0]
        == f"{subscriptions}:3:12: subscription `bad`: a comparison is missing, found `=>`"
    )


def test_validity_follows_the_events_time(tmp_path: Path) -> None:
    subscriptions = tmp_path / "subscriptions.jsonl"
    subscriptions.write_text(
        '{"id":"may","text":"true","valid_from":"2013-05-01T00:00:00Z","valid_until":"2013-06-01T00:00:00Z"}\n'
    )
    events = "".join(f'{{"t":"2013-0{month}-15T00:00:00Z"}}\n' for month in range(4, 8))
    done = tocsin("match", "-f", subscriptions, "--time-field", "t", stdin=events)
    assert [note["event_ids"] for note in lines(done.stdout)] == [["stdin:2"]]
    missing = tocsin("match", "-f", subscriptions, "--time-field", "time", stdin='{"t":1}\n')
    assert "stdin:1: the record has no `time`, which should hold its time" in missing.stderr


def test_a_template_with_parameters(tmp_path: Path) -> None:
    parameters = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"s": ["IBM", "MSFT", None], "p": [100.0, 1.0, 2.0]}), parameters)
    template = tmp_path / "template.sql"
    template.write_text("symbol = :s and price > :p\n")
    done = tocsin("match", "--template", template, "--parameters", parameters, "--id", "{s}-{row}", stdin=IBM)
    assert [note["subscription"] for note in lines(done.stdout)] == ["IBM-0"]
    assert done.returncode == 1
    assert f"{parameters}:3: parameter `:s`: null is not a value" in done.stderr
    alone = tocsin("match", "--template", "a = :s", stdin=IBM)
    assert (alone.returncode, alone.stderr) == (
        2,
        "--template and --parameters go together: a text, and the rows with its values\n",
    )


def test_cloud_events_structured_and_in_batches() -> None:
    one = '{"specversion":"1.0","id":"e1","source":"/x","type":"stock","time":"2026-01-01T00:00:00Z","data":{"price":5}}'
    bad = '{"specversion":"1.0","id":"","source":"/x","type":"stock"}'
    done = tocsin(
        "match", "-s", "from stock where data.price > 1 and source = '/x'", stdin=f"{one}\n[{one},{bad}]\n"
    )
    assert [note["event_ids"] for note in lines(done.stdout)] == [["e1"], ["e1"]]
    assert done.stderr == "stdin:2: a CloudEvent needs its `id`, a string that is not empty\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing is subscribed: give -s TEXT, -f FILE, or --template and --parameters"),
        (("-s", "a = 1", "no-such-file.jsonl"), "there is no file no-such-file.jsonl"),
        (("-f", "no-such-file.txt"), "there is no file no-such-file.txt"),
        (("-s", "a = 1", "--matcher", "orcale"), "there is no matcher `orcale`; did you mean `oracle`? Known: adaptive, amkh, be-tree, counting, dynamic, k-index, mkh, opindex, opindex-bs, oracle, points, propagation, propagation-wp, static"),
        (("-s", "select min(a) from table t",), "subscription `s1`: there is no table `t`; declare it first: `engine.table(\"t\", key=\"…\")`, or `--table t=KEY`"),
    ],
)  # fmt: skip
def test_impossible_requests_are_reported_in_one_line(arguments: tuple[str, ...], message: str) -> None:
    done = tocsin("match", *arguments, stdin=IBM)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message + "\n")


def test_a_truncated_file_keeps_the_events_read_so_far(tmp_path: Path) -> None:
    whole = gzip.compress(b'{"a":1}\n' * 100_000)
    file = tmp_path / "events.jsonl.gz"
    file.write_bytes(whole[: len(whole) // 2])
    done = tocsin("match", file, "-s", "a = 1")
    assert done.returncode == 2
    assert len(done.stdout.splitlines()) > 1000
    assert "cannot be read further than line" in done.stderr


def test_each_event_of_a_live_pipe_is_answered_before_the_next_comes() -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tocsin", "match", "-s", "a > 0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for number in (1, 2):
            process.stdin.write(b'{"a":%d}\n' % number)
            assert json.loads(process.stdout.readline())["event_ids"] == [f"stdin:{number}"]
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130


def test_a_reader_that_goes_away_ends_it_quietly(tmp_path: Path) -> None:
    events = tmp_path / "events.jsonl"
    events.write_text('{"a":1}\n' * 50_000)
    command = f"{sys.executable} -m tocsin match {events} -s 'a = 1' | head -n 1"
    done = subprocess.run(
        ["/bin/sh", "-c", command], capture_output=True, text=True, check=False, env=os.environ
    )
    assert len(done.stdout.splitlines()) == 1
    assert done.stderr == ""


def test_ctrl_c_is_clean(tmp_path: Path) -> None:
    out = tmp_path / "notes.parquet"
    with subprocess.Popen(
        [sys.executable, "-m", "tocsin", "match", "-s", "a > 0", "-o", str(out)],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b'{"a":1}\n')
        deadline = time.monotonic() + 20
        while not out.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(2.5)  # the event is matched by then, on a busy machine too
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""
    assert pq.read_table(out).num_rows == 1


def test_a_condition_in_clauses_is_matched_explained_and_tested(tmp_path: Path) -> None:
    text = " and ".join(f"(a{i} = 1 or b{i} = 1)" for i in range(20))
    events = tmp_path / "events.jsonl"
    events.write_text("\n".join(json.dumps({f"{name}{i}": 1 for i in range(20)}) for name in "abc"))
    done = tocsin("match", "-s", text, "--matcher", "oracle", events)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.splitlines()) == 2
    assert len(tocsin("match", "-s", text, events).stdout.splitlines()) == 2
    assert "2 times in 3 events" in tocsin("test", text, events).stdout
    checked = tocsin("check", "-s", text)
    assert (checked.returncode, "warning: " in checked.stderr) == (0, False)
    wanted, book = tmp_path / "wanted.jsonl", tmp_path / "book.jsonl"
    wanted.write_text(json.dumps({"id": "huge", "query": text}))
    assert tocsin("apply", wanted, "--to", book, "--yes").returncode == 0
    assert len(tocsin("match", "-f", book, "--matcher", "oracle", events).stdout.splitlines()) == 2
    assert "it matches" in tocsin("explain", text, json.dumps({f"a{i}": 1 for i in range(20)})).stdout


def test_only_the_top_k_are_printed(tmp_path: Path) -> None:
    book = tmp_path / "book.csv"
    book.write_text("id,text,weight\nlow,price > 1,\nhigh,price > 2,2.5\nboth,price > 1 and size = 1,1\n")
    event = '{"price":3,"size":1}\n'
    done = tocsin("match", "-f", book, "--top", "2", "--weight", "size=4", stdin=event)
    assert [(note["subscription"], note["score"]) for note in lines(done.stdout)] == [
        ("both", 5.0),
        ("high", 2.5),
    ]
    for arguments, reason in [
        (("--weight", "size=4"), "--weight sets the weights for --top; give --top, too"),
        (("--top", "1", "--weight", "size"), "attribute=number, such as price=2.5, not 'size'"),
        (("--top", "1", "--weight", "size=-1"), "a weight is a finite number, 0 or more, not -1.0"),
    ]:
        refused = tocsin("match", "-s", "a = 1", *arguments, stdin=event)
        assert refused.returncode == 2
        assert reason in refused.stderr
