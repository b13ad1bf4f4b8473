"""Which attribute of a file holds the time of its events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tocsin.formats import Format
from tocsin.formats.time_fields import find_time_fields


@pytest.mark.parametrize(
    ("rows", "best", "candidates"),
    [
        ([{"time": "2013-01-01T00:00Z", "updated_at": "2013-01-02"}], "time", ("time", "updated_at")),
        ([{"a": 1, "data": {"ts": 1357020000}}], "data.ts", ("data.ts",)),
        ([{"time": 5, "price": 7}, {"time": 6, "price": 7}], "time", ("time",)),
        ([{"opened": "2013-01-01", "closed": "2013-01-02"}], None, ("opened", "closed")),
        ([{"day": "2013-01-01", "n": 1}], "day", ("day",)),
        ([{"time": "soon", "n": 1}], None, ()),
        ([{"time": "2013-01-01"}, {"time": "later"}], None, ()),
        ([{"n": 1357020000, "id": 1357020001}], None, ()),
        ([{"created": "2013-01-01", "a": 1}, {"a": 2}], None, ("created",)),
        ([], None, ()),
    ],
)
def test_names_and_values_decide(
    tmp_path: Path, rows: list[dict[str, Any]], best: str | None, candidates: tuple[str, ...]
) -> None:
    path = tmp_path / "events.jsonl"
    path.write_text("".join(json.dumps(row) + "\nbroken\n" for row in rows))
    found = find_time_fields(path, Format.JSONL)
    assert (found.best, found.candidates) == (best, candidates)
