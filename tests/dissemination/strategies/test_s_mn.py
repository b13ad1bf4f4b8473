"""S-MN beyond what all strategies have in common: how large its messages are, and how many."""

from __future__ import annotations

import numpy as np
import pytest
from msgspec.structs import replace

from tests.dissemination.worlds import make_world
from tocsin.dissemination.byte_model import ByteModel
from tocsin.dissemination.strategies.s_mn import ServerMulticast


@pytest.mark.parametrize("kind", ["min", "max"])
def test_messages_list_all_affected_subscriptions_and_forwarded_ones_the_rest(kind: str) -> None:
    world = make_world(9, kind=kind, nodes=25, subscriptions=300)
    sizes = ByteModel(field=4, header=3)
    strategy = ServerMulticast(replace(world.setting, byte_model=sizes), world.queries)
    for batch in world.batches:
        outcome = strategy.publish(batch)
        sent, changes = outcome.traffic, outcome.answer_changes
        away = changes.numbers[strategy.gateways[changes.numbers] != world.setting.server]
        ids = (sent.size - sent.messages * sizes.of(1)) // 4
        assert np.array_equal(sent.size, sent.messages * sizes.of(1) + 4 * ids)
        assert ids.min(initial=1) >= 1
        assert ids[sent.sender == world.setting.server].sum() == len(away)
        answers = set(zip(changes.rows.tolist(), changes.numbers.tolist(), strict=True))
        assert len(answers) == len(changes)
        assert outcome.outgoing <= len(changes)


def test_a_new_answer_of_many_is_one_message() -> None:
    world = make_world(2, nodes=12, subscriptions=200)
    lowest = type(world.batches[0])(*(np.array([one]) for one in (np.nan, np.nan, 15.0, -5.0)))
    outcome = ServerMulticast(world.setting, world.queries).publish(lowest)
    around = (world.queries.lows <= 15) & (world.queries.highs >= 15)
    assert sorted(outcome.answer_changes.numbers.tolist()) == np.flatnonzero(around).tolist()
    assert outcome.outgoing == 1
    assert len(outcome.traffic) == len(set(outcome.traffic.receiver.tolist()))
