from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from msgspec.structs import replace

from benchmarks.cayuga import ticks as asking
from benchmarks.cayuga.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES
from benchmarks.cayuga.session import CayugaSession, Subject, summary, technical_input
from benchmarks.cayuga.ticks import Found, Rival
from benchmarks.cayuga.workloads.feeds import TEMPLATES
from benchmarks.cayuga.workloads.stocks import make_prices
from benchmarks.cayuga.workloads.technical import TABLE_3, Kind, Workload
from benchmarks.runner import session
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report
from tests.benchmarks.running import benchmark
from tocsin.language import parse
from tocsin.model.errors import MatcherError, SubscriptionError, TocsinError
from tocsin.sequences import MODES

run = BENCHMARK.run
TINY = replace(
    SCALES["paper"],
    name="tiny",
    sizes=(20, 40),
    usual=20,
    by_step=10,
    loaded=50,
    texts=5,
    optimised=(20,),
    feed=(100, 200),
    articles=200,
    stocks=10,
    days=40,
    exponents=(0.8, 1.4),
    selectivities=(0.5, 0.9),
    events=100,
    seconds=20.0,
    warm_up=50,
    batch=50,
    repeats=1,
)
KINDS: tuple[Kind, ...] = get_args(Kind)
FIGURES = {
    "throughput",
    "witnesses",
    "visited nodes",
    "looked at",
    "matched predicates",
    "active nodes",
    "instances",
    "nodes",
    "ends",
    "loading",
    "memory",
}


@pytest.fixture(scope="module")
def report() -> Report:
    return run(TINY)


def of(report: Report, experiment: str) -> dict[str, set[str]]:
    """Return the figures of an experiment, by contender."""
    found: dict[str, set[str]] = {}
    for one in report.measurements:
        if one.details["experiment"] == experiment:
            found.setdefault(str(one.details["matcher"]), set()).add(one.name)
    return found


def places(report: Report, experiment: str, label: str) -> set[float]:
    return {
        float(one.details["at"])
        for one in report.measurements
        if (one.details["experiment"], one.details["matcher"]) == (experiment, label)
    }


def test_every_template_is_measured_at_every_place(report: Report) -> None:
    for experiment, wanted in (
        ("subscriptions", {20, 40}),
        ("skew", {0.8, 1.4}),
        ("selectivity", {0.5, 0.9}),
    ):
        found = of(report, experiment)
        assert set(KINDS) <= set(found)
        for kind in KINDS:
            assert found[kind] == FIGURES
            assert places(report, experiment, kind) == wanted
    assert of(report, "subscriptions")["LinearStat, attributes by step"] == FIGURES
    assert all(one.value >= 0 for one in report.measurements)


def test_parts_are_switched_off_and_the_answers_stay(report: Report) -> None:
    assert of(report, "optimisation") == dict.fromkeys(MODES, FIGURES)


def test_feeds_have_their_templates_and_find_something(report: Report) -> None:
    assert of(report, "rss") == dict.fromkeys(TEMPLATES, FIGURES)
    found = {
        one.details["matcher"]
        for one in report.measurements
        if (one.details["experiment"], one.name) == ("rss", "witnesses") and one.value > 0
    }
    assert {"Stateless", "Concatenation"} <= found


def test_loading_is_measured_in_all_ways(report: Report) -> None:
    assert set(of(report, "loading")) == {"by the column", "Engine.subscribe_many", "Engine.subscribe"}


def test_systems_that_are_not_installed_are_skipped_and_reported(
    monkeypatch: pytest.MonkeyPatch, report: Report
) -> None:
    ways = ("Tocsin", "Engine.match_sequences", "Engine.publish_many")
    ours = {f"{way}, {question}" for way in ways for question in ("S3", "S4")}
    assert ours | {"pandas, S3"} <= set(of(report, "ticks"))
    monkeypatch.setattr(session, "find_spec", lambda name: name if name == "tocsin" else None)
    without = run(TINY, experiments=["ticks"])
    assert set(of(without, "ticks")) == ours
    assert "SQL in DuckDB, S4 needs duckdb; install it" in str(without.parameters["left_out"])


@pytest.mark.skipif(find_spec("duckdb") is None, reason="needs the extra `bench`")
def test_sql_and_a_loop_find_the_same() -> None:
    prices = make_prices(7, 60)
    by_name: dict[str, list[tuple[int, int, float]]] = {}
    for number, row in enumerate(prices.to_pylist()):
        by_name.setdefault(row["name"], []).append((number, row["day"], row["price"]))
    jumps, rises = [], []
    for rows in by_name.values():
        for place, (_, first, price) in enumerate(rows[:-1]):
            if rows[place + 1][2] > 1.05 * price:
                jumps.append((rows[place + 1][0], first, rows[place + 1][1]))
            before = price
            for number, day, now in rows[place + 1 :]:
                if now < before:
                    break
                before = now
                if day - first + 1 >= 10:
                    rises.append((number, first, day))
    for question, expected in (("S3", jumps), ("S4", rises)):
        for rival in asking.rivals(question):
            assert rival.ask(prices).answers.tolist() == sorted(map(list, expected))


