"""The state of a shard as bytes, and back; and the states of more shards from those of fewer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
import numpy as np
from msgspec import Struct

from tocsin.formats.packed_events import pack_events, unpack_events
from tocsin.model.errors import SavedError, TocsinError
from tocsin.sharding.correlation import Scheme
from tocsin.sharding.hashing import combined, shards_of, text_hashes, value_hashes
from tocsin.sharding.router import FIRST_GROUP, LatestEnds, Role
from tocsin.sharding.turns import Waiting
from tocsin.structures.archive import Parts, pack, unpack

FORMAT: Final = 1  # raised whenever an older Tocsin could misread it
_SAVED: Final = "tocsin shard"


class ShardState(Struct):
    """All that a shard has to know besides its subscriptions.

    `schemes` are the keys of the groups whose bits the roles of waiting events have; `waiting` is by the length of a tick.
    """

    generation: int
    shard: int
    shards: int
    latest: LatestEnds
    schemes: tuple[Scheme, ...]
    waiting: Mapping[int, Sequence[Waiting]]
    kept: Sequence[Waiting]
    units: Mapping[str, Parts]

    def pack(self) -> bytes:
        """Return the state as bytes."""
        held = [one for some in self.waiting.values() for one in some]
        about: dict[str, Any] = {
            "saved": _SAVED,
            "format": FORMAT,
            "generation": self.generation,
            "shard": self.shard,
            "shards": self.shards,
            "latest": list(self.latest.items()),
            "schemes": self.schemes,
            "waiting": [[tick, len(some)] for tick, some in self.waiting.items()],
            "units": list(self.units),
        }
        parts = {str(position): unit for position, unit in enumerate(self.units.values())}
        whole = Parts.join(about, {**parts, "held": _packed(held), "kept": _packed(self.kept)})
        return pack(whole)

    @classmethod
    def unpack(cls, data: bytes) -> ShardState:
        """Return the state of which these are the bytes, or raise `SavedError`."""
        parts = unpack(data)
        about = parts.about
        if about.get("saved") != _SAVED:
            raise SavedError(f"this is no state of a shard, but a `{about.get('saved')}`")
        if about.get("format") != FORMAT:
            raise SavedError(
                f"the state of this shard is in format {about.get('format')}, this version reads {FORMAT}"
            )
        try:
            held = iter(_unpacked(parts.part("held")))
            waiting = {int(tick): [next(held) for _ in range(count)] for tick, count in about["waiting"]}
            return cls(
                int(about["generation"]),
                int(about["shard"]),
                int(about["shards"]),
                {int(key): int(end) for key, end in about["latest"]},
                msgspec.convert(about["schemes"], tuple[Scheme, ...]),
                waiting,
                _unpacked(parts.part("kept")),
                {name: parts.part(str(position)) for position, name in enumerate(about["units"])},
            )
        except (KeyError, TypeError, ValueError, StopIteration) as fault:
            raise SavedError(f"the state of this shard is damaged: {fault}") from fault

    def of_shard(self, shard: int, shards: int) -> ShardState:
        """Return the part of the state that one of more shards begins with.

        All partial matches go along: of those whose subscription or key belongs elsewhere, `ShardRuntime` drops the former,
        and the latter never meet an event. Events that wait, or are kept, would be processed twice, so each goes where its
        key, or its id, belongs.
        """
        return ShardState(
            self.generation,
            shard,
            shards,
            self.latest,
            self.schemes,
            {
                tick: [here for one in some if (here := self._for_shard(one, shard, shards)) is not None]
                for tick, some in self.waiting.items()
            },
            [one for one in self.kept if int(shards_of(text_hashes([one.event.id]), shards)[0]) == shard],
            self.units,
        )

    def _for_shard(self, waiting: Waiting, shard: int, shards: int) -> Waiting | None:
        """Return an event as it waits at one of more shards; None if nothing there can need it."""
        roles = waiting.roles & Role.HOME
        for number, scheme in enumerate(self.schemes):
            bit = 1 << FIRST_GROUP + number
            if waiting.roles & bit:
                paths = dict(scheme)[waiting.event.stream or ""]
                key = combined([value_hashes([waiting.event.attributes.get(path)]) for path in paths])
                roles |= bit if int(shards_of(key.hashes, shards)[0]) == shard else 0
        return waiting._replace(roles=roles) if roles else None


def reshard(states: Sequence[bytes], shards: int) -> list[bytes]:
    """Return the states of `shards` shards from those of all shards so far, in their order; there are a multiple of these.

    The new shards give, with a plan for as many, the notifications that those so far would have given.
    """
    if not states or shards < 1 or shards % len(states):
        raise TocsinError(
            f"{len(states):,} shards can grow to a multiple of their number, not to {shards:,}; to have fewer, begin anew"
        )
    read = [ShardState.unpack(state) for state in states]
    for shard, state in enumerate(read):
        if (state.shard, state.shards) != (shard, len(read)):
            raise SavedError(
                f"this is the state of shard {state.shard} of {state.shards}, not of {shard} of {len(read)}"
            )
    return [read[shard % len(read)].of_shard(shard, shards).pack() for shard in range(shards)]


def shards_of_state(state: bytes) -> tuple[int, int]:
    """Return which shard a state is of, and how many shards there are."""
    read = ShardState.unpack(state)
    return read.shard, read.shards


def grown(state: bytes, shard: int, shards: int) -> bytes:
    """Return the state that one of more shards begins with, from that of the shard whose number is its own modulo their number so far."""
    read = ShardState.unpack(state)
    if shards % read.shards or shard % read.shards != read.shard:
        raise SavedError(
            f"shard {shard} of {shards} cannot begin with the state of shard {read.shard} of {read.shards}"
        )
    return read.of_shard(shard, shards).pack()


def _packed(held: Iterable[Waiting]) -> Parts:
    every = list(held)
    roles = np.array([one.roles for one in every], dtype=np.int64)
    carried = msgspec.msgpack.encode([one.carried for one in every])
    return Parts(
        {}, {"events": pack_events([one.event for one in every]), "roles": roles, "carried": carried}
    )


def _unpacked(parts: Parts) -> list[Waiting]:
    events = unpack_events(parts.bytes("events"))
    carried = msgspec.msgpack.decode(parts.bytes("carried"), type=list[bytes | None])
    return [
        Waiting(event, role, what)
        for event, role, what in zip(events, parts.array("roles").tolist(), carried, strict=True)
    ]
