from __future__ import annotations

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from msgspec.structs import replace

from benchmarks.dbnet.network import tasks
from benchmarks.dbnet.network.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES
from benchmarks.dbnet.network.session import CLOSING, COLUMNS, FULL, NetworkSession, closing_table
from benchmarks.dbnet.network.tasks import Done, Task, perform
from benchmarks.dbnet.network.workers import grouped, package_archive
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Measurement, Report
from tests.benchmarks.running import benchmark
from tocsin.dissemination.strategies.registry import STRATEGIES
from tocsin.dissemination.strategies.s_un import ServerUnicast
from tocsin.model.errors import MatcherError, TocsinError
from tocsin.model.subscription import Answer

run = BENCHMARK.run
TINY = replace(
    SCALES["paper"],
    name="tiny",
    nodes=12,
    physical=100,
    subscriptions=150,
    rows=1_000,
    events=80,
    several=60,
    database=(60, 120),
    heard=(100, 200),
    ignorable=(0.0, 0.5),
    spikes=(0.0, 0.1),
    spiked=60,
    traced=(100, 200),
    stocks=20,
    steps=3,
    compared=60,
    few=40,
    paired=20,
    full=200,
    batch=30,
    sample=20,
)


def tasks_of(
    scale: Any, strategies: Sequence[str], quotes: Path | None, experiments: Sequence[str] = ()
) -> list[Task]:
    """Return the simulations of some experiments, or of all."""
    session = NetworkSession(scale, strategies)
    session.quotes = quotes
    for name in experiments or EXPERIMENTS:
        session.begin(name)
        EXPERIMENTS[name].measure(session)
    return session.tasks


@pytest.fixture(scope="module")
def report() -> Report:
    faults: list[Done] = []
    report = run(TINY, on_failure=faults.append)
    assert not [done.trace or done.fault for done in faults]
    return report


def values(report: Report, experiment: str, name: str) -> dict[tuple[str, float | str], float]:
    """Return a figure of an experiment, by strategy and place."""
    return {
        (str(one.details["matcher"]), one.details["at"]): one.value
        for one in report.measurements
        if (one.details["experiment"], one.name) == (experiment, name)
    }


def test_every_experiment_simulates_its_strategies_and_shows_its_figures(report: Report) -> None:
    assert report.parameters["left_out"] == "quotes"
    for name, experiment in EXPERIMENTS.items():
        for figure in experiment.shown if name != "quotes" else ():
            found = values(report, name, figure)
            assert {strategy for strategy, _ in found} == set(experiment.contenders), (name, figure)
    assert report.parameters["failed"] == "nothing"
    assert report.parameters["field_bytes"] == 8


def test_all_strategies_change_the_same_number_of_answers(report: Report) -> None:
    for experiment in EXPERIMENTS:
        changed = values(report, experiment, "told")
        for at in {at for _, at in changed}:
            assert len({value for (_, place), value in changed.items() if place == at}) == 1, experiment


def test_ignorable_updates_cost_a_server_nothing(report: Report) -> None:
    outgoing = values(report, "ignorable", "outgoing")
    assert outgoing["S-CN", 50] < outgoing["S-CN", 0]
    hops = values(report, "ignorable", "overlay hops")
    assert hops["CN", 50] > hops["S-CN", 50]


def test_every_kind_of_view_is_simulated(report: Report) -> None:
    assert {at for _, at in values(report, "kinds", "traffic")} == {
        "min", "max", "count", "sum", "avg", "distinct", "join",
    }  # fmt: skip
    assert values(report, "kinds", "told")["S-CN", "count"] > 0


def test_shares_of_events_add_up(report: Report) -> None:
    below, least = (
        values(report, "distribution", "below 100 B"),
        values(report, "distribution", "at least 320 B"),
    )
    for place in below:
        assert values(report, "distribution", "no traffic")[place] <= below[place] <= 100 - least[place]


def test_the_closing_table_has_no_words_of_a_strategy_that_the_paper_does_not_have() -> None:
    details = {"experiment": FULL, "matcher": "OWN", "at": "40000"}
    [cell] = closing_table([Measurement("traffic", 7.0, "bytes", None, details)])
    assert (cell.value, cell.details["matcher"], cell.details["paper"]) == (7.0, "OWN", "")


def test_the_closing_table_has_a_cell_for_each_strategy_and_column(report: Report) -> None:
    cells = [one for one in report.measurements if one.details["experiment"] == CLOSING]
    assert {(one.details["matcher"], one.name) for one in cells} == {
        (s, c) for s in STRATEGIES for c in COLUMNS
    }
    assert {one.details["paper"] for one in cells if one.details["matcher"] == "CN"} == {
        "high",
        "low",
        "none",
        "",
    }


