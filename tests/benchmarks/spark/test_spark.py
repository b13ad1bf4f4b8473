from __future__ import annotations

from contextlib import closing
from io import BytesIO
from pathlib import Path
from time import process_time
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from pyspark.sql import SparkSession

from benchmarks.lesubscribe.workload import Parameters
from benchmarks.runner.plots import draw
from benchmarks.runner.report import Report
from benchmarks.spark import process
from benchmarks.spark.experiments import BENCHMARK, EXPERIMENTS, PLOTS, SCALES
from benchmarks.spark.joins import short_plan
from benchmarks.spark.kernels import timed_kernels
from benchmarks.spark.process import Answer, Request, SparkProcess, Streamed, Timed
from benchmarks.spark.serving import serve
from benchmarks.spark.session import SparkBenchSession
from benchmarks.spark.tasks import TASKS
from tests.spark.conftest import LEFT_OPEN, UNRAISABLE
from tocsin.engine import Engine
from tocsin.model.errors import SparkError

pytestmark = [pytest.mark.filterwarnings(LEFT_OPEN), pytest.mark.filterwarnings(UNRAISABLE)]

TINY = replace(
    SCALES["paper"],
    name="tiny",
    subscriptions=300,
    events=200,
    joined=100,
    join_events=100,
    join_samples=(40, 80),
    changing=20,
    changes=1,
    rounds=1,
    shards=(1, 2),
    noted=(20, 40),
    noted_events=100,
    stream_rows=20,
    sequences=160,
    sequence_events=2_000,
    stream_batches=1,
    state_shards=(1, 2),
    sequence_kinds=("Filter",),
    waiting=2_000,
    workload=Parameters(names=6, pairs=6, predicates=4, highest=4, event_highest=4),
)


class InProcess(SparkProcess):
    """Runs its tasks in this process's own session."""

    def __init__(self, session: SparkSession, cores: int) -> None:
        self.cores = cores
        self._session = session

    def ask(self, task: str, answer: type[Answer], **arguments: Any) -> Answer:
        done = TASKS[task](self._session, **arguments)
        assert isinstance(done, answer)
        return done


