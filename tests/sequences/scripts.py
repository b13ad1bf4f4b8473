"""The actions of a test script: subscriptions are added and removed, and events are processed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from tests.sequences.strategies import STREAMS, sequences, streams
from tests.sequences.templates import templates
from tocsin.language import to_text
from tocsin.model import Event, Value

Rows = Mapping[str, list[Value | list[Value]]]


@dataclass(frozen=True)
class Add:
    """A subscription, or with rows one for each of them, from `number` on."""

    number: int
    text: str
    rows: Rows
    full: bool

    @property
    def numbers(self) -> list[int]:
        size = len(next(iter(self.rows.values()))) if self.rows else 1
        return list(range(self.number, self.number + size))

    def __repr__(self) -> str:
        rows = f"  rows {dict(self.rows)}" if self.rows else ""
        full = ", in full" if self.full else ""
        text = self.text.replace("\n", "\n    ")
        return f"add {self.number}{full}:\n    {text}{rows}"


@dataclass(frozen=True)
class Remove:
    number: int

    def __repr__(self) -> str:
        return f"remove {self.number}"


@dataclass(frozen=True)
class Advance:
    events: tuple[Event, ...]

    def __repr__(self) -> str:
        return "advance:" + "".join(
            f"\n    {e.stream} {e.id} [{e.start}, {e.end}] {dict(e.attributes)}" for e in self.events
        )


@dataclass(frozen=True)
class Script:
    """Some of these, one after another; shown as a person would write them down."""

    actions: tuple[Add | Remove | Advance, ...]

    def __repr__(self) -> str:
        return "\n".join(["Script:", *map(repr, self.actions)])

    def _repr_pretty_(self, printer: Any, _cycle: bool) -> None:
        printer.text(repr(self))  # Hypothesis asks for this, where it shows what failed

    @property
    def adds(self) -> list[Add]:
        return [action for action in self.actions if isinstance(action, Add)]

    @property
    def events(self) -> list[Event]:
        return [event for action in self.actions if isinstance(action, Advance) for event in action.events]

    def ordered(self, arrange: Callable[[list[Event]], list[Event]]) -> Script:
        """The same with the events of each advance in another order."""
        return Script(
            tuple(
                Advance(tuple(arrange(list(action.events)))) if isinstance(action, Advance) else action
                for action in self.actions
            )
        )

    def one_by_one(self) -> Script:
        """The same with each event by itself."""
        actions: list[Add | Remove | Advance] = []
        for action in self.actions:
            if isinstance(action, Advance):
                actions += [Advance((event,)) for event in action.events]
            else:
                actions.append(action)
        return Script(tuple(actions))


@st.composite
def subscriptions(draw: st.DrawFn, *, max_size: int = 3) -> list[Add]:
    """Sequences and templates; those further down the list may read what those before them publish."""
    adds: list[Add] = []
    number = 0
    sources, names = STREAMS, ["p", "q"]
    for _ in range(draw(st.integers(1, max_size))):
        publish = draw(st.sampled_from([None, None, *names[:1]]))
        full = draw(st.booleans())
        if draw(st.sampled_from("---t")) == "t":
            text, rows = draw(templates(sources=sources, publish=publish))
        else:
            text, rows = to_text(draw(sequences(sources=sources, publish=publish))), {}
        adds.append(Add(number, text, rows, full))
        number = adds[-1].numbers[-1] + 1
        if publish is not None and draw(st.booleans()):  # else another publishes under that name, too
            sources, names = (*sources, publish, publish, publish), names[1:]
    return adds


@st.composite
def scripts(draw: st.DrawFn, *, max_size: int = 3) -> Script:
    """All subscriptions first, then all events at once."""
    return Script((*draw(subscriptions(max_size=max_size)), Advance(tuple(draw(streams())))))


@st.composite
def changing_scripts(draw: st.DrawFn) -> Script:
    """Subscriptions added and removed between events, which come some at a time, simultaneous ones apart too."""
    adds, events = draw(subscriptions()), draw(streams())
    cuts = sorted(draw(st.lists(st.integers(0, len(events)), min_size=1, max_size=4)))
    actions: list[Add | Remove | Advance] = []
    present: list[int] = []
    for first, last in zip([0, *cuts], [*cuts, len(events)], strict=True):
        coming = draw(st.integers(0 if present else 1, 2))  # one at least is there from the beginning
        for add in adds[:coming]:
            actions.append(add)
            present += add.numbers
        adds = adds[coming:]
        if present and draw(st.sampled_from("---r")) == "r":
            actions.append(Remove(draw(st.sampled_from(present))))
        actions.append(Advance(tuple(events[first:last])))
    return Script(tuple(actions))
