"""The events that sequences make: what is published under a name, or found by a sequence in parentheses."""

from __future__ import annotations

from tocsin.model.event import Event
from tocsin.model.values import Value
from tocsin.sequences.witnesses import Told


def made_event(stream: str, told: Told, *, selected: bool, start: int, end: int) -> Event:
    """Return the event that a witness is on `stream`.

    Its attributes are the selected values, or else the attributes of each step's last event, as `alias.name`, and the
    computed values. Its id names the first and the last event of each step.
    """
    attributes: dict[str, Value] = {}
    if not selected:
        for step in told.steps:
            for path, value in step.last.attributes.items():
                attributes[f"{step.alias}.{path}"] = value
    for name, computed in told.values.items():
        if computed is None:
            # A computed value stands for what it replaced, even where it is absent.
            attributes.pop(name, None)
        else:
            attributes[name] = computed
    ids: list[str] = []
    for step in told.steps:
        ids.append(step.first.id)
        if step.last is not step.first:
            ids.append(step.last.id)
    return Event(f"{stream}({','.join(ids)})", attributes, stream, start, end)
