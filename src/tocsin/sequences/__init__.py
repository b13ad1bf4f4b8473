"""Sequences: subscriptions over many events, by shared automata."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tocsin.sequences.modes import MODES, Optimisations

if TYPE_CHECKING:
    from tocsin.sequences.running.matcher import AutomatonMatcher, SequenceStats

__all__ = ["MODES", "AutomatonMatcher", "Optimisations", "SequenceStats"]


def __getattr__(name: str) -> Any:
    """Import the matcher on first use: it imports Numba, which takes its time."""
    if name not in ("SequenceStats", "AutomatonMatcher"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tocsin.sequences.running import matcher  # noqa: PLC0415

    return getattr(matcher, name)
