"""The line that is shown while kernels are compiled."""

from __future__ import annotations

import io
import sys

import pytest

from tocsin.structures import compile_log


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_line_has_a_bar_and_a_total(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    # A command that ran before in this process may still print the log on the terminal, too.
    monkeypatch.setattr(compile_log._log, "handlers", [])
    monkeypatch.setattr(compile_log, "_BETWEEN", -1.0)
    monkeypatch.setattr(compile_log, "_remaining", [lambda: 8])
    progress = compile_log._Progress()
    progress.names = {"a", "b"}
    monkeypatch.setattr(compile_log, "_progress", progress)
    monkeypatch.setattr(compile_log, "_records", [])
    with compile_log.compiling("m.outer", "int64", is_kernel=True):
        with compile_log.compiling("m.inner", "int64", is_kernel=False):
            pass
        with compile_log.compiling("m.last", "int64", is_kernel=False):
            pass
    shown = [line.strip() for line in terminal.getvalue().split("\r") if line.strip()]
    assert [line.rpartition("machine: ")[2] for line in shown] == [
        "[####----------------] 2 of 10, outer",
        "[####----------------] 2 of 10, inner",
        "[######--------------] 3 of 10, last",
    ]
