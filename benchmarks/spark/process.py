"""A Spark session in a process of its own, for a process has one Java machine, and that has one number of cores."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import msgspec
from msgspec import Struct

from benchmarks.spark.answers import Ready
from tocsin.model.errors import SparkError

Answer = TypeVar("Answer", bound=Struct)
_MODULE: Final = "benchmarks.spark.serving"
_PATIENCE: Final = 30.0  # seconds that a session may take to end
_TOLD: Final = 20  # lines of its log


class Request(Struct, frozen=True):
    """What a process is to do, with which arguments."""

    task: str
    arguments: dict[str, Any] = {}


class SparkProcess:
    """Asks a Spark session on so many cores to do one thing after another, and waits for each answer.

    Requests and answers are lines of JSON, on the process's standard input and output.
    """

    def __init__(self, cores: int, folder: Path) -> None:
        self.cores = cores
        module = [sys.executable, "-m", _MODULE, str(cores), str(folder)]
        self._log = folder / f"spark-{cores}.log"  # Java and the workers talk a lot
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                module, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log
            )

    @property
    def label(self) -> str:
        """Return what Spark calls its master."""
        return f"local[{self.cores}]"

    def ready(self) -> Ready:
        """Wait until the session has started."""
        return self._read(Ready)

    def ask(self, task: str, answer: type[Answer], **arguments: Any) -> Answer:
        """Return the answer of a task; raise `SparkError` if it failed."""
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        self._process.stdin.write(msgspec.json.encode(Request(task, arguments)) + b"\n")
        self._process.stdin.flush()
        return self._read(answer)

    def _read(self, answer: type[Answer]) -> Answer:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            told = "\n".join(self._log.read_text(errors="replace").splitlines()[-_TOLD:])
            raise SparkError(f"the Spark process ended with code {code}; the last that it wrote:\n{told}")
        return msgspec.json.decode(line, type=answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, fault: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE if kind is None else 5.0)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def require_spark() -> None:
    """Raise `SparkError` if PySpark is not installed."""
    if find_spec("pyspark") is None:
        raise SparkError("PySpark is not installed: `pip install 'tocsin[spark]'`")
