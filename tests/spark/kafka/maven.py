"""Jars from Maven Central: a Kafka broker with its dependencies, and Spark's connector."""

from __future__ import annotations

import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Final
from urllib.error import URLError

import pyspark

from tocsin.structures.folders import user_cache

CENTRAL: Final = "https://repo1.maven.org/maven2"
BROKER: Final = "org.apache.kafka:kafka_2.13:4.3.1"
_CONNECTOR: Final = "spark-sql-kafka-0-10_2.13"
_TOKENS: Final = "spark-token-provider-kafka-0-10_2.13"
_PATIENCE: Final = 60
# Spark resolves packages with their dependencies when a session starts, into a folder that it keeps.
_RESOLVE: Final = """
import sys
from tocsin.spark import local_session

session = local_session(1, **{"spark.jars.packages": sys.argv[1]})
print(session.conf.get("spark.jars"))
session.stop()
"""


class UnreachableError(Exception):
    """Maven Central cannot be reached."""


def broker_jars() -> list[Path]:
    """Return the jars of a Kafka broker."""
    _read(f"{CENTRAL}/org/apache/kafka/kafka_2.13/maven-metadata.xml")  # fails sooner than Spark does
    done = subprocess.run(
        [sys.executable, "-c", _RESOLVE, BROKER], capture_output=True, text=True, check=False, timeout=600
    )
    found = re.search(r"^file:.*\.jar$", done.stdout, re.MULTILINE)
    if done.returncode or found is None:
        raise UnreachableError(done.stderr[-2000:])
    scala = (Path(pyspark.__file__).parent / "jars").glob(
        "scala-library-*.jar"
    )  # Spark leaves out what it has
    return [*(Path(jar.removeprefix("file://")) for jar in found[0].split(",")), *scala]


def connector_jars() -> list[Path]:
    """Return the jars of Spark's connector to Kafka: of PySpark's version, or the newest that is there."""
    group = "org/apache/spark"
    version = _newest(f"{group}/{_CONNECTOR}")
    pom = _read(f"{CENTRAL}/{group}/{_CONNECTOR}/{version}/{_CONNECTOR}-{version}.pom").decode()
    needed = dict(
        re.findall(r"<artifactId>(kafka-clients|commons-pool2)</artifactId>\s*<version>([^<]+)<", pom)
    )
    return list(
        _fetched(
            [
                (group, _CONNECTOR, version),
                (group, _TOKENS, _newest(f"{group}/{_TOKENS}")),
                ("org/apache/kafka", "kafka-clients", needed["kafka-clients"]),
                ("org/apache/commons", "commons-pool2", needed["commons-pool2"]),
            ]
        )
    )


def _newest(artifact: str) -> str:
    """Return PySpark's version of an artifact if there is one, else the newest that is no preview."""
    text = _read(f"{CENTRAL}/{artifact}/maven-metadata.xml").decode()
    versions: list[str] = [
        one for one in re.findall(r"<version>([^<]+)<", text) if re.fullmatch(r"[\d.]+", one)
    ]
    if pyspark.__version__ in versions:
        return str(pyspark.__version__)
    return max(versions, key=lambda version: tuple(map(int, version.split("."))))


def _fetched(artifacts: Iterable[tuple[str, str, str]]) -> Iterable[Path]:
    """Yield the jars of artifacts, kept for the next time."""
    folder = user_cache() / "test-jars"
    folder.mkdir(parents=True, exist_ok=True)
    for group, name, version in artifacts:
        file = folder / f"{name}-{version}.jar"
        if not file.exists():
            new = file.with_suffix(".new")
            new.write_bytes(_read(f"{CENTRAL}/{group}/{name}/{version}/{name}-{version}.jar"))
            new.replace(file)
        yield file


def _read(address: str) -> bytes:
    try:
        with urllib.request.urlopen(address, timeout=_PATIENCE) as answer:  # noqa: S310 - Maven Central
            content: bytes = answer.read()
            return content
    except (URLError, OSError) as fault:
        raise UnreachableError(f"{address}: {fault}") from fault
