"""Strategies side by side over one scenario, each with its answers checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Final

import numpy as np
from msgspec import Struct

from tocsin.dissemination.scenarios import answer_oracle
from tocsin.dissemination.scenarios.answer_oracle import AlteredAnswer, is_same
from tocsin.dissemination.scenarios.scenario import Prepared, Scenario, prepare
from tocsin.dissemination.scenarios.walks import in_batches
from tocsin.dissemination.simulator import SimulationResult, simulate
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.strategies.strategy import Outcome, Strategy
from tocsin.matching import IdArray
from tocsin.model.errors import TocsinError

SAMPLE: Final = 200  # subscriptions whose answers are recomputed
CLOSELY: Final = 100  # events whose every answer change is checked


class AnswerError(TocsinError):
    """A strategy left a subscription with a wrong answer, or changed it at a wrong event."""


class UpdateKinds(Struct, frozen=True):
    """The numbers of updates that a server reformulates into no message, one, or several."""

    ignorable: int
    one_message: int
    several_messages: int


def count_update_kinds(prepared: Prepared) -> UpdateKinds:
    """Return how many of a scenario's updates are of each kind."""
    messages = prepared.queries.new_server().reformulate(prepared.changes)
    counts = np.bincount(messages.change, minlength=len(prepared.changes))
    return UpdateKinds(*(int(np.count_nonzero(kind)) for kind in (counts == 0, counts == 1, counts > 1)))


def warm_up(kind: str, names: Sequence[str]) -> None:
    """Run strategies on a small scenario, so that kernels are compiled before anything is timed."""
    small = Scenario(kind=kind, nodes=4, physical=40, subscriptions=50, rows=20, events=40, spikes=0.2)
    prepared = prepare(small)
    for name in names:
        simulate(strategy_named(name)(prepared.setting, prepared.queries), [prepared.changes])


def compare(
    prepared: Prepared,
    names: Sequence[str | type[Strategy]],
    batch: int,
    progress: Callable[[str, int], None] = lambda *_: None,
) -> Iterator[SimulationResult]:
    """Yield the costs of each strategy, given by name or as a class, over a scenario's changes.

    `progress` gets the strategy and the number of events of each batch. Raise `AnswerError` at the first strategy that
    gives a wrong answer, or that changes another number of answers at some event than the strategy before.
    """
    checks = _Checks(prepared)
    for one in names:
        name, made_by = (one, strategy_named(one)) if isinstance(one, str) else (one.name, one)
        strategy = made_by(prepared.setting, prepared.queries)
        changed = _AnswerLog(checks.numbers)

        def watch(outcome: Outcome, events: int, name: str = name, changed: _AnswerLog = changed) -> None:
            changed.add(outcome, events)
            progress(name, events)

        # The first events are a batch of their own: they are checked one by one.
        changes = prepared.changes
        first, others = changes.part(0, CLOSELY), in_batches(changes, batch, CLOSELY)
        result = simulate(strategy, [first, *others], watch)
        checks.check(strategy, changed)
        yield result


class _AnswerLog:
    """The answers that a strategy changed: of a sample in the first batch, and how many at every event."""

    def __init__(self, numbers: IdArray) -> None:
        self._numbers = numbers
        self._counts: list[IdArray] = []
        self.first: list[AlteredAnswer] = []

    def add(self, outcome: Outcome, events: int) -> None:
        changed = outcome.answer_changes
        if not self._counts:
            self.first = answer_oracle.sampled_changes(changed, self._numbers)
        self._counts.append(np.bincount(changed.rows, minlength=events))

    @property
    def counts(self) -> IdArray:
        return np.concatenate(self._counts)


class _Checks:
    """The recomputed answers of a sample of subscriptions, and the counts of the strategy before."""

    def __init__(self, prepared: Prepared) -> None:
        changes = prepared.changes
        self.numbers = answer_oracle.sample_numbers(len(prepared.queries), SAMPLE)
        now = answer_oracle.definition_of(prepared)
        self._first = now.apply_changes(changes.part(0, CLOSELY), self.numbers)
        now.change_all(changes.part(CLOSELY))
        self._answers = {number: now.answer(number) for number in self.numbers.tolist()}
        self._events = len(changes)
        self._before: tuple[str, IdArray] | None = None

    def check(self, strategy: Strategy, changed: _AnswerLog) -> None:
        """Raise `AnswerError` if a strategy made other changes, or left a subscription with another answer."""
        self._check_first(strategy.name, changed.first)
        if wrong := answer_oracle.first_difference(strategy.answer, self._answers):
            number, found, expected = wrong
            raise AnswerError(
                f"strategy {strategy.name}, subscription {number}, after event {self._events - 1}: "
                f"its answer is {found}, and recomputing gives {expected}"
            )
        if self._before is not None:
            name, counts = self._before
            if len(differs := np.flatnonzero(counts != changed.counts)):
                event = int(differs[0])
                raise AnswerError(
                    f"strategy {strategy.name}, event {event}: it changes {changed.counts[event]:,} answers, "
                    f"and with {name} {counts[event]:,}"
                )
        self._before = strategy.name, changed.counts

    def _check_first(self, name: str, actual: Sequence[AlteredAnswer]) -> None:
        """Raise `AnswerError` at the first change of an answer that differs from the recomputed one."""
        for expected, found in zip_longest(self._first, actual):
            if expected is None or found is None or found[:2] != expected[:2]:
                # Both lists are sorted, so the lesser entry is missing in the other one.
                one = min((one for one in (expected, found) if one is not None), key=lambda one: one[:2])
                how = "is missing" if one is expected else "is wrong"
                words = f"the change {one.old} -> {one.new} {how}"
            elif not (is_same(expected.old, found.old) and is_same(expected.new, found.new)):
                one = found
                made, right = f"{found.old} -> {found.new}", f"{expected.old} -> {expected.new}"
                words = f"it changes {made}, and recomputing gives {right}"
            else:
                continue
            where = f"strategy {name}, subscription {one.subscription}, event {one.change}"
            raise AnswerError(f"{where}: {words}")
