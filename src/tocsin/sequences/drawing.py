"""Drawing an automaton: nodes in a row, the loop that skips events above, the loop of an iteration below."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from html import escape
from textwrap import wrap
from typing import Final

from msgspec import Struct

from tocsin.model.conditions import TRUE, Condition
from tocsin.model.terms import Parameter
from tocsin.sequences.automaton import Automaton, Node
from tocsin.sequences.inspection import NodeState, SequenceState
from tocsin.sequences.shown_times import IN_TICKS, ShownTimes

_LINE: Final = 15  # between two lines of text
_BOX: Final = 132  # how wide a node is
_GAP: Final = 216  # between two nodes
_CHARACTERS: Final = 27  # in a line between two nodes
_BOX_CHARACTERS: Final = 17
_LOOP_CHARACTERS: Final = 42
_MARGIN: Final = 28
_DOT: Final = 13  # the radius of the start and the end

_STYLE: Final = """
  text { font: 12px ui-monospace, 'DejaVu Sans Mono', Menlo, monospace; fill: #1f2933; }
  .paper { fill: #ffffff; }
  .name { font-weight: bold; }
  .quiet { fill: #6b7280; }
  .box { fill: #eef4fb; stroke: #2f6fab; stroke-width: 1.5; }
  .dot { fill: #2f6fab; stroke: #2f6fab; stroke-width: 1.5; }
  .ring { fill: none; stroke: #2f6fab; stroke-width: 1.5; }
  .way { fill: none; stroke: #52606d; stroke-width: 1.4; }
  .head { fill: #52606d; }
  .badge { fill: #b45309; }
  .count { fill: #ffffff; font-weight: bold; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e4e7eb; }
    .paper { fill: #14181d; }
    .quiet { fill: #9aa5b1; }
    .box { fill: #1c2b3a; stroke: #6cb2eb; }
    .dot { fill: #6cb2eb; stroke: #6cb2eb; }
    .ring { stroke: #6cb2eb; }
    .way { stroke: #cbd2d9; }
    .head { fill: #cbd2d9; }
    .badge { fill: #f0b429; }
    .count { fill: #14181d; }
  }
"""
_IMPOSSIBLE: Final = re.compile("[^\\t\\n\\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_HEAD: Final = (
    '<marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
    '<path class="head" d="M0 0 L8 4 L0 8 z"/></marker>'
)


class _Row(Struct, frozen=True):
    """One automaton with its texts wrapped, and the room they need."""

    title: list[str]
    edges: list[list[str]]
    boxes: list[list[str]]
    above: list[list[str]]
    below: list[list[str]]
    again: list[bool]
    states: list[NodeState | None]

    @property
    def rise(self) -> int:
        """Return how far the loops above rise, so that the texts between the nodes stay under theirs."""
        return _LINE * max(len(lines) for lines in self.edges) + 26

    @property
    def box(self) -> int:
        """Return how high the nodes are."""
        return _LINE * max((len(lines) for lines in self.boxes), default=1) + 18

    @property
    def middle(self) -> int:
        """Return how far below the row's top its nodes' middle is."""
        above = max((len(lines) for lines in self.above), default=0)
        return _LINE * (len(self.title) + above + 1) + self.rise + self.box // 2

    @property
    def height(self) -> int:
        """Return the row's height."""
        below = max((len(lines) for lines in self.below), default=0)
        loop = 44 if any(self.again) else 0
        return self.middle + self.box // 2 + loop + _LINE * (below + 1)

    @property
    def width(self) -> int:
        """Return the row's width."""
        boxes = len(self.boxes)
        title = 8 * max((len(line) for line in self.title), default=0)
        return max(4 * _DOT + boxes * _BOX + (boxes + 1) * _GAP, title)


def draw(
    automaton: Automaton,
    state: SequenceState | None = None,
    *,
    title: str = "",
    times: ShownTimes = IN_TICKS,
) -> str:
    """Return a drawing in SVG, with the instances at each node and why others ended, if `state` is given.

    Sequences in parentheses are drawn below the sequence that reads them.
    """
    rows = list(_rows(automaton, state, title, times))
    width = max(row.width for row in rows) + 2 * _MARGIN
    height = sum(row.height for row in rows) + _MARGIN * (len(rows) + 1)
    size = f'width="{width}" height="{height}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {size} role="img">',
        f"<title>{_escape(title or 'a sequence')}</title>",
        f"<style>{_STYLE}</style>",
        f"<defs>{_HEAD}</defs>",
        f'<rect class="paper" {size}/>',
    ]
    top = _MARGIN
    for row in rows:
        parts += _draw_row(row, top)
        top += row.height + _MARGIN
    return "\n".join([*parts, "</svg>", ""])


def _rows(automaton: Automaton, state: SequenceState | None, title: str, times: ShownTimes) -> Iterator[_Row]:
    """Yield the drawing's rows: the automaton's own, then one for each nested sequence."""
    count = len(automaton.nodes)
    states: list[NodeState | None] = [None] * count if state is None else list(state.nodes)
    first = [f"{automaton.stream} {automaton.alias}", *_text_of(automaton.edges[0].test.condition, times)]
    onward = [_text_of(edge.test.condition, times) for edge in automaton.edges[1:]]
    yield _Row(
        title=_wrap([title], 110),
        edges=[_wrap(lines, _CHARACTERS) for lines in (first, *onward)],
        boxes=[
            _wrap(["waits for", f"{node.stream} {node.alias}"], _BOX_CHARACTERS) for node in automaton.nodes
        ],
        above=[_wrap(_skipping(node, times), _LOOP_CHARACTERS) for node in automaton.nodes],
        below=[
            _wrap([*_again(node, times), *_ended_lines(one)], _LOOP_CHARACTERS)
            for node, one in zip(automaton.nodes, states, strict=True)
        ],
        again=[node.rebind is not None for node in automaton.nodes],
        states=states,
    )
    within = {} if state is None else dict(state.inner)
    for name, inner in automaton.inner:
        yield from _rows(inner, within.get(name), name, times)


def _text_of(condition: Condition, times: ShownTimes) -> list[str]:
    return [] if condition == TRUE else [times.condition_text(condition)]


def _skipping(node: Node, times: ShownTimes) -> list[str]:
    on = _text_of(node.guard.test.condition, times)
    lines = [f"passes over events unless {text}" for text in on]
    if node.longest is not None:
        named = node.longest
        longest = f":{named.name} ticks" if isinstance(named, Parameter) else times.length(named)
        lines.append(f"for {longest} at most")
    return lines


def _again(node: Node, times: ShownTimes) -> list[str]:
    if node.rebind is None:
        return []
    return [f"again while {text}" for text in _text_of(node.rebind.test.condition, times)] or ["again"]


def _ended_lines(state: NodeState | None) -> list[str]:
    return [] if state is None else [f"{count:,} ended: {reason}" for reason, count in state.ended if count]


def _wrap(texts: Iterable[str], width: int) -> list[str]:
    """Return texts wrapped at a width; longer words are broken."""
    return [line for text in texts for line in wrap(text, width, break_on_hyphens=False)]


def _draw_row(row: _Row, top: int) -> Iterator[str]:
    """Yield the SVG elements of one row."""
    middle = top + row.middle
    yield from _text(row.title, _MARGIN, top + _LINE, "name", anchor="start")
    x = _MARGIN + 2 * _DOT
    yield f'<circle class="dot" cx="{x - _DOT}" cy="{middle}" r="{_DOT - 4}"/>'
    for position, lines in enumerate(row.edges):
        end = x + _GAP
        yield f'<path class="way" d="M{x} {middle} H{end - 2}" marker-end="url(#head)"/>'
        yield from _text(lines, x + _GAP // 2 - 4, middle - 8 - _LINE * (len(lines) - 1))
        if position == len(row.boxes):
            yield f'<circle class="ring" cx="{end + _DOT}" cy="{middle}" r="{_DOT - 2}"/>'
            yield f'<circle class="dot" cx="{end + _DOT}" cy="{middle}" r="{_DOT - 7}"/>'
            break
        yield from _node(row, position, end, middle)
        x = end + _BOX


def _node(row: _Row, position: int, left: int, middle: int) -> Iterator[str]:
    """Yield the SVG elements of one node: its box, its loops, and its number of instances."""
    height = row.box
    upper, lower, centre = middle - height // 2, middle + height // 2, left + _BOX // 2
    if row.above[position]:
        yield _loop(centre, upper, -row.rise)
        lines = row.above[position]
        yield from _text(lines, centre, upper - row.rise - 6 - _LINE * (len(lines) - 1), "quiet")
    below = lower + _LINE
    if row.again[position]:
        yield _loop(centre, lower, 44)
        below = lower + 44 + _LINE
    yield f'<rect class="box" x="{left}" y="{upper}" width="{_BOX}" height="{height}" rx="9"/>'
    lines = row.boxes[position]
    yield from _text(lines[:1], centre, middle - _LINE * (len(lines) - 1) // 2 + 4, "quiet")
    yield from _text(lines[1:], centre, middle - _LINE * (len(lines) - 1) // 2 + 4 + _LINE, "name")
    yield from _text(row.below[position], centre, below)
    state = row.states[position]
    if state is not None:
        count = f"{state.instances:,}"
        wide = 8 * len(count) + 14
        yield f'<rect class="badge" x="{left + _BOX - wide + 8}" y="{upper - 10}" width="{wide}" height="20" rx="10"/>'
        yield from _text([count], left + _BOX - wide // 2 + 8, upper + 4, "count")


def _loop(centre: int, edge: int, reach: int) -> str:
    """Return the loop from a node back to it, which reaches so far below (or, if negative, above) it."""
    bend = edge + round(reach * 1.3)
    begin, end = centre - 26, centre + 26
    return (
        f'<path class="way" d="M{begin} {edge} C{begin - 34} {bend} {end + 34} {bend} {end} {edge}" '
        'marker-end="url(#head)"/>'
    )


def _text(lines: list[str], x: int, y: int, kind: str = "", anchor: str = "middle") -> Iterator[str]:
    named = f' class="{kind}"' if kind else ""
    for number, line in enumerate(lines):
        yield f'<text{named} x="{x}" y="{y + number * _LINE}" text-anchor="{anchor}">{_escape(line)}</text>'


def _escape(text: str) -> str:
    """Return a text escaped for XML; characters that XML does not allow are replaced."""
    return escape(_IMPOSSIBLE.sub("\N{REPLACEMENT CHARACTER}", text))
