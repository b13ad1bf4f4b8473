"""Trees of styled lines, written as text or as HTML; the command line prints them in its colours."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import NamedTuple

from tocsin.display.html import escaped


class Style(StrEnum):
    """The meaning of a part of a line."""

    PLAIN = ""
    GOOD = "good"
    BAD = "bad"
    UNKNOWN = "unknown"
    QUIET = "quiet"
    STRONG = "strong"
    COUNT = "count"


class StyledText(NamedTuple):
    """A part of a line."""

    text: str
    style: Style = Style.PLAIN


class Branch:
    """A line of a tree, and the branches below it.

    >>> tree = Branch("and", branches=[Branch("a"), Branch("or", branches=[Branch("b"), Branch("c")])])
    >>> print(text_of([tree, Branch(StyledText("no", Style.BAD))]))
    and
    ├── a
    └── or
        ├── b
        └── c
    no
    """

    def __init__(self, *line: str | StyledText, branches: Iterable[Branch] = ()) -> None:
        self.line = tuple(one if isinstance(one, StyledText) else StyledText(one) for one in line)
        self.branches = list(branches)

    def add(self, *line: str | StyledText) -> Branch:
        """Add a branch, and return it."""
        branch = Branch(*line)
        self.branches.append(branch)
        return branch

    def text(self) -> str:
        """Return the line without styles."""
        return "".join(span.text for span in self.line).rstrip()


def text_of(trees: Sequence[Branch]) -> str:
    """Return trees as text, one below the other."""
    return "\n".join(line for tree in trees for line in _lines(tree, "", ""))


def _lines(branch: Branch, first: str, further: str) -> Iterator[str]:
    yield first + branch.text().replace("\n", " ")
    for position, one in enumerate(branch.branches, 1):
        is_last = position == len(branch.branches)
        guides = ("└── ", "    ") if is_last else ("├── ", "│   ")
        yield from _lines(one, further + guides[0], further + guides[1])


def html_of(trees: Sequence[Branch]) -> str:
    """Return trees as lists in HTML."""
    return "".join(_html(tree) if tree.branches else f"<p>{_spans(tree)}</p>" for tree in trees)


def _html(branch: Branch) -> str:
    inner = "".join(f"<li>{_item(one)}</li>" for one in branch.branches)
    return f'<div class="tree">{_spans(branch)}<ul>{inner}</ul></div>'


def _item(branch: Branch) -> str:
    if not branch.branches:
        return _spans(branch)
    return _spans(branch) + "<ul>" + "".join(f"<li>{_item(one)}</li>" for one in branch.branches) + "</ul>"


def _spans(branch: Branch) -> str:
    return "".join(
        f'<span class="{span.style}">{escaped(span.text)}</span>' if span.style else escaped(span.text)
        for span in branch.line
    )
