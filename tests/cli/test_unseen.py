"""What nobody said: the time of events, their stream, and names that no event has."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.running import tocsin

EVENTS = "".join(
    f'{{"time": "2013-01-0{day}T10:00", "mag": {mag}, "region": "x"}}\n'
    for day, mag in ((1, 7), (2, 8), (9, 9))
)
PAIRS = "from quakes a next quakes b on b.region = a.region within 2 days"


@pytest.fixture
def quakes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    Path("quakes.jsonl").write_text(EVENTS)
    return "quakes.jsonl"


def test_the_time_field_is_found_and_said(quakes: str) -> None:
    done = tocsin("match", quakes, "-s", PAIRS)
    assert done.stdout.count("\n") == 1
    assert '"start":"2013-01-01T10:00:00Z","end":"2013-01-02T10:00:00Z"' in done.stdout
    assert "the time of an event is its `time`; --time-field names another attribute" in done.stderr
    now = tocsin("match", quakes, "-s", PAIRS, "--now", "--times", "ticks")
    assert now.stdout.count("\n") == 2
    assert '"end":1' in now.stdout
    both = tocsin("match", quakes, "-s", PAIRS, "--now", "--time-field", "time")
    assert (both.returncode, "give one of them" in both.stderr) == (2, True)
    assert "the time of an event" not in tocsin("match", quakes, "-s", "mag > 7").stderr


def test_without_a_clear_time_field_the_candidates_are_named(quakes: str) -> None:
    Path(quakes).write_text('{"opened": "2013-01-01", "closed": "2013-01-02", "region": "x"}\n')
    done = tocsin("match", quakes, "-s", PAIRS)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        "name one with --time-field (`opened`, `closed`?), or take the time of reading with --now"
        in done.stderr
    )
    Path(quakes).write_text('{"region": "x", "n": 5}\n')
    assert "name one with --time-field, or take" in tocsin("match", quakes, "-s", PAIRS).stderr


def test_the_time_of_a_pipe_is_that_of_reading_and_said() -> None:
    done = tocsin("match", "-", "-s", "from s a next s b", "--stream", "s", stdin='{"a":1}\n{"a":2}\n')
    assert done.stdout.count("\n") == 1
    assert "the time of an event is the time at which it is read" in done.stderr


def test_numbers_in_a_time_field_are_read_by_their_size(quakes: str) -> None:
    Path(quakes).write_text("".join(f'{{"ts": {1357030800 + 3600 * i}, "region": "x"}}\n' for i in range(2)))
    done = tocsin("match", quakes, "-s", PAIRS)
    assert '"end":"2013-01-01T10:00:00Z"' in done.stdout
    assert "read as seconds since 1970" in done.stderr
    ticks = tocsin("match", quakes, "-s", "from quakes a next quakes b within 3600", "--time-unit", "ticks")
    assert '"end":1357034400' not in ticks.stdout
    zone = tocsin("match", quakes, "-s", "mag is missing", "--time-field", "ts", "--timezone", "Nowhere/City")
    assert (zone.returncode, "'Nowhere/City' is no time zone" in zone.stderr) == (2, True)


def test_match_and_explain_read_a_table_in_the_zone_that_is_named(tmp_path: Path) -> None:
    path = str(tmp_path / "quakes.parquet")
    pq.write_table(pa.table({"at": pa.array([1357034400], pa.timestamp("s"))}), path)
    nine = "at = timestamp '2013-01-01T09:00:00Z'"
    assert tocsin("match", path, "-s", nine).stdout == ""
    assert (
        '"at":"2013-01-01T09:00:00Z"' in tocsin("match", path, "-s", nine, "--timezone", "Europe/Oslo").stdout
    )
    assert tocsin("explain", nine, path, "--timezone", "Europe/Oslo").returncode == 0
    assert tocsin("explain", nine, path).returncode == 1


def test_the_stream_is_the_files_name(quakes: str) -> None:
    done = tocsin("match", quakes, "-s", "select mag from quakes where mag > 8")
    assert '"values":{"mag":9}' in done.stdout
    assert done.stderr == ""
    view = tocsin("match", quakes, "--table", "quakes=region", "-s", "select max(mag) from table quakes")
    assert '"new":9' in view.stdout


@pytest.mark.parametrize("command", ["match", "test", "backtest"])
def test_names_that_no_event_has_are_warned_of(quakes: str, command: str) -> None:
    def run(query: str) -> str:
        given = ("test", query, quakes) if command == "test" else (command, quakes, "-s", query)
        return tocsin(*given, *(("--time-field", "time") if command == "backtest" else ())).stderr

    assert "no event was of stream `quaks`; did you mean `quakes`?" in run(
        "select mag from quaks where mag > 1"
    )
    assert "no event was of stream `trades`; they are of `quakes`" in run("from trades where price > 1")
    assert "no event has the attribute `magg`; did you mean `mag`?" in run("magg > 9")
    if command != "backtest":  # which selects nothing
        assert "no event has the attribute `reg`" in run("select reg from quakes where mag > 9")
    assert run("mag > 9 or missing_one is missing") == ""


def test_streams_that_sequences_publish_are_no_surprise(quakes: str) -> None:
    query = ("-s", "from quakes a publish as big", "-s", "from big where size > 1")
    assert "no event" not in tocsin("match", quakes, *query).stderr
    assert "no event" not in tocsin("check", *query, "--against", quakes).stderr


def test_check_and_test_know_the_same_names(quakes: str) -> None:
    for arguments in (("check", "-s", "pirce > 9", "--against", quakes), ("test", "mga > 9", quakes)):
        assert "no event has the attribute" in tocsin(*arguments).stderr
    assert (
        "never matches: `mag` is a number in the events, not a string"
        in tocsin("test", "mag = 'x'", quakes).stderr
    )


@pytest.mark.parametrize("suffix", ["jsonl", "json", "csv", "parquet", "arrow"])
def test_values_of_another_kind_are_warned_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [{"mag": 1.5, "n": 3, "region": "x", "ok": True, "day": "2013-01-01"}, {"mag": 2, "region": "y"}]
    table, path = pa.Table.from_pylist(rows), f"q.{suffix}"
    if suffix == "parquet":
        pq.write_table(table, path)
    elif suffix == "arrow":
        with pa.ipc.new_file(path, table.schema) as writer:
            writer.write_table(table)
    elif suffix == "csv":
        Path(path).write_text("mag,n,region,ok,day\n1.5,3,x,true,2013-01-01\n2,,y,,\n")
    else:
        lines = list(map(json.dumps, rows))
        Path(path).write_text("\n".join(lines) if suffix == "jsonl" else f"[{', '.join(lines)}]")
    wrong = ("mag > '1'", "n = '3'", "region > 1", "region = yy")
    right = ("mag > 1", "n = 3", "region = 'x'", "day >= timestamp '2013-01-01'", "mag > n")
    done = tocsin("match", path, *(one for query in (*wrong, *right) for one in ("-s", query)))
    assert done.stdout.count("\n") == 5
    assert done.stderr.splitlines() == [
        "warning: `mag > '1'` never matches: `mag` is a number in the events, not a string",
        "warning: `n = '3'` never matches: `n` is a number in the events, not a string",
        "warning: `region > 1` never matches: `region` is a string in the events, not a number",
        "warning: no event has the attribute `yy`; a text is written in single quotes: 'yy'",
    ]
    for command in (("test", "mag > '1'", path), ("backtest", path, "-s", "mag > '1'", "--now")):
        assert "`mag > '1'` never matches" in tocsin(*command).stderr


def test_kinds_of_all_values_count(quakes: str) -> None:
    Path(quakes).write_text('{"mag": 1}\n' * 60_000 + '{"mag": "1"}\n{"mag": null}\n{"mag": [1]}\n')
    done = tocsin("match", quakes, "-s", "mag = '1'", "-s", "mag = true")
    assert done.stdout.count("\n") == 1
    assert "mag = '1'" not in done.stderr
    assert "`mag = true` never matches: `mag` is a number or string in the events" in done.stderr


def test_a_misspelt_field_is_named_before_every_event_is_refused(quakes: str) -> None:
    done = tocsin("match", quakes, "-s", PAIRS, "--time-field", "tiem")
    assert done.stderr.splitlines()[0] == (
        "warning: --time-field: the first records of quakes.jsonl have no `tiem`; did you mean `time`?"
    )
    assert done.returncode == 1
    other = tocsin("match", quakes, "-s", "mag > 9", "--valid-until-field", "regon", "--time-field", "time")
    assert "--valid-until-field: the first records of quakes.jsonl have no `regon`" in other.stderr
    for fields in (("--time-field", "time"), ("--id-field", "name")):
        assert "did you mean" not in tocsin("match", quakes, "-s", "mag > 9", *fields).stderr
    Path(quakes).write_text("{")
    broken = tocsin("match", quakes, "-s", "mag > 9", "--id-field", "name")
    assert broken.stderr.startswith("quakes.jsonl:1: not JSON")


def test_a_file_whose_suffix_names_no_format_is_said_to_be_read_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.txt"
    path.write_text("mag\tregion\n7\tx\n")
    done = tocsin("match", path, "-s", "mag > 6")
    assert done.stderr.splitlines()[0].startswith(f"warning: the suffix of {path} names no format")
    assert "--input-format names one: jsonl, json, csv" in done.stderr
    for text in ('{"mag": 7}\n', ""):
        path.write_text(text)
        assert "names no format" not in tocsin("match", path, "-s", "mag > 6").stderr


def test_explain_names_what_no_event_has(quakes: str) -> None:
    magg = "no event has the attribute `magg`; did you mean `mag`?"
    for events in (quakes, '[{"mag": 1}, {"mag": 2}]', '{"mag": 1}'):
        done = tocsin("explain", "magg > 9", events)
        assert f"warning: {magg}" in done.stderr
        assert done.returncode == 1
    assert tocsin("explain", "volume > 9", '{"mag": 1}').stderr == ""  # the tree says that it is absent
    stream = "no event was of stream `quaks`; did you mean `quakes`?"
    assert stream in tocsin("explain", "from quaks where mag > 1", quakes).stderr
    assert stream in tocsin("explain", "from quaks a next quakes b", quakes, "--time-field", "time").stderr
    view = tocsin(
        "explain", "select max(magg) from table quakes", quakes, "--table", "quakes=region", "--json", "-"
    )
    assert json.loads(view.stdout)["warnings"] == [{"message": magg}]


def test_quiet_says_nothing_of_it(quakes: str) -> None:
    assert tocsin("match", quakes, "-s", "magg > 9", "--quiet").stderr == ""


def test_nothing_is_missed_in_blocks_that_are_read_by_the_row(tmp_path: Path) -> None:
    files = {name: str(tmp_path / name) for name in ("q.arrow", "nested.parquet", "kinds.jsonl")}
    days = pa.table({"mag": [1.0, 9.0], "day": pa.array([date(2026, 1, 1)] * 2, pa.date64())})
    with pa.ipc.new_file(files["q.arrow"], days.schema) as writer:
        writer.write_table(days)
    pq.write_table(pa.table({"data": [{"kind": "a", "mag": 3}]}), files["nested.parquet"])
    lines = [*(f'{{"kind": "{"ab"[i % 2]}", "mag": {i}}}' for i in range(40)), '{"mag": 5}', '{"kind": 7}']
    Path(files["kinds.jsonl"]).write_text("\n".join(lines))
    assert tocsin("match", files["q.arrow"], "-s", "mag > 5").stderr == ""
    nested = tocsin(
        "match", files["nested.parquet"], "-s", "from a where data.mag > 1", "--stream-field", "data.kind"
    )
    assert (nested.stdout.count("\n"), nested.stderr) == (1, "")
    texts = [argument for name in ("a", "b", '"7"') for argument in ("-s", f"from {name} where mag > 37")]
    kinds = tocsin("match", files["kinds.jsonl"], *texts, "--stream-field", "kind")
    assert kinds.stdout.count("\n") == 2
    assert [line for line in kinds.stderr.splitlines() if "warning" in line] == []
    other = tocsin("match", files["kinds.jsonl"], "-s", "from c where mag > 37", "--stream-field", "kind")
    assert "no event was of stream `c`; they are of `7`, `a`, `b`" in other.stderr


def test_a_misspelt_key_of_a_table_is_named_before_every_row_is_refused(quakes: str) -> None:
    done = tocsin("match", quakes, "--table", "quakes=regon", "-s", "select max(mag) from table quakes")
    assert done.stderr.splitlines()[0] == (
        "warning: --table: the first records of quakes.jsonl have no `regon`; did you mean `region`?"
    )
    other = tocsin("match", quakes, "--table", "prices=regon", "-s", "mag > 8")
    assert "did you mean" not in other.stderr


@pytest.mark.parametrize(
    ("command", "name", "content"),
    [
        ("match", "quakes.csv", "mag,region\n"),
        ("test", "quakes.json", "[]"),
        ("backtest", "quakes.jsonl", ""),
    ],
)
def test_a_file_without_events_is_said_to_have_none(
    quakes: str, command: str, name: str, content: str
) -> None:
    Path(name).write_text(content)
    done = tocsin(command, *((PAIRS, name) if command == "test" else (name, "-s", PAIRS)))
    assert "warning: there were no events\n" in done.stderr
    assert "--time-field" not in done.stderr
    Path(quakes).write_text("{")
    assert "no events" not in tocsin("match", quakes, "-s", "mag > 9").stderr


def test_check_says_that_there_are_no_events_to_check_against(quakes: str) -> None:
    Path(quakes).write_text("")
    assert "warning: there were no events" in tocsin("check", "-s", "mag > 9", "--against", quakes).stderr


def test_letters_in_the_wrong_order_and_names_without_their_object_are_recognised(quakes: str) -> None:
    Path(quakes).write_text('{"mag": 7, "data": {"depth": 9}}\n')
    assert "no event has the attribute `mga`; did you mean `mag`?" in tocsin("test", "mga > 9", quakes).stderr
    nested = tocsin("match", quakes, "-s", "depth > 9")
    assert "no event has the attribute `depth`; did you mean `data.depth`?" in nested.stderr


def test_a_comparison_with_nothing_but_arrays_is_warned_of(quakes: str) -> None:
    Path(quakes).write_text('{"mag": [7]}\n')
    assert (
        "warning: `mag > 9` never matches: `mag` is an array or another value that cannot be compared in the events"
        in tocsin("match", quakes, "-s", "mag > 9").stderr
    )


def test_a_parameter_without_a_column_is_one_error(quakes: str) -> None:
    Path("rows.csv").write_text("limit,region\n" + "7,x\n" * 30)
    command = ("match", quakes, "--parameters", "rows.csv", "--template")
    done = tocsin(*command, "mag > :limt")
    assert (done.returncode, done.stderr) == (
        2,
        "rows.csv has no column `limt` for the parameter `:limt`; did you mean `limit`?\n",
    )
    assert "its columns are `limit`, `region`" in tocsin(*command, "mag > :threshold").stderr


def test_a_file_that_is_named_after_another_format_is_refused(quakes: str) -> None:
    for name in ("out.csv", "out.jsonl.gz"):
        done = tocsin("match", quakes, "-s", "mag > 7", "-o", name)
        assert (done.returncode, Path(name).exists()) == (2, False)
        assert "notifications are written as JSON lines, Parquet or a table" in done.stderr
    assert tocsin("match", quakes, "-s", "mag > 7", "-o", "out.csv", "--format", "table").returncode == 0


def test_arguments_in_the_wrong_order_are_recognised(quakes: str) -> None:
    for command in ("test", "explain"):
        done = tocsin(command, quakes, "mag > 7")
        assert (done.returncode, done.stderr) == (
            2, "the subscription is the first argument, and `quakes.jsonl` is a file; events stand after it\n",
        )  # fmt: skip
    checked = tocsin("check", "mag > 7")
    assert (checked.returncode, checked.stderr) == (
        2, "there is no file `mag > 7`; a text is checked with -s TEXT\n",
    )  # fmt: skip


def test_a_name_with_spaces_around_it_is_recognised(tmp_path: Path) -> None:
    spaced = tmp_path / "spaced.csv"
    spaced.write_text("mag, region\n7, x\n")
    done = tocsin("match", spaced, "-s", "region = 'x'")
    assert 'no event has the attribute `region`; did you mean `" region"`, in double quotes?' in done.stderr


def test_a_name_that_needs_double_quotes_is_shown_in_them(tmp_path: Path) -> None:
    events = tmp_path / "delays.jsonl"
    events.write_text('{"dep-delay": 9, "shipping cost": 4}\n')
    done = tocsin("match", events, "-s", "dep-delay > 5", "-s", "shipping_cost > 3")
    assert 'no event has the attribute `delay`; did you mean `"dep-delay"`, in double quotes?' in done.stderr
    assert (
        'no event has the attribute `shipping_cost`; did you mean `"shipping cost"`, in double quotes?'
        in done.stderr
    )