def test_a_report_is_drawn_and_read_back(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.write(tmp_path / "report.json")
    read = Report.read(tmp_path / "report.json")
    drawn = draw(PLOTS, read.measurements, tmp_path / "plots")
    figures = [f"figure-{number}" for number in range(6, 14)]
    assert [path.stem for path in drawn] == [*figures, "network-kinds", "splitting"]
    assert all(path.stat().st_size > 1_000 for path in drawn)


def test_unknown_names_are_refused_before_anything_is_simulated() -> None:
    with pytest.raises(
        TocsinError, match="no experiment `figure 6`; there are: database-size, subscriptions"
    ):
        run(TINY, experiments=["figure 6"])
    with pytest.raises(TocsinError, match="no strategy `S-XN`; there are: S-UN"):
        run(TINY, strategy=["S-XN"])
    with pytest.raises(TocsinError, match="S-MN take no part in kinds; name another strategy"):
        run(TINY, strategy=["S-MN"], experiments=["kinds"])


def test_strategies_are_chosen_where_they_take_part() -> None:
    chosen = tasks_of(SCALES["paper"], ["ds-cn"], None, ["full", "kinds"])
    assert [task.called for task in chosen] == ["full, DS-CN, 1,000,000"]
    assert chosen[0].scenario.events == 200_000


def test_quotes_are_read_only_if_there_are_any(tmp_path: Path) -> None:
    assert not tasks_of(TINY, (), None, ["quotes"])
    quotes = tmp_path / "quotes.jsonl"
    assert {task.scenario.quotes for task in tasks_of(TINY, (), quotes, ["quotes"])} == {quotes}
    assert {task.scenario.quotes for task in tasks_of(TINY, (), quotes, ["trace"])} == {None}


def test_a_task_survives_its_journey(tmp_path: Path) -> None:
    for task in tasks_of(TINY, (), tmp_path / "quotes.jsonl"):
        assert pickle.loads(pickle.dumps(task)) == task  # noqa: S301 - our own
    done = Done(task, fault="it rained")
    assert pickle.loads(pickle.dumps(done)) == done  # noqa: S301


def test_groups_hold_a_scenario_each_unless_cores_would_be_idle() -> None:
    some = tasks_of(TINY, (), None, ["database-size", "cutoff", "full"])
    together = grouped(some, 1)
    assert [len({task.scenario for task in group}) for group in together] == [1] * 4
    assert sum(map(len, together)) == len(some)
    apart = grouped(some, 100)
    assert [len(group) for group in apart] == [1] * len(some)


def test_a_simulation_that_fails_is_named_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerUnicast, "answer", lambda *_: -1.0)
    faults: list[Done] = []
    report = run(TINY, strategy=["S-UN", "S-CN"], experiments=["full"], on_failure=faults.append)
    assert [done.task.called for done in faults] == ["full, S-UN, 200"]
    assert str(report.parameters["failed"]).startswith(
        "full, S-UN, 200: MatcherError: S-UN: subscription 0, ["
    )
    assert set(values(report, "full", "traffic")) == {("S-CN", 200)}


def test_strategies_with_different_numbers_of_changes_have_failed() -> None:
    def run_tasks(some: Sequence[Task], _: object) -> list[Done]:
        done = [perform(task) for task in some]
        wrong = [
            replace(one, details={"in all": -1.0}) if one.name == "told" else one for one in done[0].figures
        ]
        return [replace(done[0], figures=tuple(wrong)), *done[1:]]

    report = run(TINY, strategy=["S-UN", "S-CN"], experiments=["full"], run_tasks=run_tasks)
    assert "full, S-CN, 200: strategies have different numbers" in str(report.parameters["failed"])
    assert not report.measurements


def test_the_command_prints_tables_and_writes_json(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SCALES, "small", TINY)
    asked = ["network", "--json", str(tmp_path / "n.json"), "--plots", str(tmp_path / "plots")]
    chosen = ["--experiment", "full", "--experiment", "trace", "--strategy", "S-UN", "--strategy", "S-CN"]
    done = benchmark(*asked, *chosen)
    assert done.exit_code == 0, done.output
    assert "Figure 13" in done.output
    assert "the closing table" in done.output
    assert "…" not in done.output
    assert json.loads((tmp_path / "n.json").read_text())["benchmark"] == "network"
    assert (tmp_path / "plots" / "figure-13.png").exists()


def test_the_command_ends_with_1_if_a_simulation_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(*_: object) -> Answer:
        raise MatcherError("the answer is wrong")

    monkeypatch.setitem(SCALES, "small", TINY)
    monkeypatch.setattr(tasks, "check_answers", wrong)
    done = benchmark("network", "--experiment", "full", "--strategy", "S-UN")
    assert done.exit_code == 1
    assert "1 of 1 simulations failed" in done.output


def test_the_command_says_where_a_master_belongs() -> None:
    done = benchmark("network", "--master", "local[1]")
    assert done.exit_code == 2
    assert "goes with --spark" in done.output


def test_a_cluster_s_workers_import_the_package_from_an_archive() -> None:
    names = ZipFile(package_archive()).namelist()
    assert {"benchmarks/__init__.py", "benchmarks/dbnet/network/tasks.py"} <= set(names)
