"""CN+ and DS-CN: every message that decision 0034 speaks of is sent, at its step and of its size, and no other."""

from __future__ import annotations

import os

import numpy as np
import pytest
from msgspec.structs import replace

from tests.dissemination.strategies.plain import Line, Plain, PlainCutoff, PlainDistributed
from tests.dissemination.worlds import make_world
from tocsin.dissemination.byte_model import ByteModel
from tocsin.dissemination.can.construction import Splitting
from tocsin.dissemination.strategies.registry import strategy_named
from tocsin.dissemination.traffic import Traffic

LONG = os.environ.get("TOCSIN_TEST_PROFILE") == "long"
SIZES = ByteModel(field=4, header=3)


def lines_of(sent: Traffic, event: int) -> list[Line]:
    """Return an event's messages, each with its fields."""
    of = sent.event == event
    assert (sent.messages[of] == 1).all()
    fields, rest = np.divmod(sent.size[of] - SIZES.header, SIZES.field)
    assert not rest.any()
    columns = (sent.role[of], sent.sender[of], sent.receiver[of], fields, sent.step[of])
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("kind", ["min", "max"])
@pytest.mark.parametrize(("name", "plain"), [("CN+", PlainCutoff), ("DS-CN", PlainDistributed)])
def test_messages_follow_the_rules_of_the_paper(name: str, plain: type[Plain], kind: str) -> None:
    for seed in range(60 if LONG else 4):
        world = make_world(seed, kind=kind, nodes=(40, 3, 12)[seed % 3], splitting=list(Splitting)[-seed % 3])
        setting = replace(world.setting, byte_model=SIZES)
        strategy, expected = strategy_named(name)(setting, world.queries), plain(setting, world.queries)
        for batch in world.batches:
            sent = strategy.publish(batch).traffic
            for event, lines in enumerate(expected.follow(batch)):
                assert lines_of(sent, event) == lines, f"seed {seed}, event {event}"
