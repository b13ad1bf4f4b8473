"""A simulation run: a strategy publishes changes, and a ledger charges every message it sends."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from tocsin.dissemination._kernels.ledger import EventCosts
from tocsin.dissemination.network.overlay import LinkLoads, link_loads
from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.strategies.strategy import Outcome, StoredState, Strategy
from tocsin.dissemination.traffic import MessageRole, TrafficLedger


class SimulationResult(Struct, frozen=True):
    """The costs of a run, and how many answers it changed."""

    strategy: str
    events: int
    costs: EventCosts
    size_by_role: Mapping[MessageRole, int]  # bytes
    links: LinkLoads
    outgoing: int  # messages that the server made
    changed_answers: int
    server_seconds: float
    stored_state: StoredState
    seconds: float  # that the simulation took


class CostSummary(Struct, frozen=True):
    """The costs of a strategy: means over all events unless noted otherwise; sizes and states are bytes."""

    strategy: str
    events: int
    overlay_hops: float
    ip_hops: float
    size: float
    stress: float  # the most messages that one node sends for an event
    highest_stress: int
    steps: float  # how many waves of messages follow one another
    highest_steps: int
    server_messages: float  # that the server makes
    server_us: float  # from an update's arrival until all its messages are made
    busiest_link: int  # over the whole run, in both directions
    server_state: int
    network_state: int
    subscriber_state: int
    state: str  # in words
    changed_answers: int  # in the whole run
    size_by_role: Mapping[str, int]  # over the whole run
    seconds: float  # that the simulation took

    @classmethod
    def of(cls, result: SimulationResult) -> CostSummary:
        """Return the summary of a run; a run without events costs 0."""
        events = max(result.events, 1)
        costs, state = result.costs, result.stored_state
        return cls(
            strategy=result.strategy,
            events=result.events,
            **{name: int(column.sum()) / events for name, column in costs._asdict().items()},
            highest_stress=int(costs.stress.max(initial=0)),
            highest_steps=int(costs.steps.max(initial=0)),
            server_messages=result.outgoing / events,
            server_us=1e6 * result.server_seconds / events if result.events else 0.0,
            busiest_link=int(result.links.size.max(initial=0)),
            server_state=state.server,
            network_state=state.network,
            subscriber_state=state.subscribers,
            state=state.words,
            changed_answers=result.changed_answers,
            size_by_role={role.name.lower(): size for role, size in result.size_by_role.items()},
            seconds=result.seconds,
        )


def simulate(
    strategy: Strategy, batches: Iterable[Changes], watch: Callable[[Outcome, int], None] = lambda *_: None
) -> SimulationResult:
    """Let a strategy publish batches of changes, and return the costs; `watch` gets each outcome and its batch's length."""
    begun = time.perf_counter()
    ledger = TrafficLedger(strategy.setting.overlay)
    events = outgoing = changed_answers = 0
    server_seconds = 0.0
    for changes in batches:
        outcome = strategy.publish(changes)
        ledger.add(outcome.traffic, len(changes))
        events += len(changes)
        outgoing += outcome.outgoing
        changed_answers += len(outcome.answer_changes)
        server_seconds += outcome.server_seconds
        watch(outcome, len(changes))
    return SimulationResult(
        strategy.name,
        events,
        ledger.costs,
        ledger.size_by_role,
        link_loads(strategy.setting.overlay, ledger.pairs.messages, ledger.pairs.size),
        outgoing,
        changed_answers,
        server_seconds,
        strategy.stored_state,
        time.perf_counter() - begun,
    )
