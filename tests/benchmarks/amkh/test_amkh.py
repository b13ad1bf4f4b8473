from __future__ import annotations

import json
from math import inf
from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.amkh.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES, AmkhSession, name_of, prime
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report
from benchmarks.runner.tables import titled
from tests.benchmarks.running import benchmark
from tocsin.model.errors import MatcherError, TocsinError

run = BENCHMARK.run
MATCHERS = AmkhSession.paper
TINY = replace(
    SCALES["paper"],
    name="tiny",
    sizes=(300, 600),
    usual=300,
    highest=(15, 95),
    ratios=(1.0, 4.0),
    equality_clauses=(0, 1, 4),
    classes=(2, inf),
    selectivities=(5, 80),
    events=40,
    seconds=5.0,
    warm_up=20,
    batch=20,
)
COUNTED = {"unmatched examined", "buckets probed"}
TIMED = {"matches", "matching time"}


@pytest.fixture(scope="module")
def report() -> Report:
    return run(TINY)


def of(report: Report, experiment: str, matcher: str) -> set[str]:
    return {
        one.name
        for one in report.measurements
        if (one.details["experiment"], one.details["matcher"]) == (experiment, matcher)
    }


@pytest.mark.parametrize("size", ["300", "600"])
@pytest.mark.parametrize("ratio", ["1", "4"])
def test_figure_1_counts_candidates_that_do_not_match(report: Report, size: str, ratio: str) -> None:
    part = f"figure 1: {size} subscriptions, {ratio} to a bucket"
    for method in ("MKH", "AMKH(1,2)", "AMKH(0,-)"):
        assert of(report, part, method) == COUNTED | TIMED
    places = {one.details["at"] for one in report.measurements if one.details["experiment"] == part}
    assert places == {15, 95}


def test_studies_compare_the_choice_with_the_best(report: Report) -> None:
    for part, methods in (
        ("best G: any equality-only attributes", ("AMKH(0,-)", "AMKH(1,2)", "AMKH(2,2)")),
        ("best G: a small set of them", ("AMKH(0,-)", "AMKH(1,2)", "AMKH(2,2)")),
        ("best B", ("AMKH(1,2)", "AMKH(1,∞)")),
    ):
        for method in methods:
            assert of(report, part, method) == COUNTED | TIMED
        assert of(report, part, "amkh") == COUNTED | TIMED | {"time over the best"}
        assert of(report, part, "best of these") == {"unmatched examined", "matching time"}


def test_the_best_is_the_least_of_its_choices(report: Report) -> None:
    best = [one for one in report.measurements if one.details["matcher"] == "best of these"]
    for one in best:
        others = [
            other.value
            for other in report.measurements
            if other.name == one.name
            and str(other.details["matcher"]).startswith("AMKH")
            and (other.details["experiment"], other.details["at"])
            == (one.details["experiment"], one.details["at"])
        ]
        assert one.value == min(others)


def test_times_are_beside_the_times_of_other_matchers(report: Report) -> None:
    for matcher in MATCHERS:
        wanted = TIMED | {"build time", "memory"} | (COUNTED if "mkh" in matcher else set())
        assert of(report, "time", matcher) == wanted


def test_every_part_has_a_title(report: Report) -> None:
    found = {title: varied for title, varied, _ in titled(report, EXPERIMENTS)}
    assert found["Best B, by the selectivity of inequalities"] == "% of values"
    assert "Figure 1: range of the constants: 300 subscriptions, 1 to a bucket" in found


def test_plots_are_drawn(report: Report, tmp_path: Path) -> None:
    drawn = draw(PLOTS, report.measurements, tmp_path)
    assert [path.stem for path in drawn] == ["figure-1", "hashed", "classes", "times"]
    assert all(path.stat().st_size > 1_000 for path in drawn)


def test_one_experiment_and_one_matcher_can_be_chosen() -> None:
    found = run(replace(TINY, sizes=(300,)), matcher=["opindex"], experiments=["time"])
    assert {one.details["experiment"] for one in found.measurements} == {"time"}
    assert {one.details["matcher"] for one in found.measurements} == {"opindex"}


def test_unknown_names_are_refused_before_anything_is_measured() -> None:
    with pytest.raises(TocsinError, match="no experiment `figure 2`; there are: figure 1, best G"):
        run(TINY, experiments=["figure 2"])
    with pytest.raises(MatcherError, match="no matcher `amhk`; did you mean `amkh`"):
        run(TINY, matcher=["amhk"])


def test_the_command_prints_tables_and_writes_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "small", replace(TINY, sizes=(300,), ratios=(1.0,)))
    asked = ["amkh", "--json", str(tmp_path / "a.json"), "--plots", str(tmp_path / "plots")]
    done = benchmark(*asked, "--experiment", "figure 1")
    assert done.exit_code == 0, done.output
    assert "Figure 1" in done.output
    assert json.loads((tmp_path / "a.json").read_text())["benchmark"] == "amkh"
    assert (tmp_path / "plots" / "figure-1.png").exists()


def test_methods_are_named_as_in_the_paper_and_tables_have_prime_sizes() -> None:
    assert [name_of(0, 2), name_of(1, 2), name_of(2, inf)] == ["AMKH(0,-)", "AMKH(1,2)", "AMKH(2,∞)"]
    assert [prime(number) for number in (2, 100, 1_000_000)] == [2, 101, 1_000_003]
    assert set(EXPERIMENTS) == {"figure 1", "best G", "best B", "time"}
