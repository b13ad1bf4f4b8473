"""The pictures are right: README's events give the notifications beside them, and a drawing is what its command draws."""

from __future__ import annotations

import os
import re
from html import unescape
from pathlib import Path

import pytest

from tests.docs.test_commands import ROOT, commands, run
from tocsin import Engine
from tocsin.cli.sample_data import sample_files

IMAGES = ROOT / "docs/images"


def texts(name: str) -> list[str]:
    """Return the texts of a picture, from the first on."""
    found = re.findall(r"<text[^>]*>(.*?)</text>", (IMAGES / name).read_text(encoding="utf-8"))
    return [unescape(re.sub(r"<[^>]*>", "", text)) for text in found]


def test_the_events_of_the_readme_picture_give_its_notifications() -> None:
    shown = texts("tocsin.svg")
    events = [dict(re.findall(r"(\w+): ([\w.]+)", text)) for text in shown if text.startswith("{")]
    condition, sequence, view = re.findall(
        r"symbol = .*?(?= from stock a)|from stock a .*?(?= select)|select .*?(?= filter)",
        " ".join(text for text in shown if not text.startswith("{")),
    )
    engine = Engine()
    engine.table("stock", key="symbol")
    engine.publish({"symbol": "KO", "risk": 30, "per": 7.2}, stream="stock", time=0)
    for name, query in (("Ann", condition), ("Bob", sequence), ("Eve", view)):
        engine.subscribe(query, id=name)

    told = []
    for time, event in enumerate(events, start=1):
        numbers = {key: float(text) for key, text in event.items() if key != "symbol"}
        for note in engine.publish({**event, **numbers}, stream="stock", time=time):
            symbols = [one.attributes["symbol"] for one in note.events]
            words = {
                "Ann": f"{symbols[0]} is at {numbers.get('price')}",
                "Bob": ", then ".join(map(str, symbols)),
                "Eve": f"{note.old}, now {note.new}",
            }
            told.append(f"{note.subscription}: {words[note.subscription]}")

    assert told == [text for text in shown if re.match(r"(Ann|Bob|Eve): ", text)]
    assert len(told) == 3


@pytest.mark.skipif(os.name != "posix", reason="the commands are written for a POSIX shell")
def test_the_automaton_is_drawn_by_the_command_beside_it(tmp_path: Path) -> None:
    for name, text in sample_files().items():
        (tmp_path / name).write_text(text)
    (line,) = [line for line in commands("docs/sequences.md") if "--graph automaton.svg" in line]
    assert run(line, tmp_path).returncode == 0
    drawn = (tmp_path / "automaton.svg").read_text(encoding="utf-8")
    assert drawn == (IMAGES / "automaton.svg").read_text(encoding="utf-8")
