"""Strategies side by side over one scenario, each with its answers checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.dissemination.query_kinds.base import Changes
from tocsin.dissemination.scenarios.definitions import definition_of, known
from tocsin.dissemination.scenarios.joins import PreparedJoin, prepare_any
from tocsin.dissemination.scenarios.recomputation import Altered, is_same, sampled
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario
from tocsin.dissemination.scenarios.walks import in_batches
from tocsin.dissemination.simulator import SimulationResult, simulate
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError

SAMPLE: Final = 200  # subscriptions whose answers are recomputed
CLOSELY: Final = 100  # events of which it is checked what each of them was told


class AnswerError(TocsinError):
    """A strategy left a subscription with a wrong answer, or told it at a wrong event."""


class Sorts(Struct, frozen=True):
    """How many messages a server that reformulates makes of the updates: none of the ignorable ones."""

    ignorable: int
    one_message: int
    several_messages: int


def sorts(prepared: Prepared | PreparedJoin) -> Sorts:
    """Return how many of a scenario's updates are of which sort."""
    changes: Changes = prepared.changes
    messages = prepared.question.new_server().reformulate(changes)
    counts = np.bincount(messages.change, minlength=len(prepared.changes))
    return Sorts(*(int(np.count_nonzero(kind)) for kind in (counts == 0, counts == 1, counts > 1)))


def warm_up(kind: str, names: Sequence[str]) -> None:
    """Let strategies run a little, so that what they need is compiled before anything is timed."""
    small = Scenario(kind=kind, nodes=4, physical=40, subscriptions=50, rows=20, events=40, spikes=0.2)
    prepared = prepare_any(small)
    for name in names:
        simulate(strategy_named(name)(prepared.setting, prepared.question), [prepared.changes])


def compare(
    prepared: Prepared | PreparedJoin,
    names: Sequence[str | type[Strategy]],
    batch: int,
    progress: Callable[[str, int], None] = lambda *_: None,
) -> Iterator[SimulationResult]:
    """Let strategies, by name or as classes, carry a scenario's changes, and return what each costs, one after another.

    `progress` is told of each batch: the strategy, and how many events. Raise `AnswerError` at the first strategy that
    gives a wrong answer, or that does not tell as many of each event as the one before.
    """
    checks = _Checks(prepared)
    for one in names:
        name, made_by = (one, strategy_named(one)) if isinstance(one, str) else (one.name, one)
        strategy = made_by(prepared.setting, prepared.question)
        told = _Told(checks.numbers)

        def watch(outcome: Outcome, events: int, name: str = name, told: _Told = told) -> None:
            told.take(outcome, events)
            progress(name, events)

        # The first events alone, since they are looked at one by one.
        changes: Changes = prepared.changes
        first, others = changes.part(0, CLOSELY), in_batches(changes, batch, CLOSELY)
        result = simulate(strategy, [first, *others], watch)
        checks.check(strategy, told)
        yield result


class _Told:
    """What a strategy told: of the first batch to a sample of subscriptions, and of all to how many by event."""

    def __init__(self, numbers: IdArray) -> None:
        self._numbers = numbers
        self._counts: list[IdArray] = []
        self.first: list[Altered] = []

    def take(self, outcome: Outcome, events: int) -> None:
        told = outcome.answer_changes
        if not self._counts:
            kept = np.flatnonzero(np.isin(told.numbers, self._numbers))
            kept = kept[np.lexsort((told.numbers[kept], told.rows[kept]))]
            columns = (column[kept].tolist() for column in (told.rows, told.numbers, told.old, told.new))
            self.first = [Altered(*one) for one in zip(*columns, strict=True)]
        self._counts.append(np.bincount(told.rows, minlength=events))

    @property
    def counts(self) -> IdArray:
        return np.concatenate(self._counts)


class _Checks:
    """What a sample of subscriptions should be told, and how many the strategy before told of each event."""

    def __init__(self, prepared: Prepared | PreparedJoin) -> None:
        changes: Changes = prepared.changes
        self.numbers = sampled(len(prepared.question), SAMPLE)
        now = definition_of(prepared)
        self._first = now.follow(changes.part(0, CLOSELY), self.numbers)
        now.change_all(changes.part(CLOSELY))
        self._answers = [now.answer(number) for number in self.numbers.tolist()]
        self._events = len(changes)
        self._before: tuple[str, IdArray] | None = None

    def check(self, strategy: Strategy, told: _Told) -> None:
        """Raise `AnswerError` if a strategy told something else, or left a subscription with another answer."""
        self._check_first(strategy.name, told.first)
        for number, meant in zip(self.numbers.tolist(), self._answers, strict=True):
            if not is_same(found := known(strategy, number), meant):
                raise AnswerError(
                    f"strategy {strategy.name}, subscription {number}, after event {self._events - 1}: "
                    f"its answer is {found}, and recomputing gives {meant}"
                )
        if self._before is not None:
            name, counts = self._before
            if len(differs := np.flatnonzero(counts != told.counts)):
                event = int(differs[0])
                raise AnswerError(
                    f"strategy {strategy.name}, event {event}: it changes {told.counts[event]:,} answers, "
                    f"and with {name} {counts[event]:,}"
                )
        self._before = strategy.name, told.counts

    def _check_first(self, name: str, told: Sequence[Altered]) -> None:
        for meant, found in zip_longest(self._first, told):
            if meant is None or found is None or found[:2] != meant[:2]:
                # Of the two lists, which are in order, the one that comes first is missing in the other.
                one = min((one for one in (meant, found) if one is not None), key=lambda one: one[:2])
                how = "should be told, and is not" if one is meant else "is told, and should not be"
                words = f"that {one.old} becomes {one.new} {how}"
            elif not (is_same(meant.old, found.old) and is_same(meant.new, found.new)):
                one = found
                words = (
                    f"it is told {found.old} -> {found.new}, and recomputing gives {meant.old} -> {meant.new}"
                )
            else:
                continue
            raise AnswerError(
                f"strategy {name}, subscription {one.subscription}, event {one.change}: {words}"
            )
