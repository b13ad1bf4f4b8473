"""The runtime obeys the contract in every mode, and with any matcher."""

from __future__ import annotations

import pytest

from tests.sequences.contract import CONTRACT, Subject
from tocsin.model import Sequence
from tocsin.sequences.modes import MODES
from tocsin.sequences.preparation import prepare
from tocsin.sequences.runner import Prepared
from tocsin.sequences.running.sequences import Sequences
from tocsin.sequences.ticks import Ticks


def _subject(mode: str, matcher: str | None = None) -> Subject:
    chosen = MODES[mode]

    def ready(query: Sequence, ticks: Ticks, *, full: bool) -> Prepared:
        return prepare(query, ticks, index_edges=chosen.edges, index_filters=chosen.instances, full=full)

    return Subject(lambda: Sequences(matcher=matcher, mode=chosen), ready)


@pytest.mark.parametrize("check", CONTRACT)
@pytest.mark.parametrize("mode", MODES)
def test_every_mode_obeys(mode: str, check: str) -> None:
    CONTRACT[check](_subject(mode))
