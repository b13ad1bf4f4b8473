"""Explanations as trees for the terminal: conditions with their truth, automata with their instances."""

from __future__ import annotations

from collections.abc import Iterator

from rich.markup import escape
from rich.tree import Tree

from tocsin.cli.terminal import counted, shortened
from tocsin.language.explanation import Reason
from tocsin.language.printer import term_text, value_text
from tocsin.sequences.algebra import HIDDEN
from tocsin.sequences.explanation import ConditionText, NodeExplanation, SequenceExplanation
from tocsin.sequences.inspection import Instance, NodeState

_WIDTH = 60  # of a value
_MARKS = {True: "[green]✓[/]", False: "[red]✗[/]", None: "[yellow]?[/]"}


def reason_tree(reason: Reason) -> Tree:
    """Return a condition as a tree: each part with its truth, each predicate with the value it was tested on."""
    mark = _MARKS[reason.truth]
    if reason.connective is None:
        return Tree(f"{mark} {escape(reason.text)}  [dim]{escape(tested_value(reason))}[/]")
    tree = Tree(f"{mark} {reason.connective}")
    for part in reason.parts:
        tree.add(reason_tree(part))
    return tree


def tested_value(reason: Reason) -> str:
    """Return the value that a predicate was tested on, in words."""
    if reason.value is None:
        is_absent = reason.truth is None or "missing" in reason.text or "present" in reason.text
        return "absent" if is_absent else ""
    caveat = ", not comparable" if reason.truth is None else ""
    return f"it is {shortened(value_text(reason.value), _WIDTH)}{caveat}"


def automaton_tree(why: SequenceExplanation) -> Tree:
    """Return a sequence's automaton as a tree: its start, its nodes with their instances, and nested sequences."""
    tree = Tree(f"begins with [bold]{escape(why.stream)} {escape(why.alias)}[/]{_condition(why.begin, 'if')}")
    for node in why.nodes:
        _add_node(tree, node)
    for name, inner in why.inner:
        tree.add(f"[dim]in parentheses: {escape(name)}[/]").add(automaton_tree(inner))
    return tree


def _add_node(tree: Tree, node: NodeExplanation) -> None:
    instances = "" if node.state is None else f": [cyan]{counted(node.state.instances, 'instance')}[/]"
    branch = tree.add(f"waits for [bold]{escape(node.stream)} {escape(node.alias)}[/]{instances}")
    branch.add(f"takes the next event{_condition(node.on, 'with')}")
    if node.longest is not None:
        branch.add(f"for {node.longest:,} ticks at most")
    if node.again is not None:
        branch.add(f"goes round again{_condition(node.again, 'while')}")
    branch.add(f"goes on{_condition(node.onward, 'if')}")
    if node.state is not None:
        for instance in node.state.samples:
            branch.add(f"[cyan]•[/] {escape(_instance(instance))}")
        for line in _ended(node.state):
            branch.add(f"[yellow]{escape(line)}[/]")


def _condition(condition: ConditionText, word: str) -> str:
    """Return a condition with the parts that an index evaluates and the parts evaluated per instance."""
    if condition.whole == "true":
        return ""
    if condition.static is not None and condition.dynamic is not None:
        found = f"by index: {condition.static}; by instance: {condition.dynamic}"
    else:
        found = "by instance" if condition.static is None else "by index"
    return f" {word} {escape(condition.whole)}  [dim]{escape(found)}[/]"


def _instance(instance: Instance) -> str:
    held = ", ".join(
        f"{term_text(name, sequence=True)} = {'absent' if value is None else shortened(value_text(value), _WIDTH)}"
        for name, value in instance.values
        if not name.path.startswith(HIDDEN)
    )
    events = ", ".join(shortened(event.id, _WIDTH) for event in instance.events)
    return f"since {instance.start}, last at {instance.end}" + "".join(
        f"; {one}" for one in (events, held) if one
    )


def _ended(state: NodeState) -> Iterator[str]:
    for reason, count in state.ended:
        if count:
            last = state.last
            at = (
                f"; the last one at {last[1].id}"
                if last and last[1] is not None and last[0] is reason
                else ""
            )
            yield f"{count:,} ended: {reason}{at}"
