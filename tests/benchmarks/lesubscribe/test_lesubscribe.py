from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.lesubscribe.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES, LeSubscribeSession
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report
from tocsin.matching import registered_matchers
from tocsin.model.errors import MatcherError

run = BENCHMARK.run
MATCHERS = LeSubscribeSession.paper
TINY = replace(
    SCALES["paper"],
    name="tiny",
    sizes=(200, 400),
    usual=300,
    drifting=200,
    churning=200,
    domains=(5, 35),
    predicates=(3, 5),
    events=40,
    seconds=5.0,
    warm_up=20,
    batch=20,
    steps=2,
    changes=20,
    rounds=2,
    single=3,
)
PRESENT = [name for name in MATCHERS if name in registered_matchers()]


@pytest.fixture(scope="module")
def report() -> Report:
    return run(TINY)


def test_every_experiment_measures_every_matcher_of_the_paper(report: Report) -> None:
    found = {(one.details["experiment"], one.details["matcher"]) for one in report.measurements}
    adapting = {"drift", "skew", "two attributes"}  # these have their own
    for experiment in EXPERIMENTS.keys() - adapting:
        assert {(experiment, name) for name in PRESENT} <= found
    assert {("drift", "propagation-wp"), ("skew", "propagation-wp")} <= found
    assert all(one.value >= 0 for one in report.measurements)


def test_the_subscriptions_are_varied_over_all_sizes(report: Report) -> None:
    sizes = {
        one.details["at"]
        for one in report.measurements
        if one.details["experiment"] == "subscriptions" and one.name == "time per event"
    }
    assert sizes == set(TINY.sizes)
    assert report.parameters["left_out"] == "nothing"


def test_a_drift_is_measured_until_all_subscriptions_are_replaced(report: Report) -> None:
    hours = [
        one.details["at"]
        for one in report.measurements
        if (one.details["experiment"], one.details["matcher"]) == ("drift", "propagation-wp")
    ]
    assert [round(float(hour) * 3600 * 50) for hour in hours] == [0, 120, 240]


def test_propagation_looks_at_one_in_as_many_subscriptions_as_there_are_values() -> None:
    # W0: whatever equality is the access predicate, one event in 35 satisfies it.
    (one,) = [
        one
        for one in run(replace(TINY, sizes=(5_000,)), matcher=["propagation"]).measurements
        if one.details["experiment"] == "subscriptions" and one.name == "time per event"
    ]
    assert float(one.details["checks"]) == pytest.approx(5_000 / 35, rel=0.15)
    assert one.details["matcher"] == "propagation"


def test_a_size_that_would_take_too_long_is_left_out_and_said() -> None:
    hasty = run(replace(TINY, patience=0.0), matcher=["propagation"])
    assert "propagation at 400: it would take about" in str(hasty.parameters["left_out"])
    sizes = {one.details["at"] for one in hasty.measurements if one.details["experiment"] == "subscriptions"}
    assert sizes == {200}


def test_an_unknown_matcher_is_refused_before_anything_is_measured() -> None:
    with pytest.raises(MatcherError, match="there is no matcher `propagatoin`; did you mean `propagation`"):
        run(TINY, matcher=["propagatoin"])


def test_a_report_is_drawn_and_read_back(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.write(tmp_path / "report.json")
    read = Report.read(tmp_path / "report.json")
    drawn = draw(PLOTS, read.measurements, tmp_path / "plots")
    assert [path.stem for path in drawn] == [
        "time_per_event",
        "phases",
        "operators",
        "memory",
        "loading",
        "values_and_predicates",
        "drift",
        "skew",
    ]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)
