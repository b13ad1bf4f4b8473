"""Ctrl-C while Java starts: it ends, too."""

from __future__ import annotations

import logging
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark import SparkContext, java_gateway

_LOGGERS: Final = ("", "py4j.clientserver")  # Py4J writes to both, with traces
_OF_INTERRUPTS: Final = ("KeyboardInterrupt while sending command", "Exception occurred while shutting down")
_java: Final[Any] = java_gateway


@contextmanager
def ended_by_interrupts() -> Iterator[None]:
    """End the Java that is started within, if this is interrupted before there is a session.

    Java is not told of Ctrl-C, and one that has not told its port yet would wait for ever for a Python that is gone. PySpark
    does not say which process it has started, so that its way to start one is watched.
    """
    started: list[subprocess.Popen[bytes]] = []
    begin = _java.Popen

    def begun(*arguments: Any, **keywords: Any) -> subprocess.Popen[bytes]:
        process: subprocess.Popen[bytes] = begin(*arguments, **keywords)
        started.append(process)
        return process

    _java.Popen = begun
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_of_no_interrupt)
    try:
        yield
    except KeyboardInterrupt:
        for process in started:
            process.kill()
            process.wait()
        if started:  # a later session starts another
            SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None  # noqa: SLF001
        raise
    finally:
        _java.Popen = begin
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(_is_of_no_interrupt)


def _is_of_no_interrupt(record: logging.LogRecord) -> bool:
    """Tell whether a message is none of those that Py4J writes because of an interrupt."""
    return not record.getMessage().startswith(_OF_INTERRUPTS)
