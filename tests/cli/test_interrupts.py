"""Ctrl-C at any moment of the start: the process ends with 130 and says nothing."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

# The signal is sent by the import itself, so that it comes at the same moment whatever the machine does.
START = """
import os, runpy, signal, sys
class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == {module!r}:
            sys.meta_path.remove(self)
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Interrupt())
sys.argv = ["tocsin", "test", "a = 1", "-"]
{start}
"""
AS_MODULE = 'runpy.run_module("tocsin", run_name="__main__", alter_sys=True)'
AS_COMMAND = "from tocsin.cli import main; main()"


@pytest.mark.skipif(os.name != "posix", reason="Windows sends no such signal")
@pytest.mark.parametrize("start", [AS_MODULE, AS_COMMAND])
@pytest.mark.parametrize(
    "module", ["tocsin.cli.app", "zlib", "pyarrow.lib", "numpy", "typer", "rich.console", "tocsin.engine", "tocsin.cli.spark"]
)  # fmt: skip
def test_an_interrupt_while_modules_are_imported_ends_quietly(module: str, start: str) -> None:
    done = run(START.format(module=module, start=start))
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.skipif(os.name != "posix", reason="Windows sends no such signal")
def test_an_ignored_interrupt_stays_ignored() -> None:
    code = START.format(module="pyarrow.lib", start=AS_COMMAND)
    done = run(
        code.replace("import os", "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN)\nimport os", 1)
    )
    assert (done.returncode, done.stdout) == (1, "it would have fired 0 times in 0 events\n")


def test_the_handler_of_interrupts_is_put_back() -> None:
    code = "import signal\nfrom tocsin import cli\nwith cli._ended_by_interrupts(): pass\n"
    done = run(f"{code}assert signal.getsignal(signal.SIGINT) is signal.default_int_handler")
    assert (done.returncode, done.stderr) == (0, "")


def test_little_is_imported_before_interrupts_are_handled() -> None:
    done = run(
        "import sys\nbefore = {*sys.modules}\nimport tocsin.cli\nprint(sorted({*sys.modules} - before))"
    )
    loaded = [name for name in eval(done.stdout) if name.startswith("tocsin")]  # noqa: S307 - printed by us
    assert loaded == ["tocsin", "tocsin.cli"]


def run(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], input="", capture_output=True, text=True, encoding="utf-8", check=False,
        preexec_fn=_default_interrupts if os.name == "posix" else None,
    )  # fmt: skip


def _default_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.default_int_handler)  # the tests themselves may run in the background
