"""Explanations of sequences as trees: the automaton, its instances, and what an event would do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tocsin.display.text import counted, shortened
from tocsin.display.trees import Branch, Style, StyledText
from tocsin.language.explanation_tree import WIDTH, reason_tree
from tocsin.language.printer import term_text, value_text
from tocsin.sequences.algebra import HIDDEN
from tocsin.sequences.inspection import Instance, NodeState
from tocsin.sequences.shown_times import ShownTimes

if TYPE_CHECKING:
    from tocsin.sequences.explanation import ConditionText, Effect, NodeExplanation, SequenceExplanation


def automaton_tree(why: SequenceExplanation) -> Branch:
    """Return a sequence's automaton as a tree: its start, its nodes with their instances, and nested sequences."""
    begin = StyledText(f"{why.stream} {why.alias}", Style.STRONG)
    tree = Branch("begins with ", begin, *_condition(why.begin, "if"))
    tree.branches += [_node(node, why.times) for node in why.nodes]
    for name, inner in why.inner:
        tree.add(StyledText(f"in parentheses: {name}", Style.QUIET)).branches.append(automaton_tree(inner))
    return tree


def _node(node: NodeExplanation, times: ShownTimes) -> Branch:
    """Return a state of the automaton: what it waits for, and a sample of its instances."""
    line: list[str | StyledText] = ["waits for ", StyledText(f"{node.stream} {node.alias}", Style.STRONG)]
    if node.state is not None:
        line += [": ", StyledText(counted(node.state.instances, "instance"), Style.COUNT)]
    branch = Branch(*line)
    branch.add("takes the next event", *_condition(node.on, "with"))
    if node.longest is not None:
        branch.add(f"for {times.length(node.longest)} at most")
    if node.again is not None:
        branch.add("goes round again", *_condition(node.again, "while"))
    branch.add("goes on", *_condition(node.onward, "if"))
    if node.state is not None:
        effects = {id(effect.instance): effect for effect in node.effects}
        for instance in node.state.samples:
            one = branch.add(StyledText("•", Style.COUNT), f" {_instance(instance, times)}")
            if id(instance) in effects:
                one.branches += _effect(effects[id(instance)])
        for ended in _ended(node.state):
            branch.add(StyledText(ended, Style.UNKNOWN))
    return branch


def _condition(condition: ConditionText, word: str) -> tuple[str | StyledText, ...]:
    """Return a condition with the parts that an index evaluates and the parts evaluated per instance."""
    if condition.whole == "true":
        return ()
    if condition.static is not None and condition.dynamic is not None:
        found = f"by index: {condition.static}; by instance: {condition.dynamic}"
    else:
        found = "by instance" if condition.static is None else "by index"
    return f" {word} {condition.whole}  ", StyledText(found, Style.QUIET)


def _instance(instance: Instance, times: ShownTimes) -> str:
    """Return a line about an instance: its times, events and values."""
    stored = ", ".join(
        f"{term_text(name, sequence=True)} = {'absent' if value is None else shortened(value_text(value), WIDTH)}"
        for name, value in instance.values
        if not name.path.startswith(HIDDEN)
    )
    events = ", ".join(shortened(event.id, WIDTH) for event in instance.events)
    more = "".join(f"; {one}" for one in (events, stored) if one)
    return f"since {times.time(instance.start)}, last at {times.time(instance.end)}{more}"


def _effect(effect: Effect) -> Iterator[Branch]:
    """Yield what an event would do to an instance, and the conditions that decide it."""
    yield Branch("the event: ", StyledText(effect.text, Style.GOOD if effect.moves else Style.PLAIN))
    for reason in (effect.on, effect.again, effect.onward):
        if reason is not None and reason.text != "true":
            yield reason_tree(reason)


def _ended(state: NodeState) -> Iterator[str]:
    for reason, count in state.ended:
        if count:
            event = state.last[1] if state.last and state.last[0] is reason else None
            at = "" if event is None else f"; the last one at {event.id}"
            yield f"{count:,} ended: {reason}{at}"