@pytest.fixture(scope="module")
def report(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder, processes = tmp_path_factory.mktemp("bench"), [InProcess(spark, 1), InProcess(spark, 2)]
    # raises if two ways give different numbers of notifications
    return BENCHMARK.run(TINY, folder=folder, processes=processes)


def figures(report: Report, experiment: str) -> dict[tuple[str, str], float]:
    return {
        (str(one.details["of"]), one.name): one.value
        for one in report.measurements
        if one.details["experiment"] == experiment
    }


def test_every_experiment_measures_something(report: Report) -> None:
    assert {one.details["experiment"] for one in report.measurements} == set(EXPERIMENTS)


def test_all_ways_send_the_same_positive_number_of_notifications(report: Report) -> None:
    for experiment in ("joins", "overhead"):
        counts = {
            one.details["notifications"]
            for one in report.measurements
            if one.details["experiment"] == experiment and "notifications" in one.details
        }
        assert len(counts) == 1
        assert min(map(int, counts)) > 0


def test_an_extrapolated_join_is_marked_and_keeps_its_measurement(report: Report) -> None:
    (nested,) = [one for one in report.measurements if "nested-loop" in one.name]
    assert nested.name == "nested-loop join, extrapolated"
    assert {"seconds for 40 events", "seconds for 80 events"} <= nested.details.keys()
    assert "BroadcastNestedLoopJoin" in str(nested.details["plan"])
    (hashed,) = [one for one in report.measurements if one.name == "hash join"]
    assert "BroadcastHashJoin" in str(hashed.details["plan"])


def test_the_plan_join_is_beside_the_usual_one_and_runs_no_python(report: Report) -> None:
    (joined,) = [one for one in report.measurements if one.name == "match, plan join"]
    assert "BroadcastHashJoin" in str(joined.details["plan"])
    assert "coordinate" in str(joined.details["plan"])
    assert "MapInArrow" not in str(joined.details["plan"])
    assert any(one.name == "match, index there already" for one in report.measurements)
    assert any("plan join" in str(one.details["of"]) for one in report.measurements if one.unit == "times")


def test_a_change_takes_effect_within_two_micro_batches(report: Report) -> None:
    (one,) = [one for one in report.measurements if one.name == "micro-batches to the effect"]
    assert one.target == 2
    assert 1 <= one.value <= one.target


def test_an_event_visits_no_more_shards_than_there_are(report: Report) -> None:
    found = figures(report, "shards")
    assert found["1 shard", "shards that an event visits"] == 1
    assert 0 < found["2 shards", "shards that an event visits"] <= 2


def test_targets_are_set_at_full_size_only(
    report: Report,
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    aimed = {one.name for one in report.measurements if one.target is not None}
    assert aimed == {"micro-batches to the effect"}
    session = SparkBenchSession(
        SCALES["paper"], folder=tmp_path, processes=[InProcess(spark, 1), InProcess(spark, 2)]
    )
    session.begin("overhead")
    session.record_runs("gain of a second core", "memory", [1.5, 1.3, 1.7], "times")
    (one,) = session.measurements
    assert (one.value, one.target, one.details["lowest"], one.details["highest"]) == (1.5, 1.4, 1.3, 1.7)


def test_a_report_is_drawn_and_read_back(report: Report, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    report.write(tmp_path / "report.json")
    read = Report.read(tmp_path / "report.json")
    drawn = draw(PLOTS, read.measurements, tmp_path / "plots")
    assert [path.stem for path in drawn] == ["joins", "rates", "costs", "stateful"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in drawn)


def test_requests_are_answered_line_by_line(spark: SparkSession, tmp_path: Path) -> None:
    spark.range(7).write.parquet(str(tmp_path / "rows"))
    request = Request("transferred", {"events": str(tmp_path / "rows")})
    answers = BytesIO()
    serve(spark, BytesIO(2 * (msgspec.json.encode(request) + b"\n")), answers)
    found = [msgspec.json.decode(line, type=Timed) for line in answers.getvalue().splitlines()]
    assert [one.rows for one in found] == [0, 0]


def test_a_process_that_ends_is_reported_with_its_last_output(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "_MODULE", "benchmarks.spark.nowhere")
    with (
        closing(SparkProcess(1, tmp_path)) as broken,
        pytest.raises(SparkError, match=r"ended with code 1.*\n.*nowhere"),
    ):
        broken.ready()


def test_without_pyspark_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "find_spec", lambda _: None)
    with pytest.raises(SparkError, match=r"pip install '.*\[spark\]'"):
        BENCHMARK.run()


def test_a_plan_is_shortened_to_its_operators() -> None:
    plan = (
        "== Physical Plan ==\n+- Project [id#12L AS s#3]\n   +- *(1) ColumnarToRow\n   +- Join " + "x" * 200
    )
    lines = short_plan(plan).splitlines()
    assert lines[0] == "+- Project [id AS s]"
    assert lines[1].startswith("   +- Join xxx")
    assert lines[1].endswith("…")
    assert len(lines) == 2


def test_a_stream_with_sequences_is_measured_by_its_parts(report: Report) -> None:
    found = figures(report, "stateful")
    for of in ("Filter, 1 shard", "Filter, 2 shards"):
        own = {name: value for (what, name), value in found.items() if what == of}
        assert {"events a second", "Java, tasks", "Python, workers", "notifications"} <= own.keys()
        assert {f"of Python: {part}" for part in ("route", "run", "snapshot", "store")} <= own.keys()
        assert (
            min(own["of Python: run"], own["a shard's state"], own["a shard's checkpoint, a micro-batch"]) > 0
        )
    assert 0 <= found["Filter, 2 shards, one of them", "of `run`: kernels"] <= 100
    assert found["Filter, the engine", "events a second"] > 0


def test_a_stream_that_sends_other_notifications_than_the_engine_is_no_figure(
    spark: SparkSession, tmp_path: Path
) -> None:
    class Wrong(InProcess):
        def ask(self, task: str, answer: type[Answer], **arguments: Any) -> Answer:
            done = super().ask(task, answer, **arguments)
            assert isinstance(done, Streamed)
            return replace(done, batches=tuple(replace(one, notifications=77) for one in done.batches))

    processes = [Wrong(spark, 1), Wrong(spark, 2)]
    with pytest.raises(
        SparkError, match=r"the engine sent \[\d+\] notifications, and the stream of .* \[77\]"
    ):
        BENCHMARK.run(TINY, experiments=["stateful"], folder=tmp_path, processes=processes)


def test_snapshots_have_every_partial_match(report: Report) -> None:
    found = figures(report, "snapshots")
    for of in ("an engine", "2 shards, one after another"):
        assert found[of, "snapshot"] >= 0
        assert found[of, "restore"] >= 0
        assert found[of, "bytes of a partial match"] > 16


def test_only_kernels_that_python_calls_are_timed() -> None:
    engine = Engine()
    engine.subscribe("from s a next s b on b.k = a.k", id="pair")
    events = [{"k": one % 7, "t": one} for one in range(300)]
    engine.publish_many(events, stream="s", time="t")  # compiles
    with timed_kernels() as kernels:
        sum(range(100_000))
        assert kernels.seconds == 0
        begun = process_time()
        engine.publish_many([{"k": one["k"], "t": one["t"] + 300} for one in events], stream="s", time="t")
        whole = process_time() - begun
    assert 0 < kernels.seconds < whole
