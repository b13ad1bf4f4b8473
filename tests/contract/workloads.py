"""Random workloads: adds, removals and batches of events, interleaved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from hypothesis import strategies as st
from msgspec import Struct

from tests.strategies import conditions, crowded, events, tested
from tocsin.language import Cnf, Dnf, to_cnf, to_dnf, to_normal
from tocsin.matching import ConjunctionBatch
from tocsin.model import Condition, Event

__all__ = ["Add", "Match", "Operation", "Remove", "workloads"]


_FORMS: Final[dict[str, Callable[[Condition], Dnf | Cnf]]] = {
    "disjunctive": to_dnf,
    "conjunctive": to_cnf,
    "smaller": to_normal,
}


class Add(Struct, frozen=True):
    """Subscriptions to add, all at once, and the normal form in which they come."""

    subscriptions: tuple[tuple[int, Condition], ...]
    form: str

    def batch(self) -> ConjunctionBatch:
        """Return them as matchers take them."""
        return ConjunctionBatch.of(
            (id_, _FORMS[self.form](condition)) for id_, condition in self.subscriptions
        )


class Remove(Struct, frozen=True):
    """Ids to remove; some may not be stored."""

    ids: tuple[int, ...]


class Match(Struct, frozen=True):
    """Events to match, as one batch."""

    events: tuple[Event, ...]


Operation: TypeAlias = Add | Remove | Match

_ids = st.one_of(st.integers(0, 12), st.sampled_from([2**31, 2**40]))
_subscriptions = st.tuples(_ids, st.one_of(conditions(), crowded, tested))
_additions = st.builds(
    Add, st.lists(_subscriptions, min_size=1, max_size=5).map(tuple), st.sampled_from(sorted(_FORMS))
)
_removals = st.lists(_ids, max_size=4).map(tuple).map(Remove)
_batches = st.lists(events, max_size=4).map(tuple).map(Match)


@st.composite
def workloads(draw: st.DrawFn) -> list[Operation]:
    """Return operations that begin with an addition and end with a batch."""
    middle = draw(st.lists(st.one_of(_additions, _removals, _batches), max_size=5))
    return [draw(_additions), *middle, draw(_batches)]
