"""A Spark session in a process of its own: a process has one Java machine, and that has one number of cores."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec
from msgspec import Struct

import benchmarks
from tocsin.model.errors import SparkError
from tocsin.model.installation import install_hint

Answer = TypeVar("Answer", bound=Struct)
_MODULE: Final = "benchmarks.spark.serving"
_PATIENCE: Final = 30.0  # seconds that a session may take to end
_TOLD: Final = 20  # lines of its log


class Request(Struct, frozen=True):
    """A task for a process, with its arguments."""

    task: str
    arguments: dict[str, Any] = {}


class Ready(Struct, frozen=True):
    """The session has started."""

    version: str  # Spark's
    seconds: float


class Timed(Struct, frozen=True):
    """A piece of work that ran once."""

    seconds: float
    rows: int  # of the result: notifications, as a rule
    plan: str = ""  # of a join
    processor: dict[str, float] = {}  # seconds of all cores, by the parts that used them


class Changed(Struct, frozen=True):
    """How soon a stream applied the changes of its subscriptions."""

    batches: tuple[int, ...]  # micro-batches to each one's effect; the one that was running counts
    seconds: tuple[float, ...]  # from the call of `publish` to the end of the batch that had it
    publishing: tuple[float, ...]  # seconds of that in `publish`
    batch_seconds: tuple[float, ...]  # of all micro-batches but the first


class StreamedBatch(Struct, frozen=True):
    """A micro-batch of a stream with sequences: `parts` are seconds of all its tasks, by the part of the work."""

    events: int
    notifications: int
    seconds: float
    parts: dict[str, float]
    state_bytes: int  # of all shards


class Streamed(Struct, frozen=True):
    """A stream with sequences: its counted micro-batches, and what they took together."""

    batches: tuple[StreamedBatch, ...]
    first: float  # seconds of the first micro-batch, in which everything begins
    processor: dict[str, float]  # seconds of all cores, by the parts that used them
    written_bytes: int  # to the checkpoint's state, by the last micro-batch
    checkpoint_bytes: int  # of its state


class SparkProcess:
    """A Spark session on so many cores that runs one task after another.

    Requests and answers are lines of JSON, on the process's standard input and output.
    """

    def __init__(self, cores: int, folder: Path, *, bound_to: int | None = None) -> None:
        """Start a session; `bound_to` is the only processor that it and all its processes run on."""
        self.cores = cores
        bound = [] if bound_to is None else [str(bound_to)]
        module = [sys.executable, "-m", _MODULE, str(cores), str(folder), *bound]
        self._log = folder / f"spark-{'-'.join([str(cores), *bound])}.log"  # Java and the workers talk a lot
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(  # noqa: S603 - our own module
                module, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=_environment()
            )

    @property
    def label(self) -> str:
        """Return Spark's name of the master."""
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

    def match(self, events: str, index: str, *, cached: bool = True, threads: int = 1) -> Timed:
        """Match a folder of events with an index."""
        return self.ask("matched", Timed, events=events, index=index, cached=cached, threads=threads)

    def _read(self, answer: type[Answer]) -> Answer:
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        line = self._process.stdout.readline()
        if not line:
            code = self._process.wait()
            told = "\n".join(self._log.read_text(errors="replace").splitlines()[-_TOLD:])
            raise SparkError(f"the Spark process ended with code {code}; the last that it wrote:\n{told}")
        return msgspec.json.decode(line, type=answer)

    def close(self) -> None:
        """End the session, and the process if it does not end by itself."""
        assert self._process.stdin is not None  # noqa: S101 - it was asked for
        self._process.stdin.close()
        try:
            self._process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()


def _environment() -> dict[str, str]:
    """Return the environment of a process that imports this package, and so do its workers, wherever it starts."""
    paths = (str(Path(benchmarks.__file__).parents[1]), os.environ.get("PYTHONPATH", ""))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}


def require_spark() -> None:
    """Raise `SparkError` if PySpark is not installed."""
    if find_spec("pyspark") is None:
        raise SparkError(f"PySpark is not installed; install it with {install_hint('spark')}")