def test_answers_that_differ_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_: pa.Table) -> Found:
        empty = np.empty(0, dtype=np.int64)
        return Found.of(empty, empty, empty, 1.0)

    ways: Callable[[str], list[Rival]] = lambda _: [Rival("nothing", "numpy", nothing)]  # noqa: E731
    monkeypatch.setattr(asking, "rivals", ways)
    held = CayugaSession(replace(TINY, days=200))
    with pytest.raises(
        MatcherError, match=r"`Tocsin` and `nothing` disagree on S3: they find .* and 0 answers"
    ):
        asking.ticks(held)


@pytest.mark.parametrize("kind", KINDS)
def test_all_modes_find_the_same_and_something(kind: Kind) -> None:
    given = technical_input(kind, 300, replace(TABLE_3, domain=2))
    found = {}
    for mode in MODES:
        subject = Subject("dynamic", mode)
        subject.load(given.groups)
        (table,) = given.events(0, 300, batch=300)
        found[mode] = summary(subject.advance(table, given.stream, given.time)[1], 300)
    assert found["cayuga"].any()
    assert all(np.array_equal(one, found["cayuga"]) for one in found.values())


def test_equal_states_are_merged() -> None:
    workload = Workload(kind="NonDeterministic")
    subject = Subject("dynamic", "cayuga")
    loading = subject.load(technical_input("NonDeterministic", 2_000).groups)
    stats = subject.runner.stats()
    first, second, third = workload.levels(2_000)
    assert (stats.nodes, stats.ends) == (first + second, third)
    assert loading.subscriptions == stats.subscriptions == 2_000
    apart = Subject("dynamic", "no merging")
    apart.load(technical_input("NonDeterministic", 2_000).groups)
    assert (apart.runner.stats().nodes, apart.runner.stats().ends) == (4_000, 2_000)


def test_a_filter_is_no_sequence() -> None:
    with pytest.raises(SubscriptionError, match="only sequences are measured here"):
        Subject("dynamic", "cayuga").prepare(parse("price > 5"))


def test_targets_are_for_the_number_of_subscriptions_that_they_were_set_for(report: Report) -> None:
    assert not [one for one in report.measurements if one.target is not None]
    session = CayugaSession(SCALES["paper"])
    session.begin("subscriptions")
    assert session.target("throughput", "Filter", 400_000) == 50_000
    assert session.target("throughput", "Filter", 100_000) is None


def test_unknown_names_are_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(TocsinError, match="no experiment `figure 6`; there are: subscriptions, skew"):
        run(TINY, experiments=["figure 6"])
    with pytest.raises(MatcherError, match="no matcher `dinamic`; did you mean `dynamic`"):
        run(TINY, matcher="dinamic")
    with pytest.raises(TocsinError, match=r"there is no .*news\.jsonl\.gz and no .*stocks\.jsonl\.zst"):
        CayugaSession(TINY, data=tmp_path)


def test_articles_and_prices_are_read_where_they_are_given(tmp_path: Path) -> None:
    news = [{"time": f"2020-01-{i:02}", "site": f"s{i % 3}", "title": f"n{i}"} for i in range(1, 30)]
    (tmp_path / "news.jsonl").write_text("\n".join(map(json.dumps, news)), encoding="utf-8")
    days = [
        {"date": f"2020-01-{i:02}", "symbol": name, "close": 10.0 + i, "volume": 1}
        for i in range(1, 30)
        for name in ("A", "B")
    ]
    (tmp_path / "stocks.jsonl").write_text("\n".join(map(json.dumps, days)), encoding="utf-8")
    files: dict[str, Any] = {"feed": tmp_path / "news.jsonl", "prices": tmp_path / "stocks.jsonl"}
    found = run(replace(TINY, warm_up=10), **files, experiments=["rss", "ticks"])
    assert (found.parameters["feed"], found.parameters["prices"]) == ("news.jsonl", "stocks.jsonl")
    assert places(found, "ticks", "Tocsin, S4") == {58}


def test_a_report_is_drawn_and_read_back(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.write(tmp_path / "report.json")
    read = Report.read(tmp_path / "report.json")
    drawn = draw(PLOTS, read.measurements, tmp_path / "plots")
    assert [path.stem for path in drawn] == ["figure-6", "nodes", "figure-7", "figure-8", "loading", "ticks"]
    assert all(path.stat().st_size > 1_000 for path in drawn)


def test_the_command_prints_tables_and_writes_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "small", replace(TINY, sizes=(20,)))
    asked = ["cayuga", "--json", str(tmp_path / "c.json"), "--plots", str(tmp_path / "plots")]
    done = benchmark(*asked, "--experiment", "subscriptions")
    assert done.exit_code == 0, done.output
    assert "Figure 6a" in done.output
    assert json.loads((tmp_path / "c.json").read_text())["benchmark"] == "cayuga"
    assert (tmp_path / "plots" / "figure-6.png").exists()
    assert set(EXPERIMENTS) == {
        "subscriptions",
        "skew",
        "selectivity",
        "optimisation",
        "rss",
        "loading",
        "ticks",
    }
