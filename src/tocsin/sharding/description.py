"""A plan in plain sentences, for `explain`."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tocsin.display.text import counted
from tocsin.sharding.plan import EVERY, HOME, ShardPlan


def describe_plan(plan: ShardPlan) -> str:
    """Return what is where, what travels, and why sequences have no key."""
    return "\n".join(_lines(plan))


def _lines(plan: ShardPlan) -> Iterator[str]:
    total = sum(len(placement.shards) for placement in plan.placements) + plan.linked_filters
    yield f"{counted(total, 'subscription')} on {counted(plan.shards, 'shard')}."
    for number, group in enumerate(plan.groups):
        yield f"{counted(group.size, 'sequence')} {_are(group.size)} keyed by {group.name}. " + _where(
            plan, number
        )
    unkeyed = sum(reason.count for reason in plan.reasons)
    if unkeyed:
        yield (
            f"{counted(unkeyed, 'sequence')} {_has(unkeyed)} no key, and {_is_on(unkeyed)} one shard each, by the hash of "
            f"the id: {_spread(_home_counts(plan) - plan.views)}. An event goes to the shards of those whose static "
            "conditions it satisfies."
        )
        for reason in sorted(plan.reasons, key=lambda one: -one.count):
            yield f"  {reason.count:,}: {reason.text} (`{reason.example}`)"
    if plan.published:
        names = ", ".join(f"`{name}`" for name in sorted(plan.published))
        yield f"What publishes or reads {names} is together on shard {plan.linked_shard}."
    views = int(plan.views.sum())
    if views:
        yield f"{counted(views, 'view')} {_is_on(views)} one shard each, by the hash of the id: {_spread(plan.views)}."
    for name, there in plan.tables.items():
        count = int(np.count_nonzero(there))
        yield f"The rows of table `{name}` go to {'every shard' if count == plan.shards else counted(count, 'shard')}."
    if plan.linked_filters:
        count = plan.linked_filters
        yield f"{counted(count, 'filter')} on published streams {_is_on(count)} shard {plan.linked_shard}, too."


def _where(plan: ShardPlan, number: int) -> str:
    group = plan.groups[number]
    counts, everywhere = np.zeros(plan.shards, dtype=np.int64), 0
    for placement in plan.placements:
        shards = placement.shards[placement.groups == number]
        everywhere += int(np.count_nonzero(shards == EVERY))
        counts += np.bincount(shards[shards >= 0], minlength=plan.shards)
    if everywhere == group.size:
        subject = "It is" if group.size == 1 else "They are"
        return f"{subject} on all shards; an event goes to the shard of its key's hash."
    fixed = group.size - everywhere
    subject = "The key of one is a constant" if fixed == 1 else f"The keys of {fixed:,} are constants"
    rest = f"; {everywhere:,} are on all shards" if everywhere else ""
    return (
        f"{subject}, and each is on the shard of its hash: {_spread(counts)}{rest}. An event goes to the shard of its key's hash"
        + ("." if everywhere else ", if it is one of these constants.")
    )


def _home_counts(plan: ShardPlan) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    counts = np.zeros(plan.shards, dtype=np.int64)
    for placement in plan.placements:
        shards = placement.shards[(placement.groups == HOME) & (placement.shards >= 0)]
        counts += np.bincount(shards, minlength=plan.shards)
    return counts


def _spread(counts: np.ndarray[tuple[int], np.dtype[np.int64]]) -> str:
    """Return how many are on each shard."""
    if len(counts) > 16:
        return f"{counts.min():,} to {counts.max():,} on a shard"
    return ", ".join(f"{count:,}" for count in counts.tolist())


def _are(count: int) -> str:
    return "is" if count == 1 else "are"


def _has(count: int) -> str:
    return "has" if count == 1 else "have"


def _is_on(count: int) -> str:
    return "is on" if count == 1 else "are on"
