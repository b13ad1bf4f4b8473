"""`tocsin plan` and `tocsin explain --plan`, as their users meet them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import tocsin
from tocsin.cli.sample_data import sample_files

FILTER = "origin = 'JFK' and dest = 'SFO' and distance > 1000"


@pytest.fixture(autouse=True)
def in_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in sample_files().items():
        Path(name).write_text(text)


def document(*arguments: str, code: int = 0) -> dict[str, Any]:
    done = tocsin(*arguments, "--json", "-")
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def remarks(stderr: str) -> list[str]:
    """Return the lines on standard error, without those about compiling."""
    return [line for line in stderr.splitlines() if "ompil" not in line]


def test_a_plan_shows_the_path_and_what_follows() -> None:
    done = tocsin("explain", FILTER, "flights.csv", "--plan", "--among", "subscriptions.txt")
    assert (done.returncode, remarks(done.stderr)) == (0, [])
    lines = done.stdout.splitlines()
    assert lines[0].startswith("checked by ")
    assert lines[1] == "├── reached by dest = 'SFO'"
    assert {line.split("  ")[0].removeprefix("├── then ").removeprefix("└── and ") for line in lines[2:4]} == {
        "origin = 'JFK'", "distance > 1000"
    }  # fmt: skip
    assert lines[-1] == "among 7 subscriptions, expected from 1,515 events"


def test_the_plan_of_a_stored_filter_is_asked_by_its_id() -> None:
    done = tocsin("explain", "made-up-time", "flights.csv", "--plan", "--among", "subscriptions.txt")
    assert done.returncode == 0
    assert "reached by the presence of dep_delay" in done.stdout
    assert done.stdout.splitlines()[-1] == "among 6 subscriptions, expected from 1,515 events"


def test_the_plan_in_json_has_the_shares() -> None:
    found = document("explain", FILTER, "flights.csv", "--plan")
    (one,) = found["conjunctions"]
    assert found.keys() == {
        "command", "errors", "warnings", "kind", "events", "subscriptions", "subscription", "checks", "why", "advice",
        "conjunctions", "refused", "faults",
    }  # fmt: skip
    assert (found["kind"], found["subscription"], found["events"]) == ("plan", FILTER, 1_515)
    assert one["path"] == "equality"
    flights = Path("flights.csv").read_text().splitlines()[1:]
    measured = sum(",SFO," in line for line in flights) / len(flights)
    assert one["share"] == found["checks"] == pytest.approx(measured, rel=0.05)
    assert one["parts"][0]["text"] == "dest = 'SFO'"
    assert {check["text"] for check in one["checks"]} == {"origin = 'JFK'", "distance > 1000"}


def test_without_events_shares_are_called_guesses() -> None:
    done = tocsin("explain", FILTER, "--plan")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1].startswith("no events have been counted: all shares are guesses")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["explain", "made-up-tim", "--plan", "--among", "subscriptions.txt"],
            "there is no subscription `made-up-tim`; did you mean `made-up-time`?",
        ),
        (["explain", "a = 1", "--among", "subscriptions.txt"], "give --plan, too"),
        (["explain", "a = 1", "--plan", "--graph", "a.svg"], "--graph draws the automaton of a sequence"),
        (
            ["explain", "from flights a next flights b", "--plan"],
            "it is a sequence, and plans are of filters; `explain` shows its automaton",
        ),
        (["explain", "a =", "--plan"], "line 1, column 4: a value is missing"),
        (
            ["explain", "a = 1", "nothing.csv", "--plan"],
            "`nothing.csv` is neither an event in JSON nor a file",
        ),
        (["explain", "a = 1", "--plan", "--among", "nothing.txt"], "there is no file nothing.txt"),
        (["plan"], "nothing to plan for: name a file of subscriptions"),
        (["plan", "nothing.txt"], "there is no file nothing.txt"),
        (["plan", "flights.csv", "subscriptions.txt"], "flights.csv holds no subscriptions"),
        (["plan", "-", "-"], "only one thing can be read from standard input"),
        (["plan", "-s", "a = 1", "--graph", "x.svg", "--json", "x.svg"], "--json and --graph are both x.svg"),
        (["plan", "--template", "a = :x", "flights.csv"], "--template and --parameters go together"),
    ],
)
def test_mistakes_are_named_with_a_remedy(arguments: list[str], message: str) -> None:
    done = tocsin(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_the_costliest_subscriptions_come_first_with_reasons() -> None:
    done = tocsin("plan", "subscriptions.txt", "flights.csv", "--top", "3", "--graph", "cost.svg")
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert lines[0].startswith("6 filters, 6 conjunctions: an event is expected to be checked against 3.7")
    assert lines[1:3] == [
        "├── by the presence of an attribute: 2 conjunctions, 1.98 checks",
        "├── by every event: 1 conjunction, 1 check",
    ]
    lines = lines[4:]
    assert lines[1].startswith("fast  1 check per event, 27 % of all  ▇▇▇")
    assert lines[2] == "├── every event: `distance / air_time * 60 > 500` is evaluated in Python"
    assert any("reached by the presence of `dep_delay`: 98.8 % of events have it" in line for line in lines)
    assert sum(" per event, " in line for line in lines) == 3
    assert remarks(done.stderr) == ["drawn in cost.svg", "expected from 1,515 events"]
    assert "share of the checks that the costliest filters have" in Path("cost.svg").read_text()


def test_costs_in_json() -> None:
    found = document("plan", "subscriptions.txt", "flights.csv", "--top", "2")
    assert found.keys() == {
        "command", "errors", "warnings", "subscriptions", "events", "filters", "conjunctions", "checks",
        "by_kind", "share_of_top", "top", "refused", "faults",
    }  # fmt: skip
    assert (found["subscriptions"], found["filters"], found["events"]) == (6, 6, 1_515)
    assert found["top"][0]["subscription"] == "fast"
    assert found["share_of_top"]["6"] == pytest.approx(1)
    assert found["top"][0]["share"] == pytest.approx(found["top"][0]["checks"] / found["checks"])
    assert all(one["why"] and one["advice"] for one in found["top"])


def test_a_filter_that_never_matches_says_so() -> None:
    done = tocsin("explain", "price > 1 and price < 0", "quotes.csv", "--plan")
    assert done.stdout.splitlines() == [
        "it has no conjunction: it never matches",
        "expected from 640 events",
    ]


def test_texts_and_templates_take_the_only_argument_as_events() -> None:
    template = ["--template", "symbol = :s and price > :p", "--parameters", "alerts.csv", "--id", "{s}-{row}"]
    done = tocsin("plan", *template, "quotes.csv", "--top", "1")
    assert done.returncode == 0
    assert done.stdout.startswith("48 filters, 48 conjunctions: ")
    assert "`symbol = '" in done.stdout
    texts = tocsin("plan", "-s", "symbol = 'IBM'", "-s", "from quotes a next quotes b", "quotes.csv")
    assert texts.returncode == 0
    assert remarks(texts.stderr) == [
        "1 subscription left out: sequences, views, and filters that can never match",
        "expected from 640 events",
    ]


def test_what_is_left_out_ends_with_1_and_unseen_names_are_warned_of() -> None:
    Path("some.txt").write_text("good: symbl = 'IBM'\nbad: price >\n")
    Path("events.jsonl").write_text('{"symbol": "IBM"}\nbroken\n')
    done = tocsin("plan", "some.txt", "events.jsonl")
    assert done.returncode == 1
    assert "some.txt:2:" in done.stderr
    assert "events.jsonl:2: not JSON" in done.stderr
    assert "no event has the attribute `symbl`; did you mean `symbol`?" in done.stderr
    assert document("plan", "some.txt", "events.jsonl", code=1)["refused"] == 2


def test_events_may_come_from_a_pipe() -> None:
    done = tocsin("plan", "-s", "price > 3", "-", stdin='{"price": 3}\n{"price": 4}\n')
    assert done.returncode == 0
    assert "expected from 2 events" in done.stderr
