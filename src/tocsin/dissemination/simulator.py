"""A run: changes go through a strategy, and everything that is sent is charged."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping

from msgspec import Struct

from tocsin.dissemination.accounts import Accounts, Costs
from tocsin.dissemination.network.links import LinkLoads, link_loads
from tocsin.dissemination.questions.question import Changes
from tocsin.dissemination.sent import Role
from tocsin.dissemination.strategies.strategy import Holdings, Outcome, Strategy


class Result(Struct, frozen=True):
    """What a run cost, and what came of it."""

    strategy: str
    events: int
    costs: Costs  # by event
    size_by_role: Mapping[Role, int]  # bytes
    links: LinkLoads
    outgoing: int  # messages that the server made
    told: int  # answers that changed
    server_seconds: float
    holdings: Holdings
    seconds: float  # that the simulation took


def simulate(
    strategy: Strategy, batches: Iterable[Changes], watch: Callable[[Outcome, int], None] = lambda *_: None
) -> Result:
    """Let a strategy publish batches of changes, and return what that cost; `watch` is told of each batch and its length."""
    begun = time.perf_counter()
    accounts = Accounts(strategy.setting.overlay)
    events = outgoing = told = 0
    server = 0.0
    for changes in batches:
        outcome = strategy.publish(changes)
        accounts.add(outcome.sent, len(changes))
        events += len(changes)
        outgoing += outcome.outgoing
        told += len(outcome.told)
        server += outcome.server_seconds
        watch(outcome, len(changes))
    return Result(
        strategy.name,
        events,
        accounts.costs,
        accounts.size_by_role,
        link_loads(strategy.setting.overlay, accounts.messages, accounts.size),
        outgoing,
        told,
        server,
        strategy.holdings,
        time.perf_counter() - begun,
    )
