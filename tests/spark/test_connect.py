"""What differs on Spark Connect: a worker is asked for its Python, and nothing in this process may be asked of a JVM."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pyspark import cloudpickle
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from tests.spark.test_matching import LAYOUTS, expected, pairs, workload
from tocsin.errors import SparkError
from tocsin.index import SubscriptionIndex
from tocsin.spark import match, worker_python
from tocsin.spark.session import session
from tocsin.spark.session_kinds import has_local_master, is_connect, is_speculative
from tocsin.spark.worker_python import connect_probe, ensure_worker_python, has_our_files

REMOTE = type("SparkSession", (), {"__module__": "pyspark.sql.connect.session"})


@pytest.mark.parametrize(("name", "shards"), [("columns", 1), ("binary", 3)])
def test_a_batch_has_the_engines_notifications(connect: SparkSession, name: str, shards: int) -> None:
    subscriptions, events = workload(30 + shards)
    make, layout = LAYOUTS[name]
    notes = match(make(connect, events), subscriptions, time="at", stream="stock", shards=shards, **layout)
    assert pairs(notes) == expected(subscriptions, events)


def test_a_session_tells_its_settings(any_spark: SparkSession, request: pytest.FixtureRequest) -> None:
    assert is_connect(any_spark) is ("connect" in request.node.callspec.id)
    assert has_local_master(any_spark)
    assert not is_speculative(any_spark)
    assert has_our_files(any_spark)


class Session(REMOTE):  # type: ignore[misc,valid-type]
    """A session of Spark Connect with settings and an answer of its own."""

    def __init__(self, master: str, answer: Any = None) -> None:
        self.conf = {"spark.master": master}
        self.jobs = 0
        self._answer = answer

    def range(self, *_: int) -> Any:
        return self

    def mapInArrow(self, function: Any, schema: str) -> Any:  # noqa: ARG002, N802 - Spark's
        return self

    def collect(self) -> list[Any]:
        self.jobs += 1
        if isinstance(self._answer, Exception):
            raise self._answer
        return [[self._answer]]


HERE = f"[{sys.version_info[0]}, {sys.version_info[1]}]"


def test_a_worker_is_asked_once_for_each_session() -> None:
    one: Any = Session("spark://cluster:7077", f'["/usr/bin/python3", {HERE}, [], null]')
    ensure_worker_python(one)
    ensure_worker_python(one)
    assert one.jobs == 1
    assert not has_our_files(one)  # not asked for: the master is a cluster
    elsewhere: Any = Session("local[2]", f'["/usr/bin/python3", {HERE}, [], null]')
    assert not has_our_files(elsewhere)  # a local master, but of another machine


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (f'["/bin/py", {HERE}, ["tocsin"], null]', "they run `/bin/py`, but in /bin/py there is no tocsin; install Tocsin on every node"),
        ('["/bin/py", [3, 9], [], null]', r"that is Python 3.9 \(/bin/py\), and this process runs"),
        (PySparkException("stack\nModuleNotFoundError: No module named 'pyarrow'\nat …"), "none could be asked, but ModuleNotFoundError: No module named 'pyarrow'"),
    ],
)  # fmt: skip
def test_workers_without_tocsin_are_named_each_time(answer: Any, reason: str) -> None:
    one: Any = Session("yarn", answer)
    for jobs in (1, 2):
        with pytest.raises(SparkError, match=reason):
            ensure_worker_python(one)
        assert one.jobs == jobs


BARE = """
import pickle, sys
sys.modules["tocsin"] = None  # cannot be imported
with open(sys.argv[1], "rb") as file:
    ask = pickle.load(file)
print(next(ask([None])).column(0)[0].as_py())
"""


def test_the_question_can_be_asked_of_a_worker_without_tocsin(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    code: bytes = cloudpickle.dumps(connect_probe(str(tmp_path / "secret")))  # type: ignore[no-untyped-call]
    (tmp_path / "ask").write_bytes(code)
    done = subprocess.run(
        [sys.executable, "-c", BARE, tmp_path / "ask"],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.strip().endswith('["tocsin"], "x"]'), done


def test_an_index_in_a_temporary_folder_needs_the_server_s_machine(
    connect: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = connect.createDataFrame([("e1", 1)], "event_id string, a int")
    monkeypatch.setitem(worker_python._asked, connect, False)
    with pytest.raises(SparkError, match="give `folder`"):
        match(events, {"x": "a = 1"})
    assert match(events, {"x": "a = 1"}, folder=tmp_path / "index").count() == 1


def test_for_each_batch_runs_on_the_server_with_the_newest_generation(
    connect: SparkSession, tmp_path: Path
) -> None:
    index = SubscriptionIndex(tmp_path / "index")
    index.subscribe("a = 1", id="x")
    index.publish()
    events, place, notes = str(tmp_path / "events"), str(tmp_path / "index"), str(tmp_path / "notes")
    connect.createDataFrame([("e1", 1)], "event_id string, a int").write.parquet(events)

    def each(batch: Any, _: int) -> None:
        from tocsin.spark import match as match_there  # noqa: PLC0415 - it is a process of the server

        match_there(batch, place).write.mode("append").parquet(notes)

    stream = connect.readStream.schema("event_id string, a int").parquet(events)
    for _ in range(2):
        writer = stream.writeStream.foreachBatch(each).trigger(availableNow=True)
        query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
        query.awaitTermination()
        assert query.exception() is None
        for commit in (tmp_path / "checkpoint" / "commits").glob("*0*"):
            commit.unlink()  # as if the run had been killed before the commit
        index.subscribe(f"a = {index.generation + 1}", id=f"y{index.generation}")
        index.publish()
    rows = connect.read.parquet(notes).collect()
    assert sorted((row["subscription"], row["generation"]) for row in rows) == [("x", 1), ("x", 2)]


def test_settings_that_a_server_cannot_take_are_refused() -> None:
    with pytest.raises(SparkError, match=r"cannot set `spark.driver.memory`: set it where the server starts"):
        session("sc://127.0.0.1:1", **{"spark.driver.memory": "8g"})


def test_the_command_line_needs_no_java_of_its_own(
    connect_address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "events.jsonl").write_text('{"id": "e1", "a": 1}\n{"id": "e2", "a": 2}\n')
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    command = [
        sys.executable,
        "-m",
        "tocsin",
        "spark",
        "match",
        str(tmp_path / "events.jsonl"),
        "-s",
        "a = 2",
    ]
    done = subprocess.run(
        [*command, "--id-field", "id", "--master", connect_address],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert '"event_id":"e2"' in done.stdout
    assert done.stdout.count("\n") == 1
