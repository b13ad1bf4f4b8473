"""The Python of workers: set where nobody chose one, and otherwise checked before a job starts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tocsin.errors import SparkError
from tocsin.spark import Pipeline, backtest, build_index, dead_letters, match, statistics, worker_python
from tocsin.spark.data_sources import register
from tocsin.spark.worker_python import ensure_worker_python


def bare_python(folder: Path) -> Path:
    """Return a Python of this version without any installed package, called as Spark calls it."""
    folder.mkdir(exist_ok=True)
    file = folder / "python3"
    base = Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}"
    file.write_text(f'#!/bin/sh\nexec "{base}" -S "$@"\n')
    file.chmod(0o755)
    return file


class Context:
    """A context as the check sees it."""

    def __init__(self, master: str, python: str, answer: Any = None) -> None:
        self.master, self.pythonExec, self.environment = master, python, {"X": "1"}  # as Spark calls it
        self.jobs = 0
        self._answer = answer

    def parallelize(self, items: list[str], slices: int) -> Context:
        assert (len(items), slices) == (1, 1)
        return self

    def map(self, function: Any) -> Context:
        assert function is eval
        return self

    def collect(self) -> list[Any]:
        self.jobs += 1
        return [self._answer]


def ensure(context: Context) -> None:
    ensure_worker_python(SimpleNamespace(sparkContext=context))  # type: ignore[arg-type]


def test_a_default_that_nobody_chose_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    monkeypatch.setenv("PATH", str(bare_python(tmp_path).parent))
    context = Context("local[2]", "python3")
    ensure(context)
    assert context.pythonExec == sys.executable


def test_a_chosen_python_stays_if_it_has_tocsin(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.symlink_to(sys.executable)
    wrapper = tmp_path / "python-of-mine"
    wrapper.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PYSPARK_PYTHON", str(wrapper))
    context = Context("local[2]", str(wrapper))
    ensure(context)
    assert context.pythonExec == str(wrapper)


def test_a_chosen_python_without_tocsin_is_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    chosen = str(bare_python(tmp_path))
    monkeypatch.setenv("PYSPARK_PYTHON", chosen)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    with pytest.raises(SparkError) as caught:
        ensure(Context("local[*]", chosen))
    text = str(caught.value)
    assert text.startswith(f"Spark's workers run `{chosen}`, but in ")
    assert "there is no tocsin, msgspec" in text
    assert text.endswith(f"start with PYSPARK_PYTHON={sys.executable}, or without PYSPARK_PYTHON")


@pytest.mark.parametrize(
    ("program", "reason"),
    [("/nowhere/python3", "there is no such program"), ("/bin/echo", "it does not answer as a Python does")],
)
def test_a_chosen_program_that_is_no_python(
    program: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", program)
    with pytest.raises(SparkError, match=reason):
        ensure(Context("local[*]", program))


def test_a_cluster_is_asked_once_for_each_session_and_python() -> None:
    version = list(sys.version_info[:2])
    context = Context("spark://cluster:7077", "python3", ("/usr/bin/python3", version, []))
    ensure(context)
    ensure(context)
    assert (context.jobs, context.pythonExec) == (1, "python3")
    context.pythonExec = "/opt/python"
    ensure(context)
    assert context.jobs == 2


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (("/usr/bin/python3", list(sys.version_info[:2]), ["tocsin"]), "in /usr/bin/python3 there is no tocsin; install Tocsin on every node"),
        (("/usr/bin/python3", [3, 9], ["tocsin"]), r"that is Python 3.9 \(/usr/bin/python3\), and this process runs"),
    ],
)  # fmt: skip
def test_a_cluster_without_tocsin_is_refused_each_time(answer: Any, reason: str) -> None:
    context = Context("yarn", "python3", answer)
    for jobs in (1, 2):
        with pytest.raises(SparkError, match=reason):
            ensure(context)
        assert context.jobs == jobs


def test_a_real_worker_answers(spark: SparkSession) -> None:
    executable, version, missing = worker_python._ask_worker(spark.sparkContext)
    assert Path(executable).exists()
    assert (version, missing) == (list(sys.version_info[:2]), [])
    spark.sparkContext.pythonExec, before = "/nowhere/python3", spark.sparkContext.pythonExec
    try:
        with pytest.raises(
            SparkError, match=r"`/nowhere/python3`, but none could be asked: .*Cannot run program"
        ):
            worker_python._ask_worker(spark.sparkContext)
    finally:
        spark.sparkContext.pythonExec = before


def test_every_entry_point_checks_before_it_does_anything(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    events = spark.createDataFrame([("e1", 1)], "event_id string, a int")
    rows = spark.createDataFrame([("s", "a = 1")], "id string, text string")
    stream = spark.readStream.format("rate").load()
    monkeypatch.setenv("PYSPARK_PYTHON", "/nowhere/python3")
    monkeypatch.setattr(spark.sparkContext, "pythonExec", "/nowhere/python3")
    calls: list[Any] = [
        lambda: match(events, {"s": "a = 1"}),
        lambda: dead_letters(events),
        lambda: backtest("a = 1", events, time="a"),
        lambda: statistics(events),
        lambda: build_index(rows, tmp_path / "index", shards=1),
        lambda: Pipeline(stream, {"s": "a = 1"}, str(tmp_path / "sink"), tmp_path / "checkpoint"),
        lambda: register(spark),
    ]
    for call in calls:
        with pytest.raises(SparkError, match="there is no such program"):
            call()
    assert list(tmp_path.iterdir()) == []
    assert match(events, {"s": "a = 1"}, plan="join").count() == 1  # it needs no workers


SCRIPT = """
from pyspark.sql import SparkSession
from tocsin.spark import match

spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
events = spark.range(3).selectExpr("cast(id as string) event_id", "id as a")
print(match(events, {"one": "a = 1"}).collect()[0].subscription)
"""


def test_a_script_in_an_environment_that_is_not_activated_matches(tmp_path: Path) -> None:
    from tocsin.spark.java import find_java  # noqa: PLC0415 - starts nothing

    bare_python(tmp_path / "bin")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    environment = {name: value for name, value in os.environ.items() if name != "PYSPARK_PYTHON"}
    environment |= {
        "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "JAVA_HOME": str(find_java(quiet=True)),
        "SPARK_LOCAL_IP": "127.0.0.1",
    }
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, check=False, env=environment, cwd=tmp_path
    )
    assert done.stdout == "one\n", done.stderr
