"""`python -m benchmarks.spark.serving CORES FOLDER [PROCESSOR]`: a session that runs requested tasks, line by line."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from benchmarks.spark.process import Ready, Request
from benchmarks.spark.tasks import TASKS
from tocsin.spark import local_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def serve(session: SparkSession, requests: BinaryIO, answers: BinaryIO) -> None:
    """Run the task of each line and write its answer, until there are no more lines."""
    for line in requests:
        request = msgspec.json.decode(line, type=Request)
        _answer(answers, TASKS[request.task](session, **request.arguments))


def _main(cores: int, folder: str, requests: BinaryIO, answers: BinaryIO) -> None:
    begun = time.perf_counter()
    session = local_session(
        cores,
        name="tocsin-bench",
        **{
            "spark.local.dir": f"{folder}/local-{os.getpid()}",
            "spark.sql.warehouse.dir": f"{folder}/warehouse-{os.getpid()}",
            "spark.driver.memory": "3g",
        },
    )
    try:
        _answer(answers, Ready(session.version, time.perf_counter() - begun))
        serve(session, requests, answers)
    finally:
        session.stop()


def _answer(answers: BinaryIO, answer: msgspec.Struct) -> None:
    answers.write(msgspec.json.encode(answer) + b"\n")
    answers.flush()


if __name__ == "__main__":
    # Java writes where it likes: standard output is kept for the answers, and the rest goes to standard error.
    with os.fdopen(os.dup(1), "wb") as own:
        os.dup2(2, 1)
        if len(sys.argv) > 3:
            os.sched_setaffinity(0, {int(sys.argv[3])})  # Java and the workers inherit it
        _main(int(sys.argv[1]), sys.argv[2], sys.stdin.buffer, own)
