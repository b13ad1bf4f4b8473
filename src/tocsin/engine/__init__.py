"""The engine: subscribe, publish, and hear what was asked for."""

from tocsin.engine.clock import Clock, EventClock, ManualClock, SystemClock
from tocsin.engine.engine import Engine
from tocsin.engine.results import (
    AnswerChanges,
    EngineStats,
    Followed,
    HeldSequences,
    HeldViews,
    NamedMatches,
    Trial,
)
from tocsin.language.explanation import EventExplanation
from tocsin.sequences.explanation import SequenceExplanation
from tocsin.subscriptions.results import Difference, Subscribed, SubscribedMany
from tocsin.views.explanation import ViewExplanation

__all__ = [
    "AnswerChanges",
    "Clock",
    "Difference",
    "Engine",
    "EngineStats",
    "EventClock",
    "EventExplanation",
    "Followed",
    "HeldSequences",
    "HeldViews",
    "ManualClock",
    "NamedMatches",
    "SequenceExplanation",
    "Subscribed",
    "SubscribedMany",
    "SystemClock",
    "Trial",
    "ViewExplanation",
]
