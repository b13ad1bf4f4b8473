"""Automata as drawings."""

from __future__ import annotations

import re
from xml.etree import ElementTree as ET

import pytest

from tocsin import parse
from tocsin.model import Sequence
from tocsin.sequences.automaton import Automaton
from tocsin.sequences.compiling.compiler import compile_sequence
from tocsin.sequences.drawing import draw
from tocsin.sequences.inspection import EndReason, NodeState, SequenceState

SVG = "{http://www.w3.org/2000/svg}"


def automaton(text: str) -> Automaton:
    query = parse(text)
    assert isinstance(query, Sequence)
    return compile_sequence(query).automaton


def texts(drawing: str) -> str:
    """All that is written in a drawing, which has to be XML."""
    root = ET.fromstring(drawing)  # noqa: S314 - our own text
    return " ".join(element.text or "" for element in root.iter(f"{SVG}text"))


def test_a_drawing_has_nodes_loops_and_conditions() -> None:
    fold = automaton("from s a where a.v > 1 fold s b on b.k = a.k while b.v > last.v next t c within 9")
    drawing = draw(fold, title="rises")
    written = texts(drawing)
    for part in (
        "rises",
        "s a",
        "a.v > 1",
        "unless b.k = a.k",
        "again while b.v > last.v",
        "t c",
        "9 ticks at most",
    ):
        assert part in written
    assert drawing.count('class="box"') == 2
    assert "prefers-color-scheme: dark" in drawing
    assert "badge" not in drawing.split("</style>")[1]


def test_counts_and_reasons_are_drawn() -> None:
    pair = automaton("from s a next s b")
    written = texts(
        draw(pair, SequenceState((NodeState(1234, ended=((EndReason.EXPIRED, 5), (EndReason.STUCK, 0))),)))
    )
    assert "1,234" in written
    assert "5 ended: its time was over" in written
    assert "no edge" not in written


@pytest.mark.parametrize("title", ["<b> & \"quotes\" 'single'", "", "x" * 500])
def test_whatever_is_written_is_escaped_and_whole(title: str) -> None:
    odd = automaton("""from "s<&>" a where a."x<y" = '</text>&"' next "s<&>" b""")
    drawing = draw(odd, title=title)
    written = texts(drawing)
    assert title.replace(" ", "") in re.sub(r"\s", "", written)
    assert "'</text>&\"'" in written
    assert len(ET.fromstring(drawing).findall(f"{SVG}title")) == 1  # noqa: S314


def test_nothing_is_drawn_beyond_the_edge() -> None:
    long = " and ".join(f"b.attribute_number_{i} > a.attribute_number_{i}" for i in range(30))
    drawing = draw(automaton(f"from s a next s b on {long} next s c where {long.replace('b.', 'c.')}"))
    root = ET.fromstring(drawing)  # noqa: S314
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    for text in root.iter(f"{SVG}text"):
        half = 7.3 * len(text.text or "") / 2
        assert half <= int(text.attrib["x"]) <= width - half or text.attrib["text-anchor"] == "start"
        assert 0 < int(text.attrib["y"]) < height


def test_sequences_in_parentheses_have_a_row_of_their_own() -> None:
    nested = automaton("from s a next (from t x next t y) z")
    drawing = draw(
        nested, SequenceState((NodeState(3),), (("$(from t x next t y)", SequenceState((NodeState(4),))),))
    )
    assert drawing.count('class="box"') == 2
    assert {"3", "4"} <= set(texts(drawing).split())


def test_one_step_alone_is_drawn() -> None:
    assert "s a" in texts(draw(automaton("from s a publish as t")))


def test_characters_that_xml_cannot_have_are_replaced() -> None:
    hostile = "a<&\"'\x00\x01\x0b\uffff\ufffeb שלום \U0001f600"
    drawing = draw(automaton("from s a where a.n = 'x\x01\ufffe<' next s b"), title=hostile)
    written = texts(drawing)
    assert "\N{REPLACEMENT CHARACTER}b שלום \U0001f600" in written
    assert "\x01" not in drawing
