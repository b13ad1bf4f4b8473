"""Ctrl-C while Spark starts leaves no Java behind."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tocsin.spark.java_start import quiet_interrupts, raise_interrupts

# Interrupts itself while PySpark waits for Java, which has not told its port yet.
START = """
import os, signal, sys
from pathlib import Path
from types import SimpleNamespace
from pyspark import java_gateway
begin, time = java_gateway.Popen, java_gateway.time
def begun(*arguments, **keywords):
    process = begin(*arguments, **keywords)
    Path(sys.argv[1]).write_text(str(process.pid))
    return process
java_gateway.Popen = begun
java_gateway.time = SimpleNamespace(sleep=lambda _: os.kill(os.getpid(), signal.SIGINT))
signal.signal(signal.SIGINT, signal.default_int_handler)
from tocsin.spark import local_session
try:
    local_session(1)
except KeyboardInterrupt:
    print("interrupted")
java_gateway.Popen, java_gateway.time = begin, time
if sys.argv[2:]:
    print(local_session(1).range(3).count())
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", START, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.skipif(os.name != "posix", reason="Windows sends no such signal")
def test_an_interrupt_while_java_starts_ends_it(tmp_path: Path) -> None:
    done = run(tmp_path / "pid")
    process = int((tmp_path / "pid").read_text())
    left = is_there(process)
    if left:
        os.kill(process, signal.SIGKILL)
    assert not left
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted\n", "")


@pytest.mark.skipif(os.name != "posix", reason="Windows sends no such signal")
def test_a_session_can_be_started_after_an_interrupt(tmp_path: Path) -> None:
    done = run(tmp_path / "pid", "again")
    assert (done.returncode, done.stdout) == (0, "interrupted\n3\n"), done.stderr


def test_ctrl_c_is_raised_again_after_pyspark_has_taken_it() -> None:
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        raise_interrupts()
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


def test_only_traces_of_interrupts_are_left_out(caplog: pytest.LogCaptureFixture) -> None:
    root = logging.getLogger()
    with quiet_interrupts():
        root.error("KeyboardInterrupt while sending command.")
        root.error("something else")
    root.error("KeyboardInterrupt while sending command.")
    assert caplog.messages == ["something else", "KeyboardInterrupt while sending command."]
