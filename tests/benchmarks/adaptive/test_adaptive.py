from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

from benchmarks.adaptive.changes import KINDS
from benchmarks.adaptive.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES
from benchmarks.adaptive.session import BATCHES, BYTES, OWN, RATE, RATIO, SINGLE, STOPPED, Drift, Source
from benchmarks.adaptive.workloads import numbers, texts
from benchmarks.runner.agreement import summary
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report
from tests.benchmarks.running import benchmark
from tocsin.matching import create_matcher
from tocsin.model.errors import MatcherError, TocsinError
from tocsin.replay.numbered import add_to, prepared_for

run = BENCHMARK.run
TINY = replace(
    SCALES["paper"],
    name="tiny",
    subscriptions=300,
    events=60,
    rounds=2,
    single=5,
    warm_up=60,
    batch=30,
    tried=20,
    stopped=float("inf"),
    settling=40,
    drifting=80,
    drift_step=40,
    drift_batch=20,
    documents=200,
    words=2_000,
    catalogue=200,
    catalogue_attributes=100,
    changed=300,
    changes=40,
)
REAL = {"flights", "quotes", "real products", "news"}
OTHERS = [OWN, "dynamic", "opindex"]
MADE: Mapping[str, Source] = {
    "equal": numbers.equal(2_000),
    "hot value": numbers.hot_value(),
    "nested": numbers.nested(),
    "thresholds": numbers.thresholds(),
    "bands": numbers.bands(),
    "one differs": numbers.one_differs(2_000),
    "hot half": numbers.hot_half(0),
    "lists": texts.lists(),
    "mixed": texts.mixed(),
}


@pytest.fixture(scope="module")
def report() -> Report:
    return run(TINY, matcher=OTHERS)  # raises if two matchers answer differently


def test_every_workload_is_measured_with_every_matcher(report: Report) -> None:
    found = {
        (one.details["experiment"], one.details["matcher"], one.name)
        for one in report.measurements
        if one.name != RATIO
    }
    for workload in EXPERIMENTS.keys() - REAL - {"drift", "changes"}:
        for matcher in OTHERS:
            assert {(workload, matcher, name) for name in (BATCHES, SINGLE, RATE, BYTES)} <= found
    assert "flights: needs --data" in str(report.parameters["left_out"])


def test_a_ratio_is_over_the_best_of_the_others(report: Report) -> None:
    figures = {
        (one.name, str(one.details["matcher"])): one.value
        for one in report.measurements
        if one.details["experiment"] == "bands" and one.name in (BATCHES, SINGLE)
    }
    ratios = [
        one for one in report.measurements if one.name == RATIO and one.details["experiment"] == "bands"
    ]
    assert len(ratios) == 2
    for one in ratios:
        kind = str(one.details["kind"])
        best = min(figures[kind, other] for other in OTHERS[1:])
        assert one.value == pytest.approx(figures[kind, OWN] / best)


def test_drift_is_told_by_steps_of_events(report: Report) -> None:
    for matcher in (OWN, "dynamic"):
        steps = [
            one.details["at"]
            for one in report.measurements
            if one.name == "after the change" and one.details["matcher"] == matcher
        ]
        assert steps == [40, 80]


def test_single_changes_and_events_are_measured_by_kind(report: Report) -> None:
    found = {
        (one.details["at"], one.details["kind"], one.name): one.value
        for one in report.measurements
        if one.details["experiment"] == "changes"
    }
    for kind in KINDS:
        median, worst = (found["W0 with ranges", kind, share] for share in ("median", "worst"))
        assert 0 < median <= worst


def test_a_change_is_over_when_batches_stay_near_the_best() -> None:
    near = (1.2, 1.1, 1.0) * 4
    assert Drift(1.0, (9.0, 1.0, 8.0, 9.0, 1.0, 9.0, 1.0, *near)).recovered(1.3) == 4
    assert Drift(1.0, (9.0, *near)).recovered(1.3) == 1
    assert Drift(1.0, (1.0, 1.0, 9.0)).recovered(1.3) == 0
    assert Drift(1.0, (1.0, 1.0, 1.0, 9.0, 9.0)).recovered(1.3) == 5


def test_a_matcher_that_is_far_slower_is_stopped_and_said() -> None:
    found = run(replace(TINY, stopped=0.0), matcher=OTHERS, experiments=["bands"])
    stopped = {one.details["matcher"] for one in found.measurements if one.name == STOPPED}
    assert "opindex" in stopped
    assert OWN not in stopped
    assert "bands: opindex stopped early at" in str(found.parameters["left_out"])


def test_a_matcher_that_takes_too_long_to_fill_is_left_out_and_said() -> None:
    found = run(replace(TINY, patience=0.0), matcher=OTHERS, experiments=["bands"])
    assert "bands: opindex, adding took over 0 s" in str(found.parameters["left_out"])
    assert not any(one.name == BATCHES for one in found.measurements)


@pytest.mark.parametrize("name", MADE)
def test_a_made_up_workload_is_the_same_again_and_some_of_it_matches(name: str) -> None:
    workload, found = MADE[name], []
    for matcher in (create_matcher("counting"), create_matcher("oracle")):
        for batch in workload.subscriptions(0, 500, batch=200):
            add_to(matcher, batch)
        (events,) = workload.events(0, 400, batch=400)
        found.append(summary(matcher.match(prepared_for(matcher, events))))
    assert np.array_equal(found[0], found[1])
    assert 0 < found[0][0].sum() < 400 * 500 / 10


def test_equal_subscriptions_are_few_different_ones() -> None:
    (batch,) = numbers.equal(40_000).subscriptions(0, 30_000)
    rows = np.column_stack([batch.attributes.reshape(-1, 3), batch.highs.reshape(-1, 3)])
    assert len(np.unique(rows, axis=0)) == 40


def test_real_events_are_read_and_asked_for(tmp_path: Path) -> None:
    rows = [
        {
            "symbol": f"S{i % 7}",
            "sector": f"T{i % 3}",
            "price": 10 + i % 20,
            "pe": i % 10 + 0.5,
            "dividend_yield": 9.5,
        }
        for i in range(50)
    ]
    path = tmp_path / "stock_quotes.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))
    workload, matcher = texts.quotes(path), create_matcher(OWN)
    for batch in workload.subscriptions(0, 500):
        add_to(matcher, batch)
    (events,) = workload.events(0, 50)
    assert len(matcher.match(prepared_for(matcher, events)).ids) > 0
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(TocsinError, match="has no events; it should have objects"):
        texts.quotes(path)


def test_missing_files_and_matchers_are_named(tmp_path: Path) -> None:
    with pytest.raises(TocsinError, match=r"news\.jsonl\.gz; leave out --data"):
        run(TINY, data=tmp_path)
    with pytest.raises(MatcherError, match="no matcher `adaptiv`; did you mean `adaptive`"):
        run(TINY, matcher=["adaptiv"])


def test_the_command_prints_a_table_and_writes_json_and_a_plot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(SCALES, "small", TINY)
    asked = ["--matcher", OWN, "--matcher", "dynamic", "--experiment", "bands", "--experiment", "drift"]
    done = benchmark("adaptive", *asked, "--json", tmp_path / "a.json")
    assert done.exit_code == 0, done.output
    for text in ("narrow bands", "mean; worst", "drift: adaptive takes"):
        assert text in done.output
    measured = Report.read(tmp_path / "a.json")
    assert measured.parameters["subscriptions"] == 300
    pytest.importorskip("matplotlib")
    (plot,) = draw(PLOTS, measured.measurements, tmp_path)
    assert plot.stem == "ratios"
