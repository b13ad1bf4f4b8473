"""Ctrl-C while Java starts: it ends, too."""

from __future__ import annotations

import logging
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from pyspark import SparkContext, java_gateway

_LOGGERS: Final = ("", "py4j.clientserver")  # Py4J writes to both, with traces
_OF_INTERRUPTS: Final = (
    "KeyboardInterrupt while sending command",
    "Exception occurred while shutting down",
    "Exception while sending command",  # its exception is raised, too
)
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
    try:
        with quiet_interrupts():
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


@contextmanager
def quiet_interrupts() -> Iterator[None]:
    """Keep Py4J from writing traces where Ctrl-C comes while it waits for Java."""
    for name in _LOGGERS:
        logging.getLogger(name).addFilter(_is_of_no_interrupt)
    try:
        yield
    finally:
        for name in _LOGGERS:
            logging.getLogger(name).removeFilter(_is_of_no_interrupt)


def raise_interrupts() -> None:
    """Have Ctrl-C raise `KeyboardInterrupt` again, as PySpark does not leave it.

    Its own handler asks Java to cancel all jobs. That fails with traces where Java is being asked something else, and makes a
    stream fail that is about to be stopped.
    """
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _is_of_no_interrupt(record: logging.LogRecord) -> bool:
    """Tell whether a message is none of those that Py4J writes because of an interrupt."""
    return not record.getMessage().startswith(_OF_INTERRUPTS)
