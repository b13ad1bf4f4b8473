"""Completed sequences, and the notification or the published event that one of them becomes."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec import Struct

from tocsin.matching import IdArray
from tocsin.model.event import Event
from tocsin.model.subscription import Notification, WitnessStep
from tocsin.model.values import Value


class Step(Struct, frozen=True):
    """The events of one step: the first and the last, and all of them if the subscription wants a full witness."""

    alias: str
    first: Event
    last: Event
    chain: tuple[Event, ...] | None = None


class SequenceMatch(Struct, frozen=True):
    """One completed sequence: its steps, and its selected or computed values by name; None means absent."""

    steps: tuple[Step, ...]
    values: Mapping[str, Value | None]


class SequenceMatches(Struct, frozen=True):
    """Completed sequences as columns, in the order of the events that completed them.

    `match(i)` returns the steps and values of the i-th; call it before further events are processed. `published` are
    the events that sequences made, each with the row of the event that completed it.
    """

    subscriptions: IdArray  # int64[matches] the number of the subscription
    rows: IdArray  # int64[matches] the row of the event that completed it
    starts: IdArray  # int64[matches]
    ends: IdArray  # int64[matches]
    match: Callable[[int], SequenceMatch]
    published: tuple[tuple[int, Event], ...] = ()
    read_values: Callable[[], list[Mapping[str, Value | None]]] | None = None  # quicker than match by match

    def values(self) -> list[Mapping[str, Value | None]]:
        """Return the selected or computed values of each match, without reading its events."""
        if self.read_values is not None:
            return self.read_values()
        return [self.match(i).values for i in range(len(self))]

    def __len__(self) -> int:
        return len(self.subscriptions)


def sequence_notification(
    id_: str, match: SequenceMatch, start: int, end: int, generation: int
) -> Notification:
    """Return the notification of a completed sequence, with the first and last event of each step."""
    events: list[Event] = []
    ids: list[str] = []
    witness: list[WitnessStep] = []
    for step in match.steps:
        first, last = step.first, step.last
        events.append(first)
        ids.append(first.id)
        if last is not first:
            events.append(last)
            ids.append(last.id)
        chain = None if step.chain is None else tuple(event.id for event in step.chain)
        witness.append(WitnessStep(step.alias, first.id, last.id, chain))
    return Notification(
        subscription=id_,
        event_ids=tuple(ids),
        events=tuple(events),
        values=dict(match.values) if match.values else None,
        start=start,
        end=end,
        generation=generation,
        witness=tuple(witness),
    )


def published_event(stream: str, match: SequenceMatch, *, selected: bool, start: int, end: int) -> Event:
    """Return the event that a completed sequence publishes to `stream`.

    Its attributes are the selected values; without `select`, the attributes of each step's last event and the computed
    values. If there are several steps, attributes are named `alias.name`. Its id names the first and the last event of each step.
    """
    attributes: dict[str, Value] = {}
    if not selected:
        if len(match.steps) == 1:
            attributes.update(match.steps[0].last.attributes)
        else:
            for step in match.steps:
                for path, value in step.last.attributes.items():
                    attributes[f"{step.alias}.{path}"] = value
    for name, computed in match.values.items():
        if computed is None:
            # A computed value replaces an attribute of its name, even where it is absent.
            attributes.pop(name, None)
        else:
            attributes[name] = computed
    ids: list[str] = []
    for step in match.steps:
        ids += (step.first.id,) if step.last is step.first else (step.first.id, step.last.id)
    return Event(f"{stream}({','.join(ids)})", attributes, stream, start, end)
