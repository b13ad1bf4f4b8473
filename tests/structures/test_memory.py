from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tocsin.structures import memory


def test_available_memory_is_the_free_memory_of_the_machine_or_the_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 9 kB\nMemAvailable:    2000000 kB\n")
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "meminfo")
    monkeypatch.setattr(memory, "_GROUP", tmp_path)
    assert memory.available_mb() == 2048
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("1000000\n")
    assert memory.available_mb() == 2048
    (tmp_path / "memory.max").write_text("4000000\n")
    assert memory.available_mb() == 3
    monkeypatch.setattr(memory, "_MACHINE", tmp_path / "none")
    monkeypatch.setattr(memory, "_GROUP", tmp_path / "none")
    assert memory.available_mb() == np.inf


def test_freed_memory_goes_back_to_the_system_where_that_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    memory.give_back()
    calls: list[int] = []
    monkeypatch.setattr(memory, "_c_library", lambda: SimpleNamespace(malloc_trim=calls.append))
    memory.give_back()
    monkeypatch.setattr(memory, "_c_library", lambda: None)
    memory.give_back()
    assert calls == [0]
