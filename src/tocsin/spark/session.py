"""Spark sessions for the command line, the demo and the tests."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkImportError, PySparkRuntimeError
from pyspark.sql import SparkSession

from tocsin.model.errors import SparkError
from tocsin.model.installation import install_hint
from tocsin.spark.java import find_java
from tocsin.spark.java_start import ended_by_interrupts

_CONNECT: Final = "sc://"
_MASTERS: Final = ("local", "yarn", "spark://", "k8s://", _CONNECT)
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_PROGRESS: Final = "spark.ui.showConsoleProgress"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_DEFAULTS: Final = {
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    _PROGRESS: "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "tocsin.spark.daemon",
    "spark.sql.catalogImplementation": "in-memory",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # On a local disk a plain rename is atomic, and much cheaper than going through Hadoop's file contexts.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
}


def session(
    master: str | None = None, *, name: str = "tocsin", **settings: str | float | bool
) -> SparkSession:
    """Return the session of a command: the one that `spark-submit` prepared, else one on `master`.

    A `master` such as `sc://host:15002` is a server of Spark Connect. Without a master, it runs on this machine with all
    its cores.
    """
    if master is not None and master.startswith(_CONNECT):
        return _connected(SparkSession.builder.appName(name).remote(master), settings)
    if "PYSPARK_GATEWAY_PORT" not in os.environ and (master is None or master.startswith("local")):
        cores = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master or "local[*]")
        if cores is None:
            raise SparkError(f"a local master is written as local[2] or local[*], not {master}")
        number = cores[1] or "1"
        return local_session(None if number == "*" else int(number), name=name, **settings)
    if master is not None and not master.startswith(_MASTERS):
        raise SparkError(f"Spark runs on local[N], {', '.join(_MASTERS[1:])}…, not on {master}")
    _prepare_environment()
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    return _started(builder, {key: _as_text(value) for key, value in settings.items()})


def local_session(
    cores: int | None = 2, *, name: str = "tocsin", **settings: str | float | bool
) -> SparkSession:
    """Return a quiet Spark session on this machine's cores (all of them if `cores` is None), with our defaults.

    `settings` are Spark's, by their full names: `local_session(**{"spark.driver.memory": "8g"})`. A session that
    this process already has is returned as it is, but for the settings that may change while it runs. The environment
    variables that Spark reads (JAVA_HOME, PYSPARK_PYTHON, SPARK_LOCAL_IP) are set where they are not, and JAVA_HOME
    also where Spark would refuse what it names.
    """
    _prepare_environment()
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    partitions = str(cores or os.cpu_count() or 2)
    wanted = {
        **_DEFAULTS,
        "spark.sql.shuffle.partitions": partitions,
        "spark.default.parallelism": partitions,
        **{key: _as_text(value) for key, value in settings.items()},
    }
    # Without a configuration of its own, Spark announces on standard error that it takes its default.
    logging = f"-Dlog4j2.configurationFile={_LOGGING.as_uri()}"
    wanted[_JAVA_OPTIONS] = f"{logging} {wanted.get(_JAVA_OPTIONS, '')}".strip()
    return _started(SparkSession.builder.master(f"local[{cores or '*'}]").appName(name), wanted)


def _connected(builder: SparkSession.Builder, settings: Mapping[str, str | float | bool]) -> SparkSession:
    """Return a session of Spark Connect; only settings of SQL can be set on a server that runs already."""
    fixed = [key for key in settings if not key.startswith("spark.sql.") and key != _PROGRESS]
    if fixed:
        raise SparkError(
            f"a session of Spark Connect cannot set `{fixed[0]}`: set it where the server starts"
        )
    for key, value in settings.items():
        if key != _PROGRESS:
            builder = builder.config(key, _as_text(value))
    try:
        return builder.getOrCreate()
    except PySparkImportError as fault:
        raise SparkError(f"{fault}; {install_hint('connect')} brings what Spark Connect needs") from fault


def _prepare_environment() -> None:
    """Set the Java and the Python that Spark runs with, unless a JVM is running or about to."""
    from pyspark import SparkContext  # noqa: PLC0415 - a client of Spark Connect may lack it

    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:  # noqa: SLF001 - nothing public tells
        os.environ["JAVA_HOME"] = str(find_java(quiet=True))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)


def _started(builder: SparkSession.Builder, settings: Mapping[str, str]) -> SparkSession:
    """Return a session with these settings; raise `SparkError` if Java does not start."""
    for key, text in settings.items():
        builder = builder.config(key, text)
    try:
        with ended_by_interrupts():
            return builder.getOrCreate()
    except PySparkRuntimeError as fault:
        if fault.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkError(
            f"Spark did not start on the Java in {os.environ['JAVA_HOME']}; standard error says why"
        ) from fault


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
