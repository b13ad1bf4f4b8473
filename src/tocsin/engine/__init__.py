"""The engine: subscribe, publish, and get notifications."""

from tocsin.engine.clock import Clock, EventClock, ManualClock, SystemClock
from tocsin.engine.engine import Engine
from tocsin.engine.results import (
    DryRun,
    EngineStats,
    NamedAnswerChanges,
    NamedMatches,
    NamedSequenceMatches,
)
from tocsin.language.explanation import EventExplanation
from tocsin.sequences.explanation import SequenceExplanation
from tocsin.sequences.runtime import SequenceRuntimeStats
from tocsin.subscriptions.results import Difference, Subscribed, SubscribedMany
from tocsin.views.explanation import ViewExplanation
from tocsin.views.runtime import ViewStats

__all__ = [
    "Clock",
    "Difference",
    "DryRun",
    "Engine",
    "EngineStats",
    "EventClock",
    "EventExplanation",
    "ManualClock",
    "NamedAnswerChanges",
    "NamedMatches",
    "NamedSequenceMatches",
    "SequenceExplanation",
    "SequenceRuntimeStats",
    "Subscribed",
    "SubscribedMany",
    "SystemClock",
    "ViewExplanation",
    "ViewStats",
]
