import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from tocsin.cli.app import app
from tocsin.cli.costs import bytes_text
from tocsin.dissemination.scenarios import scenario as scenarios
from tocsin.dissemination.scenarios import walks
from tocsin.dissemination.strategies.registry import STRATEGIES
from tocsin.model.errors import TocsinError

SMALL = (
    *("--nodes", "8", "--physical", "60", "--subscriptions", "60", "--rows", "30", "--events", "120"),
    "--quiet",
)


def simulate(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["simulate", *SMALL, *map(str, arguments)])


def refused(*arguments: str | Path) -> str:
    done = simulate(*arguments)
    assert isinstance(done.exception, TocsinError), done.output
    return str(done.exception)


def test_all_six_are_compared_and_written_and_drawn(tmp_path: Path) -> None:
    figures, page = tmp_path / "figures.json", tmp_path / "page.html"
    done = simulate("--json", figures, "--html", page, "--batch", "50", "--spikes", "0.1")
    assert done.exit_code == 0, done.output
    lines = done.stdout.splitlines()
    assert next(line.split()[-6:] for line in lines if "S-UN" in line) == list(STRATEGIES)
    assert max(map(len, lines[:18])) <= 80
    assert "120 updates of 30 rows, min of 60 ranges: 0 ignorable" in done.stdout
    assert "60 nodes" in done.stdout
    assert "8 overlay nodes" in done.stdout
    assert "checked for 60 subscriptions: every change in the first 100 events" in done.stdout
    assert f"{page} shows" in done.output
    read = json.loads(figures.read_text())
    assert [one["strategy"] for one in read["strategies"]] == list(STRATEGIES)
    assert read["byte_model"] == {"field": 8, "header": 0}
    assert read["scenario"]["rows"] == 30
    assert read["events"] == sum(read["updates"].values()) == 120
    assert len({one["changed_answers"] for one in read["strategies"]}) == 1
    assert '"kind":"min"' in page.read_text(encoding="utf-8")


def test_strategies_that_do_not_carry_a_view_are_left_out_with_a_note() -> None:
    done = simulate("--view", "sum")
    assert done.exit_code == 0, done.output
    assert "S-MN, CN+, DS-CN do not carry sum, and are left out" in done.output
    assert "S-CN" in done.stdout


def test_joins_are_carried_by_the_three_that_can(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    done = simulate("--view", "join", "--json", figures)
    assert done.exit_code == 0, done.output
    assert "120 updates of 60 rows, join of 60 ranges" in done.stdout
    changed = {
        one["strategy"]: one["changed_answers"] for one in json.loads(figures.read_text())["strategies"]
    }
    assert list(changed) == ["S-UN", "CN", "S-CN"]
    assert len(set(changed.values())) == 1
    assert changed["CN"] > 0


def test_a_strategy_given_by_name_must_carry_the_view() -> None:
    assert "--strategy ds-cn does not carry --view sum; it carries max, min" in refused(
        "--view", "sum", "--strategy", "s-un", "--strategy", "ds-cn"
    )


def test_networks_and_quotes_are_read_from_files(tmp_path: Path) -> None:
    ring = tmp_path / "ring.txt"
    ring.write_text("".join(f"n{i} n{(i + 1) % 9}\n" for i in range(9)))
    given = ("--links", str(ring), "--nodes", "5", "--trace", "--stocks", "20", "--steps", "3", "--quiet")
    asked = ("--subscriptions", "30", "--strategy", "cn", "--strategy", "S-CN", "--events", "25")
    done = CliRunner().invoke(app, ["simulate", *given, *asked])
    assert done.exit_code == 0, done.output
    assert "25 updates of 20 rows" in done.stdout
    assert "9 nodes, 9 links; 5 overlay nodes" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--nodes", "99"), "--nodes 99 are more than the network has; give more with --physical (now 60)"),
        (("--json", "same", "--html", "./same"), "--json and --html are both same; name two files"),
        (("--view", "median"), "--view median: there is no such kind; there are: min, max"),
        (("--strategy", "X"), "there is no strategy `X`; there are: S-UN"),
        (("--splitting", "evenly"), "--splitting evenly: there are uniform, subscriptions, database"),
        (("--ignorable", "2"), "--ignorable 2: give a share from 0 to 1, or any"),
        (("--ignorable", "some"), "--ignorable some: give a share from 0 to 1, or any"),
        (("--trace",), "--rows applies to a random walk, and quotes are given; leave it out"),
        (("--steps", "3"), "--steps applies to generated quotes; add --trace"),
        (("--view", "join", "--spikes", "0.1"), "--spikes does not apply to joins"),
        (("--view", "join", "--html", "page.html"), "--html does not apply to joins"),
        (("--links", "nowhere.txt"), "--physical applies to a generated network; leave it out, or --links"),
    ],
)
def test_bad_options_are_named_with_a_remedy(arguments: tuple[str, ...], words: str) -> None:
    assert words in refused(*arguments)


def test_a_file_that_is_not_there_is_named() -> None:
    done = CliRunner().invoke(app, ["simulate", "--links", "nowhere.txt"])
    assert "there is no file nowhere.txt" in str(done.exception)


def test_updates_that_cannot_be_drawn_name_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(walks, "_IN_VAIN", 500)
    assert refused("--ignorable", "0.99") == (
        "--ignorable 0.99 with --rows 30 and --decimals 2: of 500 updates none is ignorable; "
        "draw x with fewer decimals"
    )


@pytest.mark.parametrize(
    ("option", "value"),
    [
        *(
            ("--nodes", "0"),
            ("--physical", "1"),
            ("--field", "9" * 20),
            ("--decimals", "400"),
            ("--spikes", "0.6"),
        ),
        *(("--events", "9" * 20), ("--rows", "9" * 20), ("--subscriptions", "9" * 20)),
    ],
)
def test_a_value_out_of_range_is_refused(option: str, value: str) -> None:
    done = simulate(option, value)
    assert done.exit_code == 2
    assert option in done.output


def test_a_scenario_that_does_not_fit_into_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def too_large(*_: object, **__: object) -> None:
        raise MemoryError("Unable to allocate 74.5 GiB")

    monkeypatch.setattr(scenarios, "draw_ranges", too_large)
    assert refused() == (
        "the scenario does not fit into memory (Unable to allocate 74.5 GiB); "
        "give fewer --nodes, --subscriptions, --rows or --events"
    )


@pytest.mark.parametrize(
    ("count", "text"), [(0, "0 B"), (640, "640 B"), (1_234, "1.23 kB"), (999_600, "1 MB"), (2.5e12, "2.5 TB")]
)
def test_bytes_are_printed_in_three_digits(count: float, text: str) -> None:
    assert bytes_text(count) == text


@pytest.mark.parametrize("option", ["--json", "--html"])
def test_a_file_that_cannot_be_written_is_refused_before_the_run(option: str, tmp_path: Path) -> None:
    done = simulate(option, tmp_path / "nowhere" / "file")
    assert isinstance(done.exception, TocsinError)
    assert "there is no folder" in str(done.exception)
    assert "overlay hops" not in done.output


def test_a_run_without_events_costs_nothing(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"
    given = ("--nodes", "3", "--trace", "--stocks", "5", "--steps", "2", "--events", "0", "--quiet")
    done = CliRunner().invoke(app, ["simulate", *given, "--subscriptions", "9", "--json", str(figures)])
    assert done.exit_code == 0, done.output
    for one in json.loads(figures.read_text())["strategies"]:
        assert not any(
            one[name] for name in ("events", "overlay_hops", "size", "server_us", "changed_answers")
        ), one
