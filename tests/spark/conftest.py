"""One Spark session for all tests of a process, as small and as quick to start as it can be."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tocsin.spark.session import local_session

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
            "spark.local.dir": str(folder / "local"),
            "spark.sql.warehouse.dir": (folder / "warehouse").as_uri(),
        },
    )
    yield session
    session.stop()
