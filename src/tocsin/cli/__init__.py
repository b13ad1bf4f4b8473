"""The command line: `tocsin …`."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

INTERRUPTED = 130
"""The exit code after Ctrl-C."""


def main() -> None:
    """Run the command line and end the process."""
    with _ended_by_interrupts():
        from tocsin.cli.app import main as run  # noqa: PLC0415 - after the handler is set
    run()


@contextmanager
def _ended_by_interrupts() -> Iterator[None]:
    """End the process quietly at Ctrl-C; while modules are imported there is nothing to tidy up, and no traceback helps."""
    # An ignored interrupt stays ignored, as for a command that a shell runs in the background.
    if signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return
    # An exception would not do: a library that tries an import catches everything.
    before = signal.signal(signal.SIGINT, lambda *_: os._exit(INTERRUPTED))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
