"""One shard: its subscriptions, and the events that the router sends to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any, Final

import numpy as np

from tocsin.engine.reorder_buffer import Delay
from tocsin.index.stateful import StatefulRun, StatefulSubscriptions
from tocsin.matching.timed_batch import TimedBatch, TimedRows
from tocsin.model import Event
from tocsin.model.errors import EventError, SavedError
from tocsin.model.options import ALWAYS
from tocsin.model.ticks import Tick
from tocsin.sharding.kept_events import AddedFilters, KeptEvents
from tocsin.sharding.output import OutputWriter, ShardOutput
from tocsin.sharding.plan import HOME, ShardPlan
from tocsin.sharding.router import CLOCK, FIRST_GROUP, LatestEnds, Role, merge_latest
from tocsin.sharding.shard_state import ShardState
from tocsin.sharding.turns import Cause, Turn, Waiting, WaitingRoom
from tocsin.sharding.unit import Unit
from tocsin.structures.archive import Parts
from tocsin.structures.array_types import Int64s

_UNREAD: Final = np.int64(Role.TABLE | Role.KEPT | Role.REPORTS_LATE)  # roles that are none of a sequence
_HOME_NAME: Final = ""  # of the unit of the subscriptions without a key; groups have their own
_NO_UNITS: Final[Mapping[str, Parts]] = {}


class ShardRuntime:
    """Runs the subscriptions that a plan gives to a shard.

    All shards together give the notifications of one engine with all subscriptions that is given the events of each
    call in the order of their end. An event is late if one that ends more than `out_of_orderness` after it came with
    an earlier call, to whatever shard. `stateful` are all subscriptions, of which the plan was made.

    With `state`, which `snapshot` returned for the same shard, the runtime goes on where that one was: subscriptions that
    came or were replaced since then begin now, and those that are gone leave nothing. With `first_answers`, new views
    tell their present answer with the next call.
    """

    def __init__(
        self,
        stateful: StatefulSubscriptions,
        plan: ShardPlan,
        shard: int,
        generation: int,
        *,
        state: bytes | None = None,
        out_of_orderness: Tick = 0,
        memory_limit: int | None = None,
        first_answers: bool = True,
    ) -> None:
        self.shard = shard
        self.generation = generation
        self._delay = Delay.read("out_of_orderness", out_of_orderness)
        self._memory_limit = memory_limit
        self._first_answers = first_answers
        self._plan = plan
        self._latest: LatestEnds = {}
        self._waiting: dict[int, WaitingRoom] = {}  # by the length of a tick
        self._kept = KeptEvents()
        self._units: dict[str, Unit] = {}
        self._pending = OutputWriter(generation)  # what the next call returns besides
        saved = None if state is None else self._restored(ShardState.unpack(state))
        self._follow(stateful, _NO_UNITS if saved is None else saved.units)
        if saved is not None:
            self.generation = saved.generation
            self._change_generation(generation, saved.schemes)

    def migrate(self, stateful: StatefulSubscriptions, plan: ShardPlan, generation: int) -> None:
        """Follow the subscriptions to a later generation.

        Subscriptions that are in both, and on this shard in both, keep their partial matches. New ones, and those that were
        replaced, see what ends after all that has come.
        """
        schemes = tuple(group.scheme for group in self._plan.groups)
        self._plan = plan
        self._change_generation(generation, schemes)
        self._follow(stateful, _NO_UNITS)

    def go_back(self, state: bytes) -> None:
        """Take up a state of the same shard and of the present generation, in place of all that has happened since."""
        saved = ShardState.unpack(state)
        if saved.generation != self.generation:
            raise SavedError(f"this is a state of generation {saved.generation}, not of {self.generation}")
        self._restored(saved)
        self._pending = OutputWriter(self.generation)
        for name, unit in self._units.items():
            unit.saw(self._latest)
            unit.restore(saved.units[name])

    def meet(self, added_filters: AddedFilters) -> None:
        """Have the events that are kept meet filters that came since the generation before; the next call returns them."""
        self._kept.meet(added_filters, self._pending)

    def process(
        self,
        events: TimedBatch,
        roles: Int64s,
        latest: Mapping[int, int],
        *,
        carried: Sequence[bytes | None] | None = None,
    ) -> ShardOutput:
        """Process events in the order of their end, with the roles that the router gave them.

        `latest` are the latest ends of all events that came with this call or before it, to any shard; call it with no events,
        too, since time passes. `carried` has bytes for each event, which notifications return if the event that caused them
        came with an earlier call.
        """
        ends = events.ends
        if (ends[1:] < ends[:-1]).any():
            raise EventError("a shard takes events in the order of their end")
        output, self._pending = self._pending, OutputWriter(self.generation)
        turn = Turn(events, roles, None, carried)
        ready = {tick: self._on_time(tick, own, output) for tick, own in self._by_tick(turn)}
        self._latest = merge_latest((self._latest, latest))
        for position in np.flatnonzero(roles & np.int64(Role.KEPT)).tolist():
            self._kept.add(Waiting(events.event(position), 0, turn.carried(position)))
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
        """Return the state after a call of `process`, for `state=` in any process."""
        if self._pending:
            raise SavedError("there are notifications that no call of `process` has returned yet")
        return ShardState(
            self.generation,
            self.shard,
            self._plan.shards,
            self._latest,
            tuple(group.scheme for group in self._plan.groups),
            {tick: list(room) for tick, room in self._waiting.items() if len(room)},
            list(self._kept),
            {name: unit.snapshot() for name, unit in self._units.items()},
        ).pack()

    # subscriptions

    def _restored(self, saved: ShardState) -> ShardState:
        """Take up all of a state but that of subscriptions."""
        if (saved.shard, saved.shards) != (self.shard, self._plan.shards):
            raise SavedError(
                f"this is the state of shard {saved.shard} of {saved.shards}, not of {self.shard} of {self._plan.shards}; "
                "`reshard` makes states for more shards"
            )
        self._latest = saved.latest
        self._waiting = {tick: WaitingRoom(some) for tick, some in saved.waiting.items()}
        self._kept = KeptEvents(saved.kept)
        self._kept.pass_time(saved.latest.get(CLOCK, ALWAYS))
        return saved

    def _change_generation(self, generation: int, schemes: tuple[Any, ...]) -> None:
        """Give the events that wait the roles of the present groups; `schemes` are the keys of the groups before."""
        self.generation = generation
        self._pending = self._pending.of_generation(generation)
        bits = {
            1 << FIRST_GROUP + old: 1 << FIRST_GROUP + new
            for old, scheme in enumerate(schemes)
            for new, group in enumerate(self._plan.groups)
            if scheme == group.scheme
        }
        for room in self._waiting.values():
            room.change_roles({int(Role.HOME): int(Role.HOME), **bits})

    def _follow(self, stateful: StatefulSubscriptions, saved: Mapping[str, Parts]) -> None:
        """Add and remove subscriptions, so that those are here that the plan has for this shard."""
        wanted = {_HOME_NAME: HOME} | {group.name: number for number, group in enumerate(self._plan.groups)}
        for name in [name for name in self._units if name not in wanted]:
            del self._units[name]
        for name, group in wanted.items():
            runs = self._plan.members(stateful, group, self.shard)
            if runs or name == _HOME_NAME:
                self._follow_unit(name, stateful, runs, saved.get(name))
            else:
                self._units.pop(name, None)

    def _follow_unit(
        self, name: str, stateful: StatefulSubscriptions, runs: list[StatefulRun], saved: Parts | None
    ) -> None:
        unit = self._units.get(name)
        if unit is None:
            unit = self._units[name] = Unit(self._memory_limit)
        wanted = np.concatenate([np.empty(0, dtype=np.int64), *(run.numbers for run in runs)])
        unit.remove(np.setdiff1d(unit.numbers, wanted))
        unit.declare(stateful)
        unit.saw(self._latest)
        if saved is not None:
            for run in _among(runs, Unit.saved_numbers(saved)):
                unit.add(run)
            unit.restore(saved)
        new = _among(runs, np.setdiff1d(wanted, unit.numbers))
        for run in new:
            unit.add(run)
            if self._first_answers:
                unit.first_answers(run, self._pending)

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
        watermark = self._watermark(tick)
        is_late = turn.events.ends < watermark
        if not is_late.any():
            return turn
        for position in np.flatnonzero(is_late & ((turn.roles & np.int64(Role.REPORTS_LATE)) != 0)).tolist():
            end = int(turn.events.ends[position])
            reason = f"it ended at {end}, before the watermark at {watermark}: it is late"
            output.refused(end, reason, turn.cause(position), is_late=True)
        return turn.where(~is_late)

    def _watermark(self, tick: int) -> int:
        latest, delay = self._latest.get(tick, ALWAYS), self._delay.in_ticks(tick)
        return max(latest, ALWAYS + delay) - delay

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
            unit.saw(self._latest)
        self._kept.pass_time(self._latest.get(CLOCK, ALWAYS))


def _among(runs: list[StatefulRun], numbers: Int64s) -> list[StatefulRun]:
    """Return the subscriptions of runs that have these numbers."""
    found = []
    for run in runs:
        is_one = np.isin(run.numbers, numbers)
        if is_one.any():
            found.append(run if is_one.all() else run.take(np.flatnonzero(is_one)))
    return found


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
