from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.dbnet.views import databases
from benchmarks.dbnet.views.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES
from benchmarks.dbnet.views.kinds import POINTS
from benchmarks.dbnet.views.session import ViewSession, check_answers, check_family
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report
from tests.benchmarks.running import benchmark
from tocsin.dissemination.scenarios.answer_oracle import Recomputation
from tocsin.dissemination.scenarios.ranges import draw_ranges
from tocsin.dissemination.scenarios.walks import draw_points, draw_updates
from tocsin.model.errors import MatcherError, TocsinError
from tocsin.views.aggregates.registry import RANGE_AGGREGATES
from tocsin.views.range_family import RangeFamily

run = BENCHMARK.run
TINY = replace(
    SCALES["paper"],
    name="tiny",
    reformulated=(100, 200),
    database=(100, 200),
    heard=300,
    subscriptions=(200, 400),
    few_rows=100,
    rows=200,
    notified=400,
    compared=300,
    rivalled=(100,),
    stocks=20,
    steps=5,
    updates=400,
    seconds=20.0,
    batch=50,
    single=20,
    checked=30,
)
MATCHERS = ["opindex", "points"]  # to compile them all takes long
SIDES = {"S-CN", "multicast", "unicast"}


@pytest.fixture(scope="module")
def report() -> Report:
    return run(TINY, matcher=MATCHERS)


def values(report: Report, experiment: str, name: str) -> dict[tuple[str, float], float]:
    """Return a figure of an experiment, by contender and position."""
    return {
        (str(one.details["matcher"]), float(one.details["at"])): one.value
        for one in report.measurements
        if (one.details["experiment"], one.name) == (experiment, name)
    }


def test_every_experiment_measures_something(report: Report) -> None:
    assert {one.details["experiment"] for one in report.measurements} == set(EXPERIMENTS)
    assert not [one for one in report.measurements if one.target is not None]
    assert report.parameters["quotes"] == "made up"


def test_reformulation_counts_the_kinds_of_updates(report: Report) -> None:
    shares = [values(report, "reformulate", name) for name in ("ignorable", "good", "bad")]
    for place in shares[0]:
        assert sum(share[place] for share in shares) == pytest.approx(100)
    assert shares[0]["non-ignorable", 200] == 0
    assert values(report, "reformulate", "messages")["non-ignorable", 200] >= 1


@pytest.mark.parametrize(
    ("experiment", "sizes"), [("database-size", TINY.database), ("subscriptions", TINY.subscriptions)]
)
def test_the_sides_of_a_server_add_up(report: Report, experiment: str, sizes: tuple[int, ...]) -> None:
    times = values(report, experiment, "time")
    assert set(times) == {(side, size) for side in SIDES for size in sizes}
    for size in sizes:
        assert times["S-CN", size] < times["multicast", size] < times["unicast", size]
    assert values(report, experiment, "outgoing")["unicast", sizes[-1]] > 0


def test_updates_notify_many_or_one_at_the_most(report: Report) -> None:
    each = values(report, "notified", "notified by one")
    assert each["many notified", TINY.notified] > each["Table 1", TINY.notified]
    assert each["at most one notified", TINY.notified] <= 1


def test_every_kind_and_the_matchers_take_part(report: Report) -> None:
    notified = values(report, "kinds", "notified by one")
    assert {name for name, _ in notified} == set(RANGE_AGGREGATES)
    assert all(each > 0 for each in notified.values())
    counts = values(report, "matchers", "heard")
    assert set(counts) == {(name, TINY.compared) for name in (POINTS, *MATCHERS)}
    assert len(set(counts.values())) == 1


def test_databases_are_queried_in_two_ways(report: Report) -> None:
    times = values(report, "databases", "times as fast")
    rivals = ["SQLite", *(["DuckDB"] if find_spec("duckdb") else [])]
    ways = (", all ranges around x", ", only answers that may change")
    assert set(times) == {(f"{rival}{way}", 100) for rival in rivals for way in ways}


def test_a_database_with_another_answer_ends_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    class Silent:
        def update(self, *_: float) -> tuple[np.ndarray, np.ndarray]:
            return np.empty(0, dtype=np.int64), np.empty(0)

        def close(self) -> None:
            pass

    monkeypatch.setattr(databases, "RIVALS", {"silent": ("sqlite3", lambda *_, **__: Silent())})
    session = ViewSession(TINY)
    session.begin("databases")
    with pytest.raises(
        MatcherError, match=r"`Tocsin` and `silent, all .*` disagree on update 0 of the spikes"
    ):
        databases.databases(session)


def test_wrong_answers_are_found() -> None:
    points, ranges = draw_points(50), draw_ranges(20)
    updates = draw_updates(points, 40, spikes=0.2)
    family = RangeFamily("min")
    family.load_points(points.x, points.y)
    family.add_ranges(ranges.numbers, ranges.lows, ranges.highs)
    other = Recomputation("min", points.x, points.y + 1, ranges.lows, ranges.highs)
    with pytest.raises(MatcherError, match="recomputing gives"):
        check_answers(family.answers.answer, other, ranges.numbers)
    with pytest.raises(MatcherError, match="the server answers"):
        check_answers(family.answers.answer, other, ranges.numbers, "the server")
    elsewhere = Recomputation("max", points.x, points.y, ranges.lows, ranges.highs)
    with pytest.raises(MatcherError, match=r"were reported; the first that differs is \(\d+, "):
        check_family(family, elsewhere, updates.changes, ranges.numbers)


def test_targets_are_for_the_sizes_that_they_were_set_for() -> None:
    session = ViewSession(SCALES["paper"])
    session.begin("reformulate")
    assert session.target("time", "non-ignorable", 1_000_000) == 8
    assert session.target("time", "non-ignorable", 10_000) is None
    session.begin("databases")
    assert session.target("times as fast", "SQLite", 10_000) == 100


def test_unknown_names_are_refused_before_anything_is_measured(tmp_path: Path) -> None:
    with pytest.raises(TocsinError, match="no experiment `figure 6`; there are: reformulate, database-size"):
        run(TINY, experiments=["figure 6"])
    with pytest.raises(MatcherError, match="no matcher `pints`; did you mean `points`"):
        run(TINY, matcher=["pints"])
    with pytest.raises(TocsinError, match=r"there is no .*stock_quotes\.jsonl\.gz; leave out --data"):
        ViewSession(TINY, data=tmp_path)


def test_a_report_is_drawn_and_read_back(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.write(tmp_path / "report.json")
    read = Report.read(tmp_path / "report.json")
    drawn = draw(PLOTS, read.measurements, tmp_path / "plots")
    assert [path.stem for path in drawn] == [
        "reformulate",
        "server-rows",
        "server-subscriptions",
        "kinds",
        "matchers",
        "databases",
    ]
    assert all(path.stat().st_size > 1_000 for path in drawn)


def test_the_command_prints_tables_and_writes_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "small", replace(TINY, database=(100,)))
    asked = ["views", "--json", str(tmp_path / "v.json"), "--plots", str(tmp_path / "plots")]
    done = benchmark(*asked, "--experiment", "database-size")
    assert done.exit_code == 0, done.output
    assert "Figure 6" in done.output
    assert json.loads((tmp_path / "v.json").read_text())["benchmark"] == "views"
    assert (tmp_path / "plots" / "server-rows.png").exists()
