"""Conditions at the terminal, part by part, each with its truth."""

from __future__ import annotations

from rich.markup import escape
from rich.tree import Tree

from tocsin.cli.terminal import shown
from tocsin.language.explanation import Reason
from tocsin.language.printer import value_text

_MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def reason_tree(reason: Reason) -> Tree:
    """Return a condition with the truth of each part and what it looked at."""
    mark = _MARKS[reason.truth]
    if reason.connective is None:
        return Tree(f"{mark} {escape(reason.text)}  [dim]{escape(looked_at(reason))}[/]")
    tree = Tree(f"{mark} {reason.connective}")
    for part in reason.parts:
        tree.add(reason_tree(part))
    return tree


def looked_at(reason: Reason) -> str:
    """Return what a predicate looked at, in words."""
    if reason.value is None:
        return (
            "absent" if reason.truth is None or "missing" in reason.text or "present" in reason.text else ""
        )
    unknown = ", not comparable" if reason.truth is None else ""
    return f"it is {shown(value_text(reason.value), 60)}{unknown}"
