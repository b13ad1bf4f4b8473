from __future__ import annotations

import pytest

from benchmarks.runner import drawing
from tocsin.model.errors import TocsinError


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda _: None)
    with pytest.raises(TocsinError, match=r"pip install 'tocsin\[bench\]'"):
        drawing.require_matplotlib()
