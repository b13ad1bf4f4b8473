"""Explanations as records for JSON, and the truth of a condition over many events."""

from __future__ import annotations

from typing import Any

from tocsin.formats.notifications import event_record
from tocsin.language.explanation import EventExplanation, Reason
from tocsin.language.printer import term_text
from tocsin.model import Event
from tocsin.sequences.algebra import HIDDEN
from tocsin.sequences.explanation import ConditionText, NodeExplanation, SequenceExplanation
from tocsin.sequences.inspection import Instance, NodeState
from tocsin.views.explanation import ViewExplanation

_Record = dict[str, Any]


class TruthCounts:
    """How often each part of a condition was true, false and unknown."""

    def __init__(self, reason: Reason) -> None:
        self.text = reason.text
        self.connective = reason.connective
        self.counts: dict[bool | None, int] = {True: 0, False: 0, None: 0}
        self.parts = [TruthCounts(part) for part in reason.parts]

    def add(self, reason: Reason) -> None:
        """Count the truths of one more event."""
        self.counts[reason.truth] += 1
        for counted, part in zip(self.parts, reason.parts, strict=True):
            counted.add(part)

    def record(self) -> _Record:
        """Return the counts for JSON."""
        names = {True: "true", False: "false", None: "unknown"}
        counts = {names[truth]: count for truth, count in self.counts.items()}
        return {
            "text": self.text,
            **counts,
            **_parts(self.connective, [part.record() for part in self.parts]),
        }


def filter_record(why: EventExplanation, event: Event) -> _Record:
    """Return why an event matches a filter or does not."""
    return {
        "kind": "filter",
        "matches": why.matched,
        "condition": reason_record(why.reason),
        "failed": [reason_record(reason) for reason in why.failed],
        "outside": list(why.outside),
        "event": event_record(event),
    }


def reason_record(reason: Reason) -> _Record:
    """Return a part of a condition with its truth, null if that is unknown, and its parts."""
    parts = _parts(reason.connective, [reason_record(part) for part in reason.parts])
    return {"text": reason.text, "truth": reason.truth, **(parts or {"value": reason.value})}


def view_record(why: ViewExplanation, published: int) -> _Record:
    """Return the change that the last event makes to a view's answer."""
    return {
        "kind": "view",
        "changes": why.matched,
        "answer": why.answer,
        "new_answer": why.new_answer,
        "events": published,
        "maintenance": why.maintenance,
        "condition": None if why.outside else reason_record(why.reason),
        "before": None if why.before is None else reason_record(why.before),
        "outside": list(why.outside),
    }


def sequence_record(why: SequenceExplanation, completed: int | None, published: int) -> _Record:
    """Return a sequence's automaton with its instances; `completed` is None if no events were given."""
    counts = {} if completed is None else {"events": published, "completed": completed}
    return {"kind": "sequence", **counts, "automaton": _automaton(why)}


def _automaton(why: SequenceExplanation) -> _Record:
    return {
        "stream": why.stream,
        "alias": why.alias,
        "if": _condition(why.begin),
        "nodes": [_node(node) for node in why.nodes],
        "inner": {name: _automaton(inner) for name, inner in why.inner},
    }


def _node(node: NodeExplanation) -> _Record:
    return {
        "stream": node.stream,
        "alias": node.alias,
        "with": _condition(node.on),
        "while": None if node.again is None else _condition(node.again),
        "if": _condition(node.onward),
        "ticks": node.longest,
        **({} if node.state is None else _state(node.state)),
    }


def _condition(condition: ConditionText) -> _Record:
    return {"text": condition.whole, "by_index": condition.static, "by_instance": condition.dynamic}


def _state(state: NodeState) -> _Record:
    last = None
    if state.last is not None:
        reason, event = state.last
        last = {"reason": reason, "event": None if event is None else event.id}
    return {
        "instances": state.instances,
        "samples": [_instance(one) for one in state.samples],
        "ended": {reason: count for reason, count in state.ended if count},
        "last_ended": last,
    }


def _instance(instance: Instance) -> _Record:
    return {
        "start": instance.start,
        "end": instance.end,
        "events": [event.id for event in instance.events],
        "values": {
            term_text(name, sequence=True): value
            for name, value in instance.values
            if not name.path.startswith(HIDDEN)
        },
    }


def _parts(connective: str | None, parts: list[_Record]) -> _Record:
    return {} if connective is None else {"connective": connective, "parts": parts}
