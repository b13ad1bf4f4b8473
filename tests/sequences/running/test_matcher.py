"""The runtime obeys the contract in every mode, and with any matcher."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.sequences.contract import CONTRACT, Subject
from tocsin.model import Sequence
from tocsin.sequences.compiling.compiler import CompiledSequence, compile_sequence
from tocsin.sequences.modes import MODES
from tocsin.sequences.running.matcher import AutomatonMatcher

_AGREEING = [name for name in CONTRACT if name.startswith(("agrees_", "finds_"))]


def _subject(mode: str, matcher: str | None = None, *, share: float) -> Subject:
    chosen = MODES[mode]

    def ready(query: Sequence, ticks: Mapping[str, int], *, full: bool) -> CompiledSequence:
        return compile_sequence(query, ticks, mode=chosen, full=full)

    return Subject(lambda: AutomatonMatcher(matcher=matcher, mode=chosen), ready, share)


@pytest.mark.parametrize("check", CONTRACT)
def test_the_runtime_obeys(check: str) -> None:
    CONTRACT[check](_subject("cayuga", share=0.25))


@pytest.mark.parametrize("check", _AGREEING)
@pytest.mark.parametrize("mode", [mode for mode in MODES if mode != "cayuga"])
def test_every_mode_obeys(mode: str, check: str) -> None:
    CONTRACT[check](_subject(mode, share=0.1))


@pytest.mark.parametrize("matcher", ["oracle", "opindex", "dynamic", "amkh"])
def test_every_matcher_serves(matcher: str) -> None:
    CONTRACT["agrees_while_subscriptions_come_and_go"](_subject("cayuga", matcher, share=0.1))
