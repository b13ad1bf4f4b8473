"""One Spark session for all tests of a process, as small and as quick to start as it can be.

Its JVM also serves Spark Connect, from the first test on that asks for `connect` or `any_spark`.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tocsin.spark.session import local_session

CONNECT_NEEDS = ("grpc", "grpc_status", "google.rpc.error_details_pb2", "zstandard")
CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"  # makes PySpark's functions those of Spark Connect
HERE = Path(__file__).parent
# PySpark leaves the sockets and the pipe to its Java process to the garbage collector.
LEFT_OPEN = "ignore:unclosed:ResourceWarning"
UNRAISABLE = "ignore:.*unclosed.*:pytest.PytestUnraisableExceptionWarning"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.filterwarnings(LEFT_OPEN))
            item.add_marker(pytest.mark.filterwarnings(UNRAISABLE))


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    session = local_session(
        1,
        name="tests",
        **{
            "spark.driver.memory": "1g",
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
            "spark.sql.adaptive.enabled": "false",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        },
    )
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect_address(spark: SparkSession) -> Iterator[str]:
    """Return the address of a server of Spark Connect."""
    for name in CONNECT_NEEDS:
        pytest.importorskip(name, reason="the extra `connect` is not installed")
    jvm: Any = spark.sparkContext._jvm
    package = jvm.org.apache.spark.sql.connect.service
    service = getattr(getattr(package, "SparkConnectService$"), "MODULE$")
    service.start(spark.sparkContext._jsc.sc())
    yield f"sc://127.0.0.1:{service.server().getPort()}"
    service.stop(jvm.scala.Option.empty(), jvm.scala.Option.empty())


@pytest.fixture(scope="session")
def connect_session(connect_address: str) -> Iterator[SparkSession]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(CONNECT_MODE, "1")
        session = SparkSession.builder.remote(connect_address).create()
    yield session
    session.stop()


@pytest.fixture
def connect(connect_session: SparkSession, monkeypatch: pytest.MonkeyPatch) -> SparkSession:
    """Return a session of Spark Connect; for this test, it is the kind that PySpark works with."""
    monkeypatch.setenv(CONNECT_MODE, "1")
    return connect_session


@pytest.fixture(params=["classic", "connect"])
def any_spark(request: pytest.FixtureRequest) -> SparkSession:
    """Return a classic session, and then one of Spark Connect."""
    session: SparkSession = request.getfixturevalue("spark" if request.param == "classic" else "connect")
    return session
