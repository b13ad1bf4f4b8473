"""One shard: its subscriptions, and the events that the router sends to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np

from tocsin.engine.reorder_buffer import Delay
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model import Event
from tocsin.model.errors import EventError, TocsinError
from tocsin.model.options import ALWAYS
from tocsin.model.ticks import Tick
from tocsin.sharding.kept_events import KeptEvents
from tocsin.sharding.output import OutputWriter, ShardOutput
from tocsin.sharding.plan import HOME, ShardPlan
from tocsin.sharding.router import CLOCK, FIRST_GROUP, LatestEnds, Role, merge_latest
from tocsin.sharding.stateful import StatefulRun, StatefulSubscriptions
from tocsin.sharding.turns import Cause, Turn, WaitingRoom
from tocsin.sharding.unit import Unit
from tocsin.structures.array_types import Int64s

_UNREAD: Final = np.int64(Role.TABLE | Role.KEPT | Role.REPORTS_LATE)  # roles that are none of a sequence
_HOME_NAME: Final = ""  # of the unit of the subscriptions without a key; groups have their own


class ShardRuntime:
    """Runs the subscriptions that a plan gives to a shard.

    All shards together give the notifications of one engine with all subscriptions that is given the events of each
    call in the order of their end. An event is late if one that ends more than `out_of_orderness` after it came with
    an earlier call, to whatever shard.

    With `state`, which `snapshot` returned for the same shard, the runtime goes on where that one was: subscriptions that
    were added or replaced since then begin now, and those that are gone leave nothing.
    """

    def __init__(
        self,
        stateful: StatefulSubscriptions,
        plan: ShardPlan,
        shard: int,
        generation: int,
        state: bytes | None = None,
        *,
        out_of_orderness: Tick = 0,
        first_answers: bool = True,
    ) -> None:
        if state is not None:
            raise TocsinError("the state of a shard cannot be restored yet")
        self.shard = shard
        self.generation = generation
        self._delay = Delay.read("out_of_orderness", out_of_orderness)
        self._first_answers = first_answers
        self._plan = plan
        self._latest: LatestEnds = {}
        self._waiting: dict[int, WaitingRoom] = {}  # by the length of a tick
        self._kept = KeptEvents()
        self._units: dict[str, Unit] = {}
        self._pending = OutputWriter(generation)  # what the next call returns besides
        self._follow(stateful, plan, known=ALWAYS)

    def migrate(
        self,
        stateful: StatefulSubscriptions,
        plan: ShardPlan,
        generation: int,
        added_filters: StatefulSubscriptions | None = None,
    ) -> None:
        """Follow the subscriptions to a later generation.

        Subscriptions that are in both, and on this shard in both, keep their partial matches. New ones, and those that were
        replaced, see what ends after all that has come; new views tell their present answer with the next call.
        `added_filters` are the filters of all kinds that came since; each event that is kept meets them once.
        """
        known, self.generation = self.generation, generation
        self._pending = self._pending.of_generation(generation)
        bits = {
            1 << FIRST_GROUP + old: 1 << FIRST_GROUP + new
            for old, one in enumerate(self._plan.groups)
            for new, other in enumerate(plan.groups)
            if one.name == other.name
        }
        for room in self._waiting.values():
            room.change_roles({int(Role.HOME): int(Role.HOME), **bits})
        self._plan = plan
        self._follow(stateful, plan, known=known)
        if added_filters is not None:
            self._kept.meet(added_filters, self._pending)

    def process(
        self,
        events: TimedBatch,
        roles: Int64s,
        latest: Mapping[int, int],
        *,
        carried: Sequence[Any] | None = None,
    ) -> ShardOutput:
        """Process events in the order of their end, with the roles that the router gave them.

        `latest` are the latest ends of all events that came with this call or before it, to any shard; call it with no events,
        too, since time passes. `carried` has bytes for each event, which notifications return with the event that caused
        them.
        """
        ends = events.ends
        if (ends[1:] < ends[:-1]).any():
            raise EventError("a shard takes events in the order of their end")
        output, self._pending = self._pending, OutputWriter(self.generation)
        turn = Turn(events, roles, None, carried)
        ready = {tick: self._on_time(tick, own, output) for tick, own in self._by_tick(turn)}
        self._latest = merge_latest((self._latest, latest))
        self._keep(turn)
        turns = {}
        for tick in {*ready, *self._waiting}:
            room = self._waiting.setdefault(tick, WaitingRoom())
            turns[tick] = room.pass_through(ready.get(tick, turn.take(np.arange(0))), self._watermark(tick))
        self._run(turn, turns, output)
        self._pass_time()
        return output.output()

    def finish(self) -> ShardOutput:
        """Process the events that wait, whatever may come, and return the notifications; nothing comes after it."""
        output, self._pending = self._pending, OutputWriter(self.generation)
        turns = {tick: room.flush() for tick, room in self._waiting.items()}
        self._run(Turn(TimedBatch([]), np.empty(0, dtype=np.int64)), turns, output)
        return output.output()

    def snapshot(self) -> bytes:
        """Return the state as it is, for `state=` in any process."""
        raise TocsinError("the state of a shard cannot be saved yet")

    # subscriptions

    def _follow(self, stateful: StatefulSubscriptions, plan: ShardPlan, known: int) -> None:
        """Add and remove subscriptions; those of generations up to `known` are kept where they are."""
        wanted = {_HOME_NAME: HOME} | {group.name: number for number, group in enumerate(plan.groups)}
        for name in [name for name in self._units if name not in wanted]:
            del self._units[name]
        for name, group in wanted.items():
            runs = [
                run.take(members)
                for number, run in enumerate(stateful.runs)
                if len(members := plan.members(number, group, self.shard))
            ]
            if runs or name in self._units or name == _HOME_NAME:
                self._follow_unit(name, stateful, runs, known)

    def _follow_unit(
        self, name: str, stateful: StatefulSubscriptions, runs: list[StatefulRun], known: int
    ) -> None:
        unit = self._units.get(name)
        if unit is None:
            unit = self._units[name] = Unit()
        present = set(unit.ids)
        kept: set[str] = set()
        new: list[StatefulRun] = []
        for run in runs:
            if not present:
                new.append(run)
                continue
            is_kept = [
                id_ in present and since <= known
                for id_, since in zip(run.ids, run.since.tolist(), strict=True)
            ]
            kept.update(id_ for id_, one in zip(run.ids, is_kept, strict=True) if one)
            if not all(is_kept):
                new.append(run.take(np.flatnonzero(~np.array(is_kept, dtype=np.bool_))))
        unit.remove(present - kept)
        unit.declare(stateful)
        unit.saw({tick: end for tick, end in self._latest.items() if tick != CLOCK})
        for run in new:
            unit.add(run)
        if self._first_answers:
            unit.first_answers((id_ for run in new for id_ in run.ids), self._pending)

    # events

    def _by_tick(self, turn: Turn) -> list[tuple[int, Turn]]:
        """Return the events that sequences read, by the length of the tick of their stream."""
        for_sequences = (turn.roles & ~_UNREAD) != 0
        if not for_sequences.any():
            return []
        lengths = _tick_lengths(turn.events, self._plan.ticks)
        if isinstance(lengths, int):
            return [(lengths, turn.where(for_sequences))]
        return [
            (tick, turn.where(for_sequences & (lengths == tick)))
            for tick in np.unique(lengths[for_sequences]).tolist()
        ]

    def _on_time(self, tick: int, turn: Turn, output: OutputWriter) -> Turn:
        """Return the events that are not late, and report those that are."""
        is_late = turn.events.ends < self._watermark(tick)
        if not is_late.any():
            return turn
        for position in np.flatnonzero(is_late & ((turn.roles & Role.REPORTS_LATE) != 0)).tolist():
            end = int(turn.events.ends[position])
            reason = f"it ended at {end}, before the watermark at {self._watermark(tick)}: it is late"
            output.refused(end, reason, turn.cause(position))
        return turn.where(~is_late)

    def _watermark(self, tick: int) -> int:
        latest = self._latest.get(tick, ALWAYS)
        return max(latest, ALWAYS + self._delay.in_ticks(tick)) - self._delay.in_ticks(tick)

    def _keep(self, turn: Turn) -> None:
        for position in np.flatnonzero(turn.roles & Role.KEPT).tolist():
            self._kept.add(turn.events.event(position))

    def _run(self, turn: Turn, turns: Mapping[int, Turn], output: OutputWriter) -> None:
        """Give rows of tables to views, and events whose turn has come to sequences."""
        for number, group in enumerate(self._plan.groups):
            unit = self._units.get(group.name)
            if unit is not None:
                for tick, own in turns.items():
                    unit.run_sequences(_of_role(own, 1 << FIRST_GROUP + number), tick, output)
        home = self._units[_HOME_NAME]
        rows = _of_role(turn, Role.TABLE)
        of_home = {tick: _of_role(own, Role.HOME) for tick, own in turns.items()}
        if home.feeds_tables:
            _run_in_turn(home, rows, of_home, output)
            return
        home.update_tables(_events(rows), (), output)
        for tick, own in of_home.items():
            home.run_sequences(own, tick, output)

    def _pass_time(self) -> None:
        for unit in self._units.values():
            unit.saw({tick: end for tick, end in self._latest.items() if tick != CLOCK})
        self._kept.pass_time(self._latest.get(CLOCK, ALWAYS))


def _of_role(turn: Turn, bit: int) -> Turn:
    return turn.where((turn.roles & np.int64(bit)) != 0)


def _events(turn: Turn) -> list[tuple[Cause, Event]]:
    turn.events.read_ahead(np.arange(len(turn)))
    return [(turn.cause(position), turn.events.event(position)) for position in range(len(turn))]


def _run_in_turn(home: Unit, rows: Turn, turns: Mapping[int, Turn], output: OutputWriter) -> None:
    """Run the unit event by event, since what its sequences publish are rows of tables among others.

    Of one event, the row itself comes first, and then what it makes sequences publish.
    """
    steps: list[
        tuple[int, int, int, Turn]
    ] = []  # an end, a row (-1 if the event had waited), a tick; 0 for a table
    for tick, own in ((0, rows), *turns.items()):
        parts = (own.take(np.array([position])) for position in range(len(own)))
        steps += [(int(one.events.ends[0]), int(one.rows(1)[0]), tick, one) for one in parts]
    steps.sort(key=itemgetter(0, 1))
    for (_, row), same in groupby(steps, key=itemgetter(0, 1)):
        every = list(same)
        for some in [every] if row >= 0 else [[one] for one in every]:
            of_table = [one for *_, tick, one in some if not tick]
            published = [
                new for *_, tick, one in some if tick for new in home.run_sequences(one, tick, output)
            ]
            home.update_tables([pair for one in of_table for pair in _events(one)], published, output)


def _tick_lengths(events: TimedBatch, ticks: Mapping[str, int]) -> int | Int64s:
    """Return the length of a tick of each event's stream, or one for all."""
    if not ticks:
        return 1
    if events.single_stream is not None:
        return ticks.get(events.single_stream, 1)
    if isinstance(events, TimedRows):
        lengths = np.ones(len(events), dtype=np.int64)
        for name in events.stream_names:
            lengths[events.rows_of(name)] = ticks.get(name or "", 1)
        return lengths
    each = [ticks.get(events.stream(row) or "", 1) for row in range(len(events))]
    return np.array(each, dtype=np.int64)
