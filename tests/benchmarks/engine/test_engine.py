from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from benchmarks.engine.experiments import BENCHMARK, SCALES
from benchmarks.engine.session import DUCKDB, ENGINE, LAMBDAS, MATCH, EngineSession
from benchmarks.engine.workload import DEMO_LAMBDAS, DEMO_SQL, compiled_lambdas, dicts, draw_alerts
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report, of_experiment
from tocsin import Engine
from tocsin.cli.flights import SUBSCRIPTIONS

TINY = replace(
    SCALES["paper"],
    name="tiny",
    alerts=300,
    many=300,
    texts=40,
    sequences=2,
    few=(1, 3),
    in_files=(3,),
    formats=(".csv",),
    calls=20,
    events=100,
    flights=400,
    rounds=1,
    runs=1,
)
# The start compiles everything anew; files by number are processes like those for files.
QUICK = [name for name in BENCHMARK.experiments if name not in ("start", "files by number")]


@pytest.fixture(scope="module")
def report() -> Report:
    return BENCHMARK.run(TINY, experiments=QUICK)


def test_every_experiment_has_measurements(report: Report) -> None:
    for name in QUICK:
        found = of_experiment(report.measurements, name)
        assert found, name
        if name not in ("breakdown", "memory"):  # of tiny files and few subscriptions nothing may be left
            assert all(one.value > 0 for one in found if "over" not in str(one.details)), name


def test_files_are_matched_by_all_contenders(report: Report) -> None:
    rates = {
        (one.details["matcher"], one.details["at"]) for one in of_experiment(report.measurements, "files")
    }
    assert rates == {(who, form) for who in (MATCH, LAMBDAS, DUCKDB) for form in TINY.formats}


def test_targets_name_measurements_that_are_taken(report: Report) -> None:
    taken = {(one.details["experiment"], one.name, one.details["matcher"]) for one in report.measurements}
    aimed = {target[:3] for target in EngineSession.targets if target[0] != "start"}
    assert aimed <= taken


def test_plots_are_drawn(report: Report, tmp_path: Path) -> None:
    assert len(draw(BENCHMARK.plots, report.measurements, tmp_path)) == len(BENCHMARK.plots)


@pytest.mark.long
def test_all_formats_and_numbers_are_matched_alike() -> None:
    formats = SCALES["paper"].formats
    BENCHMARK.run(replace(TINY, formats=formats), experiments=["files", "files by number"])


def test_contenders_that_disagree_are_refused() -> None:
    session = EngineSession(TINY)
    try:
        session.agree("answers", 3)
        with pytest.raises(RuntimeError, match="answers: 4 notifications, and 3 before"):
            session.agree("answers", 4)
    finally:
        session.close()


def test_lambdas_and_texts_of_alerts_say_the_same() -> None:
    alerts, events, engine = draw_alerts(60), dicts(500), Engine()
    for one in alerts:
        for text in one.texts():
            engine.subscribe(text)
    conditions = compiled_lambdas(alerts)
    for event in events:
        assert len(engine.publish(event)) == sum(condition(event) for condition in conditions)


def test_every_filter_of_the_demo_has_its_rivals() -> None:
    assert list(SUBSCRIPTIONS) == list(DEMO_LAMBDAS) == list(DEMO_SQL)
    assert ENGINE in {target[2] for target in EngineSession.targets}
