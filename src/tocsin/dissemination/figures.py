"""The figures of a run that people compare."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from tocsin.dissemination.simulator import Result


class Figures(Struct, frozen=True):
    """What a strategy costs: means over all events, if nothing else is said; sizes and states are bytes."""

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
    server_us: float  # from an update's arrival to all its messages being made
    busiest_link: int  # over the whole run, in both directions
    server_state: int
    network_state: int
    subscriber_state: int
    state: str  # in words
    told: int  # answers that changed in the whole run
    size_by_role: Mapping[str, int]  # over the whole run
    seconds: float  # that the simulation took

    @classmethod
    def of(cls, result: Result) -> Figures:
        """Return the figures of a run; those of a run without events are 0."""
        events = max(result.events, 1)
        costs, holdings = result.costs, result.holdings
        return cls(
            strategy=result.strategy,
            events=result.events,
            overlay_hops=int(costs.overlay_hops.sum()) / events,
            ip_hops=int(costs.ip_hops.sum()) / events,
            size=int(costs.size.sum()) / events,
            stress=int(costs.stress.sum()) / events,
            highest_stress=int(costs.stress.max(initial=0)),
            steps=int(costs.steps.sum()) / events,
            highest_steps=int(costs.steps.max(initial=0)),
            server_messages=result.outgoing / events,
            server_us=1e6 * result.server_seconds / events if result.events else 0.0,
            busiest_link=int(result.links.size.max(initial=0)),
            server_state=holdings.server,
            network_state=holdings.network,
            subscriber_state=holdings.subscribers,
            state=holdings.words,
            told=result.told,
            size_by_role={role.name.lower(): size for role, size in result.size_by_role.items()},
            seconds=result.seconds,
        )
