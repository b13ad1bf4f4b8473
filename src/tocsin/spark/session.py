"""A Spark session on this machine, as the command line, the demo and the tests need one."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tocsin.model.errors import SparkError
from tocsin.spark.java import find_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["local_session", "session"]

_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"
_LOGGING: Final = Path(__file__).with_name("log4j2.properties")
_STREAMING: Final = "org.apache.spark.sql.execution.streaming"
_DEFAULTS: Final = {
    "spark.driver.memory": "2g",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
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
    """Return the session that a command runs in: the one that `spark-submit` has prepared, else one on `master`.

    Without a master, that is this machine with all its cores.
    """
    if "PYSPARK_GATEWAY_PORT" not in os.environ and (master is None or master.startswith("local")):
        cores = re.fullmatch(r"local(?:\[(\d+|\*)\])?", master or "local[*]")
        if cores is None:
            raise SparkError(f"a local master is written as local[2] or local[*], not {master}")
        number = cores[1] or "1"
        return local_session(None if number == "*" else int(number), name=name, **settings)
    _require_pyspark()
    from pyspark.sql import SparkSession  # noqa: PLC0415 - part of an extra

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(name)
    if master is not None:
        builder = builder.master(master)
    for key, value in settings.items():
        builder = builder.config(key, _as_text(value))
    return builder.getOrCreate()


def local_session(
    cores: int | None = 2, *, name: str = "tocsin", **settings: str | float | bool
) -> SparkSession:
    """Return a quiet Spark session on this machine's cores (all of them if `cores` is None), with our defaults.

    `settings` are Spark's, by their full names: `local_session(**{"spark.driver.memory": "8g"})`. A session that
    this process already has is returned as it is, but for the settings that may change while it runs. The environment
    variables that Spark reads (JAVA_HOME, PYSPARK_PYTHON, SPARK_LOCAL_IP) are set where they are not, and JAVA_HOME
    also where Spark would refuse what it names.
    """
    _require_pyspark()
    from pyspark import SparkContext  # noqa: PLC0415 - part of an extra
    from pyspark.errors import PySparkRuntimeError  # noqa: PLC0415
    from pyspark.sql import SparkSession  # noqa: PLC0415

    if SparkContext._gateway is None:  # noqa: SLF001 - there is no public way to ask whether a JVM runs
        os.environ["JAVA_HOME"] = str(find_java(quiet=True))
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
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
    builder = SparkSession.builder.master(f"local[{cores or '*'}]").appName(name)
    for key, text in wanted.items():
        builder = builder.config(key, text)
    try:
        return builder.getOrCreate()
    except PySparkRuntimeError as fault:
        if fault.getCondition() != "JAVA_GATEWAY_EXITED":
            raise
        raise SparkError(
            f"Spark did not start on the Java in {os.environ['JAVA_HOME']}; standard error says why"
        ) from fault


def _require_pyspark() -> None:
    try:
        import pyspark  # noqa: F401, PLC0415 - part of an extra
    except ImportError as fault:
        raise SparkError(f"PySpark is not installed ({fault}): `pip install 'tocsin[spark]'`") from fault


def _as_text(value: str | float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
